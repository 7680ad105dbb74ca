//! Send and Receive: order, waiting, lengths.

mod support;

use rpcrdma_fabric::{FORESIGHT, Octets, Outcome, Port, Posted, Refused, Token, WorkError, WorkId};
use rpcrdma_memory::Settings;
use support::{FLUSHED, Node, Two, connect_to_itself, received, settings, span};

#[test]
fn messages_meet_receives_in_the_order_of_both() {
    let mut t = Two::new();
    for n in 0..3 {
        t.b.receive(t.qb, span(n * 100, 100), n).expect("room");
    }
    for text in ["one", "two", "three"] {
        assert_eq!(t.a.send(t.qa, text.as_bytes(), 9), Ok(Posted::Done));
    }
    assert_eq!(
        t.b.outcomes(),
        [(0, received(3)), (1, received(3)), (2, received(5))]
    );
    assert_eq!(t.b.see(span(0, 3)), b"one");
    assert_eq!(t.b.see(span(100, 3)), b"two");
    assert_eq!(t.b.see(span(200, 5)), b"three");
}

#[test]
fn it_is_foreseen_whose_messages_come_next() {
    let mut t = Two::new();
    let (qa, qb) = t.more((3, 4));
    for n in 0..3 {
        t.b.receive(t.qb, span(n * 100, 100), n).expect("room");
        t.b.receive(qb, span(n * 100 + 500, 100), n).expect("room");
    }
    assert_eq!(t.b.port.reap_one(), None);
    for to in [t.qa, qa, qa, t.qa, t.qa] {
        assert_eq!(t.a.send(to, &[7; 100], 9), Ok(Posted::Done));
    }
    let order = [2, 4, 4, 2, 2].map(|token| Some(Token(token)));
    for nth in 0..order.len() {
        let ahead = std::array::from_fn(|by| order.get(nth + by).copied().flatten());
        assert_eq!(t.b.port.foresee(), ahead, "before message {nth}");
        assert_eq!(t.b.port.reap_one().map(|it| it.token), order[nth]);
    }
    assert_eq!(t.b.port.foresee(), [None; FORESIGHT]);
}

#[test]
fn a_message_is_gathered_from_everywhere() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 100), 1).expect("room");
    t.a.put(span(500, 6), b"middle");
    let message = [
        Octets::Bytes(b"<"),
        Octets::Span(span(500, 6)),
        Octets::Bytes(b">"),
    ];
    assert_eq!(
        t.a.port.send(t.qa, &message, None, WorkId(0)),
        Ok(Posted::Done)
    );
    assert_eq!(t.b.outcomes(), [(1, received(8))]);
    assert_eq!(t.b.see(span(0, 8)), b"<middle>");
}

#[test]
fn an_empty_message_is_a_message() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 0), 1).expect("room");
    assert_eq!(t.a.port.send(t.qa, &[], None, WorkId(0)), Ok(Posted::Done));
    assert_eq!(t.b.outcomes(), [(1, received(0))]);
}

#[test]
fn a_message_waits_for_a_receive_and_later_work_waits_behind_it() {
    let mut t = Two::new();
    let window =
        t.b.port
            .expose(t.qb, span(4096, 10), rpcrdma_fabric::Access::Write);
    let window = window.expect("free");
    assert_eq!(t.a.send(t.qa, b"first", 1), Ok(Posted::Pending));
    t.a.put(span(0, 7), b"written");
    assert_eq!(t.a.write(t.qa, span(0, 7), window, 2), Ok(Posted::Pending));
    assert_eq!(t.a.send(t.qa, b"second", 3), Ok(Posted::Pending));
    assert_eq!(t.a.outcomes(), []);
    assert_eq!(
        t.b.see(span(4096, 7)),
        [0; 7],
        "the Write is behind the Send"
    );
    t.b.receive(t.qb, span(0, 100), 10).expect("room");
    assert_eq!(t.a.outcomes(), [(1, Outcome::Done), (2, Outcome::Done)]);
    assert_eq!(t.b.see(span(4096, 7)), b"written");
    t.b.receive(t.qb, span(100, 100), 11).expect("room");
    assert_eq!(t.a.outcomes(), [(3, Outcome::Done)]);
    assert_eq!(t.b.outcomes(), [(10, received(5)), (11, received(6))]);
    t.b.receive(t.qb, span(0, 100), 12).expect("room");
    assert_eq!(
        t.a.send(t.qa, b"third", 4),
        Ok(Posted::Done),
        "nothing waits any more"
    );
}

#[test]
fn what_waits_is_what_was_posted_whatever_happens_to_the_callers_octets() {
    let mut t = Two::new();
    let mut octets = *b"posted";
    assert_eq!(t.a.send(t.qa, &octets, 1), Ok(Posted::Pending));
    octets.fill(0);
    t.b.receive(t.qb, span(0, 100), 2).expect("room");
    assert_eq!(t.a.outcomes(), [(1, Outcome::Done)]);
    assert_eq!(t.b.outcomes(), [(2, received(6))]);
    assert_eq!(t.b.see(span(0, 6)), b"posted");
}

#[test]
fn the_send_queue_is_bounded() {
    let mut t = Two::new();
    for n in 0..8 {
        assert_eq!(t.a.send(t.qa, b"x", n), Ok(Posted::Pending));
    }
    assert_eq!(t.a.send(t.qa, b"x", 8), Err(Refused::Busy));
    let nowhere = rpcrdma_fabric::Segment {
        handle: rpcrdma_fabric::Handle(1),
        length: 0,
        offset: 0,
    };
    assert_eq!(t.a.write(t.qa, span(0, 0), nowhere, 9), Err(Refused::Busy));
    t.b.receive(t.qb, span(0, 8), 0).expect("room");
    assert_eq!(t.a.outcomes(), [(0, Outcome::Done)]);
    assert_eq!(t.a.send(t.qa, b"x", 8), Ok(Posted::Pending));
}

#[test]
fn waiting_messages_of_one_queue_pair_leave_parking_room_for_others() {
    let mut t = Two::with(
        &Settings {
            send_depth: 64,
            ..settings()
        },
        &settings(),
    );
    let (other, _) = t.more((3, 4));
    let long = [0; 4096];
    let parked = (0..64)
        .take_while(|&n| t.a.send(t.qa, &long, n) == Ok(Posted::Pending))
        .count();
    assert_eq!(parked, 8, "an eighth of 256 KiB");
    assert_eq!(t.a.send(other, &long, 0), Ok(Posted::Pending));
}

#[test]
fn retries_can_be_counted() {
    let mut t = Two::with(
        &Settings {
            rnr_retries: Some(3),
            ..settings()
        },
        &settings(),
    );
    t.a.receive(t.qa, span(0, 8), 5).expect("room");
    assert_eq!(t.a.send(t.qa, b"x", 1), Ok(Posted::Pending));
    assert_eq!(t.a.send(t.qa, b"y", 2), Ok(Posted::Pending));
    assert_eq!(
        t.a.outcomes(),
        [
            (1, Outcome::Failed(WorkError::NotReady)),
            (2, FLUSHED),
            (5, FLUSHED),
            (0, Outcome::Disconnected)
        ]
    );
    assert_eq!(t.b.outcomes(), [(0, Outcome::Disconnected)]);
}

#[test]
fn a_message_longer_than_its_receive_ends_the_connection() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 4), 1).expect("room");
    t.b.receive(t.qb, span(100, 100), 2).expect("room");
    assert_eq!(
        t.a.send(t.qa, b"12345", 7),
        Ok(Posted::Pending),
        "the peer will judge"
    );
    assert_eq!(
        t.b.outcomes(),
        [
            (1, Outcome::Failed(WorkError::LocalLength)),
            (2, FLUSHED),
            (0, Outcome::Disconnected)
        ]
    );
    assert_eq!(
        t.a.outcomes(),
        [
            (7, Outcome::Failed(WorkError::RemoteInvalid)),
            (0, Outcome::Disconnected)
        ]
    );
    assert_eq!(t.b.see(span(0, 8)), [0; 8], "nothing of it was written");
}

#[test]
fn a_message_is_judged_by_the_receive_it_meets_not_by_the_shortest() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 100), 1).expect("room");
    t.b.receive(t.qb, span(100, 4), 2).expect("room");
    assert_eq!(t.a.send(t.qa, b"123456", 7), Ok(Posted::Pending));
    assert_eq!(t.a.send(t.qa, b"1234", 8), Ok(Posted::Pending), "behind it");
    assert_eq!(t.a.outcomes(), [], "not yet judged");
    assert_eq!(t.b.outcomes(), [(1, received(6))]);
    assert_eq!(t.a.outcomes(), [(7, Outcome::Done), (8, Outcome::Done)]);
    assert_eq!(t.b.outcomes(), [(2, received(4))]);
    // The short ones are gone, and a longer one makes long messages ordinary again.
    t.b.receive(t.qb, span(0, 100), 3).expect("room");
    assert_eq!(t.a.send(t.qa, b"123456", 9), Ok(Posted::Done));
    assert_eq!(t.b.outcomes(), [(3, received(6))]);
}

#[test]
fn what_can_never_go_is_refused() {
    let mut t = Two::new();
    assert_eq!(t.a.send(t.qa, &[0; 4097], 1), Err(Refused::Unsupported));
    let parts = [Octets::Bytes(b""); 17];
    assert_eq!(
        t.a.port.send(t.qa, &parts, None, WorkId(1)),
        Err(Refused::Unsupported)
    );
    let outside = [Octets::Span(span(t.a.arena.len(), 1))];
    assert_eq!(
        t.a.port.send(t.qa, &outside, None, WorkId(1)),
        Err(Refused::Unsupported)
    );
    assert_eq!(
        t.b.receive(t.qb, span(u64::MAX, 2), 1),
        Err(Refused::Unsupported)
    );
}

#[test]
fn the_receive_queue_is_bounded() {
    let mut t = Two::new();
    for n in 0..16 {
        t.b.receive(t.qb, span(0, 8), n).expect("room");
    }
    assert_eq!(t.b.receive(t.qb, span(0, 8), 16), Err(Refused::Busy));
}

#[test]
fn a_full_ring_lets_messages_wait() {
    let mut t = Two::new();
    for n in 0..16 {
        t.b.receive(t.qb, span(n * 4096, 4096), n).expect("room");
    }
    let message = |n: u64| vec![n.to_le_bytes()[0]; 4000];
    let posted: Vec<Posted> = (0..8)
        .map(|n| t.a.send(t.qa, &message(n), n).expect("depth"))
        .collect();
    assert_eq!(posted[..3], [Posted::Done; 3]);
    assert_eq!(posted[4..], [Posted::Pending; 4]);
    let mut arrived = 0;
    while arrived < 8 {
        for (id, outcome) in t.b.outcomes() {
            assert_eq!((id, outcome), (arrived, received(4000)));
            assert_eq!(t.b.see(span(id * 4096, 4000)), message(id));
            arrived += 1;
        }
        t.a.reap();
    }
}

#[test]
fn a_port_talks_to_itself() {
    let mut fabric = rpcrdma_memory::MemoryFabric::new();
    rpcrdma_fabric::connect::Fabric::listen(&mut fabric, "b").expect("free");
    let mut node = Node::new(&fabric, &settings());
    let (qa, qb) = connect_to_itself(&mut fabric, &mut node);
    node.receive(qb, span(0, 64), 1).expect("room");
    node.receive(qa, span(64, 64), 2).expect("room");
    assert_eq!(node.send(qa, b"there", 0), Ok(Posted::Done));
    assert_eq!(node.send(qb, b"back", 0), Ok(Posted::Done));
    assert_eq!(node.outcomes(), [(1, received(5)), (2, received(4))]);
    assert_eq!(node.see(span(64, 4)), b"back");
    node.receive(qb, span(0, 64), 3).expect("room");
    node.port.disconnect(qa);
    let outcomes = node.reap();
    let gone = |token| {
        let its = outcomes
            .iter()
            .filter(|it| it.token == rpcrdma_fabric::Token(token));
        its.filter(|it| it.outcome == Outcome::Disconnected).count()
    };
    assert_eq!((gone(1), gone(2)), (1, 1));
}

/// Receives of changing lengths and messages of changing lengths: every message arrives whole
/// in the receive that it meets, or the first that does not fit ends the connection.
#[test]
fn credits_are_neither_lost_nor_made_up() {
    let mut t = Two::new();
    let mut posted = 0_u64;
    let mut sent = 0_u64;
    let mut arrived = 0_u64;
    for step in 0_u64..5000 {
        // Three receives now and then; lengths 64 to 127.
        if step % 3 == 0 {
            for _ in 0..3 {
                let len = 64 + u32::try_from(posted * 13 % 64).expect("small");
                if t.b
                    .receive(t.qb, span(posted % 16 * 128, len), posted)
                    .is_ok()
                {
                    posted += 1;
                }
            }
        }
        let len = usize::try_from(sent * 7 % 64).expect("small") + 1;
        match t.a.send(t.qa, &vec![sent.to_le_bytes()[0]; len], sent) {
            Ok(_) => sent += 1,
            Err(refused) => assert_eq!(refused, Refused::Busy),
        }
        t.a.reap();
        for (id, outcome) in t.b.outcomes() {
            assert_eq!(id, arrived);
            let len = u32::try_from(arrived * 7 % 64).expect("small") + 1;
            assert_eq!(outcome, received(len));
            assert_eq!(t.b.see(span(id % 16 * 128, 1)), [arrived.to_le_bytes()[0]]);
            arrived += 1;
        }
        assert!(arrived <= posted);
    }
    assert_eq!(arrived, sent.min(posted));
    assert!(arrived > 3000);
}
