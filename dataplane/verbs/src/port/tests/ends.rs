//! How connections end, whoever ends them.

use super::*;
use rdma_core_sys as rdma;

#[test]
fn the_last_message_is_delivered() {
    let mut t = Two::new();
    assert_eq!(t.a.send(t.qa, b"last", 1), Ok(Posted::Done));
    t.a.port.disconnect(t.qa);
    assert_eq!(t.a.outcomes(), [], "it has not gone yet");
    assert!(!t.device.has_failed(t.na));
    assert_eq!(t.a.send(t.qa, b"later", 1), Err(Refused::Broken));
    assert_eq!(t.a.receive(t.qa, span(0, 8), 1), Err(Refused::Broken));
    t.b.receive(t.qb, span(0, 8), 5).expect("room");
    t.b.port.ring();
    assert_eq!(t.a.outcomes(), [(0, Outcome::Disconnected)]);
    assert!(t.device.has_failed(t.na));
    assert_eq!(t.b.outcomes(), [(5, received(4))]);
    assert_eq!(t.a.words(), ["broken 1"]);
}

/// A message that was posted in silence before is waited for by a request that tells.
#[test]
fn a_silent_message_is_followed_by_a_marker() {
    let mut t = Two::new();
    t.a.send(t.qa, b"last", 1).expect("room");
    t.a.port.ring();
    assert_eq!(t.device.posted(t.na), [(rdma::IBV_WR_SEND, false)]);
    t.a.port.disconnect(t.qa);
    assert_eq!(t.device.posted(t.na), [(rdma::IBV_WR_RDMA_WRITE, true)]);
    assert_eq!(t.a.outcomes(), []);
    t.b.receive(t.qb, span(0, 8), 5).expect("room");
    t.b.port.ring();
    assert_eq!(t.a.outcomes(), [(0, Outcome::Disconnected)]);
    assert_eq!(t.b.outcomes(), [(5, received(4))]);
}

/// The marker finds its place in a queue that is full otherwise.
#[test]
fn a_full_queue_has_room_for_the_marker() {
    let mut t = Two::new();
    while t.a.send(t.qa, b"x", 1).is_ok() {
        t.a.port.ring();
    }
    t.a.port.disconnect(t.qa);
    for n in 0..20 {
        t.b.receive(t.qb, span(0, 8), n).expect("room");
    }
    t.b.port.ring();
    // There is room again for what still may be posted: retirements.
    let told = [(0, Outcome::Room), (0, Outcome::Disconnected)];
    assert_eq!(t.a.outcomes(), told);
    assert_eq!(t.b.outcomes().len(), 15, "all of them");
}

#[test]
fn nothing_outstanding_ends_at_once_and_flushes_receives() {
    let mut t = Two::new();
    for n in 0..3 {
        t.a.receive(t.qa, span(0, 8), n).expect("room");
    }
    t.a.port.disconnect(t.qa);
    t.a.port.disconnect(t.qa);
    let flushed = [
        (0, FLUSHED),
        (1, FLUSHED),
        (2, FLUSHED),
        (0, Outcome::Disconnected),
    ];
    assert_eq!(t.a.outcomes(), flushed);
    t.a.port.disconnect(t.qa);
    assert_eq!(t.a.outcomes(), [], "once");
    t.a.port.destroy(t.qa);
    assert_eq!(t.a.words(), ["broken 1", "over 1"]);
    t.a.port.destroy(t.qa);
    assert_eq!(t.a.words(), Vec::<String>::new());
}

/// Posted, in the batch, and behind what failed: all of it comes back, each as what it is.
#[test]
fn a_failure_is_told_at_its_request_and_flushes_the_rest() {
    let mut t = Two::new();
    let good = t.open(span(0, 100), Access::Write);
    t.b.port.ring();
    let bad = Segment {
        handle: Handle(good.handle.0 ^ 1),
        ..good
    };
    t.a.receive(t.qa, span(0, 8), 9).expect("room");
    t.a.write(t.qa, span(0, 8), good, 1).expect("room");
    t.a.write(t.qa, span(0, 8), bad, 2).expect("room");
    t.a.write(t.qa, span(0, 8), good, 3).expect("room");
    t.a.port.ring();
    t.a.write(t.qa, span(0, 8), good, 4).expect("room");
    t.a.receive(t.qa, span(0, 8), 10).expect("room");
    let told = {
        let mut told = Vec::new();
        let mut room = [Completion {
            token: Token(0),
            id: WorkId(0),
            outcome: Outcome::Done,
        }; 2];
        // Not rung in between: what is in the batch was never posted.
        loop {
            let count = t.a.port.reap(&mut room);
            if count == 0 {
                break told;
            }
            told.extend(room[..count].iter().map(|c| (c.id.0, c.outcome)));
        }
    };
    assert_eq!(told[0], (1, Outcome::Done));
    assert_eq!(told[1], (2, Outcome::Failed(WorkError::RemoteAccess)));
    assert_eq!(told.last(), Some(&(0, Outcome::Disconnected)));
    let mut rest: Vec<u64> = told[2..told.len() - 1]
        .iter()
        .map(|&(id, outcome)| {
            assert_eq!(outcome, FLUSHED, "{id}");
            id
        })
        .collect();
    rest.sort_unstable();
    assert_eq!(rest, [3, 4, 9, 10]);
    assert_eq!(t.a.port.counts().remote_access, 1);
}

#[test]
fn a_message_too_long_for_its_receive_ends_the_connection() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 3), 1).expect("room");
    t.b.receive(t.qb, span(0, 8), 2).expect("room");
    t.b.port.ring();
    t.a.put(span(0, 100), &[1; 100]);
    let message = [Octets::Span(span(0, 100))];
    let posted = t.a.port.send(t.qa, &message, None, WorkId(7));
    assert_eq!(posted, Ok(Posted::Pending));
    let invalid = Outcome::Failed(WorkError::RemoteInvalid);
    assert_eq!(t.a.outcomes(), [(7, invalid), (0, Outcome::Disconnected)]);
    let short = Outcome::Failed(WorkError::LocalLength);
    let lost = [(1, short), (2, FLUSHED), (0, Outcome::Disconnected)];
    assert_eq!(t.b.outcomes(), lost);
}

/// The device takes only the first of a list: what it took is flushed by it, the rest by the port.
#[test]
fn a_list_that_is_taken_in_part_ends_the_connection() {
    for first in 0..3 {
        let mut t = Two::new();
        t.a.receive(t.qa, span(0, 8), 9).expect("room");
        t.a.port.ring();
        t.device.refuse(t.na, first, libc::EINVAL);
        for id in 0..3 {
            let message = [Octets::Span(span(0, 100))];
            let posted = t.a.port.send(t.qa, &message, None, WorkId(id));
            assert_eq!(posted, Ok(Posted::Pending));
        }
        let mut told = t.a.outcomes();
        assert_eq!(told.pop(), Some((0, Outcome::Disconnected)), "{first}");
        told.sort_by_key(|&(id, _)| id);
        let protection = Outcome::Failed(WorkError::LocalProtection);
        let expected = (0..3).map(|id| match id == first as u64 {
            true => (id, protection),
            false => (id, FLUSHED),
        });
        let mut expected: Vec<_> = expected.collect();
        expected.push((9, FLUSHED));
        assert_eq!(told, expected, "{first}");
    }
}

#[test]
fn receives_that_are_taken_in_part_end_the_connection() {
    let mut t = Two::new();
    t.device.refuse(t.na, 1, libc::ENOMEM);
    for n in 0..3 {
        t.a.receive(t.qa, span(0, 8), n).expect("room");
    }
    let mut told = t.a.outcomes();
    assert_eq!(told.pop(), Some((0, Outcome::Disconnected)));
    told.sort_by_key(|&(id, _)| id);
    assert_eq!(told, [(0, FLUSHED), (1, FLUSHED), (2, FLUSHED)]);
    assert_eq!(t.a.port.counts().transport, 1);
}

#[test]
fn what_control_has_lost_is_lost_here() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 8), 1).expect("room");
    t.b.receive(t.qb, span(0, 8), 2).expect("room");
    t.b.port.ring();
    t.a.send(t.qa, b"before", 1).expect("room");
    t.a.port.ring();
    t.lose_b();
    t.b.outlet.tell(Notice::Lost(ConnectionId(77)));
    let mut told = t.b.outcomes();
    told.sort_by_key(|&(id, _)| id);
    let lost = [(0, Outcome::Disconnected), (1, received(6)), (2, FLUSHED)];
    assert_eq!(told, lost, "what came before is delivered");
    assert_eq!(t.b.words(), ["broken 1"]);
}

/// Silent Sends that were done long ago, of which no completion ever comes, hold up nothing.
#[test]
fn silence_does_not_hold_up_the_end() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 8), 1).expect("room");
    t.b.port.ring();
    t.a.send(t.qa, b"x", 1).expect("room");
    t.a.port.ring();
    t.a.outlet.tell(Notice::Lost(ConnectionId(1)));
    assert_eq!(t.a.outcomes(), [(0, Outcome::Disconnected)]);
    t.a.port.destroy(t.qa);
    assert_eq!(t.a.words(), ["broken 1", "over 1"]);
}

#[test]
fn a_place_is_used_again_and_late_completions_are_dropped() {
    let mut t = Two::new();
    for round in 0..20 {
        let (qa, qb) = t.more((10 + round, 40));
        t.b.receive(qb, span(0, 8), 1).expect("room");
        t.b.port.ring();
        // Destroyed with completions on the way: one that is silent, and one that is told.
        t.a.receive(qa, span(0, 8), 3).expect("room");
        t.a.send(qa, b"x", 1).expect("room");
        t.a.port.ring();
        t.a.port.destroy(qa);
        t.b.port.disconnect(qb);
        assert_eq!(t.a.outcomes(), [], "forgotten");
        t.b.outcomes();
        t.b.port.destroy(qb);
        assert_eq!(t.b.outcomes(), []);
        assert_eq!(t.a.words().len(), 2);
        assert_eq!(t.b.words().len(), 2);
    }
    assert_eq!(t.a.port.free.len(), PAIRS as usize - 1);
    assert_eq!(t.b.port.free.len(), PAIRS as usize - 1);
    assert!(t.a.port.ending.is_empty() && t.b.port.ending.is_empty());
}

#[test]
fn a_port_has_so_many_places() {
    let mut t = Two::new();
    for n in 1..PAIRS {
        t.a.adopt(&mut t.device, n);
    }
    let endpoint = t.stranger();
    assert_eq!(t.a.port.adopt(endpoint, Token(99)), Err(Refused::Busy));
}

/// A device that was pulled flushes nothing: the port does, once control has destroyed what stood
/// there.
#[test]
fn a_device_that_is_gone_is_flushed_without_it() {
    let mut t = Two::new();
    let open =
        t.a.port
            .expose(t.qa, span(0, 8), Access::Read)
            .expect("free");
    t.a.receive(t.qa, span(0, 8), 1).expect("room");
    let message = [Octets::Span(span(0, 100))];
    t.a.port
        .send(t.qa, &message, None, WorkId(2))
        .expect("room");
    t.a.port.ring();
    t.a.port
        .send(t.qa, &message, None, WorkId(3))
        .expect("room");
    t.device.pull();
    t.a.outlet.tell(Notice::Gone);
    assert_eq!(t.a.outcomes(), []);
    t.a.outlet.tell(Notice::Ended);
    let mut told = t.a.outcomes();
    assert_eq!(told.pop(), Some((0, Outcome::Disconnected)));
    told.sort_by_key(|&(id, _)| id);
    assert_eq!(told, [(1, FLUSHED), (2, FLUSHED), (3, FLUSHED)]);
    assert_eq!(
        t.a.port.retire(t.qa, open.handle, WorkId(4)),
        Ok(Posted::Done)
    );
    t.a.port.destroy(t.qa);
    let endpoint = t.stranger();
    assert_eq!(t.a.port.adopt(endpoint, Token(99)), Err(Refused::Broken));
}

/// Of a device that lives, and whose completion queue alone is broken: what peers reach, and what
/// the device writes to, is given to nobody else before control has destroyed the way there.
#[test]
fn memory_comes_back_only_when_nothing_reaches_it_any_more() {
    let mut t = Two::new();
    let (_, idle) = t.more((3, 4));
    let open = t.open(span(4096, 8), Access::Write);
    t.b.receive(t.qb, span(0, 8), 1).expect("room");
    t.b.port.ring();
    t.b.outlet.tell(Notice::Gone);
    assert_eq!(t.b.outcomes(), [], "neither flushed nor ended");
    assert!(t.device.has_failed(t.nb), "the device lives, and heeds it");
    let window = format!("window {:#x}", open.handle.0 & !0xff);
    let words = ["broken 1", &window, "over 1", "broken 2", "over 2"];
    assert_eq!(t.b.words(), words, "the windows before the queue pair");
    let early = t.b.port.retire(t.qb, open.handle, WorkId(2));
    assert_eq!(early, Err(Refused::Busy));
    t.b.port.destroy(idle);
    assert_eq!(t.b.outcomes(), []);
    t.b.outlet.tell(Notice::Ended);
    let room = (0, Outcome::Room);
    let told = [room, (1, FLUSHED), (0, Outcome::Disconnected)];
    assert_eq!(t.b.outcomes(), told);
    let retired = t.b.port.retire(t.qb, open.handle, WorkId(2));
    assert_eq!(retired, Ok(Posted::Done));
    t.b.port.destroy(t.qb);
    assert_eq!(t.b.words(), Vec::<String>::new(), "each once");
    assert_eq!(t.b.port.free.len(), PAIRS as usize);
}

#[test]
fn a_dropped_port_ends_its_connections() {
    let Two {
        mut a,
        b,
        na,
        nb,
        device,
        ..
    } = Two::new();
    a.port.ring();
    let Node {
        port, mut outlet, ..
    } = b;
    drop(port);
    assert!(device.has_failed(nb) && !device.has_failed(na));
    let words: Vec<bool> = std::iter::from_fn(|| outlet.hear())
        .map(|word| matches!(word, Word::Over(_)))
        .collect();
    assert_eq!(words, [false, true]);
    drop(a);
}

/// Whoever looked away while a message came finds it before sleeping.
#[test]
fn arming_finds_what_is_there() {
    let mut t = Two::new();
    assert!(t.b.port.arm(), "nothing is there");
    assert_eq!(t.b.outcomes(), []);
    t.b.receive(t.qb, span(0, 8), 1).expect("room");
    t.b.port.ring();
    t.a.send(t.qa, b"x", 1).expect("room");
    t.a.port.ring();
    assert!(!t.b.port.arm());
    assert!(!t.b.port.arm());
    assert_eq!(t.b.outcomes(), [(1, received(1))]);
    t.lose_b();
    assert!(!t.b.port.arm(), "a notice");
    t.b.outcomes();
    assert!(t.b.port.arm());
}

/// Work that is in the batch is posted before sleep, rung or not.
#[test]
fn nothing_sleeps_in_the_batch() {
    let mut t = Two::new();
    t.a.send(t.qa, b"x", 1).expect("room");
    assert!(t.a.port.arm());
    assert_eq!(t.device.posted(t.na).len(), 1);
}
