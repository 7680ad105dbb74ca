//! What is asked when, who is believed, and where connections go.

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
    let unheard = bench.seeker.counts().unheard.iter();
    assert!(unheard.map(|(_, count)| count).eq([1, 2, 1, 2, 0]));
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

/// Knows as many as it can, each of them as of now.
fn full() -> (Bench, Xid) {
    let mut bench = Bench::new();
    let xid = bench.query();
    for host in 1..=u8::try_from(KNOWN).unwrap() {
        bench.answers(xid, &[place(host)]).unwrap();
    }
    (bench, xid)
}

const NEW: u8 = 200;

impl Bench {
    fn knows(&self, host: u8) -> bool {
        self.seeker.known().any(|it| it == place(host))
    }

    fn fails(&mut self, host: u8) {
        self.now += Duration::from_millis(1);
        self.seeker.failed(place(host), self.now);
    }
}

#[test]
fn no_more_are_known_than_the_limit() {
    let (mut bench, xid) = full();
    assert_eq!(bench.answers(xid, &[place(NEW)]), Err(Unheard::Full));
    let known_too = bench.answers(xid, &[place(NEW), place(1)]);
    assert_eq!(known_too, Ok(()), "known already");
    assert_eq!(bench.seeker.known().count(), KNOWN);
    assert!(!bench.knows(NEW));
}

#[test]
fn who_failed_longest_ago_makes_room() {
    let (mut bench, xid) = full();
    bench.fails(9);
    bench.fails(5);
    bench.answers(xid, &[place(NEW)]).unwrap();
    assert!(bench.knows(NEW) && bench.knows(5) && !bench.knows(9));
    assert_eq!(bench.seeker.known().count(), KNOWN);
}

#[test]
fn who_is_overdue_makes_room_where_nobody_failed() {
    let (mut bench, _) = full();
    assert_eq!(bench.seeker.choose(), Some(place(1)));
    bench.now += WISH.period * OVERDUE - Duration::from_millis(1);
    let xid = bench.query();
    for host in 3..=u8::try_from(KNOWN).unwrap() {
        bench.answers(xid, &[place(host)]).unwrap();
    }
    assert_eq!(bench.answers(xid, &[place(NEW)]), Err(Unheard::Full));
    bench.now += Duration::from_millis(1);
    bench.answers(xid, &[place(NEW)]).unwrap();
    assert!(bench.knows(1), "the one in use stays, late as it is");
    assert!(bench.knows(NEW) && !bench.knows(2));
    assert_eq!(bench.answers(xid, &[place(2)]), Err(Unheard::Full));
}

#[test]
fn the_one_in_use_makes_no_room_though_it_failed_once() {
    let (mut bench, xid) = full();
    for host in 1..=u8::try_from(KNOWN).unwrap() {
        bench.fails(host);
    }
    assert_eq!(bench.seeker.choose(), Some(place(1)));
    bench.answers(xid, &[place(NEW)]).unwrap();
    assert!(bench.knows(1) && !bench.knows(2));
}

#[test]
fn what_cannot_be_a_place_is_none() {
    let mut bench = Bench::new();
    let xid = bench.query();
    for text in [
        "0.0.0.0:20049",
        "0.1.2.3:20049",
        "127.0.0.1:20049",
        "239.192.78.81:20049",
        "255.255.255.255:20049",
        "10.1.0.1:0",
        "[::]:20049",
        "[::1]:20049",
        "[fe80::1]:20049",
        "[ff02::1]:20049",
        "[::ffff:127.0.0.1]:20049",
    ] {
        let answered = bench.answers(xid, &[text.parse().unwrap()]);
        assert_eq!(answered, Err(Unheard::NoPlace), "{text}");
    }
    let loopback = "127.0.0.1:20049".parse().unwrap();
    bench.answers(xid, &[loopback, place(1)]).unwrap();
    assert_eq!(bench.seeker.known().collect::<Vec<_>>(), [place(1)]);
}

#[test]
fn one_answer_has_no_more_places_than_its_limit() {
    let mut bench = Bench::new();
    let xid = bench.query();
    // Told by two appliances, read as one list: the writer has the same limit.
    let [first, second] = [1..=6, 7..=12].map(|hosts| {
        let places: Vec<_> = hosts.map(place).collect();
        rpcbind::emit_address_list(xid, &places)
    });
    let head = rpcbind::emit_null(xid).len();
    let whole = [&first[..first.len() - 4], &second[head..]].concat();
    bench.seeker.heard(&whole, true, bench.now).unwrap();
    assert_eq!(bench.seeker.known().count(), rpcbind::ADDRESSES);
}

#[test]
fn a_connection_is_tried_in_few_places_each_in_its_turn() {
    let hosts: Vec<_> = (1..=8).map(place).collect();
    let mut bench = Bench::knowing(&hosts);
    assert_eq!(bench.seeker.ways(), [1, 2, 3, 4].map(place));
    for host in [2, 1, 3] {
        bench.fails(host);
    }
    assert_eq!(bench.seeker.ways(), [4, 5, 6, 7].map(place));
    for host in [4, 5, 6, 7] {
        bench.fails(host);
    }
    assert_eq!(bench.seeker.ways(), [8, 2, 1, 3].map(place));
}

/// Somebody answers at once with as many places as are taken, and again and again, with those first that it was found out about.
#[test]
fn who_lies_in_masses_keeps_nobody_out() {
    let (mut bench, _) = full();
    let real = place(NEW);
    for client in 0.. {
        assert!(client <= KNOWN / WAYS + 1, "not found in {client} attempts");
        let ways = bench.seeker.ways();
        if ways.contains(&real) {
            break;
        }
        for &way in &ways {
            bench.now += Duration::from_millis(1);
            bench.seeker.failed(way, bench.now);
        }
        let xid = bench.query();
        let _ = bench.answers(xid, &[real]);
        for &lie in &ways {
            let _ = bench.answers(xid, &[lie]);
        }
    }
}
