//! A link with an address by DHCP, and a server on another link of the same subnet.

use crate::bench::{Bench, STEP, addressed, has};
use crate::stranger::Stranger;
use rpcrdma_dhcp::message::{CLIENT_PORT, SERVER_PORT};
use rpcrdma_dhcp::phase::Phase;
use rpcrdma_ipoib::address::DEFEND_INTERVAL_MS;
use rpcrdma_ipoib::gid::Guid;
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_links::{Datagram, Links, MemorySubnet};
use rpcrdma_umad::{Facts, PortState};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

const HOLDER: usize = 0;
const SERVER: usize = 1;
const CLIENT: usize = 2;
const HELD: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const FREE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 9);

const DISCOVER: u8 = 1;
const OFFER: u8 = 2;
const REQUEST: u8 = 3;
const DECLINE: u8 = 4;
const ACK: u8 = 5;

/// A server's answer to a client's message: its type, and an address for an hour.
fn answer(message: &[u8], kind: u8, address: Ipv4Addr) -> Vec<u8> {
    let mut octets = message[..240].to_vec();
    octets[0] = 2;
    octets[16..20].copy_from_slice(&address.octets());
    octets.extend([53, 1, kind, 54, 4, 10, 1, 0, 2, 51, 4, 0, 0, 14, 16]);
    octets.extend([1, 4, 255, 255, 255, 0, 255]);
    octets
}

/// The type of a client's message: its first option.
fn kind_of(message: &Datagram) -> u8 {
    assert_eq!(message.octets[240..242], [53, 1]);
    message.octets[242]
}

/// Where the client is.
fn phase(links: &Links) -> Option<Phase> {
    links.status()[CLIENT].dhcp.as_ref().map(|it| it.phase)
}

/// The links, and the server's part.
struct Leases {
    subnet: MemorySubnet,
    bench: Bench,
    /// What the server gives; after a DECLINE it is the address that nobody has.
    given: Ipv4Addr,
    /// What the client has said so far.
    said: Vec<u8>,
}

impl Leases {
    fn of(given: Ipv4Addr) -> Self {
        let mut subnet = MemorySubnet::new(vec![PKey::DEFAULT]);
        let plans = addressed(&["10.1.0.1/24", "10.1.0.2/24", "dhcp"]);
        let mut bench = Bench::start_in(&mut subnet, &plans);
        bench.until("holder and server have theirs", |links| {
            has(links, HOLDER, HELD) && links.addresses(SERVER).next().is_some()
        });
        Self {
            subnet,
            bench,
            given,
            said: Vec::new(),
        }
    }

    /// One whose client has its address.
    fn given() -> Self {
        let mut leases = Self::of(FREE);
        leases.until("the client has an address", |links| {
            has(links, CLIENT, FREE)
        });
        leases
    }

    fn turn(&mut self) {
        let now = self.bench.now;
        self.bench.links.turn(now);
        while let Some(came) = self.bench.links.take() {
            if came.link == SERVER && came.to.port() == SERVER_PORT {
                self.serve(&came);
            }
        }
        self.bench.now += STEP;
    }

    fn serve(&mut self, came: &Datagram) {
        let kind = kind_of(came);
        self.said.push(kind);
        let reply = match kind {
            DISCOVER => OFFER,
            REQUEST => ACK,
            _ => {
                self.given = FREE;
                return;
            }
        };
        let all = SocketAddr::new(Ipv4Addr::BROADCAST.into(), CLIENT_PORT);
        let octets = answer(&came.octets, reply, self.given);
        let now = self.bench.now;
        let sent = self
            .bench
            .links
            .send(SERVER, SERVER_PORT, all, &octets, now);
        sent.expect("a group of the link");
    }

    /// Turns for a while, throughout which something holds.
    fn pass(&mut self, time: Duration, what: &str, holds: impl Fn(&Links) -> bool) {
        let end = self.bench.now + time;
        while self.bench.now < end {
            self.turn();
            assert!(holds(&self.bench.links), "{what}");
        }
    }

    /// Turns until something holds; gives up after two simulated minutes.
    fn until(&mut self, what: &str, holds: impl Fn(&Links) -> bool) {
        let end = self.bench.now + Duration::from_secs(120);
        while !holds(&self.bench.links) {
            assert!(self.bench.now < end, "not within two minutes: {what}");
            self.turn();
        }
    }
}

/// RFC 2131 section 4.4.1: the client declines an address that it finds in use, and begins anew.
#[test]
fn rfc2131_4_4_1_an_address_of_a_server_that_somebody_has_is_declined() {
    let mut leases = Leases::of(HELD);
    leases.until("the other address is used", |links| {
        assert!(!has(links, CLIENT, HELD));
        has(links, CLIENT, FREE)
    });
    assert_eq!(leases.said, [DISCOVER, REQUEST, DECLINE, DISCOVER, REQUEST]);
    assert!(has(&leases.bench.links, HOLDER, HELD), "whose it was");
}

/// With another GID a port is another station: its address is looked for anew, and the lease stays.
#[test]
fn rfc5227_2_1_a_leased_address_is_used_again_after_another_gid() {
    let mut leases = Leases::given();
    let said = leases.said.len();
    leases
        .subnet
        .change(CLIENT, |facts| facts.guid = Guid(0x99));
    leases.until("its address is looked for anew", |links| {
        !has(links, CLIENT, FREE)
    });
    leases.until("its address is used again", |links| {
        has(links, CLIENT, FREE)
    });
    assert_eq!(phase(&leases.bench.links), Some(Phase::Bound));
    assert_eq!(leases.said.len(), said, "the server is not asked");
}

/// RFC 2131 section 3.2: a link that was down asks for its address again, and does not use it until it has it.
#[test]
fn rfc2131_3_2_a_link_that_was_down_asks_for_its_address_again() {
    let mut leases = Leases::given();
    let said = leases.said.len();
    let state = |state| move |facts: &mut Facts| facts.state = state;
    leases.subnet.change(CLIENT, state(PortState::Down));
    leases.until("the client is down", |links| {
        phase(links) == Some(Phase::Down)
    });
    assert!(!has(&leases.bench.links, CLIENT, FREE));
    leases.subnet.change(CLIENT, state(PortState::Active));
    leases.until("the client asks", |links| phase(links) != Some(Phase::Down));
    assert_eq!(phase(&leases.bench.links), Some(Phase::Rebooting));
    leases.until("it has its address", |links| has(links, CLIENT, FREE));
    assert_eq!(leases.said[said..], [REQUEST]);
}

/// RFC 5227 section 2.4 (b): a forged frame now and then takes an address from nobody; who insists gets it.
#[test]
fn rfc5227_2_4_a_leased_address_is_defended_once_and_then_declined() {
    let mut leases = Leases::given();
    let mut stranger = Stranger::on(&mut leases.subnet, &leases.bench.links);
    let said = leases.said.len();
    let used = |links: &Links| has(links, CLIENT, FREE);
    for _ in 0..5 {
        stranger.claim(FREE);
        let interval = Duration::from_millis(DEFEND_INTERVAL_MS);
        leases.pass(interval, "it is kept", used);
    }
    assert_eq!(leases.said.len(), said);
    for _ in 0..2 {
        assert!(used(&leases.bench.links));
        stranger.claim(FREE);
        leases.turn();
    }
    leases.until("it is given up", |links| !used(links));
    leases.until("it is asked for again, and used", used);
    assert_eq!(leases.said[said..], [DECLINE, DISCOVER, REQUEST]);
}

/// (c) of the same section: an address that was configured is not given up.
#[test]
fn rfc5227_2_4_a_configured_address_is_kept() {
    let mut leases = Leases::given();
    let mut stranger = Stranger::on(&mut leases.subnet, &leases.bench.links);
    for _ in 0..100 {
        stranger.claim(HELD);
        leases.turn();
        assert!(has(&leases.bench.links, HOLDER, HELD));
    }
    let unheard = &leases.bench.links.status()[HOLDER].ips[0].neighbours_unheard;
    assert!(
        unheard.contains(&("Conflict".to_owned(), 100)),
        "{unheard:?}"
    );
}
