use super::*;
use crate::phase::Phase as P;
use rand::SeedableRng;
use rand::rngs::StdRng;

const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 5);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const HOUR: u64 = 3600;

/// A client with a clock, and what a server would say to it.
struct Bench {
    client: Client,
    random: StdRng,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let now = Instant::now();
        let identifier = ClientIdentifier::new(1, 0xFFFF);
        Self {
            client: Client::new(identifier, Settings::default(), now),
            random: StdRng::seed_from_u64(7),
            now,
        }
    }

    fn up(&mut self) {
        self.client.up(self.now, &mut self.random);
    }

    /// Waits for what is due, and does it.
    fn turn(&mut self) -> (Option<Outgoing>, Option<Change>) {
        let due = self.client.due().expect("something is due");
        self.now = self.now.max(due);
        self.client.turn(self.now, &mut self.random)
    }

    fn sent(&mut self) -> Outgoing {
        let (message, change) = self.turn();
        assert_eq!(change, None);
        message.expect("a message")
    }

    fn waited(&mut self, act: impl FnOnce(&mut Self)) -> Duration {
        let before = self.now;
        act(self);
        self.now - before
    }

    fn given(&self) -> Given {
        Given {
            address: "10.1.0.5/24".parse().unwrap(),
            seconds: u32::try_from(HOUR).unwrap(),
            t1: None,
            t2: None,
        }
    }

    fn hears(&mut self, says: Says) -> Result<Option<Change>, Reject> {
        let reply = Reply {
            xid: self.client.xid,
            server: SERVER,
            says,
        };
        self.client.take(&reply, self.now, &mut self.random)
    }

    fn hears_offer(&mut self) {
        let offer = Says::Offer(self.given());
        assert_eq!(self.hears(offer), Ok(None));
    }

    fn hears_ack(&mut self) -> Option<Change> {
        let ack = Says::Ack(self.given());
        self.hears(ack).unwrap()
    }

    fn free(&mut self) -> Option<Change> {
        assert_eq!(self.client.due(), None, "nothing until it is checked");
        self.client.free(self.now, &mut self.random)
    }

    fn bound() -> Self {
        let mut bench = Self::new();
        bench.up();
        bench.sent();
        bench.hears_offer();
        bench.sent();
        assert_eq!(bench.hears_ack(), Some(Change::Check(ADDRESS)));
        assert!(matches!(bench.free(), Some(Change::Use(_))));
        assert_eq!(bench.client.phase(), P::Bound);
        bench
    }
}

/// What a message is: its type, whether it asks for a broadcast, its ciaddr.
fn read(message: &Outgoing) -> (u8, bool, Ipv4Addr) {
    let octets = &message.octets;
    let address: [u8; 4] = octets[12..16].try_into().unwrap();
    (octets[242], octets[10] & 0x80 != 0, address.into())
}

const DISCOVER: u8 = 1;
const REQUEST: u8 = 3;
const DECLINE: u8 = 4;
const RELEASE: u8 = 7;

#[test]
fn rfc2131_4_4_1_an_address_is_come_by() {
    let mut bench = Bench::new();
    assert_eq!(bench.client.due(), None, "nothing while the link is down");
    bench.up();
    let wait = bench.waited(|bench| {
        let discover = bench.sent();
        assert_eq!(read(&discover), (DISCOVER, true, Ipv4Addr::UNSPECIFIED));
        assert_eq!(
            (discover.from, discover.to),
            (Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST)
        );
    });
    assert!((1..=10).contains(&wait.as_secs()), "{wait:?}");
    bench.hears_offer();
    let request = bench.sent();
    assert_eq!(read(&request), (REQUEST, true, Ipv4Addr::UNSPECIFIED));
    assert_eq!(bench.hears_ack(), Some(Change::Check(ADDRESS)));
    assert_eq!(bench.client.lease(), None, "not before it is found free");
    let change = bench.free();
    let Some(Change::Use(lease)) = change else {
        panic!("{change:?}");
    };
    assert_eq!(bench.client.lease(), Some(&lease));
    assert_eq!(lease.address.to_string(), "10.1.0.5/24");
}

#[test]
fn rfc2131_4_1_waits_double_up_to_64_seconds() {
    let mut bench = Bench::new();
    bench.up();
    bench.sent();
    for expected in [4, 8, 16, 32, 64, 64] {
        let wait = bench.waited(|bench| {
            bench.sent();
        });
        let expected = Duration::from_secs(expected);
        let second = Duration::from_secs(1);
        assert!(
            wait >= expected - second && wait <= expected + second,
            "{wait:?}"
        );
    }
}

#[test]
fn rfc2131_3_1_a_request_without_an_answer_begins_anew() {
    let mut bench = Bench::new();
    bench.up();
    bench.sent();
    bench.hears_offer();
    let xid = bench.client.xid;
    for _ in 0..REQUESTS {
        assert_eq!(read(&bench.sent()).0, REQUEST);
    }
    assert_eq!(bench.turn(), (None, None));
    assert_eq!(bench.client.phase(), P::Init);
    assert_ne!(bench.client.xid, xid);
    assert_eq!(read(&bench.sent()).0, DISCOVER);
}

#[test]
fn rfc2131_4_4_5_renewed_of_the_server_at_half_time() {
    let mut bench = Bench::bound();
    let wait = bench.waited(|bench| {
        let renew = bench.sent();
        assert_eq!(read(&renew), (REQUEST, false, ADDRESS));
        assert_eq!((renew.from, renew.to), (ADDRESS, SERVER));
    });
    assert!(
        (HOUR / 2 - HOUR / 32..=HOUR / 2).contains(&wait.as_secs()),
        "{wait:?}"
    );
    assert_eq!(bench.client.phase(), P::Renewing);
    let change = bench.hears_ack();
    assert!(matches!(change, Some(Change::Use(_))));
    assert_eq!(bench.client.phase(), P::Bound);
    let end = bench.client.lease().unwrap().times.unwrap().end;
    assert_eq!(
        end,
        bench.now + Duration::from_secs(HOUR),
        "counts from the request"
    );
}

#[test]
fn rfc2131_4_4_5_rebound_of_anybody_then_dropped_at_the_end() {
    let mut bench = Bench::bound();
    let end = bench.client.lease().unwrap().times.unwrap().end;
    let mut before = bench.now;
    let mut broadcast = 0;
    let change = loop {
        match bench.turn() {
            (Some(message), None) => {
                assert_eq!(read(&message), (REQUEST, false, ADDRESS));
                let rebinding = bench.client.phase() == P::Rebinding;
                assert_eq!(message.to == Ipv4Addr::BROADCAST, rebinding);
                broadcast += u32::from(rebinding);
                // T2 itself comes when it comes.
                let waited = bench.now - before;
                let t2 = rebinding && broadcast == 1;
                assert!(t2 || waited >= Duration::from_secs(60), "{waited:?}");
                before = bench.now;
            }
            (None, change) => break change,
            other => panic!("{other:?}"),
        }
    };
    assert!(broadcast > 1);
    assert_eq!(change, Some(Change::Drop(Why::Expired)));
    assert_eq!(bench.now, end);
    assert_eq!(bench.client.lease(), None);
    assert_eq!(read(&bench.sent()).0, DISCOVER);
}

#[test]
fn an_address_that_somebody_has_is_declined_and_another_sought_later() {
    let mut bench = Bench::new();
    bench.up();
    bench.sent();
    bench.hears_offer();
    bench.sent();
    bench.hears_ack();
    let (decline, change) = bench.client.conflict(bench.now, &mut bench.random).unwrap();
    assert_eq!(read(&decline).0, DECLINE);
    assert_eq!(change, Change::Drop(Why::Conflict));
    let wait = bench.waited(|bench| assert_eq!(read(&bench.sent()).0, DISCOVER));
    assert!(wait >= Duration::from_secs(10));
    assert_eq!(bench.client.counts().conflicts, 1);
}

#[test]
fn word_of_an_address_that_is_not_checked_changes_nothing() {
    let mut bench = Bench::new();
    assert_eq!(bench.client.free(bench.now, &mut bench.random), None);
    let mut bench = Bench::bound();
    let due = bench.client.due();
    assert_eq!(bench.client.free(bench.now, &mut bench.random), None);
    assert_eq!((bench.client.phase(), bench.client.due()), (P::Bound, due));
}

#[test]
fn a_link_that_comes_back_asks_for_the_address_of_before() {
    let mut bench = Bench::bound();
    assert_eq!(bench.client.down(), Some(Change::Drop(Why::LinkDown)));
    assert_eq!((bench.client.due(), bench.client.lease()), (None, None));
    bench.up();
    let reboot = bench.sent();
    assert_eq!(read(&reboot), (REQUEST, true, Ipv4Addr::UNSPECIFIED));
    assert_eq!(reboot.to, Ipv4Addr::BROADCAST);
    bench.hears_ack();
    bench.free();
    assert_eq!(bench.client.phase(), P::Bound);
}

#[test]
fn a_link_that_comes_back_too_late_begins_anew() {
    let mut bench = Bench::bound();
    bench.client.down();
    bench.now += Duration::from_secs(HOUR);
    bench.up();
    assert_eq!(bench.client.phase(), P::Init);
}

#[test]
fn a_refusal_begins_anew_and_takes_an_address_in_use_away() {
    let mut bench = Bench::bound();
    bench.sent();
    assert_eq!(bench.hears(Says::Nak), Ok(Some(Change::Drop(Why::Refused))));
    assert_eq!(bench.client.phase(), P::Init);
}

#[test]
fn given_back_when_released() {
    let mut bench = Bench::bound();
    let release = bench.client.release(bench.now).unwrap();
    assert_eq!(read(&release), (RELEASE, false, ADDRESS));
    assert_eq!(release.to, SERVER);
    assert_eq!((bench.client.phase(), bench.client.due()), (P::Down, None));
    assert_eq!(bench.client.release(bench.now), None);
}

#[test]
fn a_reply_that_is_not_waited_for_changes_nothing() {
    let mut bench = Bench::bound();
    let (offer, ack) = (Says::Offer(bench.given()), Says::Ack(bench.given()));
    for says in [offer, ack, Says::Nak] {
        assert_eq!(bench.hears(says), Err(Reject::NotAsked));
    }
    bench.sent();
    let reply = Reply {
        xid: bench.client.xid.wrapping_add(1),
        server: SERVER,
        says: ack,
    };
    let other = bench.client.take(&reply, bench.now, &mut bench.random);
    assert_eq!(other, Err(Reject::NotAsked));
    assert_eq!(bench.hears(offer), Err(Reject::NotAsked));
    assert_eq!(bench.client.phase(), P::Renewing);
}

#[test]
fn an_acknowledgement_of_another_address_does_not_count() {
    let mut bench = Bench::bound();
    bench.sent();
    let mut given = bench.given();
    given.address = "10.1.0.6/24".parse().unwrap();
    assert_eq!(bench.hears(Says::Ack(given)), Err(Reject::Contents));
}

#[test]
fn a_lease_for_ever_is_never_asked_for_again() {
    let mut bench = Bench::new();
    bench.up();
    bench.sent();
    bench.hears_offer();
    bench.sent();
    let mut given = bench.given();
    given.seconds = crate::lease::FOR_EVER;
    bench.hears(Says::Ack(given)).unwrap();
    bench.free();
    assert_eq!((bench.client.phase(), bench.client.due()), (P::Bound, None));
}

#[test]
fn datagrams_that_do_not_count_are_counted() {
    let mut bench = Bench::bound();
    let heard = bench.client.heard(b"?", bench.now, &mut bench.random);
    assert_eq!(heard, Err(Reject::NotAReply));
    assert_eq!(bench.client.counts().rejected.of(Reject::NotAReply), 1);
}
