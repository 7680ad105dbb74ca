//! RFC 4391 sections 8 and 9: from host to host, with ARP and neighbour discovery on the link.

use crate::bed::{Bed, LINK, MANAGER, SIX, gid, ip, mgid, spec};
use rpcrdma_ipoib::address::Phase;
use rpcrdma_ipoib::gid::Lid;
use rpcrdma_ipoib::link::LinkState;
use rpcrdma_ipoib::mad::Status;
use rpcrdma_ipoib::mgid::Family;
use rpcrdma_ipoib::node::{Fate, Origin};
use rpcrdma_ipoib::packet::{
    Arp, HardwareAddress, Operation as ArpOperation, Reject, Udp, emit_udp, link_local,
};
use rpcrdma_ipoib::settings::{Creation, LinkSpec};
use rpcrdma_ipoib::trouble::{Cause, Drop, Ignored, Operation, Refusal, Trouble};
use std::net::{IpAddr, SocketAddr};

/// An address that nobody else has is in use by then.
const CHECKED_MS: u64 = 1_250;
const ONE: &str = "10.0.0.1";
const TWO: &str = "10.0.0.2";

/// A datagram's frame.
fn frame(from: IpAddr, to: IpAddr, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    let datagram = Udp {
        from: SocketAddr::new(from, 700),
        to: SocketAddr::new(to, 111),
        hop_limit: 1,
        payload,
    };
    assert!(emit_udp(&mut frame, &datagram));
    frame
}

fn send(bed: &mut Bed, at: usize, from: IpAddr, to: IpAddr, payload: &[u8]) -> Fate {
    let frame = frame(from, to, payload);
    let sent = bed.seats[at].node.send(bed.now, LINK, to, frame);
    bed.run();
    sent.expect("a host")
}

fn address(bed: &mut Bed, at: usize, address: IpAddr) {
    let node = &mut bed.seats[at].node;
    node.set_address(bed.now, LINK, Some(address))
        .expect("an address");
    bed.run();
    bed.pass(CHECKED_MS);
}

/// Two nodes on a link of IPv4, with addresses.
fn pair() -> Bed {
    let mut bed = Bed::new();
    for own in [ONE, TWO] {
        let at = bed.up(spec(SIX));
        address(&mut bed, at, ip(own));
    }
    bed
}

#[test]
fn section_9_from_host_to_host_by_arp() {
    let mut bed = pair();
    assert_eq!(send(&mut bed, 0, ip(ONE), ip(TWO), b"there"), Fate::Waiting);
    assert_eq!(bed.seats[1].got, [b"there"]);
    assert_eq!(send(&mut bed, 0, ip(ONE), ip(TWO), b"again"), Fate::Sent);
    assert_eq!(send(&mut bed, 1, ip(TWO), ip(ONE), b"back"), Fate::Sent);
    assert_eq!(bed.seats[0].got, [b"back"]);
    let to = bed.seats[0].frames().last().copied().expect("a frame");
    assert_eq!((to.gid, to.qpn), (gid(11), 0x49));
    assert_eq!(to.q_key, Creation::default().q_key);
}

#[test]
fn section_8_from_host_to_host_by_neighbour_discovery() {
    let mut bed = Bed::new();
    let mut own = Vec::new();
    for _ in 0..2 {
        let create = Some(Creation::default());
        let at = bed.up(LinkSpec {
            family: Family::V6,
            create,
            ..spec(SIX)
        });
        let local = IpAddr::V6(link_local(bed.seats[at].facts.gid.guid()));
        address(&mut bed, at, local);
        own.push(local);
    }
    assert_eq!(own[0].to_string(), "fe80::200:0:0:a");
    send(&mut bed, 0, own[0], own[1], b"there");
    assert_eq!(bed.seats[1].got, [b"there"]);
    // the question went to the other's solicited-node group, of which this one is a sender
    assert_eq!(bed.held(0, "ff12:601b:8006::1:ff00:b"), 4);
    assert_eq!(bed.held(1, "ff12:601b:8006::1:ff00:b"), 1);
}

#[test]
fn section_9_a_datagram_to_a_group_comes_to_its_members() {
    let mut bed = pair();
    bed.join(1, "239.1.2.3");
    let group = ip("239.1.2.3");
    send(&mut bed, 0, ip(ONE), group, b"all");
    assert_eq!(bed.seats[1].got, [b"all"]);
    assert!(bed.seats[0].got.is_empty());
}

#[test]
fn a_host_that_is_not_there() {
    let mut bed = pair();
    let nobody = ip("10.0.0.9");
    assert_eq!(send(&mut bed, 0, ip(ONE), nobody, b"?"), Fate::Waiting);
    bed.pass(10_000);
    let neighbours = bed.seats[0].node.neighbours(LINK).expect("neighbours");
    assert_eq!(neighbours.counts().lost.total(), 1);
    assert_eq!(neighbours.state(nobody), None);
}

#[test]
fn without_an_address_there_are_no_neighbours() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    let fate = send(&mut bed, at, ip(ONE), ip(TWO), b"?");
    assert_eq!(fate, Fate::Dropped(Drop::NoNeighbour));
}

#[test]
fn section_11_a_path_that_fails() {
    let mut bed = pair();
    let all: Vec<_> = std::iter::repeat_n(Status::RequestDenied, 1).collect();
    bed.statuses = all;
    send(&mut bed, 0, ip(ONE), ip(TWO), b"there");
    let failed = |at: usize, bed: &Bed| {
        let failures = bed.seats[at].node.ledger().failures(Operation::Path);
        failures.of(Cause::Denied)
    };
    assert_eq!(failed(0, &bed) + failed(1, &bed), 1);
}

/// A host that does not look for its address first: it has it, and says so by asking.
#[test]
fn another_host_with_this_ones_address() {
    let mut bed = pair();
    let other = HardwareAddress::datagrams(0x90, gid(90));
    let question = Arp {
        operation: ArpOperation::Request,
        sender: other,
        sender_ip: std::net::Ipv4Addr::new(10, 0, 0, 1),
        target: HardwareAddress::ZERO,
        target_ip: std::net::Ipv4Addr::new(10, 0, 0, 2),
    };
    let origin = Origin {
        lid: Lid(90),
        gid: Some(other.gid),
        group: Some(mgid("ff12:401b:8006::ffff:ffff")),
        qpn: other.qpn,
    };
    let node = &mut bed.seats[0].node;
    assert_eq!(
        node.frame_came(bed.now, LINK, &origin, &question.frame()),
        None
    );
    bed.run();
    let told = Trouble::Conflict {
        link: LINK,
        ip: ip(ONE),
        hardware: other,
    };
    assert!(bed.seats[0].troubles().contains(&told));
    let used = Some((ip(ONE), Phase::Used));
    let link = bed.seats[0].node.link_status(LINK).expect("a link");
    assert_eq!(link.address, used, "it is kept");
}

#[test]
fn addresses_of_no_host() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    let node = &mut bed.seats[at].node;
    for (address, refusal) in [
        ("239.0.0.1", Refusal::Multicast),
        ("fe80::1", Refusal::OtherFamily),
    ] {
        let set = node.set_address(bed.now, LINK, Some(ip(address)));
        assert_eq!(set, Err(refusal));
        assert_eq!(node.ledger().refusals().of(refusal), 1);
    }
}

#[test]
fn a_new_address_changes_the_solicited_node_group() {
    let mut bed = Bed::new();
    let create = Some(Creation::default());
    let at = bed.up(LinkSpec {
        family: Family::V6,
        create,
        ..spec(SIX)
    });
    address(&mut bed, at, ip("fe80::a:b:c"));
    assert_eq!(bed.held(at, "ff12:601b:8006::1:ff0b:c"), 1);
    address(&mut bed, at, ip("fe80::a:b:d"));
    assert_eq!(bed.held(at, "ff12:601b:8006::1:ff0b:c"), 0);
    assert_eq!(bed.held(at, "ff12:601b:8006::1:ff0b:d"), 1);
}

#[test]
fn garbage_on_the_link_is_counted() {
    let mut bed = pair();
    let origin = Origin {
        lid: MANAGER,
        gid: None,
        group: Some(mgid("ff12:401b:8006::ffff:ffff")),
        qpn: 5,
    };
    let node = &mut bed.seats[0].node;
    let whole = frame(ip(TWO), ip(ONE), b"x");
    for length in 0..whole.len() - 1 {
        let got = node.frame_came(bed.now, LINK, &origin, &whole[..length]);
        assert_eq!(got, None, "{length}");
    }
    let refused = node.ledger().ignored_things().of(Ignored::BrokenFrame);
    assert_eq!(refused, whole.len() as u64 - 1);
    let counts = node.frames_refused().total();
    assert_eq!(counts, refused);
    assert_eq!(node.frames_refused().of(Reject::Short), 4);
}

#[test]
fn frames_of_a_link_that_is_down_are_counted() {
    let mut bed = Bed::bare();
    let at = bed.up(spec(SIX));
    let link = bed.seats[at].node.link_status(LINK).expect("a link");
    assert_eq!(link.state, LinkState::Down);
    let origin = Origin {
        lid: MANAGER,
        gid: None,
        group: None,
        qpn: 5,
    };
    let whole = frame(ip(TWO), ip(ONE), b"x");
    let node = &mut bed.seats[at].node;
    assert_eq!(node.frame_came(bed.now, LINK, &origin, &whole), None);
    assert_eq!(node.ledger().ignored_things().of(Ignored::EarlyFrame), 1);
}
