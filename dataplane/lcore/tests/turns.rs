//! Who is called, and when: sockets, upper layers that want more, connections that wait for
//! memory.

mod support;

use rpcrdma_engine::CloseReason;
use rpcrdma_lcore::{Places, SeatOrder};
use std::io::Write;
use std::os::unix::net::UnixStream;
use support::{Do, House, said};

/// Turns often enough for a look at the sockets.
fn turns(house: &mut House) -> Vec<String> {
    let mut heard = Vec::new();
    for _ in 0..200 {
        house.lcore.turn();
        heard.extend(std::iter::from_fn(|| house.line.poll()));
    }
    said(&heard)
}

#[test]
fn an_edge_of_a_socket_calls_its_upper_layer() {
    let mut house = House::usual();
    let seat = house.connect(1);
    house.connect(2);
    let (mut far, near) = UnixStream::pair().expect("a pair");
    house.order(seat, Do::Watch(near));
    assert_eq!(turns(&mut house), ["1000 1"], "writable from the start");
    assert_eq!(turns(&mut house), [""; 0]);
    far.write_all(b"x").expect("room");
    assert_eq!(turns(&mut house), ["1000 1"]);
    let counts = house.survey(0).turns;
    assert_eq!(counts.socket_edges, 2);
    assert!(counts.socket_looks < counts.turns / 32, "not each turn");
}

#[test]
fn an_edge_for_a_former_occupant_calls_nobody() {
    let mut house = House::usual();
    let old = house.connect(1);
    let (mut far, near) = UnixStream::pair().expect("a pair");
    house.order(old, Do::Watch(near));
    turns(&mut house);
    house.tell(old, SeatOrder::Close(CloseReason::Local));
    // The socket lives on in the session that came back, and so does its watch.
    let session_and_socket = house.settle();
    let new = house.connect(2);
    assert_eq!(new.place(), old.place());
    let (_far, near) = UnixStream::pair().expect("a pair");
    house.order(new, Do::Watch(near));
    turns(&mut house);
    let before = house.survey(0).turns;
    far.write_all(b"x").expect("room");
    turns(&mut house);
    let after = house.survey(0).turns;
    assert_eq!(after.socket_edges - before.socket_edges, 1);
    // Ticks of the clock call everybody, which is one.
    let ticks = after.ticks - before.ticks;
    assert_eq!(after.upper_turns - before.upper_turns, ticks);
    drop(session_and_socket);
}

#[test]
fn a_socket_that_came_before_establishment_is_looked_at_after_it() {
    let mut house = House::usual();
    let seat = house.adopt(1);
    let (_far, near) = UnixStream::pair().expect("a pair");
    house.order(seat, Do::Watch(near));
    assert_eq!(turns(&mut house), ["adopted 1"]);
    house.tell(seat, SeatOrder::Established { peer: None });
    assert_eq!(turns(&mut house), ["1000 1"]);
}

#[test]
fn without_sockets_no_system_call_looks_at_them() {
    let mut house = House::usual();
    let seat = house.connect(1);
    turns(&mut house);
    assert_eq!(house.survey(0).turns.socket_looks, 0);
    let (_far, near) = UnixStream::pair().expect("a pair");
    house.order(seat, Do::Watch(near));
    turns(&mut house);
    house.tell(seat, SeatOrder::Close(CloseReason::Local));
    turns(&mut house);
    let looks = house.survey(0).turns.socket_looks;
    assert!(looks > 0);
    turns(&mut house);
    assert_eq!(
        house.survey(0).turns.socket_looks,
        looks,
        "none is left to look at"
    );
}

#[test]
fn one_that_wants_more_turns_gets_them_one_a_turn() {
    let mut house = House::usual();
    let seat = house.connect(1);
    house.order(seat, Do::Again(3));
    // An order alone calls no turn; a socket does.
    let (_far, near) = UnixStream::pair().expect("a pair");
    house.order(seat, Do::Watch(near));
    let heard = turns(&mut house);
    assert_eq!(heard.iter().filter(|word| *word == "2000 1").count(), 3);
}

#[test]
fn those_who_wait_for_memory_get_it_in_order() {
    // 64 KiB in all, each connection takes 4 KiB for receives.
    let places = Places {
        seats: 4,
        orders: 16,
        notices: 16,
    };
    let mut house = House::new(places, 64 << 10);
    let holder = house.connect(1);
    let large = house.connect(2);
    let small = house.connect(3);
    let bytes = 32 << 10;
    house.order(holder, Do::Hold { bytes, word: 1 });
    assert_eq!(said(&house.settle()), ["1 1"]);
    house.order(large, Do::Hold { bytes, word: 2 });
    // 20 KiB are left, as 16 and 4: enough for neither of these.
    let bytes = 20 << 10;
    house.order(small, Do::Hold { bytes, word: 3 });
    assert_eq!(said(&house.settle()), [""; 0]);
    let waiting = house.survey(0).turns;
    assert_eq!(waiting.memory_waits, 2);
    house.order(holder, Do::LetGo);
    assert_eq!(said(&house.settle()), ["2 2"], "first come, first served");
    house.order(large, Do::LetGo);
    assert_eq!(said(&house.settle()), ["3 3"]);
    house.lcore.turn();
    assert_eq!(house.survey(0).turns.memory_waits, 2, "nobody queued again");
}

#[test]
fn in_vain_means_wait_for_the_next_release_not_try_for_ever() {
    let mut house = House::usual();
    let seat = house.connect(1);
    let bytes = 8 << 20;
    house.order(seat, Do::Hold { bytes, word: 1 });
    // `settle` ends, so turns with nothing to do are idle ones.
    assert_eq!(said(&house.settle()), [""; 0]);
    let retries = house.survey(0).turns.memory_retries;
    turns(&mut house);
    assert_eq!(house.survey(0).turns.memory_retries, retries);
}
