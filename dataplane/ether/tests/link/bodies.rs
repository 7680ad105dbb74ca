//! Links of the tests, frames of their making, and what is asked of any octets at all. The fuzz
//! target shares this file, so a corpus replayed by one means what it meant to the other.
#![allow(dead_code, unreachable_pub, reason = "the fuzz target uses part of it")]

use rpcrdma_ether::{Arrival, Dispatch, Link, Mac, Refused, Station};
use smoltcp::wire::{Icmpv4Packet, Icmpv6Packet, IpProtocol, Ipv4Packet, Ipv6Packet};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

pub const HERE: &str = "10.9.0.1";
pub const HERE6: &str = "2001:db8::1";
pub const THERE: &str = "10.9.0.2";
pub const THERE6: &str = "2001:db8::2";
pub const HERE_MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);
pub const THERE_MAC: Mac = Mac([2, 0, 0, 0, 0, 2]);

pub fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// The peer of a link at this address.
pub fn there(here: &str) -> SocketAddr {
    let there = if here == HERE { THERE } else { THERE6 };
    SocketAddr::new(ip(there), 9899)
}

pub fn link_as(ip: IpAddr, mac: Mac) -> Link<u32> {
    let bits = if ip.is_ipv4() { 24 } else { 64 };
    let station = Station {
        mac,
        address: format!("{ip}/{bits}").parse().expect("a prefix"),
        gateway: None,
        mtu: 1500,
    };
    Link::new(station).expect("a station")
}

pub fn link(here: &str) -> Link<u32> {
    link_as(ip(here), HERE_MAC)
}

fn ethernet(kind: u16, len: usize) -> Vec<u8> {
    let mut frame = vec![0; 14 + len];
    frame[..6].copy_from_slice(&HERE_MAC.0);
    frame[6..12].copy_from_slice(&THERE_MAC.0);
    frame[12..14].copy_from_slice(&kind.to_be_bytes());
    frame
}

/// A ping with so many octets of data.
pub fn echo_request(len: usize) -> Vec<u8> {
    let mut frame = ethernet(0x0800, 20 + 8 + len);
    let mut packet = Ipv4Packet::new_unchecked(&mut frame[14..]);
    packet.set_version(4);
    packet.set_header_len(20);
    packet.set_total_len(u16::try_from(28 + len).expect("short"));
    packet.set_hop_limit(64);
    packet.set_next_header(IpProtocol::Icmp);
    packet.set_src_addr(THERE.parse().expect("an address"));
    packet.set_dst_addr(HERE.parse().expect("an address"));
    packet.fill_checksum();
    let mut icmp = Icmpv4Packet::new_unchecked(packet.payload_mut());
    icmp.set_msg_type(smoltcp::wire::Icmpv4Message::EchoRequest);
    icmp.set_msg_code(0);
    icmp.set_echo_seq_no(7);
    icmp.fill_checksum();
    frame
}

/// The same over IPv6.
pub fn echo_request6(len: usize) -> Vec<u8> {
    let (from, to) = (
        THERE6.parse().expect("an address"),
        HERE6.parse().expect("an address"),
    );
    let mut frame = ethernet(0x86dd, 40 + 8 + len);
    let mut packet = Ipv6Packet::new_unchecked(&mut frame[14..]);
    packet.set_version(6);
    packet.set_payload_len(u16::try_from(8 + len).expect("short"));
    packet.set_hop_limit(64);
    packet.set_next_header(IpProtocol::Icmpv6);
    packet.set_src_addr(from);
    packet.set_dst_addr(to);
    let mut icmp = Icmpv6Packet::new_unchecked(packet.payload_mut());
    icmp.set_msg_type(smoltcp::wire::Icmpv6Message::EchoRequest);
    icmp.set_msg_code(0);
    icmp.fill_checksum(&from, &to);
    frame
}

/// Takes any octets, at stations of both kinds that ask for their neighbours meanwhile: whatever
/// they are, a datagram is part of the frame, an answer is one that can be sent, each frame is
/// counted once, and what is kept stays bounded.
pub fn take(octets: &[u8]) {
    let start = Instant::now();
    for here in [HERE, HERE6] {
        let mut link = link(here);
        let mut rest = octets;
        let mut frames = 0;
        let mut now = start;
        while let Some((&len, tail)) = rest.split_first() {
            let (frame, tail) = tail.split_at(tail.len().min(len.into()));
            rest = tail;
            frames += 1;
            now += Duration::from_millis(300);
            audit(&mut link, frame, now);
            let _ = matches!(link.dispatch(there(here), frames, now), Dispatch::Kept);
            while link.request(now).is_some() {}
            while link.release().is_some() {}
        }
        let counts = *link.counts();
        let refused: u64 = Refused::ALL.iter().map(|why| counts.refused(*why)).sum();
        assert!(counts.datagrams + counts.answers + refused <= frames.into());
    }
}

fn audit(link: &mut Link<u32>, frame: &[u8], now: Instant) {
    match link.take(frame, now) {
        Arrival::Datagram(datagram) => {
            assert!(frame.get(datagram.octets.clone()).is_some());
            assert!(datagram.octets.start >= 42);
            assert_ne!(datagram.from.port(), 0);
            assert!(!datagram.from.ip().is_multicast());
        }
        Arrival::Answer(answer) => {
            assert!((60..=128).contains(&answer.as_ref().len()));
            assert_eq!(answer.as_ref()[6..12], HERE_MAC.0);
        }
        Arrival::Nothing => {}
    }
}
