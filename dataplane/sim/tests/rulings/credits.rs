//! Grants, and who keeps to them.

use super::{DEFAULTS, acquainted, call, error, one, reply, two};
use rpcrdma_engine::{CallError, CloseReason, Event, Setup, Side};
use rpcrdma_sim::scene::{Scene, header, plain, rpc, stage};
use rpcrdma_wire::{Direction, ErrorBody, Version};

fn few(credits: u16, side: Side) -> Setup {
    Setup {
        credits,
        ..two(side)
    }
}

#[test]
fn v2_17_one_call_until_the_grant() {
    for setup in [one(Side::Client), two(Side::Client)] {
        let version = setup.version_max;
        let stage = stage();
        let mut scene = Scene::new(&stage, setup);
        for xid in 1..=4 {
            scene.call(xid, 40);
        }
        scene.heard();
        assert!(scene.said().is_none());
        scene.tell(&reply(version, 1, 2));
        assert_eq!(header(&scene.heard()).xid.0, 2);
        assert_eq!(header(&scene.heard()).xid.0, 3);
        assert!(scene.said().is_none());
        assert_eq!(scene.engine.requester_credits(), (2, 2));
    }
}

#[test]
fn v2_17_an_error_frees_the_one_call() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Client));
    let slot = scene.call(1, 40);
    scene.call(2, 40);
    scene.heard();
    scene.tell(&error(2, 1, ErrorBody::System));
    assert_eq!(scene.event(), Some(Event::Failed(slot, CallError::System)));
    assert_eq!(header(&scene.heard()).xid.0, 2);
}

#[test]
fn a_grant_of_zero_counts_as_one_and_a_huge_one_as_what_there_are_slots_for() {
    let stage = stage();
    let mut scene = Scene::new(&stage, few(3, Side::Client));
    scene.call(1, 40);
    scene.tell(&reply(Version::Two, 1, 0));
    assert_eq!(scene.engine.requester_credits(), (0, 1));
    scene.call(2, 40);
    scene.tell(&reply(Version::Two, 2, u32::MAX));
    assert_eq!(scene.engine.requester_credits(), (0, 3));
}

#[test]
fn every_kind_of_message_carries_its_credits() {
    let stage = stage();
    let mut server = Scene::new(&stage, few(5, Side::Server));
    for (xid, wanted) in [(1, 0), (2, u32::MAX)] {
        server.tell(&plain(Version::Two, Direction::Call, xid, wanted, 40));
        let slot = server.called();
        server.answer(slot, &[(&rpc(Direction::Reply, xid, 24), false)]);
        assert_eq!(header(&server.heard()).credits, 5);
    }
    server.tell(&plain(Version::Two, Direction::Call, 3, 1, 40));
    let slot = server.called();
    server.with(|engine, desk| engine.abandon(desk, slot, true));
    assert_eq!(header(&server.heard()).credits, 5);
    let mut client = Scene::new(&stage, few(7, Side::Client));
    client.call(1, 40);
    assert_eq!(header(&client.heard()).credits, 7);
}

#[test]
fn v2_13_credits_of_property_messages_mean_nothing() {
    let stage = stage();
    let mut scene = Scene::new(&stage, Setup::new(Side::Client));
    // Its credit value is 99.
    acquainted(&mut scene, &DEFAULTS, &[]);
    assert_eq!(scene.engine.requester_credits(), (0, 1));
}

#[test]
fn v2_24_more_calls_than_the_grant_close_the_connection() {
    let stage = stage();
    let mut scene = Scene::new(&stage, few(2, Side::Server));
    for xid in 1..=3 {
        scene.tell(&call(Version::Two, xid));
    }
    scene.called();
    scene.called();
    assert_eq!(scene.event(), Some(Event::Lost(CloseReason::CreditOverrun)));
}

#[test]
fn v2_24_a_duplicate_xid_is_dropped_and_counted() {
    let stage = stage();
    let mut scene = Scene::new(&stage, few(2, Side::Server));
    scene.tell(&call(Version::Two, 1));
    let slot = scene.called();
    scene.tell(&call(Version::Two, 1));
    assert_eq!((scene.event(), scene.said()), (None, None));
    assert_eq!(scene.desk().device().counters.duplicate_calls, 1);
    scene.answer(slot, &[(&rpc(Direction::Reply, 1, 24), false)]);
    scene.heard();
    // Answered, the xid is free again.
    scene.tell(&call(Version::Two, 1));
    scene.called();
}

#[test]
fn directions_have_credits_of_their_own() {
    let stage = stage();
    let setup = Setup {
        credits: 3,
        backward_credits: 2,
        ..two(Side::Server)
    };
    let mut scene = Scene::new(&stage, setup);
    scene.tell(&call(Version::Two, 1));
    let forward = scene.called();
    // The same xid backward is another RPC.
    let backward = scene.call(1, 40);
    scene.call(2, 40);
    let sent = scene.heard();
    assert_eq!(header(&sent).credits, 2, "what backward Calls ask for");
    assert!(scene.said().is_none(), "one backward Call until its grant");
    scene.tell(&reply(Version::Two, 1, 2));
    assert_eq!(scene.event(), Some(Event::Reply(backward)));
    assert_eq!(scene.engine.requester_credits(), (1, 2));
    assert_eq!(scene.engine.responder_credits(), (1, 3));
    scene.heard();
    scene.answer(forward, &[(&rpc(Direction::Reply, 1, 24), false)]);
    assert_eq!(header(&scene.heard()).credits, 3);
}

#[test]
fn the_grant_is_never_above_the_receives_posted() {
    let stage = stage();
    let mut scene = Scene::new(&stage, few(4, Side::Server));
    for round in 0..10 {
        let slots: Vec<_> = (1..=4)
            .map(|n| {
                scene.tell(&call(Version::Two, round * 4 + n));
                scene.called()
            })
            .collect();
        for (slot, in_flight) in slots.into_iter().zip([3, 2, 1, 0]) {
            scene.answer(slot, &[(&rpc(Direction::Reply, 1, 24), false)]);
            let posted = scene.link.ends[0].receives_posted();
            assert!(
                posted >= 4 - in_flight,
                "{posted} receives, {in_flight} in flight"
            );
        }
    }
}

#[test]
fn a_call_within_the_grant_waits_for_sends_to_complete() {
    let stage = stage();
    let mut scene = Scene::new(&stage, few(1, Side::Server));
    scene.link.ends[0].faults.pending_percent = 100;
    // The peer has each Reply; this side does not hear that its Sends are done.
    for xid in 1..=2 {
        scene.tell(&call(Version::Two, xid));
        let slot = scene.called();
        scene.held = true;
        scene.answer(slot, &[(&rpc(Direction::Reply, xid, 24), false)]);
    }
    scene.tell(&call(Version::Two, 3));
    assert_eq!(scene.event(), None);
    scene.held = false;
    scene.play();
    scene.called();
}
