//! What a queue pair can tell of the subnet.

use super::{LinkSettings, MemoryDatagrams};
use crate::MemoryFabric;
use rpcrdma_fabric::connect::Fabric;
use rpcrdma_fabric::datagram::{
    AddressVector, Arrival, DatagramFabric, Datagrams, FailureKind, Group, GroupLimits, LinkChange,
    PairWanted, Unsent,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::Ipv6Addr;
use std::os::fd::BorrowedFd;

const Q_KEY: u32 = 0x0b1b;

fn wanted() -> PairWanted {
    PairWanted {
        q_key: Q_KEY,
        receives: 4,
        ..PairWanted::default()
    }
}

fn group(last: u16) -> Group {
    let mgid: Ipv6Addr = "ff12:401b:ffff::1".parse().expect("a group's");
    let mut mgid = mgid.octets();
    mgid[14..].copy_from_slice(&last.to_be_bytes());
    Group {
        mgid,
        mlid: 0xC000 + last,
    }
}

/// Two nodes with a queue pair each.
fn two() -> [(MemoryFabric, MemoryDatagrams); 2] {
    let one = MemoryFabric::new();
    let other = one.clone();
    [one, other].map(|mut node| {
        let pair = node.open_pair(&wanted()).expect("a queue pair");
        (node, pair)
    })
}

fn next(pair: &mut MemoryDatagrams) -> Option<(Vec<u8>, Arrival)> {
    let mut octets = vec![0xEE; 3];
    let arrival = pair.receive(&mut octets)?;
    Some((octets, arrival))
}

fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut watched = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut watched, Some(&now)).expect("a descriptor") == 1
}

#[test]
fn a_group_reaches_who_is_attached_and_nobody_else() {
    let [(one, mut sender), (_other, mut receiver)] = two();
    let mut third = one.clone();
    let mut bystander = third.open_pair(&wanted()).expect("another");
    receiver.attach(group(1)).expect("attached");
    receiver.attach(group(1)).expect("again");
    bystander.attach(group(2)).expect("attached");
    assert_eq!(receiver.attached(), 1);

    let to = AddressVector::of_group(group(1), Q_KEY);
    sender.send(b"who is there?", &to).expect("sent");
    let (octets, from) = next(&mut receiver).expect("a datagram");
    assert_eq!(octets, b"who is there?");
    assert_eq!(from.queue_pair, sender.facts().queue_pair);
    assert_eq!(from.gid, Some(sender.facts().gid));
    assert_eq!(from.to, Some(group(1).mgid));
    assert!(from.is_multicast());
    assert_eq!(next(&mut receiver), None, "once though attached twice");
    assert_eq!(next(&mut bystander), None);

    let reply = AddressVector::reply(&from, Q_KEY);
    receiver.send(b"I am", &reply).expect("sent");
    let (octets, from) = next(&mut sender).expect("the answer");
    assert_eq!(octets, b"I am");
    assert!(!from.is_multicast());

    receiver.detach(group(1)).expect("detached");
    sender.send(b"still there?", &to).expect("sent");
    assert_eq!(next(&mut receiver), None);
    let again = receiver.detach(group(1)).expect_err("not attached");
    assert_eq!(again.kind, FailureKind::Invalid);
}

#[test]
fn a_group_is_its_gid_and_its_lid() {
    let [(_one, mut sender), (_other, mut receiver)] = two();
    receiver.attach(group(1)).expect("attached");
    let elsewhere = Group {
        mlid: 0xC123,
        ..group(1)
    };
    let to = AddressVector::of_group(elsewhere, Q_KEY);
    sender.send(b"x", &to).expect("sent");
    assert_eq!(next(&mut receiver), None);
    for wrong in [
        Group {
            mlid: 7,
            ..group(1)
        },
        Group {
            mlid: 0xFFFF,
            ..group(1)
        },
        Group {
            mgid: [0xFE; 16],
            ..group(1)
        },
    ] {
        let refused = receiver.attach(wrong).expect_err("no group");
        assert_eq!(refused.kind, FailureKind::Invalid);
    }
}

#[test]
fn keys_are_checked_where_a_datagram_arrives() {
    let [(one, mut sender), (mut other, _)] = two();
    for node in [&one, &other] {
        node.set_link(LinkSettings {
            p_keys: vec![0xFFFF, 0x7FFF, 0x8006],
            ..LinkSettings::default()
        });
    }
    let mut open = |p_key, q_key| {
        let wanted = PairWanted {
            p_key,
            q_key,
            ..wanted()
        };
        let mut pair = other.open_pair(&wanted).expect("a pair");
        pair.attach(group(1)).expect("attached");
        pair
    };
    let mut limited = open(0x7FFF, Q_KEY);
    let mut stranger = open(0x8006, Q_KEY);
    let mut other_key = open(0xFFFF, 1);
    sender
        .send(b"x", &AddressVector::of_group(group(1), Q_KEY))
        .expect("sent");
    assert!(
        next(&mut limited).is_some(),
        "a full member is heard by limited ones"
    );
    assert_eq!(next(&mut stranger), None);
    assert_eq!(stranger.counts().wrong_p_key, 1);
    assert_eq!(next(&mut other_key), None);
    assert_eq!(other_key.counts().wrong_q_key, 1);
}

#[test]
fn a_controlled_q_key_is_the_pairs_own() {
    let controlled = 0x8000_0b1b;
    let mut one = MemoryFabric::new();
    let with = |q_key| PairWanted { q_key, ..wanted() };
    let mut privileged = one.open_pair(&with(controlled)).expect("a pair");
    let mut plain = one.open_pair(&with(Q_KEY)).expect("a pair");
    let mut receiver = one.open_pair(&with(controlled)).expect("a pair");
    receiver.attach(group(1)).expect("attached");
    let to = AddressVector::of_group(group(1), controlled);
    plain.send(b"forged", &to).expect("sent, with its own key");
    assert_eq!(next(&mut receiver), None);
    assert_eq!(receiver.counts().wrong_q_key, 1);
    privileged.send(b"proper", &to).expect("sent");
    assert!(next(&mut receiver).is_some());
}

#[test]
fn a_partition_that_the_link_lacks_has_no_pair() {
    let mut node = MemoryFabric::new();
    let wanted = PairWanted {
        p_key: 0x8006,
        ..wanted()
    };
    let refused = node.open_pair(&wanted).expect_err("not in the table");
    assert_eq!(refused.kind, FailureKind::NoPartition);
    let absent = PairWanted {
        link: 2,
        ..PairWanted::default()
    };
    let refused = node.open_pair(&absent).expect_err("one link");
    assert_eq!(refused.kind, FailureKind::Absent);
}

#[test]
fn what_does_not_fit_is_lost_and_counted_at_the_receiver() {
    let [(_one, mut sender), (_other, mut receiver)] = two();
    receiver.attach(group(1)).expect("attached");
    let to = AddressVector::of_group(group(1), Q_KEY);
    for n in 0..6 {
        sender.send(&[n], &to).expect("sent");
    }
    let came: Vec<u8> = std::iter::from_fn(|| next(&mut receiver))
        .map(|it| it.0[0])
        .collect();
    assert_eq!(
        came,
        [0, 1, 2, 3],
        "the first four wait, as a receive queue has it"
    );
    assert_eq!(receiver.counts().overrun, 2);
    assert_eq!((sender.counts().sent, sender.counts().sent_octets), (6, 6));
}

#[test]
fn lengths_are_checked_at_the_sender() {
    let [(one, mut sender), (_other, mut receiver)] = two();
    receiver.attach(group(1)).expect("attached");
    let to = AddressVector::of_group(group(1), Q_KEY);
    assert_eq!(sender.send(&[0; 4097], &to), Err(Unsent::TooLong));
    sender.send(&[7; 4096], &to).expect("sent");
    assert_eq!(next(&mut receiver).expect("a datagram").0.len(), 4096);
    one.set_link(LinkSettings {
        mtu: 2048,
        ..LinkSettings::default()
    });
    assert_eq!(sender.send(&[0; 2049], &to), Err(Unsent::TooLong));
    assert_eq!(sender.counts().unsent, 2);
}

#[test]
fn addresses_that_cannot_be_are_refused() {
    let [(_one, mut sender), _other] = two();
    let to = AddressVector::of_group(group(1), Q_KEY);
    for wrong in [
        AddressVector { gid: None, ..to },
        AddressVector {
            gid: Some([0; 16]),
            ..to
        },
        AddressVector {
            queue_pair: 5,
            ..to
        },
        AddressVector {
            queue_pair: 5,
            lid: 0,
            ..to
        },
    ] {
        assert_eq!(sender.send(b"x", &wrong), Err(Unsent::Address), "{wrong:?}");
    }
    let nobody = AddressVector {
        queue_pair: 5,
        lid: 99,
        gid: None,
        ..to
    };
    sender.send(b"x", &nobody).expect("lost, as datagrams are");
}

#[test]
fn a_pair_does_not_hear_itself() {
    let mut node = MemoryFabric::new();
    let mut pair = node.open_pair(&wanted()).expect("a pair");
    pair.attach(group(1)).expect("attached");
    pair.send(b"x", &AddressVector::of_group(group(1), Q_KEY))
        .expect("sent");
    assert_eq!(next(&mut pair), None);
    assert_eq!(pair.counts().echoes, 1);
}

#[test]
fn the_descriptor_is_readable_while_something_waits() {
    let [(_one, mut sender), (_other, mut receiver)] = two();
    receiver.attach(group(1)).expect("attached");
    assert!(!is_readable(receiver.descriptor()));
    let to = AddressVector::of_group(group(1), Q_KEY);
    for _ in 0..2 {
        sender.send(b"x", &to).expect("sent");
    }
    assert!(is_readable(receiver.descriptor()));
    assert!(next(&mut receiver).is_some());
    assert!(is_readable(receiver.descriptor()), "one is left");
    assert!(next(&mut receiver).is_some());
    assert_eq!(next(&mut receiver), None);
    assert!(!is_readable(receiver.descriptor()));
    sender.send(b"x", &to).expect("sent");
    assert!(is_readable(receiver.descriptor()));
}

#[test]
fn attachments_are_limited_and_come_back() {
    let mut node = MemoryFabric::new();
    node.set_link(LinkSettings {
        limits: GroupLimits {
            groups: 2,
            attachments_each: 2,
            attachments: 3,
        },
        ..LinkSettings::default()
    });
    let mut pairs = [(); 3].map(|()| node.open_pair(&wanted()).expect("a pair"));
    let exhausted = |pair: &mut MemoryDatagrams, last| {
        let refused = pair.attach(group(last)).expect_err("no room");
        refused.kind == FailureKind::Exhausted
    };
    pairs[0].attach(group(1)).expect("room");
    pairs[1].attach(group(1)).expect("room");
    assert!(exhausted(&mut pairs[2], 1), "two of a group");
    pairs[2].attach(group(2)).expect("room");
    assert!(exhausted(&mut pairs[0], 3), "two groups");
    assert!(exhausted(&mut pairs[0], 2), "three attachments");
    let [first, second, mut third] = pairs;
    drop(first);
    third
        .attach(group(1))
        .expect("what was dropped has given its own back");
    drop(second);
    assert!(exhausted(&mut third, 3), "both groups are still there");
    let mut other = node.clone();
    let mut elsewhere = other.open_pair(&wanted()).expect("a pair");
    elsewhere
        .attach(group(3))
        .expect("another node's limits are its own");
}

#[test]
fn what_changes_of_a_link_is_told_once() {
    let mut node = MemoryFabric::new();
    let mut other = node.clone();
    let before = node.link(None, 1).expect("its link");
    assert!(before.up && before.lid != 0);
    node.move_link();
    node.set_link(LinkSettings {
        up: false,
        ..LinkSettings::default()
    });
    node.set_link(LinkSettings {
        p_keys: vec![0x8006],
        ..LinkSettings::default()
    });
    node.tell_link(LinkChange::Reregister);
    node.tell_link(LinkChange::Reregister);
    assert!(is_readable(node.descriptor().expect("it has one")));
    assert_eq!(node.poll(), None);
    let mut changes = Vec::new();
    while let Some((name, change)) = node.link_change() {
        assert_eq!((name.device.as_str(), name.number), ("memory", 1));
        changes.push(change);
    }
    use LinkChange::{Down, Lid, PKeys, Reregister, Up};
    assert_eq!(changes, [Lid, Down, Up, PKeys, Reregister]);
    assert_eq!(other.link_change(), None, "the other node's is as it was");
    let after = node.link(None, 1).expect("its link");
    assert_ne!(after.lid, before.lid);
    assert_eq!((after.gids, after.p_keys), (before.gids, vec![0x8006]));
}

#[test]
fn a_link_that_is_down_carries_nothing() {
    let [(one, mut sender), (other, mut receiver)] = two();
    receiver.attach(group(1)).expect("attached");
    let to = AddressVector::of_group(group(1), Q_KEY);
    other.set_link(LinkSettings {
        up: false,
        ..LinkSettings::default()
    });
    sender.send(b"lost", &to).expect("sent");
    assert_eq!(next(&mut receiver), None);
    one.set_link(LinkSettings {
        up: false,
        ..LinkSettings::default()
    });
    assert_eq!(sender.send(b"x", &to), Err(Unsent::LinkDown));
    for node in [&one, &other] {
        node.set_link(LinkSettings::default());
    }
    sender.send(b"back", &to).expect("sent");
    assert_eq!(next(&mut receiver).expect("attached still").0, b"back");
}

#[test]
fn a_pair_outlives_its_node_and_is_gone() {
    let [(one, mut sender), (other, mut receiver)] = two();
    let lid = one.link(None, 1).expect("its link").lid;
    assert!(!sender.is_gone());
    drop(one);
    assert!(sender.is_gone());
    assert!(!receiver.is_gone(), "its node is there");
    let to = AddressVector::of_group(group(1), Q_KEY);
    assert_eq!(sender.send(b"x", &to), Err(Unsent::Gone));
    let refused = sender.attach(group(1)).expect_err("gone");
    assert_eq!(refused.kind, FailureKind::Gone);
    let to = AddressVector {
        lid,
        queue_pair: sender.facts().queue_pair,
        gid: None,
        ..to
    };
    receiver.send(b"x", &to).expect("lost");
    assert_eq!(next(&mut sender), None);
    drop(other);
}

#[test]
fn a_thousand_groups_and_threads_of_senders_lose_nothing_uncounted() {
    const EACH: u16 = 500;
    let fabric = MemoryFabric::new();
    let mut node = fabric.clone();
    let mut receiver = node
        .open_pair(&PairWanted {
            receives: 100,
            ..wanted()
        })
        .expect("a pair");
    for last in 0..1000 {
        receiver.attach(group(last)).expect("room");
    }
    let senders: Vec<_> = (0..4_u16)
        .map(|thread| {
            let mut node = fabric.clone();
            std::thread::spawn(move || {
                let mut pair = node.open_pair(&wanted()).expect("a pair");
                for n in 0..EACH {
                    let last = n * 2 % 1000 + thread % 2;
                    let to = AddressVector::of_group(group(last), Q_KEY);
                    pair.send(&n.to_be_bytes(), &to).expect("sent");
                }
            })
        })
        .collect();
    let mut octets = Vec::new();
    while !senders.iter().all(std::thread::JoinHandle::is_finished) {
        let _ = receiver.receive(&mut octets);
    }
    for sender in senders {
        sender.join().expect("no panic");
    }
    while receiver.receive(&mut octets).is_some() {}
    let counts = receiver.counts();
    assert_eq!(
        counts.received + counts.overrun,
        4 * u64::from(EACH),
        "{counts:?}"
    );
}
