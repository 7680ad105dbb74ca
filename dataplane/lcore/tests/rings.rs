//! Full rings lose nothing and stop nobody; snapshots and refused headers.

mod support;

use rpcrdma_engine::CloseReason;
use rpcrdma_lcore::{ConnectionNumber, Places, SeatOrder, Snapshot};
use support::{Do, House, said, session};

/// Rings for one of each.
const NARROW: Places = Places {
    seats: 8,
    orders: 1,
    notices: 1,
};

#[test]
fn a_full_ring_of_orders_gives_the_order_back() {
    let mut house = House::new(NARROW, 512 << 10);
    let seat = house.connect(1);
    house.tell(seat, SeatOrder::Drain);
    let back = house.line.tell(seat, SeatOrder::Upper(Do::Say(vec![5])));
    assert!(matches!(back, Err(SeatOrder::Upper(Do::Say(words))) if words == [5]));
    assert!(!house.line.drain());
    assert!(!house.line.stop(std::time::Duration::ZERO));
    let refused = house.line.adopt(ConnectionNumber(2), (), None, session());
    assert!(!refused.expect_err("full").no_seat);
    assert_eq!(house.line.free_seats(), 7, "the seat went back");
    assert!(house.line.survey(Box::new(Snapshot::with_room(0))).is_err());
    let _ = house.settle();
    assert!(house.line.survey(Box::new(Snapshot::with_room(0))).is_ok());
}

#[test]
fn notices_wait_for_room_where_they_are() {
    let mut house = House::new(NARROW, 512 << 10);
    let first = house.connect(1);
    let second = house.connect(2);
    for (seat, words) in [(first, vec![10, 11]), (second, vec![20])] {
        house.order(seat, Do::Say(words));
        house.lcore.turn();
    }
    house.tell(second, SeatOrder::Close(CloseReason::Local));
    // Nobody polls: the ring holds one, the rest waits, and the loop goes on.
    for _ in 0..100 {
        house.lcore.turn();
    }
    let seat = house.line.adopt(ConnectionNumber(3), (), None, session());
    assert!(seat.is_ok());
    house.lcore.turn();
    let mut heard = Vec::new();
    while let Some(notice) = house.line.poll() {
        heard.extend(said(&[notice]));
        house.lcore.turn();
    }
    // The word 20 came too late, and went back with the session.
    assert_eq!(heard, ["10 1", "11 1", "Closed(Local) 2", "adopted 3"]);
    assert!(house.survey(0).turns.notices_deferred >= 100);
}

#[test]
fn what_an_upper_layer_could_not_say_any_more_is_in_its_session() {
    let mut house = House::new(NARROW, 512 << 10);
    let seat = house.connect(1);
    house.order(seat, Do::Say(vec![1, 2, 3]));
    house.lcore.turn();
    house.tell(seat, SeatOrder::Close(CloseReason::Local));
    for _ in 0..4 {
        house.lcore.turn();
    }
    let first = house.line.poll().expect("a word");
    assert_eq!(said(&[first]), ["1 1"]);
    house.lcore.turn();
    match house.line.poll() {
        Some(rpcrdma_lcore::Notice::Closed { session, .. }) => {
            assert_eq!(session.upper.notices, [2, 3]);
        }
        _ => panic!("closed"),
    }
}

#[test]
fn a_snapshot_has_the_rows_it_has_room_for() {
    let mut house = House::usual();
    for number in 1..=5 {
        let seat = house.connect(number);
        house.order(seat, Do::Say(vec![]));
        house.settle();
    }
    let snapshot = house.survey(3);
    assert_eq!((snapshot.connections.len(), snapshot.left_out), (3, 2));
    assert_eq!(snapshot.upper, 5, "one order each");
    let all = house.survey(100);
    let mut numbers: Vec<u64> = all.connections.iter().map(|row| row.number.0).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    let credits = all.connections[0].calls_in;
    assert_eq!((credits.used, credits.granted), (0, 2));
    let closed = all.connections[0].seat;
    house.tell(closed, SeatOrder::Close(CloseReason::Local));
    house.settle();
    let later = house.survey(100);
    assert_eq!(later.connections.len(), 4);
    assert_eq!(
        later.upper, 5,
        "what the departed counted stays counted, once"
    );
    assert!(
        later
            .turns
            .named()
            .any(|(name, _, value)| name == "closes" && value == 1)
    );
}

#[test]
fn refused_headers_are_kept_with_their_connection() {
    let mut house = House::usual();
    house.connect(77);
    let message = [9; 40];
    house.deliver(&message);
    house.settle();
    let snapshot = house.survey(1);
    let refusal = snapshot.refusals.iter().next().expect("one");
    assert_eq!(refusal.connection, ConnectionNumber(77));
    assert_eq!(refusal.header(), message);
    assert_eq!(snapshot.connections[0].last_refusal, Some(refusal.reject));
    let counted = snapshot.counters.rejects.iter().map(|(_, count)| count);
    assert_eq!(counted.sum::<u64>(), 1);
}
