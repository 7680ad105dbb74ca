//! The back gateway that asks: who serves its program, and to whom it goes.
//!
//! | state | a query is due | an answer comes | the one in use fails |
//! |---|---|---|---|
//! | nobody known | asked again after [`QUICK`], doubling up to the period, or [`SLOW`] if that is less | it is known | |
//! | somebody known | asked again each period | known, or known again | another is used; asked again soon |
//!
//! A query that could not be sent ([`Seeker::unsent`]) counts as none, and is tried again after [`QUICK`]. Two are never closer than
//! that, whatever fails. Each has an xid of its own, out of the generator: an answer to any but the last two is not taken. Who has not
//! answered for [`MISSED`] periods is forgotten; who failed is used again only when all others have failed later. The one in
//! use stays in use as long as it is known and does not fail: connections of one client go to one appliance.

use crate::rpcbind;
use rand::{Rng, RngExt};
use rpcrdma_wire::Xid;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Time between the first queries while nobody is known.
pub const QUICK: Duration = Duration::from_millis(250);
/// The longest time between queries while nobody is known.
pub const SLOW: Duration = Duration::from_secs(10);
/// Periods without an answer after which somebody is forgotten.
pub const MISSED: u32 = 3;
/// Places known at once: more answers than that are counted and not taken.
pub const KNOWN: usize = 64;

/// What is sought, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// RPC program.
    pub program: u32,
    /// Its version: what a plain rpcbind is asked for; appliances answer for any.
    pub version: u32,
    /// Time between queries when somebody is known. At least [`QUICK`].
    pub period: Duration,
}

rpcrdma_listed::listed! {
    /// Why a datagram is not taken as an answer. One counter each.
    pub Unheard {
        /// The source filter does not let it pass.
        NotAllowed,
        /// No reply, or of another query.
        NotMine,
        /// A failure, or a list that cannot be read.
        Broken,
        /// No place over RDMA in it.
        NoPlace,
        /// As many are known as can be.
        Full,
    }
}

/// What was asked and heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeekCounts {
    /// Queries.
    pub asked: u64,
    /// Answers taken.
    pub heard: u64,
    /// Times that another place came into use because one failed or was not heard of any more.
    pub moved: u64,
    /// Datagrams not taken, by [`Unheard`].
    pub unheard: [u64; Unheard::COUNT],
}

/// A place that was answered with.
#[derive(Clone, Copy, Debug)]
struct Place {
    address: SocketAddr,
    heard: Instant,
    failed: Option<Instant>,
}

/// Seeks one program in one group.
pub struct Seeker {
    wish: Wish,
    places: Vec<Place>,
    /// Where connections go now.
    in_use: Option<SocketAddr>,
    /// Where they went last, in use or not.
    went: Option<SocketAddr>,
    /// The last query, and the one before.
    last: [Option<Xid>; 2],
    asked: Option<Instant>,
    due: Option<Instant>,
    /// Time until the next query while nobody is known.
    patience: Duration,
    counts: SeekCounts,
}

impl Seeker {
    /// Begins with a query that is due at once.
    #[must_use]
    pub const fn new(wish: Wish) -> Self {
        Self {
            wish,
            places: Vec::new(),
            in_use: None,
            went: None,
            last: [None; 2],
            asked: None,
            due: None,
            patience: QUICK,
            counts: SeekCounts {
                asked: 0,
                heard: 0,
                moved: 0,
                unheard: [0; Unheard::COUNT],
            },
        }
    }

    /// What was asked and heard so far.
    #[must_use]
    pub const fn counts(&self) -> &SeekCounts {
        &self.counts
    }

    /// When [`Seeker::query`] has one; `None`: now.
    #[must_use]
    pub const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The next query, to be sent to the group, if one is due; forgets who has not been heard for too long.
    pub fn query(&mut self, now: Instant, random: &mut impl Rng) -> Option<Vec<u8>> {
        if self.due.is_some_and(|due| now < due) {
            return None;
        }
        let old = self.wish.period * MISSED;
        self.places
            .retain(|place| now.saturating_duration_since(place.heard) < old);
        let wait = self.next_wait();
        // Within a quarter: appliances that started together do not ask together for ever.
        let jitter = random.random_range(0..=wait.as_micros() / 4);
        let jitter = Duration::from_micros(u64::try_from(jitter).unwrap_or_default());
        self.due = Some(now + wait + jitter);
        let xid = Xid(random.random());
        self.last = [Some(xid), self.last[0]];
        self.asked = Some(now);
        self.counts.asked += 1;
        Some(rpcbind::emit_query(
            xid,
            self.wish.program,
            self.wish.version,
        ))
    }

    fn next_wait(&mut self) -> Duration {
        if self.places.is_empty() {
            let wait = self.patience;
            self.patience = (wait * 2).min(self.wish.period).min(SLOW);
            wait
        } else {
            self.patience = QUICK;
            self.wish.period
        }
    }

    /// Takes a datagram that came to where queries are sent from; `allowed` is the source filter's word about its sender.
    ///
    /// # Errors
    ///
    /// [`Unheard`]: counted.
    pub fn heard(&mut self, datagram: &[u8], allowed: bool, now: Instant) -> Result<(), Unheard> {
        let taken = self.take(datagram, allowed, now);
        match taken {
            Ok(()) => self.counts.heard += 1,
            Err(why) => self.counts.unheard[why.index()] += 1,
        }
        taken
    }

    fn take(&mut self, datagram: &[u8], allowed: bool, now: Instant) -> Result<(), Unheard> {
        if !allowed {
            return Err(Unheard::NotAllowed);
        }
        let xid = rpcbind::reply_to(datagram);
        if xid.is_none() || !self.last.contains(&xid) {
            return Err(Unheard::NotMine);
        }
        let told = rpcbind::parse_address_list(datagram).ok_or(Unheard::Broken)?;
        if told.is_empty() {
            return Err(Unheard::NoPlace);
        }
        told.into_iter()
            .try_for_each(|address| self.know(address, now))
    }

    fn know(&mut self, address: SocketAddr, now: Instant) -> Result<(), Unheard> {
        if let Some(place) = self.places.iter_mut().find(|it| it.address == address) {
            place.heard = now;
            return Ok(());
        }
        if self.places.len() == KNOWN {
            return Err(Unheard::Full);
        }
        self.places.push(Place {
            address,
            heard: now,
            failed: None,
        });
        Ok(())
    }

    /// The last query could not be sent: it does not count, and is tried again soon.
    pub fn unsent(&mut self, now: Instant) {
        self.counts.asked = self.counts.asked.saturating_sub(1);
        self.patience = QUICK;
        self.due = Some(now + QUICK);
    }

    /// A connection there could not be made, or is gone: another is used from now on, and the group asked again soon.
    pub fn failed(&mut self, address: SocketAddr, now: Instant) {
        if let Some(place) = self.places.iter_mut().find(|it| it.address == address) {
            place.failed = Some(now);
        }
        if self.in_use == Some(address) {
            self.in_use = None;
            let soon = self.asked.map_or(now, |asked| now.max(asked + QUICK));
            self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
        }
    }

    /// Where the next connection goes; `None` while nobody is known.
    pub fn choose(&mut self) -> Option<SocketAddr> {
        let known = |address| self.places.iter().any(|it| it.address == address);
        if let Some(address) = self.in_use.filter(|&address| known(address)) {
            return Some(address);
        }
        // `None` is before every instant: who never failed comes first, then who failed longest ago; among equals the
        // first heard of.
        let best = self.places.iter().min_by_key(|place| place.failed)?;
        self.in_use = Some(best.address);
        let before = self.went.replace(best.address);
        self.counts.moved += u64::from(before.is_some_and(|before| before != best.address));
        self.in_use
    }

    /// All that are known.
    pub fn known(&self) -> impl Iterator<Item = SocketAddr> {
        self.places.iter().map(|place| place.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use rpcrdma_wire::rpc::peek;

    const WISH: Wish = Wish {
        program: 100_003,
        version: 3,
        period: Duration::from_secs(4),
    };

    struct Bench {
        seeker: Seeker,
        random: StdRng,
        now: Instant,
    }

    fn place(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 1, 0, last], 20049))
    }

    impl Bench {
        fn new() -> Self {
            Self {
                seeker: Seeker::new(WISH),
                random: StdRng::seed_from_u64(1),
                now: Instant::now(),
            }
        }

        fn query(&mut self) -> Xid {
            let due = self.seeker.due().unwrap_or(self.now);
            self.now = self.now.max(due);
            let query = self.seeker.query(self.now, &mut self.random).unwrap();
            peek(&query).unwrap().0
        }

        fn answers(&mut self, xid: Xid, places: &[SocketAddr]) -> Result<(), Unheard> {
            let reply = rpcbind::emit_address_list(xid, places);
            self.seeker.heard(&reply, true, self.now)
        }

        fn knowing(places: &[SocketAddr]) -> Self {
            let mut bench = Self::new();
            let xid = bench.query();
            bench.answers(xid, places).unwrap();
            bench
        }
    }

    #[test]
    fn asks_at_once_then_less_and_less_while_nobody_answers() {
        let mut bench = Bench::new();
        let mut before = bench.now;
        bench.query();
        assert_eq!(bench.now, before, "the first is due at once");
        for wait_ms in [250, 500, 1000, 2000, 4000, 4000] {
            before = bench.now;
            bench.query();
            let waited = (bench.now - before).as_millis();
            assert!((wait_ms..=wait_ms * 5 / 4).contains(&waited), "{waited} ms");
        }
        assert_eq!(bench.seeker.choose(), None);
    }

    #[test]
    fn a_query_that_was_not_sent_is_none() {
        let mut bench = Bench::new();
        for _ in 0..20 {
            bench.query();
            bench.seeker.unsent(bench.now);
            assert_eq!(bench.seeker.due(), Some(bench.now + QUICK));
        }
        assert_eq!(bench.seeker.counts().asked, 0);
    }

    #[test]
    fn two_queries_keep_their_distance_whatever_fails() {
        let mut bench = Bench::knowing(&[place(1)]);
        for _ in 0..5 {
            let asked = bench.now;
            bench.seeker.choose();
            bench.seeker.failed(place(1), bench.now);
            bench.query();
            assert!(bench.now - asked >= QUICK);
        }
    }

    #[test]
    fn nothing_is_due_in_between() {
        let mut bench = Bench::new();
        bench.query();
        assert_eq!(bench.seeker.query(bench.now, &mut bench.random), None);
    }

    #[test]
    fn only_an_answer_to_the_last_query_counts() {
        let mut bench = Bench::new();
        let unasked = bench.answers(Xid(0), &[place(1)]);
        assert_eq!(unasked, Err(Unheard::NotMine));
        let old = bench.query();
        let before = bench.query();
        let new = bench.query();
        assert_eq!(bench.answers(old, &[place(1)]), Err(Unheard::NotMine));
        assert_eq!(bench.answers(before, &[]), Err(Unheard::NoPlace));
        assert_eq!(bench.answers(new, &[]), Err(Unheard::NoPlace));
        assert_eq!(bench.answers(new, &[place(1)]), Ok(()));
        assert_eq!(bench.seeker.choose(), Some(place(1)));
        let mut cut = rpcbind::emit_address_list(new, &[place(2)]);
        cut.pop();
        let broken = bench.seeker.heard(&cut, true, bench.now);
        assert_eq!(broken, Err(Unheard::Broken));
        let filtered = bench.seeker.heard(&cut, false, bench.now);
        assert_eq!(filtered, Err(Unheard::NotAllowed));
        assert_eq!(bench.seeker.counts().unheard, [1, 2, 1, 2, 0]);
        assert_eq!(bench.seeker.counts().heard, 1);
    }

    #[test]
    fn stays_with_the_one_in_use_until_it_fails() {
        let mut bench = Bench::knowing(&[place(2), place(1)]);
        assert_eq!(bench.seeker.choose(), Some(place(2)));
        let xid = bench.query();
        bench.answers(xid, &[place(1), place(2), place(3)]).unwrap();
        assert_eq!(bench.seeker.choose(), Some(place(2)));
        bench.seeker.failed(place(2), bench.now);
        let soon = bench.seeker.due().unwrap() - bench.now;
        assert!(soon <= QUICK, "asks again soon");
        assert_eq!(bench.seeker.choose(), Some(place(1)));
        assert_eq!(bench.seeker.counts().moved, 1);
    }

    #[test]
    fn who_failed_comes_back_last() {
        let mut bench = Bench::knowing(&[place(1), place(2)]);
        for expected in [1, 2, 1, 2] {
            assert_eq!(bench.seeker.choose(), Some(place(expected)));
            bench.now += Duration::from_millis(1);
            bench.seeker.failed(place(expected), bench.now);
        }
        assert_eq!(bench.seeker.counts().moved, 3);
    }

    #[test]
    fn a_failure_of_one_not_in_use_changes_nothing_now() {
        let mut bench = Bench::knowing(&[place(1), place(2)]);
        bench.seeker.choose();
        bench.seeker.failed(place(2), bench.now);
        assert_eq!(bench.seeker.choose(), Some(place(1)));
    }

    #[test]
    fn who_is_silent_for_three_periods_is_forgotten() {
        let mut bench = Bench::knowing(&[place(1), place(2)]);
        assert_eq!(bench.seeker.choose(), Some(place(1)));
        for _ in 0..3 {
            let xid = bench.query();
            bench.answers(xid, &[place(2)]).unwrap();
        }
        bench.query();
        assert_eq!(bench.seeker.known().collect::<Vec<_>>(), [place(2)]);
        assert_eq!(bench.seeker.choose(), Some(place(2)));
        assert_eq!(bench.seeker.counts().moved, 1);
    }

    #[test]
    fn no_more_are_known_than_the_limit() {
        let mut bench = Bench::new();
        let xid = bench.query();
        for host in 1..=u8::try_from(KNOWN).unwrap() {
            bench.answers(xid, &[place(host)]).unwrap();
        }
        assert_eq!(bench.answers(xid, &[place(200)]), Err(Unheard::Full));
        assert_eq!(bench.answers(xid, &[place(1)]), Ok(()), "known already");
    }
}
