//! Connections come, are refused, go, and their seats are used again.

mod support;

use rpcrdma_engine::{CloseReason, Side};
use rpcrdma_fabric::{Completion, Outcome, Token, WorkId};
use rpcrdma_lcore::{ConnectionNumber, Notice, SeatOrder};
use support::{Do, House, RECEIVE_BYTES, RECEIVES, Stage, said, session, session_of};

#[test]
fn a_session_that_was_lent_comes_back() {
    let mut house = House::usual();
    let seat = house.connect(7);
    assert_eq!(house.stage().receives.len(), RECEIVES);
    house.tell(seat, SeatOrder::Close(CloseReason::Local));
    let notices = house.settle();
    assert_eq!(said(&notices), ["Closed(Local) 7"]);
    let Some(Notice::Closed { session, .. }) = notices.into_iter().next() else {
        panic!("closed");
    };
    assert!(session.upper.established);
    assert_eq!(session.upper.lost, Some(CloseReason::Local));
    assert_eq!(house.stage().tokens, [None], "destroyed");
    assert_eq!(house.survey(0).memory.in_use_bytes, 0);
    assert_eq!(house.line.free_seats(), 8);
}

#[test]
fn a_peer_that_goes_is_a_close_too() {
    let mut house = House::usual();
    house.connect(7);
    let token = house.stage().tokens[0].expect("a token");
    let id = WorkId(0);
    let outcome = Outcome::Disconnected;
    let gone = Completion { token, id, outcome };
    house.stage().completions.push_back(gone);
    assert_eq!(said(&house.settle()), ["Closed(Peer) 7"]);
}

#[test]
fn a_message_that_overtakes_the_news_of_establishment_brings_it() {
    let mut house = House::usual();
    let seat = house.adopt(1);
    assert_eq!(said(&house.settle()), ["adopted 1"]);
    house.order(seat, Do::SayWhenEstablished(5));
    house.deliver(&[9; 40]);
    assert_eq!(said(&house.settle()), ["5 1"]);
    assert_eq!(
        house.survey(0).refusals.iter().count(),
        1,
        "it was looked at"
    );
    house.tell(seat, SeatOrder::Established { peer: None });
    assert_eq!(said(&house.settle()), [""; 0], "known already");
}

#[test]
fn a_server_that_speaks_before_it_is_spoken_to_is_left() {
    let mut house = House::usual();
    let session = session_of(Side::Client);
    let taken = house.line.adopt(ConnectionNumber(1), (), None, session);
    assert!(taken.is_ok());
    assert_eq!(said(&house.settle()), ["adopted 1"]);
    house.deliver(&[9; 40]);
    assert_eq!(said(&house.settle()), ["Closed(Peer) 1"]);
    assert_eq!(house.survey(0).memory.in_use_bytes, 0);
}

#[test]
fn a_refusal_of_the_port_brings_everything_back() {
    let mut house = House::usual();
    house.stage().refuse_adoption = true;
    house.adopt(3);
    assert_eq!(said(&house.settle()), ["Refused(Unsupported) 3"]);
    assert_eq!(house.line.free_seats(), 8);
    assert_eq!(house.survey(0).turns.adoptions_declined, 1);
}

#[test]
fn without_memory_for_its_receives_a_connection_is_closed() {
    let places = rpcrdma_lcore::Places {
        seats: 8,
        orders: 16,
        notices: 16,
    };
    // One page holds four receives: one connection's.
    let mut house = House::new(places, u64::from(RECEIVE_BYTES) * RECEIVES as u64);
    house.adopt(1);
    assert_eq!(said(&house.settle()), ["adopted 1"]);
    house.adopt(2);
    assert_eq!(said(&house.settle()), ["Closed(Memory) 2"]);
    assert_eq!(house.stage().receives.len(), RECEIVES, "the first one's");
}

#[test]
fn completions_orders_and_ids_of_a_former_occupant_touch_nobody() {
    let mut house = House::usual();
    let old = house.connect(1);
    let token = house.stage().tokens[0].expect("a token");
    house.tell(old, SeatOrder::Close(CloseReason::Local));
    house.settle();
    // Free seats are used last in, first out: this is the same place.
    let new = house.connect(2);
    assert_eq!(new.place(), old.place());
    assert_ne!(new, old);
    let before = house.survey(0).turns;

    let stale = |outcome| Completion {
        token,
        id: WorkId(0),
        outcome,
    };
    house
        .stage()
        .completions
        .extend([stale(Outcome::Disconnected), stale(Outcome::Done)]);
    let nowhere = Completion {
        token: Token(u32::MAX),
        ..stale(Outcome::Done)
    };
    house.stage().completions.push_back(nowhere);
    house.tell(old, SeatOrder::Close(CloseReason::Local));
    assert_eq!(said(&house.settle()), [""; 0], "the new one is undisturbed");
    let after = house.survey(0).turns;
    assert_eq!(after.stale_completions - before.stale_completions, 3);
    assert_eq!(after.stale_orders - before.stale_orders, 1);
    assert_eq!(after.closes, 1);
}

#[test]
fn a_house_that_is_full_gives_everything_back() {
    let mut house = House::usual();
    for number in 0..8 {
        house.connect(number);
    }
    let refused = house.line.adopt(ConnectionNumber(8), (), None, session());
    let refused = refused.expect_err("no seat");
    assert!(refused.no_seat);
    assert!(!refused.session.upper.established);
}

#[test]
fn draining_declines_newcomers_and_says_when_all_are_gone() {
    let mut house = House::usual();
    house.connect(1);
    house.stage().hang = true;
    assert!(house.line.drain());
    house.adopt(2);
    let said_now = said(&house.settle());
    assert_eq!(
        said_now,
        ["Declined 2"],
        "the first one's receives are still out"
    );
    let first = house.stage().tokens[0].expect("not destroyed");
    flush(&mut house.stage(), first);
    assert_eq!(said(&house.settle()), ["Closed(Local) 1", "drained"]);
    house.lcore.turn();
    assert!(house.line.poll().is_none(), "drained is said once");
}

/// Gives all posted receives back.
fn flush(stage: &mut Stage, token: Token) {
    for (_, _, id) in std::mem::take(&mut stage.receives) {
        stage.completions.push_back(Completion {
            token,
            id,
            outcome: Outcome::Failed(rpcrdma_fabric::WorkError::Flushed),
        });
    }
}

#[test]
fn stop_waits_for_connections_but_not_for_ever() {
    let mut house = House::usual();
    house.connect(1);
    assert!(house.line.stop(std::time::Duration::MAX));
    assert_eq!(said(&house.settle()), ["Closed(Local) 1"]);
    assert!(house.lcore.is_over());

    let mut house = House::usual();
    house.connect(1);
    house.stage().hang = true;
    assert!(house.line.stop(std::time::Duration::ZERO));
    house.lcore.run();
    assert!(house.line.poll().is_none(), "it hangs, and is left");
    drop(house.lcore);
    assert!(house.line.is_over());
    let stage = house.stage.lock().expect("not poisoned");
    assert!(stage.dropped, "which disconnects it");
}
