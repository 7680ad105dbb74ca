//! What is on the wire, read octet by octet between two ends.

mod support;

use rpcrdma_sctp::Settings;
use std::net::UdpSocket;
use std::time::Instant;
use support::relay::{Faults, Relay};
use support::{Pair, Told, is_absent, loopback};

const DATA: u8 = 0;
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;
const COOKIE_ECHO: u8 = 10;

/// The chunks of a packet: type, flags and value of each (RFC 9260 section 3.2).
fn chunks(packet: &[u8]) -> Vec<(u8, u8, &[u8])> {
    let mut rest = &packet[12..];
    let mut all = Vec::new();
    while let [kind, flags, high, low, ..] = *rest {
        let len = usize::from(u16::from_be_bytes([high, low]));
        all.push((kind, flags, &rest[4..len]));
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
    all
}

/// The parameters of an INIT or INIT-ACK: type and value of each (RFC 9260 section 3.3.2).
fn parameters(value: &[u8]) -> Vec<(u16, &[u8])> {
    let mut rest = &value[16..];
    let mut all = Vec::new();
    while let [a, b, high, low, ..] = *rest {
        let len = usize::from(u16::from_be_bytes([high, low]));
        all.push((u16::from_be_bytes([a, b]), &rest[4..len]));
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
    all
}

/// The adaptation indications among them (RFC 5061 section 4.2.6).
fn indications(value: &[u8]) -> Vec<u32> {
    let parameters = parameters(value).into_iter();
    let indications = parameters.filter(|&(kind, _)| kind == 0xc006);
    let value = |value: &[u8]| u32::from_be_bytes(*value.first_chunk().expect("a value"));
    indications.map(|(_, octets)| value(octets)).collect()
}

/// Runs messages of those lengths through a relay, on a path of that MTU, and gives back what the
/// relay saw.
fn watched(path_mtu: u32, lengths: &[usize]) -> Vec<(bool, Vec<u8>)> {
    let settings = Settings {
        path_mtu,
        ..Settings::default()
    };
    let mut pair = Pair::new(settings, settings);
    let mut relay = Relay::new(pair.server.llp.local_address(), Faults::default(), 0);
    relay.keeps = true;
    let ours = pair.associate_by(relay.address());
    pair.drive(|pair, now| {
        relay.turn(now);
        pair.client.up().is_some() && pair.server.up().is_some()
    });
    for len in lengths {
        assert!(pair.client.put(ours, 0, &vec![9; *len]), "{len} octets");
    }
    pair.drive(|pair, now| {
        relay.turn(now);
        pair.server.messages().count() == lengths.len()
    });
    let mut arrived: Vec<usize> = pair.server.messages().map(Vec::len).collect();
    let mut sent = lengths.to_vec();
    arrived.sort_unstable();
    sent.sort_unstable();
    assert_eq!(arrived, sent);
    relay.seen
}

/// RFC 5043 section 5.1.
#[test]
fn section_5_1_init_and_init_ack_carry_the_indication() {
    if is_absent() {
        return;
    }
    let seen = watched(1500, &[]);
    for kind in [INIT, INIT_ACK] {
        let of_kind: Vec<Vec<u32>> = seen
            .iter()
            .flat_map(|(_, packet)| chunks(packet))
            .filter(|chunk| chunk.0 == kind)
            .map(|(_, _, value)| indications(value))
            .collect();
        assert_eq!(of_kind, [vec![1]], "chunk type {kind}");
    }
}

/// RFC 5043 section 7.2: no other address is offered, so that nothing moves to another device.
#[test]
fn section_7_2_one_address_at_each_end() {
    if is_absent() {
        return;
    }
    const ADDRESSES: [u16; 3] = [5, 6, 11];
    let seen = watched(1500, &[]);
    let mut looked = 0;
    for (kind, _, value) in seen.iter().flat_map(|(_, packet)| chunks(packet)) {
        if kind == INIT || kind == INIT_ACK {
            let parameters = parameters(value);
            let address = parameters.iter().find(|(kind, _)| ADDRESSES.contains(kind));
            assert_eq!(address, None, "chunk type {kind}");
            looked += 1;
        }
    }
    assert_eq!(looked, 2);
}

/// RFC 5043 section 8: as many one way as the other are asked for.
#[test]
fn section_8_as_many_streams_each_way() {
    if is_absent() {
        return;
    }
    let seen = watched(1500, &[]);
    let streams: Vec<_> = seen
        .iter()
        .flat_map(|(_, packet)| chunks(packet))
        .filter(|&(kind, ..)| kind == INIT || kind == INIT_ACK)
        .map(|(_, _, value)| (value[8..10].to_vec(), value[10..12].to_vec()))
        .collect();
    let asked = Settings::default().streams.to_be_bytes().to_vec();
    assert_eq!(streams, vec![(asked.clone(), asked); 2]);
}

/// RFC 5043 section 11.2: nothing waits for others to be bundled with, nor for an acknowledgement
/// of what went before.
#[test]
fn section_11_2_nothing_is_held_back() {
    if is_absent() {
        return;
    }
    let mut pair = Pair::new(Settings::default(), Settings::default());
    let mut relay = Relay::new(pair.server.llp.local_address(), Faults::default(), 0);
    let ours = pair.associate_by(relay.address());
    pair.drive(|pair, now| {
        relay.turn(now);
        pair.client.up().is_some() && pair.server.up().is_some()
    });
    relay.keeps = true;
    for sent in 1..=3 {
        assert!(pair.client.put(ours, 0, b"short"));
        let now = Instant::now();
        pair.client.turn(now);
        // The other end has no turn, and so says nothing.
        relay.turn(now);
        let seen = relay.seen.iter();
        let from_client = seen.filter(|(from_client, _)| *from_client);
        let all = from_client.flat_map(|(_, packet)| chunks(packet));
        assert_eq!(all.filter(|&(kind, ..)| kind == DATA).count(), sent);
    }
}

/// RFC 5043 sections 5 and 9: every chunk unordered and whole, no packet beyond the path's MTU.
#[test]
fn section_10_chunks_are_unordered_and_whole_up_to_the_longest() {
    if is_absent() {
        return;
    }
    for mtu in [576, 1280, 1500, 9000, 65_535] {
        // IP and UDP take 28, SCTP 12, the chunk's header 16; in whole words.
        let longest = ((mtu - 28) / 4 * 4 - 28).clamp(518, 65_476);
        let lengths: Vec<usize> = (longest - 13..=longest)
            .chain([1, 2, 3, 516, 518])
            .collect();
        let seen = watched(u32::try_from(mtu).expect("small"), &lengths);
        let mut data = 0;
        for (from_client, packet) in seen {
            assert!(packet.len() <= mtu - 28, "{} octets", packet.len());
            for (kind, flags, _) in chunks(&packet) {
                if kind == DATA {
                    assert!(from_client);
                    assert_eq!(flags & 7, 7, "unordered, begin and end");
                    data += 1;
                }
            }
        }
        assert_eq!(data, lengths.len(), "MTU {mtu}");
    }
}

/// RFC 5043 section 9: SCTP fragments where only IP could do so otherwise.
#[test]
fn section_9_the_least_segment_is_fragmented_on_a_path_too_narrow_for_it() {
    if is_absent() {
        return;
    }
    let seen = watched(552, &[518, 100, 518]);
    let mut flags: Vec<u8> = Vec::new();
    for (_, packet) in &seen {
        assert!(packet.len() <= 524, "{} octets", packet.len());
        for (kind, chunk_flags, _) in chunks(packet) {
            if kind == DATA {
                flags.push(chunk_flags & 7);
            }
        }
    }
    flags.sort_unstable();
    // Unordered: two ends, two beginnings, one whole.
    assert_eq!(flags, [5, 5, 6, 6, 7]);
}

/// A cookie is good for the address that it was given to.
#[test]
fn a_cookie_from_elsewhere_is_worth_nothing() {
    if is_absent() {
        return;
    }
    let mut pair = Pair::new(Settings::default(), Settings::default());
    let to = pair.server.llp.local_address();
    let mut relay = Relay::new(to, Faults::default(), 0);
    relay.keeps = true;
    let ours = pair.associate_by(relay.address());
    pair.drive(|pair, now| {
        relay.turn(now);
        pair.client.up().is_some() && pair.server.up().is_some()
    });
    let echo = relay
        .seen
        .iter()
        .map(|(_, packet)| packet)
        .find(|packet| chunks(packet)[0].0 == COOKIE_ECHO)
        .expect("one came up");
    let elsewhere = UdpSocket::bind(loopback()).expect("a socket");
    let before = pair.server.llp.counts().packets_in;
    elsewhere.send_to(echo, to).expect("sent");
    pair.until(|pair| pair.server.llp.counts().packets_in > before);
    assert!(pair.client.put(ours, 0, b"still there"));
    pair.drive(|pair, now| {
        relay.turn(now);
        pair.server.messages().count() == 1
    });
    let ups = |told: &&Told| matches!(told, Told::Up { .. });
    assert_eq!(pair.server.told.iter().filter(ups).count(), 1);
    assert_eq!(pair.server.llp.counts().turned_away, 0);
}
