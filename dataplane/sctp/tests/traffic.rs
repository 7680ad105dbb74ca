//! Many messages, over good paths and bad ones.

mod support;

use rpcrdma_sctp::{Llp, Settings};
use std::collections::HashSet;
use support::relay::{Faults, Relay};
use support::{Pair, Told, is_absent};

/// A message's length and octets follow from its number.
fn message(number: u32, longest: usize) -> Vec<u8> {
    let spread = (number as usize).wrapping_mul(2_654_435_761) >> 7;
    let len = 4 + spread % (longest - 3);
    let pattern = (number.wrapping_mul(31)..).step_by(7);
    let octets = pattern.map(|word| word.to_le_bytes()[1]);
    let head = number.to_be_bytes();
    head.into_iter().chain(octets).take(len).collect()
}

fn stream_of(number: u32) -> u16 {
    u16::try_from(number % 16).expect("small")
}

/// Sends that many messages from client to server and sees that each arrives once and whole.
fn run(settings: Settings, count: u32, relayed: Option<(Faults, u64)>) {
    let mut pair = Pair::new(settings, settings);
    let server = pair.server.llp.local_address();
    let mut relay = relayed.map(|(faults, seed)| Relay::new(server, faults, seed));
    let to = relay.as_ref().map_or(server, Relay::address);
    let ours = pair.associate_by(to);
    let mut turn = |now| {
        if let Some(relay) = &mut relay {
            relay.turn(now);
        }
    };
    pair.drive(|pair, now| {
        turn(now);
        pair.client.up().is_some() && pair.server.up().is_some()
    });
    let longest = (pair.client.llp.max_segment(ours) as usize).min(9_000);
    let mut next = 0;
    let mut seen = HashSet::new();
    pair.drive(|pair, now| {
        turn(now);
        while next < count
            && pair
                .client
                .put(ours, stream_of(next), &message(next, longest))
        {
            next += 1;
        }
        for octets in pair.server.messages() {
            let number = u32::from_be_bytes(*octets.first_chunk().expect("a number"));
            assert_eq!(*octets, message(number, longest), "message {number}");
            assert!(seen.insert(number), "message {number} twice");
        }
        pair.server.told.clear();
        assert_eq!(pair.client.down(), None);
        seen.len() == count as usize
    });
    pair.client.llp.await_dry(ours);
    pair.drive(|pair, now| {
        turn(now);
        let last = pair.client.told.last();
        last == Some(&Told::Dry(ours))
    });
}

#[test]
fn ten_thousand_messages_of_odd_sizes_arrive_once() {
    if is_absent() {
        return;
    }
    run(Settings::default(), 10_000, None);
}

#[test]
fn they_do_in_packets_of_an_ethernet() {
    if is_absent() {
        return;
    }
    let settings = Settings {
        path_mtu: 1500,
        ..Settings::default()
    };
    run(settings, 10_000, None);
}

#[test]
fn they_do_in_pieces() {
    if is_absent() {
        return;
    }
    let settings = Settings {
        path_mtu: 1500,
        in_pieces: true,
        ..Settings::default()
    };
    run(settings, 10_000, None);
}

fn relayed(lost: u32, seed: u64, path_mtu: u32) {
    if is_absent() {
        return;
    }
    let settings = Settings {
        path_mtu,
        in_pieces: true,
        ..Settings::default()
    };
    let faults = Faults {
        lost,
        delayed: 50,
        doubled: 20,
    };
    run(settings, 3_000, Some((faults, seed)));
}

#[test]
fn they_do_when_datagrams_are_delayed_and_doubled() {
    relayed(0, 3, 1500);
}

#[test]
fn they_do_when_one_datagram_of_a_thousand_is_lost() {
    relayed(1, 5, 1500);
}

#[test]
fn they_do_when_one_of_a_hundred_is_lost() {
    relayed(10, 7, 1500);
}

#[test]
fn they_do_when_one_of_twenty_is_lost() {
    relayed(50, 11, 1500);
}
