//! RFC 5227 section 2.1 and RFC 4862 section 5.4: an address is looked for before it is used.

mod hostile;
mod lives;
mod rfc4862;
mod rfc5227;

use crate::bed::{Bed, Deed, LINK, MANAGER, SIX, Seat, gid, ip, mgid, spec};
use rpcrdma_ipoib::address::{
    ANNOUNCE_INTERVAL_MS, DEFEND_INTERVAL_MS, MAX_CONFLICTS, Phase, RATE_LIMIT_INTERVAL_MS,
};
use rpcrdma_ipoib::gid::Lid;
use rpcrdma_ipoib::link::LinkState;
use rpcrdma_ipoib::mad::Method;
use rpcrdma_ipoib::mgid::Family;
use rpcrdma_ipoib::neighbour::{Lost, Unheard};
use rpcrdma_ipoib::node::{AddressNews, Fate, LinkStatus, Origin, Output};
use rpcrdma_ipoib::packet::{
    Advertisement, Arp, HardwareAddress, Operation, Packet, Solicitation, Udp, emit_udp,
    solicited_node,
};
use rpcrdma_ipoib::settings::{Creation, Limits, LinkSpec, Settings, Timing};
use rpcrdma_ipoib::time::Pace;
use rpcrdma_ipoib::trouble::{Cause, Drop, Ignored, Refusal, Trouble};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const ONE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const TWO: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const LOCAL: Ipv6Addr = Ipv6Addr::new(0xFE80, 0, 0, 0, 0xA, 0xB, 0xC, 0xD);
const BROADCAST: &str = "ff12:401b:8006::ffff:ffff";

/// An address that nobody else has is in use by then: the first wait, and the check.
const CHECKED_MS: u64 = 1_250;
/// The earliest moment at which it can be.
const CHECK_MS: u64 = 1_000;

fn v6() -> LinkSpec {
    LinkSpec {
        family: Family::V6,
        create: Some(Creation::default()),
        ..spec(SIX)
    }
}

fn set(bed: &mut Bed, at: usize, ip: impl Into<IpAddr>) {
    let node = &mut bed.seats[at].node;
    node.set_address(bed.now, LINK, Some(ip.into()))
        .expect("an address");
    bed.run();
}

/// A node whose link is up, and that uses an address.
fn using(bed: &mut Bed, spec: LinkSpec, ip: impl Into<IpAddr>) -> usize {
    let at = bed.up(spec);
    set(bed, at, ip);
    bed.pass(CHECKED_MS);
    assert_eq!(phase(bed, at), Phase::Used);
    at
}

fn status(bed: &Bed, at: usize) -> LinkStatus {
    bed.seats[at].node.link_status(LINK).expect("a link")
}

fn phase(bed: &Bed, at: usize) -> Phase {
    status(bed, at).address.expect("an address").1
}

/// How a link is, for whoever looks at it.
fn standing(bed: &Bed, at: usize) -> (LinkState, Option<Refusal>) {
    let link = status(bed, at);
    (link.state, link.error)
}

fn hardware(number: u16) -> HardwareAddress {
    HardwareAddress::datagrams(0x100 + u32::from(number), gid(number.into()))
}

/// A frame comes from another host, by a group.
fn hears(bed: &mut Bed, at: usize, from: HardwareAddress, frame: &[u8]) {
    let origin = Origin {
        lid: Lid(90),
        gid: Some(from.gid),
        group: Some(mgid(BROADCAST)),
        qpn: from.qpn,
    };
    let got = bed.seats[at].node.frame_came(bed.now, LINK, &origin, frame);
    assert_eq!(got, None);
    bed.run();
}

fn arp(operation: Operation, at: u16, sender_ip: Ipv4Addr, target_ip: Ipv4Addr) -> Vec<u8> {
    let arp = Arp {
        operation,
        sender: hardware(at),
        sender_ip,
        target: HardwareAddress::ZERO,
        target_ip,
    };
    arp.frame()
}

fn solicitation(source: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    let solicitation = Solicitation {
        source,
        destination: solicited_node(target),
        target,
        hardware: None,
    };
    solicitation.frame()
}

fn advertisement(target: Ipv6Addr, hardware: Option<HardwareAddress>) -> Vec<u8> {
    let advertisement = Advertisement {
        source: target,
        destination: Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 1),
        target,
        hardware,
        router: false,
        solicited: false,
        overrides: true,
    };
    advertisement.frame()
}

/// Of the ARP messages that a node has sent: the sender's address, whose it asks for.
fn questions(seat: &Seat) -> Vec<(Ipv4Addr, Ipv4Addr)> {
    let frames = seat.sent().into_iter();
    let asked = frames.filter_map(|frame| match Packet::parse(frame) {
        Ok(Packet::Arp(arp)) => Some((arp.sender_ip, arp.target_ip)),
        _ => None,
    });
    asked.collect()
}

fn probes(seat: &Seat, address: Ipv4Addr) -> usize {
    let probe = (Ipv4Addr::UNSPECIFIED, address);
    questions(seat).iter().filter(|it| **it == probe).count()
}

fn unheard(bed: &Bed, at: usize, why: Unheard) -> u64 {
    let counts = bed.seats[at].node.neighbour_counts(LINK).expect("a link");
    counts.unheard.of(why)
}

fn flap(bed: &mut Bed, at: usize) {
    for active in [false, true] {
        bed.seats[at].facts.active = active;
        bed.tell_port(at);
    }
}
