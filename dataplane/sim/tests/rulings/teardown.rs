//! Draining, cancelling, closing, replaying.

use super::{call, error, one, reply, two};
use rpcrdma_engine::phase::Phase;
use rpcrdma_engine::{CallError, CloseReason, Event, Setup, Side};
use rpcrdma_sim::scene::{Made, Scene, header, rpc, stage};
use rpcrdma_wire::{Body, Direction, ErrorBody, Segment, Version};

#[test]
fn drain_answers_those_in_flight_and_takes_no_more() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Server));
    scene.tell(&call(Version::Two, 1));
    let slot = scene.called();
    scene.with(|engine, desk| engine.drain(desk));
    scene.tell(&call(Version::Two, 2));
    assert_eq!((scene.event(), scene.said()), (None, None));
    assert_eq!(scene.desk().device().counters.drained_calls, 1);
    scene.answer(slot, &[(&rpc(Direction::Reply, 1, 24), false)]);
    assert_eq!(header(&scene.heard()).xid.0, 1);
    assert_eq!(scene.event(), Some(Event::Lost(CloseReason::Local)));
    scene.check_closed();
}

#[test]
fn calls_that_cross_are_served_by_two_sides_that_drain() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Server));
    scene.tell(&call(Version::Two, 1));
    let forward = scene.called();
    let backward = scene.call(5, 40);
    scene.with(|engine, desk| engine.drain(desk));
    // It was sent before the client, which drains too, saw ours.
    scene.tell(&call(Version::Two, 2));
    let crossing = scene.called();
    for (xid, slot) in [(1, forward), (2, crossing)] {
        scene.answer(slot, &[(&rpc(Direction::Reply, xid, 24), false)]);
    }
    scene.tell(&reply(Version::Two, 5, 1));
    assert_eq!(scene.event(), Some(Event::Reply(backward)));
    scene.with(|engine, desk| engine.finish(desk, backward));
    assert_eq!(scene.event(), Some(Event::Lost(CloseReason::Local)));
    scene.check_closed();
}

#[test]
fn a_drain_is_over_at_once_where_nothing_is_in_flight() {
    let stage = stage();
    for announced in [false, true] {
        let mut scene = Scene::unannounced(&stage, two(Side::Server));
        if announced {
            scene.announce(None);
        }
        scene.with(|engine, desk| engine.drain(desk));
        assert_eq!(scene.event(), Some(Event::Lost(CloseReason::Local)));
        scene.check_closed();
    }
}

#[test]
fn a_drain_ends_where_the_last_call_is_refused() {
    use rpcrdma_engine::Access;
    let stage = stage();
    let mut scene = Scene::new(&stage, one(Side::Server));
    let segment = scene.expose(&rpc(Direction::Reply, 1, 100), Access::Read);
    scene.link.ends[0].faults.pending_percent = 100;
    scene.held = true;
    scene.tell(&super::call_with_read(Version::One, 1, 0, segment));
    scene.with(|engine, desk| engine.drain(desk));
    assert_eq!(scene.event(), None);
    scene.held = false;
    scene.play();
    scene.heard();
    assert_eq!(scene.event(), Some(Event::Lost(CloseReason::Local)));
    scene.check_closed();
}

#[test]
fn a_draining_client_sends_what_is_queued() {
    let stage = stage();
    for setup in [two(Side::Client), Setup::new(Side::Client)] {
        let mut scene = Scene::new(&stage, setup);
        let offer = scene.said();
        let slots = [scene.call(1, 40), scene.call(2, 40)];
        scene.with(|engine, desk| engine.drain(desk));
        assert_eq!(scene.engine.phase(), Phase::Draining);
        assert!(!scene.engine.can_submit());
        if let Some(offer) = offer {
            scene.tell(&error(2, header(&offer).xid.0, ErrorBody::InvalOption));
            assert_eq!(scene.event(), Some(Event::Property));
        }
        for (xid, slot) in (1..).zip(slots) {
            scene.tell(&reply(Version::Two, xid, 1));
            assert_eq!(scene.event(), Some(Event::Reply(slot)));
        }
        for slot in slots {
            scene.with(|engine, desk| engine.finish(desk, slot));
        }
        assert_eq!(scene.event(), Some(Event::Lost(CloseReason::Local)));
        scene.check_closed();
    }
}

fn room_in(sent: &[u8]) -> Segment {
    match header(sent).body {
        Body::Msg(lists) | Body::NoMsg(lists) => lists.reply.expect("a Reply chunk")[0].value(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cancelled_call_keeps_its_memory_exposed_until_it_is_retired() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Client));
    let message = rpc(Direction::Call, 1, 40);
    let made = Made {
        parts: vec![(&message, false)],
        results: vec![],
        reply: Some(2000),
    };
    let slot = scene.submit(1, &made).expect("taken");
    let room = room_in(&scene.heard());
    let event = scene.with(|engine, desk| engine.cancel(desk, slot));
    assert_eq!((event, scene.event()), (Event::None, None));
    assert!(scene.write(room, &[1; 10]), "8166 4.4.1");
    // Its credit is in use until then, too.
    assert_eq!(scene.engine.requester_credits(), (1, 1));
    scene.tell(&error(2, 1, ErrorBody::System));
    assert_eq!(scene.event(), Some(Event::Cancelled(slot)));
    assert!(!scene.write(room, &[1; 10]));
    assert_eq!(scene.engine.requester_credits(), (0, 1));
}

#[test]
fn a_call_after_a_cancelled_one_in_the_same_slot_is_not_cancelled() {
    let stage = stage();
    let setup = Setup {
        credits: 1,
        ..two(Side::Client)
    };
    let mut scene = Scene::new(&stage, setup);
    let first = scene.call(1, 40);
    scene.with(|engine, desk| engine.cancel(desk, first));
    scene.tell(&reply(Version::Two, 1, 1));
    assert_eq!(scene.event(), Some(Event::Cancelled(first)));
    let second = scene.call(2, 40);
    assert_eq!(second.index, first.index);
    scene.tell(&reply(Version::Two, 2, 1));
    assert_eq!(scene.event(), Some(Event::Reply(second)));
}

#[test]
fn a_call_that_waits_for_a_credit_is_cancelled_at_once() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Client));
    scene.call(1, 40);
    let second = scene.call(2, 40);
    let event = scene.with(|engine, desk| engine.cancel(desk, second));
    assert_eq!(event, Event::Cancelled(second));
    scene.heard();
    scene.tell(&reply(Version::Two, 1, 8));
    assert!(scene.said().is_none());
}

#[test]
fn closing_gives_every_call_back_once() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Client));
    let slots = [scene.call(1, 40), scene.call(2, 2000)];
    scene.with(|engine, desk| engine.close(desk, CloseReason::Local));
    assert_eq!(scene.event(), Some(Event::Lost(CloseReason::Local)));
    for slot in slots {
        let lost = Event::Failed(slot, CallError::ConnectionLost);
        assert_eq!(scene.event(), Some(lost));
    }
    scene.check_closed();
}

#[test]
fn the_end_waits_for_the_upper_layer() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Server));
    scene.tell(&call(Version::Two, 1));
    let slot = scene.called();
    scene.link.sever();
    scene.play();
    assert_eq!(scene.event(), Some(Event::Lost(CloseReason::Peer)));
    assert_eq!(scene.event(), None);
    scene.with(|engine, desk| engine.abandon(desk, slot, true));
    scene.check_closed();
}

#[test]
fn unanswered_calls_are_replayed_on_the_next_connection() {
    let stage = stage();
    let setup = Setup {
        replay: true,
        ..two(Side::Client)
    };
    let mut scene = Scene::new(&stage, setup);
    let slots = [1, 2, 3].map(|xid| scene.call(xid, 40));
    scene.tell(&reply(Version::Two, 1, 2));
    assert_eq!(scene.event(), Some(Event::Reply(slots[0])));
    scene.with(|engine, desk| engine.finish(desk, slots[0]));
    scene.link.sever();
    scene.play();
    assert_eq!(scene.event(), Some(Event::Lost(CloseReason::Peer)));
    assert_eq!(scene.event(), Some(Event::Closed));
    while scene.said().is_some() {}
    scene.engine.offer_at_most(Version::One);
    scene.reconnect();
    let again = scene.heard();
    let again = header(&again);
    assert_eq!((again.version, again.xid.0), (Version::One, 2));
    assert!(scene.said().is_none(), "one Call until the grant");
    scene.tell(&reply(Version::One, 2, 8));
    assert_eq!(scene.event(), Some(Event::Reply(slots[1])));
    assert_eq!(header(&scene.heard()).xid.0, 3);
    assert_eq!(scene.desk().device().counters.calls_replayed, 2);
}

#[test]
fn memory_is_waited_for_in_order_and_replies_do_not_wait_behind() {
    use rpcrdma_engine::Access;
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Server));
    let mut taken = Vec::new();
    scene.tell(&call(Version::Two, 1));
    let first = scene.called();
    // All memory is gone but for a little.
    while let Some(span) = scene.with(|_, desk| rpcrdma_engine::Io::reserve(desk, 60_000)) {
        taken.push(span);
    }
    let long = rpc(Direction::Call, 2, 60_000);
    let segment = scene.expose(&long, Access::Read);
    scene.tell(&super::call_with_read(Version::Two, 2, 0, segment));
    let short = scene.expose(&rpc(Direction::Call, 3, 100), Access::Read);
    scene.tell(&super::call_with_read(Version::Two, 3, 0, short));
    assert_eq!(
        scene.event(),
        None,
        "the short one does not pass the long one"
    );
    assert!(scene.engine.waits_for_memory());
    scene.answer(first, &[(&rpc(Direction::Reply, 1, 24), false)]);
    assert_eq!(header(&scene.heard()).xid.0, 1);
    let span = taken.pop().expect("memory");
    scene.with(|engine, desk| {
        rpcrdma_engine::Io::release(desk, span);
        engine.wake();
    });
    for xid in [2, 3] {
        let slot = scene.called();
        let call = scene.with(|engine, desk| engine.call(desk, slot));
        assert_eq!(call.expect("here").xid.0, xid);
    }
}
