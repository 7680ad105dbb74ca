//! Send and Receive, Read and Write: what is posted, and what is told.

use super::*;
use rdma_core_sys as rdma;

const SILENT_SEND: (u32, bool) = (rdma::IBV_WR_SEND, false);

#[test]
fn messages_meet_receives_in_the_order_of_both() {
    let mut t = Two::new();
    for n in 0..3 {
        t.b.receive(t.qb, span(n * 100, 100), n).expect("room");
    }
    t.b.port.ring();
    for text in ["one", "two", "three"] {
        assert_eq!(t.a.send(t.qa, text.as_bytes(), 9), Ok(Posted::Done));
    }
    assert_eq!(t.a.outcomes(), []);
    let expected = [(0, received(3)), (1, received(3)), (2, received(5))];
    assert_eq!(t.b.outcomes(), expected);
    assert_eq!(t.b.see(span(0, 3)), b"one");
    assert_eq!(t.b.see(span(200, 5)), b"three");
}

#[test]
fn a_run_is_one_list_and_receives_go_ahead_of_it() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 100), 1).expect("room");
    t.b.receive(t.qb, span(100, 100), 2).expect("room");
    assert_eq!(t.device.receives(t.nb), 0, "not before the ring");
    t.b.port.ring();
    assert_eq!((t.device.lists(t.nb), t.device.receives(t.nb)), (1, 2));
    let before = t.device.lists(t.na);
    t.a.send(t.qa, b"one", 1).expect("room");
    t.a.receive(t.qa, span(0, 100), 3).expect("room");
    t.a.send(t.qa, b"two", 2).expect("room");
    assert_eq!(t.device.posted(t.na), []);
    t.a.port.ring();
    assert_eq!(
        t.device.lists(t.na),
        before + 2,
        "one of receives, one of sends"
    );
    assert_eq!(t.device.posted(t.na), [SILENT_SEND; 2]);
}

#[test]
fn another_connections_turn_posts_the_run_of_the_last() {
    let mut t = Two::new();
    let (other, _) = t.more((3, 4));
    t.a.send(t.qa, b"one", 1).expect("room");
    t.a.send(other, b"two", 1).expect("room");
    assert_eq!(t.device.posted(t.na), [SILENT_SEND]);
}

#[test]
fn a_message_is_gathered_from_everywhere() {
    let mut t = Two::new();
    for (n, len) in [(0, 6), (1, 200)] {
        t.b.receive(t.qb, span(0, 400), n).expect("room");
        t.b.port.ring();
        let middle = vec![b'm'; len as usize];
        t.a.put(span(500, len), &middle);
        let message = [
            Octets::Bytes(b"<"),
            Octets::Bytes(b"("),
            Octets::Span(span(500, len)),
            Octets::Bytes(b">"),
        ];
        let posted = t.a.port.send(t.qa, &message, None, WorkId(7));
        let told = if len > INLINE {
            &[(7, Outcome::Done)][..]
        } else {
            &[]
        };
        let expected = if len > INLINE {
            Posted::Pending
        } else {
            Posted::Done
        };
        assert_eq!(
            posted,
            Ok(expected),
            "octets that are copied are free at once"
        );
        assert_eq!(t.a.outcomes(), told);
        assert_eq!(t.b.outcomes(), [(n, received(len + 3))]);
        let mut all = b"<(".to_vec();
        all.extend_from_slice(&middle);
        all.push(b'>');
        assert_eq!(t.b.see(span(0, len + 3)), all);
    }
}

#[test]
fn an_empty_message_is_a_message() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 0), 1).expect("room");
    t.b.port.ring();
    assert_eq!(t.a.port.send(t.qa, &[], None, WorkId(0)), Ok(Posted::Done));
    assert_eq!(t.a.outcomes(), []);
    assert_eq!(t.b.outcomes(), [(1, received(0))]);
}

/// Plain octets that are too long to go inline are sent from the outbox, which comes back.
#[test]
fn long_messages_of_plain_octets_are_done_at_once() {
    let mut t = Two::new();
    let text: Vec<u8> = (0..=255).cycle().take(700).collect();
    for n in 0..50 {
        t.b.receive(t.qb, span(0, 1024), n).expect("room");
        t.b.port.ring();
        assert_eq!(t.a.send(t.qa, &text, 5), Ok(Posted::Done), "{n}");
        assert_eq!(t.a.outcomes(), [], "{n}");
        assert_eq!(t.b.outcomes(), [(n, received(700))]);
        assert_eq!(t.b.see(span(0, 700)), text);
    }
    let posted = t.device.posted(t.na);
    assert!(posted.iter().all(|&(_, signalled)| signalled));
    let longer = vec![0; OUTBOX as usize + 1];
    assert_eq!(t.a.send(t.qa, &longer, 5), Err(Refused::Unsupported));
}

#[test]
fn a_full_outbox_is_busy_until_there_is_room() {
    let mut t = Two::new();
    let text = [7; 400];
    assert_eq!(t.a.send(t.qa, &text, 1), Ok(Posted::Done));
    assert_eq!(t.a.send(t.qa, &text, 2), Ok(Posted::Done));
    assert_eq!(t.a.send(t.qa, &text, 3), Err(Refused::Busy));
    assert_eq!(t.a.outcomes(), [], "no receive yet");
    for n in 0..2 {
        t.b.receive(t.qb, span(0, 1024), n).expect("room");
    }
    t.b.port.ring();
    let room = t.a.completions();
    assert_eq!(room.len(), 1);
    assert_eq!((room[0].token, room[0].outcome), (Token(1), Outcome::Room));
    assert_eq!(t.a.send(t.qa, &text, 3), Ok(Posted::Done));
}

#[test]
fn what_cannot_be_sent_ever_is_said_so() {
    let mut t = Two::new();
    let piece = Octets::Span(span(0, 100));
    let message = [piece; 5];
    let refused = t.a.port.send(t.qa, &message, None, WorkId(0));
    assert_eq!(refused, Err(Refused::Unsupported), "five of four elements");
    let outside = [Octets::Span(span(1 << 20, 8))];
    let refused = t.a.port.send(t.qa, &outside, None, WorkId(0));
    assert_eq!(refused, Err(Refused::Unsupported));
    let to = Segment {
        handle: Handle(1),
        length: 1 << 17,
        offset: 0,
    };
    let long = span(0, 1 << 17);
    assert_eq!(t.a.write(t.qa, long, to, 0), Err(Refused::Unsupported));
    assert_eq!(t.a.read(t.qa, long, to, 0), Err(Refused::Unsupported));
    let short = t.a.read(t.qa, span(0, 8), Segment { length: 9, ..to }, 0);
    assert_eq!(short, Err(Refused::Unsupported));
    assert_eq!(t.a.outcomes(), []);
    assert_eq!(t.device.posted(t.na), [], "nothing of it happened");
}

/// Of short Sends one in every quarter of the queue has a completion, which nobody is told of.
#[test]
fn short_sends_are_silent_but_for_every_fourth_part_of_the_queue() {
    let mut t = Two::new();
    for n in 0..40 {
        t.b.receive(t.qb, span(0, 100), n).expect("room");
        t.b.port.ring();
        assert_eq!(t.a.send(t.qa, b"x", 1), Ok(Posted::Done));
        assert_eq!(t.a.outcomes(), []);
        t.b.outcomes();
    }
    let posted = t.device.posted(t.na);
    let signalled: Vec<usize> = (0..40).filter(|&n| posted[n].1).collect();
    assert_eq!(signalled, [3, 7, 11, 15, 19, 23, 27, 31, 35, 39]);
}

#[test]
fn a_full_send_queue_is_busy_and_room_is_told() {
    let mut t = Two::new();
    let mut taken = 0;
    while t.a.send(t.qa, b"x", 1) == Ok(Posted::Done) {
        taken += 1;
    }
    assert_eq!(taken, SEND_DEPTH - 1, "one is kept for the end");
    let refused = t.a.send(t.qa, b"x", 1);
    assert_eq!(refused, Err(Refused::Busy));
    assert_eq!(t.a.outcomes(), []);
    for n in 0..20 {
        t.b.receive(t.qb, span(0, 100), n).expect("room");
    }
    t.b.port.ring();
    assert_eq!(t.a.outcomes(), [(0, Outcome::Room)]);
    assert_eq!(t.a.send(t.qa, b"x", 1), Ok(Posted::Done));
    assert_eq!(t.b.outcomes().len(), 15);
}

#[test]
fn writes_are_told_when_the_last_of_their_run_is_done() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 100), 1).expect("room");
    let to = t.open(span(4096, 100), Access::Write);
    t.b.port.ring();
    t.a.put(span(0, 10), b"0123456789");
    let part = Segment {
        offset: to.offset + 50,
        ..to
    };
    assert_eq!(t.a.write(t.qa, span(0, 10), to, 1), Ok(Posted::Pending));
    assert_eq!(t.a.write(t.qa, span(5, 5), part, 2), Ok(Posted::Pending));
    assert_eq!(t.a.send(t.qa, b"reply", 3), Ok(Posted::Done));
    assert_eq!(t.a.outcomes(), [(1, Outcome::Done), (2, Outcome::Done)]);
    let write = (rdma::IBV_WR_RDMA_WRITE, false);
    assert_eq!(
        t.device.posted(t.na),
        [write, write, (rdma::IBV_WR_SEND, true)]
    );
    assert_eq!(t.b.see(span(4096, 10)), b"0123456789");
    assert_eq!(t.b.see(span(4146, 6)), b"56789\0");
}

#[test]
fn a_read_brings_what_is_there_and_is_told_by_itself() {
    let mut t = Two::new();
    t.b.put(span(4096, 10), b"0123456789");
    let from = t.open(span(4096, 10), Access::Read);
    t.b.port.ring();
    let first = Segment { length: 4, ..from };
    assert_eq!(t.a.read(t.qa, span(0, 10), from, 1), Ok(Posted::Pending));
    assert_eq!(t.a.read(t.qa, span(20, 9), first, 2), Ok(Posted::Pending));
    assert_eq!(t.a.outcomes(), [(1, Outcome::Done), (2, Outcome::Done)]);
    assert_eq!(t.device.posted(t.na), [(rdma::IBV_WR_RDMA_READ, true); 2]);
    assert_eq!(t.a.see(span(0, 10)), b"0123456789");
    assert_eq!(t.a.see(span(20, 5)), b"0123\0");
}

/// A long run is posted in parts, and all of it is told.
#[test]
fn more_than_a_batch_goes_in_several() {
    let mut t = Two::new();
    for n in 0..40 {
        t.b.receive(t.qb, span(n * 8, 8), n).expect("room");
    }
    assert_eq!(t.device.receives(t.nb), 32, "two batches");
    t.b.port.ring();
    assert_eq!(t.device.receives(t.nb), 40);
    for n in 0..40 {
        while t.a.send(t.qa, &[n], 0) == Err(Refused::Busy) {
            assert_eq!(t.a.outcomes(), [(0, Outcome::Room)]);
        }
    }
    t.a.port.ring();
    let ids: Vec<u64> = t.b.outcomes().iter().map(|&(id, _)| id).collect();
    assert_eq!(ids, (0..40).collect::<Vec<u64>>());
    assert_eq!(t.b.see(span(39 * 8, 1)), [39]);
}

#[test]
fn a_full_receive_queue_is_busy() {
    let mut t = Two::new();
    for n in 0..u64::from(RECEIVE_DEPTH) {
        t.b.receive(t.qb, span(0, 8), n).expect("room");
    }
    assert_eq!(t.b.receive(t.qb, span(0, 8), 99), Err(Refused::Busy));
    t.b.port.ring();
    t.a.send(t.qa, b"x", 0).expect("room");
    t.a.port.ring();
    assert_eq!(t.b.outcomes(), [(0, received(1))]);
    t.b.receive(t.qb, span(0, 8), 99).expect("room again");
}
