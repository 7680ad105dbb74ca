//! What is not believed, not kept, or not answered.

use crate::link::{Link, Seen, address, datagram, drain, hardware, neighbours, station};
use rpcrdma_ipoib::gid::Gid;
use rpcrdma_ipoib::neighbour::{Fate, Lost, Neighbours, Output, State, Unheard};
use rpcrdma_ipoib::packet::{Advertisement, Arp, HardwareAddress, Operation, Packet, Solicitation};
use rpcrdma_ipoib::time::Moment;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const NOW: Moment = Moment(0);

fn v4(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, n)
}

fn v6(n: u8) -> Ipv6Addr {
    match address(true, n) {
        IpAddr::V6(v6) => v6,
        IpAddr::V4(_) => unreachable!(),
    }
}

fn arp(operation: Operation, from: (u8, HardwareAddress), to: u8) -> Packet<'static> {
    Packet::Arp(Arp {
        operation,
        sender: from.1,
        sender_ip: if from.0 == 0 {
            Ipv4Addr::UNSPECIFIED
        } else {
            v4(from.0)
        },
        target: HardwareAddress::ZERO,
        target_ip: v4(to),
    })
}

fn request(from: u8, to: u8) -> Packet<'static> {
    arp(Operation::Request, (from, hardware(from)), to)
}

fn reply(from: u8, to: u8) -> Packet<'static> {
    arp(Operation::Reply, (from, hardware(from)), to)
}

fn advertisement(about: u8, to: u8, at: u8, flags: (bool, bool)) -> Packet<'static> {
    Packet::Advertisement(Advertisement {
        source: v6(about),
        destination: v6(to),
        target: v6(about),
        hardware: Some(hardware(at)),
        router: false,
        solicited: flags.0,
        overrides: flags.1,
    })
}

fn unheard(neighbours: &Neighbours, why: Unheard) -> u64 {
    assert_eq!(
        neighbours.counts().unheard.total(),
        neighbours.counts().unheard.of(why)
    );
    neighbours.counts().unheard.of(why)
}

#[test]
fn an_answer_to_nothing_asked_is_not_kept() {
    let mut it = neighbours(false, 1);
    it.heard(NOW, &reply(2, 1), Some(hardware(2)));
    assert_eq!(unheard(&it, Unheard::NotAsked), 1);
    assert_eq!((drain(&mut it).len(), it.iter().count()), (0, 0));
    let mut it = neighbours(true, 1);
    it.heard(NOW, &advertisement(2, 1, 2, (true, true)), None);
    assert_eq!(unheard(&it, Unheard::NotAsked), 1);
    assert_eq!((drain(&mut it).len(), it.iter().count()), (0, 0));
}

#[test]
fn who_speaks_for_another_is_not_believed() {
    let mut it = neighbours(false, 1);
    it.send(NOW, address(false, 2), vec![0]);
    it.heard(NOW, &reply(2, 1), Some(hardware(3)));
    assert_eq!(unheard(&it, Unheard::Impostor), 1);
    assert_eq!(it.state(address(false, 2)), Some(State::Asked(1)));
}

#[test]
fn its_own_questions_come_back_by_the_group() {
    for v6 in [false, true] {
        let mut link = Link::new(v6, &[1]);
        link.station(1).send(NOW, address(v6, 2), vec![0]);
        link.settle();
        assert_eq!(unheard(link.station(1), Unheard::Own), 1);
    }
}

#[test]
fn another_one_with_this_address_is_told_of() {
    for v6 in [false, true] {
        let mut link = Link::new(v6, &[1]);
        let mut other = station(v6, 7);
        other.ip = address(v6, 1);
        let mut other_one = Neighbours::new(other, Default::default());
        other_one.announce();
        link.stations.push((7, other.hardware, other_one));
        let seen = link.settle();
        assert!(seen.contains(&Seen::Conflict(1)), "{seen:?}");
        assert_eq!(link.station(1).counts().unheard.of(Unheard::Conflict), 1);
        assert_eq!(link.station(1).iter().count(), 0);
    }
}

/// RFC 4862 section 5.4.4: an advertisement of this station's address is a claim, whether or not it says where that is.
#[test]
fn an_advertisement_of_this_address_is_a_claim() {
    let bare = |n| {
        Packet::Advertisement(Advertisement {
            source: v6(n),
            destination: v6(2),
            target: v6(n),
            hardware: None,
            router: false,
            solicited: false,
            overrides: true,
        })
    };
    for (about, from, why) in [
        (1, Some(hardware(7)), Unheard::Conflict),
        (1, Some(hardware(1)), Unheard::Own),
        // without a route header nobody knows whose it is
        (1, None, Unheard::Impostor),
        (2, Some(hardware(7)), Unheard::NotAsked),
    ] {
        let mut it = neighbours(true, 1);
        it.heard(NOW, &bare(about), from);
        assert_eq!(unheard(&it, why), 1, "{about} from {from:?}");
        let claim = Output::Conflict {
            ip: address(true, 1),
            hardware: hardware(7),
        };
        let told = drain(&mut it).contains(&claim);
        assert_eq!(told, why == Unheard::Conflict);
    }
}

#[test]
fn packets_of_other_kinds_are_not_taken() {
    let frame = datagram(false, 2, 1, b"x");
    let mut it = neighbours(false, 1);
    it.heard(NOW, &Packet::parse(&frame).unwrap(), None);
    it.heard(NOW, &advertisement(2, 1, 2, (true, true)), None);
    assert_eq!(unheard(&it, Unheard::OtherKind), 2);
    let mut it = neighbours(true, 1);
    it.heard(NOW, &request(2, 1), None);
    assert_eq!(unheard(&it, Unheard::OtherKind), 1);
}

#[test]
fn questions_for_others_teach_only_what_is_wanted() {
    let mut it = neighbours(false, 1);
    it.heard(NOW, &request(2, 3), None);
    assert_eq!(unheard(&it, Unheard::NotAsked), 1);
    it.send(NOW, address(false, 2), vec![0]);
    it.heard(NOW, &request(2, 3), None);
    let hinted = State::Routing {
        hardware: hardware(2),
        proven: false,
    };
    assert_eq!(it.state(address(false, 2)), Some(hinted));
}

/// RFC 5227 section 2.1.1, RFC 4862 section 5.4: one that has no address yet is answered so that everybody hears it.
#[test]
fn a_probe_for_this_address_is_answered_to_all() {
    let mut it = neighbours(false, 1);
    it.heard(
        NOW,
        &arp(Operation::Request, (0, hardware(2)), 1),
        Some(hardware(2)),
    );
    let done = drain(&mut it);
    assert!(matches!(done[..], [Output::Everybody { .. }]), "{done:?}");
    let mut it = neighbours(true, 1);
    let probe = Packet::Solicitation(Solicitation {
        source: Ipv6Addr::UNSPECIFIED,
        destination: rpcrdma_ipoib::packet::solicited_node(v6(1)),
        target: v6(1),
        hardware: None,
    });
    it.heard(NOW, &probe, Some(hardware(2)));
    let done = drain(&mut it);
    assert!(matches!(done[..], [Output::Everybody { .. }]), "{done:?}");
    it.heard(NOW, &probe, Some(hardware(1)));
    assert_eq!(unheard(&it, Unheard::Own), 1);
}

/// RFC 4861 section 7.2.5: an answer that does not override makes the one that is known be asked.
#[test]
fn two_say_that_they_have_an_address() {
    let mut it = neighbours(true, 1);
    it.send(NOW, address(true, 2), vec![0]);
    it.heard(NOW, &advertisement(2, 1, 2, (true, true)), None);
    it.routed(NOW, hardware(2).gid, Some(crate::link::route(2)));
    drain(&mut it);
    it.heard(NOW, &advertisement(2, 1, 3, (true, false)), None);
    let state = it.state(address(true, 2)).unwrap();
    assert!(matches!(state, State::Doubted(way, 1) if way.hardware == hardware(2)));
    let done = drain(&mut it);
    assert!(matches!(&done[..], [Output::One { way, .. }] if way.hardware == hardware(2)));
}

/// RFC 4755: a peer without a queue pair for datagrams is refused before anything is learned of it.
#[test]
fn a_peer_that_requires_connected_mode_is_no_neighbour() {
    let frame = Arp {
        operation: Operation::Reply,
        sender: HardwareAddress {
            modes: rpcrdma_ipoib::packet::Modes::RC,
            ..HardwareAddress::datagrams(0, hardware(2).gid)
        },
        sender_ip: v4(2),
        target: hardware(1),
        target_ip: v4(1),
    }
    .frame();
    let refused = Packet::parse(&frame);
    assert_eq!(refused, Err(rpcrdma_ipoib::packet::Reject::ConnectedOnly));
}

#[test]
fn what_is_no_neighbour_is_not_asked_for() {
    let mut it = neighbours(false, 1);
    for ip in [
        "10.9.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "0.0.0.0",
        "127.0.0.1",
        "fe80::1",
    ] {
        let fate = it.send(NOW, ip.parse().unwrap(), vec![0]);
        assert_eq!(fate, Fate::Dropped(Lost::NotANeighbour), "{ip}");
    }
    assert_eq!((drain(&mut it).len(), it.iter().count()), (0, 0));
}

#[test]
fn a_path_that_nobody_asked_for_changes_nothing() {
    let mut it = neighbours(false, 1);
    it.send(NOW, address(false, 2), vec![0]);
    drain(&mut it);
    for gid in [hardware(2).gid, Gid::default()] {
        it.routed(NOW, gid, Some(crate::link::route(2)));
    }
    assert_eq!(it.state(address(false, 2)), Some(State::Asked(1)));
    assert_eq!(drain(&mut it), []);
}
