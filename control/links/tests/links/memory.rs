//! Links on the subnet of this process: up, joined, and datagrams exchanged.

use crate::bench::{Bench, plans};
use rpcrdma_config::link::Ipv4;
use rpcrdma_links::{Datagram, Unsent};
use std::net::{IpAddr, SocketAddr};

const TWO: &str = r#"
    [[link]]
    name = "a"
    administrator = true
    ipv4 = "10.1.0.1/24"
    groups = ["239.1.1.1", "ff15::1"]
    [[link]]
    name = "b"
    ipv4 = "10.1.0.2/24"
    [[service]]
    name = "s"
    listen = "s"
"#;
const A: usize = 0;
const B: usize = 1;

impl Bench {
    fn up() -> Self {
        let mut bench = Self::of(&plans(TWO));
        bench.until("both links are up, with addresses", |links| {
            let has_all = |at| links.addresses(at).count() == 2;
            links.status().iter().all(|link| link.is_up()) && [A, B].into_iter().all(has_all)
        });
        bench
    }

    fn next(&mut self) -> Datagram {
        let mut next = None;
        self.until("a datagram comes", |links| {
            next = links.take();
            next.is_some()
        });
        next.unwrap()
    }

    fn send(&mut self, link: usize, to: &str, octets: &[u8]) -> Result<(), Unsent> {
        let to: SocketAddr = to.parse().unwrap();
        self.links.send(link, 700, to, octets, self.now)
    }
}

#[test]
fn links_have_the_addresses_of_file_and_guid() {
    let bench = Bench::up();
    let addresses: Vec<IpAddr> = bench.links.addresses(A).collect();
    assert_eq!(addresses[0], "10.1.0.1".parse::<IpAddr>().unwrap());
    let IpAddr::V6(v6) = addresses[1] else {
        panic!("{addresses:?}");
    };
    assert!(v6.is_unicast_link_local());
}

#[test]
fn a_datagram_to_a_group_comes_and_is_answered() {
    let mut bench = Bench::up();
    bench.send(B, "239.1.1.1:111", b"who?").unwrap();
    let question = bench.next();
    assert_eq!((question.link, &question.octets[..]), (A, &b"who?"[..]));
    assert_eq!(question.from, "10.1.0.2:700".parse().unwrap());
    assert_eq!(question.to, "239.1.1.1:111".parse().unwrap());
    bench.links.reply(&question, b"I").unwrap();
    let answer = bench.next();
    assert_eq!((answer.link, &answer.octets[..]), (B, &b"I"[..]));
    assert_eq!(answer.from, "10.1.0.1:111".parse().unwrap());
    assert_eq!(answer.to, "10.1.0.2:700".parse().unwrap());
}

#[test]
fn the_same_in_ipv6() {
    let mut bench = Bench::up();
    bench.send(B, "[ff15::1]:111", b"who?").unwrap();
    let question = bench.next();
    assert_eq!((question.link, question.from.is_ipv6()), (A, true));
    bench.links.reply(&question, b"I").unwrap();
    assert_eq!(bench.next().octets, b"I");
}

#[test]
fn section_9_a_datagram_for_which_nobody_listens_is_dropped_and_counted() {
    let mut bench = Bench::up();
    bench.send(B, "239.9.9.9:111", b"anybody?").unwrap();
    bench.until("it is dropped", |links| {
        let status = links.status();
        status[B]
            .drops
            .iter()
            .any(|(why, count)| why == "NoListener" && *count == 1)
    });
    assert!(bench.links.take().is_none());
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let mut bench = Bench::up();
    assert_eq!(bench.send(B, "10.1.0.1:111", b""), Err(Unsent::Refused));
    assert_eq!(bench.send(7, "239.1.1.1:111", b""), Err(Unsent::NoFamily));
    let long = vec![0; 70_000];
    assert_eq!(bench.send(B, "239.1.1.1:111", &long), Err(Unsent::TooLong));
}

#[test]
fn section_7_without_an_administrator_a_link_stays_down_and_says_why() {
    let mut plans = plans(TWO);
    plans[A].administrator = None;
    let mut bench = Bench::of(&plans);
    bench.until("the reason is told", |links| {
        let status = links.status();
        status[A]
            .errors()
            .any(|why| why.contains("broadcast group"))
    });
    assert!(!bench.links.status()[A].is_up());
}

#[test]
fn everything_is_left_at_the_end() {
    let mut bench = Bench::up();
    bench.links.close(bench.now);
    bench.until("all is left", |links| links.is_closed());
}

#[test]
fn what_a_dhcp_client_does_is_counted() {
    let mut plans = plans(TWO);
    plans[B].ipv4 = Ipv4::Dhcp;
    let mut bench = Bench::of(&plans);
    bench.until("it has asked", |links| {
        let dhcp = links.status()[B].dhcp.clone();
        dhcp.is_some_and(|client| client.counts.iter().any(|(name, _)| name == "Sent"))
    });
    assert!(bench.links.status()[A].dhcp.is_none());
}
