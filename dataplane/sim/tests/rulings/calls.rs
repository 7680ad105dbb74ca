//! What a responder makes of Calls.

use super::{call, call_with_read, call_with_rooms, error, error_in, one, raw, two};
use rpcrdma_engine::{Access, CloseReason, Event, Setup, Side, WorkError};
use rpcrdma_sim::scene::{Scene, header, plain, rpc, stage};
use rpcrdma_wire::emit::emit_optional;
use rpcrdma_wire::{Direction, ErrorBody, Handle, Procedure, Reject, Segment, Version, Xid};

#[test]
fn v1_04_errors_and_done_are_dropped_by_a_responder() {
    let stage = stage();
    let mut scene = Scene::new(&stage, one(Side::Server));
    scene.tell(&call(Version::One, 1));
    scene.called();
    scene.tell(&error(1, 1, ErrorBody::Chunk));
    let mut done = raw(Version::One, Procedure::Msg, 5, Direction::Call);
    done[15] = 3;
    scene.tell(&done);
    // An ERROR that cannot be decoded (V2-12).
    let mut unknown = error(1, 1, ErrorBody::Chunk);
    unknown[19] = 9;
    scene.tell(&unknown);
    assert_eq!((scene.said(), scene.event()), (None, None));
}

#[test]
fn v2_01_options_and_v2_02_procedures_that_nobody_knows() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Server));
    scene.tell(&call(Version::Two, 1));
    scene.called();
    let optional = |direction| {
        let mut buf = vec![0; 64];
        let len = emit_optional(&mut buf, Xid(1), 1, direction, 3, b"info").expect("room");
        buf.truncate(len);
        buf
    };
    scene.tell(&optional(Direction::Call));
    let answer = scene.heard();
    assert_eq!(error_in(&answer), ErrorBody::InvalOption);
    assert_eq!(header(&answer).xid, Xid(1), "the same xid");
    // What answers nothing is dropped (V2-18).
    scene.tell(&optional(Direction::Reply));
    assert!(scene.said().is_none());
    let mut unknown = call(Version::Two, 2);
    unknown[15] = 77;
    scene.tell(&unknown);
    assert_eq!(error_in(&scene.heard()), ErrorBody::InvalProc);
}

#[test]
fn v2_10_direction_of_a_long_call_is_judged_when_it_is_here() {
    for (version, direction) in [
        (Version::One, Direction::Reply),
        (Version::Two, Direction::Reply),
    ] {
        let stage = stage();
        let setup = Setup {
            version_max: version,
            ..two(Side::Server)
        };
        let mut scene = Scene::new(&stage, setup);
        let segment = scene.expose(&rpc(direction, 1, 100), Access::Read);
        scene.tell(&call_with_read(version, 1, 0, segment));
        assert_eq!(scene.event(), None);
        assert_eq!(error_in(&scene.heard()), ErrorBody::Chunk);
        assert_eq!(scene.engine.responder_credits().0, 0);
        let refusal = match version {
            Version::One => Reject::MessageType,
            Version::Two => Reject::DirectionMismatch,
        };
        assert_eq!(scene.engine.last_refusal(), Some(refusal));
    }
}

#[test]
fn v1_03_xid_of_a_long_call_is_judged_when_it_is_here() {
    let stage = stage();
    let mut scene = Scene::new(&stage, one(Side::Server));
    let segment = scene.expose(&rpc(Direction::Call, 9, 100), Access::Read);
    scene.tell(&call_with_read(Version::One, 1, 0, segment));
    assert_eq!(error_in(&scene.heard()), ErrorBody::Chunk);
    assert_eq!(scene.engine.last_refusal(), Some(Reject::XidMismatch));
}

#[test]
fn v1_06_nothing_is_read_for_a_bad_position() {
    let stage = stage();
    let mut scene = Scene::new(&stage, one(Side::Server));
    let segment = scene.expose(&[0; 64], Access::Read);
    scene.tell(&call_with_read(Version::One, 1, 44, segment));
    assert_eq!(error_in(&scene.heard()), ErrorBody::Chunk);
    assert_eq!(scene.desk().device().counters.reads, 0);
}

#[test]
fn a_long_call_comes_whole() {
    let stage = stage();
    let mut scene = Scene::new(&stage, one(Side::Server));
    let message = rpc(Direction::Call, 1, 3000);
    let segment = scene.expose(&message, Access::Read);
    scene.tell(&call_with_read(Version::One, 1, 0, segment));
    let slot = scene.called();
    let call = scene
        .with(|engine, desk| engine.call(desk, slot))
        .expect("here");
    assert_eq!(scene.octets(call.message), message);
}

#[test]
fn a_read_chunk_at_the_end_of_the_body_comes_with_its_padding() {
    let stage = stage();
    let mut scene = Scene::new(&stage, one(Side::Server));
    let segment = scene.expose(b"seven..", Access::Read);
    scene.tell(&call_with_read(Version::One, 1, 40, segment));
    let slot = scene.called();
    let call = scene
        .with(|engine, desk| engine.call(desk, slot))
        .expect("here");
    assert_eq!(&scene.octets(call.message)[40..], b"seven..\0");
}

/// A handle that is not there, the first and the second time.
fn bad_handle(version: Version, write: bool) {
    let stage = stage();
    let setup = Setup {
        version_max: version,
        ..two(Side::Server)
    };
    let bad = Segment {
        handle: Handle(0xbad),
        length: 100,
        offset: 0,
    };
    let message = match write {
        true => call_with_rooms(version, 1, &[&[bad]], None),
        false => call_with_read(version, 1, 40, bad),
    };
    let mut scene = Scene::new(&stage, setup);
    scene.tell(&message);
    if write {
        let slot = scene.called();
        scene.answer(
            slot,
            &[(&rpc(Direction::Reply, 1, 24), false), (&[7; 50], true)],
        );
    }
    let lost = CloseReason::Work(WorkError::RemoteAccess);
    assert_eq!(scene.event(), Some(Event::Lost(lost)));
    assert_eq!(scene.engine.suspects(), [Xid(1)]);
    let suspects = scene.engine.suspects().to_vec();
    scene.check_closed();

    let mut scene = Scene::new(&stage, setup);
    scene.engine.set_suspects(&suspects);
    scene.tell(&message);
    let answer = match version {
        Version::One => ErrorBody::Chunk,
        Version::Two => ErrorBody::System,
    };
    assert_eq!(error_in(&scene.heard()), answer);
    assert_eq!(
        scene.event(),
        None,
        "it is not run, and the connection is kept"
    );
    scene.tell(&call(version, 2));
    scene.called();
}

#[test]
fn v1_10_a_suspect_is_not_tried_a_second_time() {
    for version in [Version::One, Version::Two] {
        for write in [false, true] {
            bad_handle(version, write);
        }
    }
}

#[test]
fn v1_10_a_suspect_is_one_even_where_the_loss_was_noticed_first() {
    let stage = stage();
    let mut scene = Scene::new(&stage, one(Side::Server));
    let bad = Segment {
        handle: Handle(0xbad),
        length: 100,
        offset: 0,
    };
    scene.held = true;
    scene.tell(&call_with_read(Version::One, 1, 40, bad));
    // The Read fails, and before that is heard the engine is told of the disconnection.
    scene.link.execute(0);
    scene.with(|engine, desk| engine.disconnected(desk));
    assert_eq!(scene.event(), Some(Event::Lost(CloseReason::Peer)));
    assert_eq!(scene.engine.suspects(), [Xid(1)]);
}

#[test]
fn v2_22_backward_calls_that_are_not_taken() {
    use rpcrdma_wire::BackwardRequests::{General, Inline, None as Nothing};
    let chunked = |scene: &mut Scene<'_>, version| {
        let room = scene.expose(&[0; 64], Access::Write);
        call_with_rooms(version, 9, &[&[room]], None)
    };
    for (level, plain_answer, chunked_answer) in [
        (Nothing, Some(ErrorBody::System), Some(ErrorBody::System)),
        (Inline, None, Some(ErrorBody::Chunk)),
        (General, None, None),
    ] {
        let stage = stage();
        let setup = Setup {
            backward: level,
            ..two(Side::Client)
        };
        let mut scene = Scene::new(&stage, setup);
        scene.tell(&plain(Version::Two, Direction::Call, 8, 1, 40));
        match plain_answer {
            Some(answer) => assert_eq!(error_in(&scene.heard()), answer),
            None => {
                scene.called();
            }
        }
        let message = chunked(&mut scene, Version::Two);
        scene.tell(&message);
        match chunked_answer {
            Some(answer) => assert_eq!(error_in(&scene.heard()), answer),
            None => {
                let slot = scene.called();
                let call = scene.with(|engine, desk| engine.call(desk, slot));
                assert!(call.expect("here").backward);
            }
        }
    }
    // RFC 8167 5.3.
    let stage = stage();
    let setup = Setup {
        backward: General,
        ..one(Side::Client)
    };
    let mut scene = Scene::new(&stage, setup);
    let message = chunked(&mut scene, Version::One);
    scene.tell(&message);
    assert_eq!(error_in(&scene.heard()), ErrorBody::Chunk);
}

#[test]
fn messages_that_come_before_the_word_that_it_is_established_wait() {
    let stage = stage();
    let mut scene = Scene::unannounced(&stage, two(Side::Server));
    for xid in 1..=3 {
        scene.tell(&call(Version::Two, xid));
    }
    assert_eq!(scene.event(), None);
    scene.announce(None);
    for xid in 1..=3 {
        let slot = scene.called();
        let call = scene.with(|engine, desk| engine.call(desk, slot));
        assert_eq!(call.expect("here").xid, Xid(xid));
    }
    // What was never looked at comes back all the same.
    let mut scene = Scene::unannounced(&stage, two(Side::Server));
    scene.tell(&call(Version::Two, 1));
    scene.link.sever();
    scene.play();
    assert_eq!(scene.event(), Some(Event::Lost(CloseReason::Peer)));
    scene.check_closed();
}
