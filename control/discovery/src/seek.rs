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
//!
//! Answers are anybody's who gets the query. So what cannot be a place is none, one answer and all of them together have their
//! limits, and who lies in masses holds nobody else up: of [`KNOWN`] places one that failed, or is [`OVERDUE`], makes room for who
//! answers now, and who is new has its turn before those that were tried.

mod places;

use crate::rpcbind;
use places::Places;
use rand::{Rng, RngExt};
use rpcrdma_listed::Tally;
use rpcrdma_wire::Xid;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Time between the first queries while nobody is known.
pub const QUICK: Duration = Duration::from_millis(250);
/// The longest time between queries while nobody is known.
pub const SLOW: Duration = Duration::from_secs(10);
/// Periods without an answer after which somebody is forgotten.
pub const MISSED: u32 = 3;
/// Periods without an answer after which a place makes room for another where there is none left.
pub const OVERDUE: u32 = 2;
/// Places known at once.
pub const KNOWN: usize = 64;
/// Places tried for one connection.
pub const WAYS: usize = 4;

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
        /// No place over RDMA in it that another host could be at.
        NoPlace,
        /// As many are known as can be, and none of them makes room.
        Full,
    }
}

/// What was asked and heard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeekCounts {
    /// Queries.
    pub asked: u64,
    /// Answers taken.
    pub heard: u64,
    /// Times that another place came into use because one failed or was not heard of any more.
    pub moved: u64,
    /// Datagrams not taken.
    pub unheard: Tally<Unheard>,
}

/// Seeks one program in one group.
pub struct Seeker {
    wish: Wish,
    places: Places,
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
    pub fn new(wish: Wish) -> Self {
        Self {
            wish,
            places: Places::new(),
            in_use: None,
            went: None,
            last: [None; 2],
            asked: None,
            due: None,
            patience: QUICK,
            counts: SeekCounts::default(),
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
        self.places.forget(self.wish.period * MISSED, now);
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
            Err(why) => self.counts.unheard.add(why),
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
        let overdue = self.wish.period * OVERDUE;
        let mut kept = false;
        for address in told {
            kept |= self.places.hear(address, self.in_use, overdue, now);
        }
        kept.then_some(()).ok_or(Unheard::Full)
    }

    /// The last query could not be sent: it does not count, and is tried again soon.
    pub fn unsent(&mut self, now: Instant) {
        self.counts.asked = self.counts.asked.saturating_sub(1);
        self.patience = QUICK;
        self.due = Some(now + QUICK);
    }

    /// A connection there could not be made, or is gone: another is used from now on, and the group asked again soon.
    pub fn failed(&mut self, address: SocketAddr, now: Instant) {
        self.places.failed(address, now);
        if self.in_use == Some(address) {
            self.in_use = None;
            let soon = self.asked.map_or(now, |asked| now.max(asked + QUICK));
            self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
        }
    }

    /// Where the next connection goes; `None` while nobody is known.
    pub fn choose(&mut self) -> Option<SocketAddr> {
        if let Some(address) = self.in_use.filter(|&it| self.places.has(it)) {
            return Some(address);
        }
        let best = self.places.in_turn().next()?;
        self.in_use = Some(best);
        let before = self.went.replace(best);
        self.counts.moved += u64::from(before.is_some_and(|before| before != best));
        self.in_use
    }

    /// Where the next connection goes, and where it goes in turn if there is no way there: no more than [`WAYS`].
    pub fn ways(&mut self) -> Vec<SocketAddr> {
        let chosen = self.choose();
        let others = self.places.in_turn().filter(|&it| Some(it) != chosen);
        chosen.into_iter().chain(others).take(WAYS).collect()
    }

    /// All that are known.
    pub fn known(&self) -> impl Iterator<Item = SocketAddr> {
        self.places.all()
    }
}

#[cfg(test)]
mod tests;
