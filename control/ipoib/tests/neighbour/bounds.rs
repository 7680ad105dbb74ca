//! What strangers and floods can make it hold: no more than was allowed.

use crate::link::{address, drain, hardware, neighbours, route, station};
use proptest::prelude::*;
use rpcrdma_ipoib::neighbour::{Bounds, Fate, Lost, Neighbours, Output, State, Unheard};
use rpcrdma_ipoib::packet::{Arp, HardwareAddress, Operation, Packet};
use rpcrdma_ipoib::settings::Limits;
use rpcrdma_ipoib::time::{Moment, Pace};
use std::net::{IpAddr, Ipv4Addr};

const NONE: Pace = Pace {
    per_second: 0,
    burst: 0,
};

const SMALL: Bounds = Bounds {
    neighbours: 8,
    answers: true,
    asked: Pace {
        per_second: 1,
        burst: 4,
    },
    answered: Pace {
        per_second: 1,
        burst: 4,
    },
    waiting: Limits {
        waiting: 2,
        waiting_octets: 100,
        all_waiting_octets: 300,
        outstanding: 0,
        groups: 0,
        routed: 0,
        reports: NONE,
        told: NONE,
        conflicts: NONE,
    },
    wait_ms: 2_500,
};

fn small() -> Neighbours {
    Neighbours::new(station(false, 1), SMALL)
}

fn arp(operation: Operation, from: Ipv4Addr, at: HardwareAddress) -> Packet<'static> {
    Packet::Arp(Arp {
        operation,
        sender: at,
        sender_ip: from,
        target: HardwareAddress::ZERO,
        target_ip: Ipv4Addr::new(10, 9, 0, 1),
    })
}

fn stranger(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0A0A_0000 + number)
}

#[test]
fn few_frames_wait_and_not_for_long() {
    let mut it = small();
    let peer = address(false, 2);
    assert_eq!(it.send(Moment(0), peer, vec![0; 60]), Fate::Waiting);
    assert_eq!(
        it.send(Moment(0), peer, vec![0; 60]),
        Fate::Dropped(Lost::Full)
    );
    assert_eq!(it.send(Moment(0), peer, vec![0; 30]), Fate::Waiting);
    assert_eq!(
        it.send(Moment(0), peer, vec![0; 1]),
        Fate::Dropped(Lost::Full)
    );
    assert_eq!(it.wake(), Some(Moment(1_000)));
    it.pass(Moment(2_499));
    assert_eq!(it.counts().lost.of(Lost::WaitedTooLong), 0);
    it.pass(Moment(2_500));
    assert_eq!(it.counts().lost.of(Lost::WaitedTooLong), 2);
}

#[test]
fn all_together_wait_no_more_than_was_allowed() {
    let mut it = small();
    let fates: Vec<Fate> = (2..7)
        .map(|n| it.send(Moment(0), address(false, n), vec![0; 90]))
        .collect();
    let full = Fate::Dropped(Lost::Full);
    assert_eq!(
        fates,
        [Fate::Waiting, Fate::Waiting, Fate::Waiting, full, full]
    );
}

#[test]
fn questions_to_everybody_have_a_pace() {
    let mut it = small();
    for n in 2..9 {
        it.send(Moment(0), address(false, n), vec![0]);
    }
    let asked = drain(&mut it).len();
    assert_eq!(
        (asked, it.counts().unheard.of(Unheard::NotAskedInTime)),
        (4, 3)
    );
    it.pass(Moment(1_000));
    assert_eq!(drain(&mut it).len(), 1, "one more a second");
}

#[test]
fn answers_have_a_pace() {
    let mut it = small();
    for number in 0..10 {
        it.heard(
            Moment(0),
            &arp(Operation::Request, stranger(number), hardware(9)),
            None,
        );
    }
    assert_eq!(it.counts().unheard.of(Unheard::TooManyQuestions), 6);
    assert_eq!(it.iter().count(), 4, "who is not answered is not kept");
}

/// Where somebody else answers, a stranger's question costs nothing here; a neighbour's still teaches.
#[test]
fn questions_that_others_answer_only_teach() {
    let bounds = Bounds {
        answers: false,
        ..SMALL
    };
    let mut it = Neighbours::new(station(false, 1), bounds);
    let question = arp(Operation::Request, Ipv4Addr::new(10, 9, 0, 2), hardware(2));
    it.heard(Moment(0), &question, None);
    assert_eq!((drain(&mut it).len(), it.iter().count()), (0, 0));
    assert_eq!(it.counts().unheard.of(Unheard::NotAsked), 1);
    it.send(Moment(0), address(false, 2), vec![0]);
    it.heard(Moment(0), &question, None);
    let asked = drain(&mut it);
    assert!(
        matches!(asked[..], [Output::Everybody { .. }, Output::Path(_)]),
        "{asked:?}"
    );
}

/// A flood of addresses that never answer replaces none that did.
#[test]
fn those_who_answered_stay() {
    let mut it = neighbours(false, 1);
    let known: Vec<IpAddr> = (2..102).map(|n| address(false, n)).collect();
    for (&ip, n) in known.iter().zip(2_u8..) {
        let IpAddr::V4(v4) = ip else { unreachable!() };
        it.send(Moment(0), ip, vec![0]);
        it.heard(
            Moment(0),
            &arp(Operation::Reply, v4, hardware(n)),
            Some(hardware(n)),
        );
        it.routed(Moment(0), hardware(n).gid, Some(route(n.into())));
    }
    for number in 0..2_000 {
        let at = Moment(u64::from(number));
        it.heard(
            at,
            &arp(Operation::Request, stranger(number), hardware(200)),
            None,
        );
        it.send(at, stranger(number + 5_000).into(), vec![0]);
        drain(&mut it);
    }
    assert_eq!(it.iter().count(), Bounds::default().neighbours);
    let stayed = known
        .iter()
        .filter(|ip| matches!(it.state(**ip), Some(State::Known(_))));
    assert_eq!(stayed.count(), known.len());
    assert!(it.counts().lost.of(Lost::Evicted) > 0);
}

/// A step of a run that nobody planned.
#[derive(Clone, Debug)]
enum Step {
    Send(u8, u8),
    Ask(u8, u8),
    Reply(u8, u8),
    Announce(u8, u8),
    Routed(u8, bool),
    Reroute,
    Wait(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let peer = || 2_u8..14;
    prop_oneof![
        4 => (peer(), any::<u8>()).prop_map(|(n, bytes)| Step::Send(n, bytes)),
        2 => (peer(), peer()).prop_map(|(n, at)| Step::Ask(n, at)),
        3 => (peer(), peer()).prop_map(|(n, at)| Step::Reply(n, at)),
        1 => (peer(), peer()).prop_map(|(n, at)| Step::Announce(n, at)),
        3 => (peer(), any::<bool>()).prop_map(|(n, found)| Step::Routed(n, found)),
        1 => Just(Step::Reroute),
        2 => any::<u16>().prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Whatever comes in whatever order: there are no more neighbours than may be, and each frame was sent, waits, or is
    /// counted as lost.
    #[test]
    fn frames_are_accounted_for(steps in proptest::collection::vec(step(), 0..120)) {
        let mut it = small();
        let mut now = Moment(0);
        let (mut given, mut sent) = (0_u64, 0_u64);
        let v4 = |n| Ipv4Addr::new(10, 9, 0, n);
        for step in steps {
            match step {
                Step::Send(n, bytes) => {
                    given += 1;
                    // Told from what it says itself by its first octet.
                    it.send(now, address(false, n), vec![0xFF; usize::from(bytes) + 1]);
                }
                Step::Ask(n, at) => it.heard(now, &arp(Operation::Request, v4(n), hardware(at)), None),
                Step::Reply(n, at) => it.heard(now, &arp(Operation::Reply, v4(n), hardware(at)), None),
                Step::Announce(n, at) => {
                    let announcement = Arp {
                        operation: Operation::Request,
                        sender: hardware(at),
                        sender_ip: v4(n),
                        target: HardwareAddress::ZERO,
                        target_ip: v4(n),
                    };
                    it.heard(now, &Packet::Arp(announcement), None);
                }
                Step::Routed(n, found) => {
                    it.routed(now, hardware(n).gid, found.then(|| route(n.into())));
                }
                Step::Reroute => it.reroute(now),
                Step::Wait(ms) => {
                    now = now.after(ms.into());
                    it.pass(now);
                    prop_assert!(it.wake().is_none_or(|wake| wake > now));
                }
            }
            for output in drain(&mut it) {
                if let Output::One { frame, .. } = output {
                    sent += u64::from(frame[0] == 0xFF);
                }
            }
            prop_assert!(it.iter().count() <= SMALL.neighbours);
        }
        // Answers wait and are lost too, so no fewer are lost than were given and neither sent nor wait.
        let lost = it.counts().lost.total();
        prop_assert!(sent + lost + waiting_at_most() >= given);
        // Left alone it forgets all, and nothing waits.
        for _ in 0..200 {
            now = now.after(1_000);
            it.pass(now);
            drain(&mut it);
        }
        prop_assert_eq!((it.iter().count(), it.wake()), (0, None));
        prop_assert!(sent + it.counts().lost.total() >= given);
    }
}

/// Frames that can wait at a time.
fn waiting_at_most() -> u64 {
    (SMALL.neighbours * SMALL.waiting.waiting) as u64
}
