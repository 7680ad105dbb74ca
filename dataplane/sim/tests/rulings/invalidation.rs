//! Who may invalidate what.

use super::{call_with_rooms, one, reply, two};
use rpcrdma_engine::{Access, CallError, CloseReason, Event, Setup, Side};
use rpcrdma_sim::scene::{Made, Scene, header, message, rpc, stage};
use rpcrdma_wire::{
    Body, ChunkLists, Direction, Emitter, Handle, Procedure, Reject, Segment, Version,
};

fn lists(message: &[u8]) -> ChunkLists<'_> {
    match header(message).body {
        Body::Msg(lists) | Body::NoMsg(lists) => lists,
        other => panic!("{other:?}"),
    }
}

/// A Call of the engine with rooms for two results: its slot and the message.
fn called<'m>(scene: &mut Scene<'m>, xid: u32) -> (rpcrdma_engine::SlotId, Vec<u8>) {
    let call = rpc(Direction::Call, xid, 40);
    let made = Made {
        parts: vec![(&call, false)],
        results: vec![64, 200],
        reply: None,
    };
    let slot = scene.submit(xid, &made).expect("taken");
    (slot, scene.heard())
}

/// The Reply to it, all rooms full.
fn answer_to(sent: &[u8]) -> Vec<u8> {
    let call = header(sent);
    let offered = lists(sent);
    let emit = |header: &mut Emitter<'_>| {
        header.direction(Direction::Reply, None).end_reads();
        for chunk in offered.writes.iter() {
            let segments: Vec<Segment> = chunk.iter().map(|raw| raw.value()).collect();
            header.write_chunk(segments.into_iter());
        }
        header.end_writes();
        header.reply_chunk(None::<std::iter::Empty<Segment>>);
    };
    let payload = rpc(Direction::Reply, call.xid.0, 24);
    message(
        call.version,
        Procedure::Msg,
        (call.xid.0, 8),
        emit,
        &payload,
    )
}

#[test]
fn the_handle_that_was_named_may_go_and_the_others_are_retired() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Client));
    let (slot, sent) = called(&mut scene, 1);
    let named = lists(&sent).inv_handle.expect("one is named");
    let segments: Vec<Segment> = lists(&sent)
        .writes
        .iter()
        .flatten()
        .map(|raw| raw.value())
        .collect();
    assert_eq!(named, segments[1].handle, "that of the longest segment");
    scene.tell_with(&answer_to(&sent), Some(named));
    assert_eq!(scene.event(), Some(Event::Reply(slot)));
    let counters = &scene.link.ends[0].counters;
    assert_eq!(
        (counters.remote_invalidations, counters.local_invalidations),
        (1, 1)
    );
    assert!(!scene.write(segments[0], &[1]) && !scene.write(segments[1], &[1]));
}

#[test]
fn v2_19_wrong_invalidation_closes() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Client));
    let (slot, sent) = called(&mut scene, 1);
    let other = lists(&sent)
        .writes
        .iter()
        .flatten()
        .next()
        .expect("a segment")
        .value();
    scene.tell_with(&answer_to(&sent), Some(other.handle));
    assert_eq!(
        scene.event(),
        Some(Event::Lost(CloseReason::WrongInvalidation))
    );
    // The Reply does not go up.
    let lost = Event::Failed(slot, CallError::ConnectionLost);
    assert_eq!(scene.event(), Some(lost));
    scene.check_closed();
}

#[test]
fn v2_19_in_version_one_any_handle_of_that_xid_may_go_and_no_other() {
    for wrong in [false, true] {
        let stage = stage();
        let mut scene = Scene::new(&stage, one(Side::Client));
        scene.call(9, 40);
        scene.heard();
        scene.tell(&reply(Version::One, 9, 8));
        scene.event();
        let (first, sent) = called(&mut scene, 1);
        let (_, other) = called(&mut scene, 2);
        let of = if wrong { &other } else { &sent };
        let segment = lists(of)
            .writes
            .iter()
            .flatten()
            .next()
            .expect("one")
            .value();
        scene.tell_with(&answer_to(&sent), Some(segment.handle));
        let expected = match wrong {
            true => Event::Lost(CloseReason::WrongInvalidation),
            false => Event::Reply(first),
        };
        assert_eq!(scene.event(), Some(expected));
    }
}

#[test]
fn v2_19_nothing_but_the_reply_of_its_call_may_invalidate() {
    for message in [
        reply(Version::Two, 77, 1),
        super::error(2, 1, rpcrdma_wire::ErrorBody::System),
        super::call(Version::Two, 5),
        vec![0; 12],
    ] {
        let stage = stage();
        let mut scene = Scene::new(&stage, two(Side::Client));
        let (_, sent) = called(&mut scene, 1);
        let named = lists(&sent).inv_handle;
        scene.tell_with(&message, named);
        assert_eq!(
            scene.event(),
            Some(Event::Lost(CloseReason::WrongInvalidation))
        );
    }
}

#[test]
fn v1_11_a_handle_that_cannot_be_invalidated_closes_before_the_reply_goes_up() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Client));
    scene.link.ends[0].faults.pending_percent = 100;
    let (slot, sent) = called(&mut scene, 1);
    scene.held = true;
    scene.tell(&answer_to(&sent));
    assert_eq!(scene.event(), None, "retirements are on their way");
    scene.link.fail_next_retirement(0);
    scene.held = false;
    scene.play();
    let mut events = [scene.event(), scene.event()];
    events.sort_by_key(|event| !matches!(event, Some(Event::Lost(_))));
    let lost = Event::Failed(slot, CallError::ConnectionLost);
    let closed = Event::Lost(CloseReason::Invalidation);
    assert_eq!(events, [Some(closed), Some(lost)]);
    scene.check_closed();
}

/// The handles that go with the Reply to a Call with these rooms.
fn taken(setup: Setup, private: bool, named: Option<usize>, rooms: &[usize]) -> Vec<Option<usize>> {
    let stage = stage();
    let private = private.then(|| setup.private_data());
    let mut scene = Scene::with_private_data(&stage, setup, private);
    let version = setup.version_max;
    let memory = [
        scene.expose(&[0; 64], Access::Write),
        scene.expose(&[0; 64], Access::Write),
    ];
    let chunk: Vec<Segment> = rooms.iter().map(|&room| memory[room]).collect();
    let emit = |header: &mut Emitter<'_>| {
        header.direction(Direction::Call, named.map(|room| memory[room].handle));
        header
            .end_reads()
            .write_chunk(chunk.iter().copied())
            .end_writes();
        header.reply_chunk(None::<std::iter::Empty<Segment>>);
    };
    let payload = rpc(Direction::Call, 1, 40);
    scene.tell(&message(version, Procedure::Msg, (1, 1), emit, &payload));
    let slot = scene.called();
    let head = rpc(Direction::Reply, 1, 24);
    scene.answer(slot, &[(&head, false), (b"four", true)]);
    scene.heard();
    let place = |handle: Handle| memory.iter().position(|segment| segment.handle == handle);
    scene.invalidated().into_iter().map(place).collect()
}

#[test]
fn rfc_8797_one_distinct_handle_rule() {
    let server = one(Side::Server);
    assert_eq!(taken(server, true, None, &[0]), [Some(0)]);
    // The same one twice is one.
    assert_eq!(taken(server, true, None, &[1, 1]), [Some(1)]);
    assert_eq!(taken(server, true, None, &[0, 1]), []);
    // Both sides must have said that they can.
    assert_eq!(taken(server, false, None, &[0]), []);
    let unable = Setup {
        remote_invalidate: false,
        ..server
    };
    assert_eq!(taken(unable, true, None, &[0]), []);
}

#[test]
fn version_two_invalidates_exactly_the_handle_that_was_named() {
    let server = two(Side::Server);
    assert_eq!(taken(server, false, Some(1), &[0, 1]), [Some(1)]);
    assert_eq!(taken(server, true, None, &[0]), []);
    let unable = Setup {
        remote_invalidate: false,
        ..server
    };
    assert_eq!(taken(unable, false, Some(0), &[0]), []);
}

#[test]
fn v2_08_a_name_that_matches_nothing() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Server));
    let room = scene.expose(&[0; 64], Access::Write);
    let mut message = call_with_rooms(Version::Two, 1, &[&[room]], None);
    message[20..24].copy_from_slice(&(room.handle.0 ^ 1).to_be_bytes());
    scene.tell(&message);
    assert_eq!(
        super::error_in(&scene.heard()),
        rpcrdma_wire::ErrorBody::Chunk
    );
    assert_eq!(
        scene.engine.last_refusal(),
        Some(Reject::UnmatchedInvHandle)
    );
    // In a Reply it is ignored.
    let mut scene = Scene::new(&stage, two(Side::Client));
    let slot = scene.call(1, 40);
    let mut message = reply(Version::Two, 1, 1);
    message[20..24].copy_from_slice(&77_u32.to_be_bytes());
    scene.tell(&message);
    assert_eq!(scene.event(), Some(Event::Reply(slot)));
}
