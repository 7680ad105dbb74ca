//! Transport properties.

use super::{DEFAULTS, acquainted, connprop, error, error_in, two};
use rpcrdma_engine::{
    CloseReason, Decision, Event, PropertyEvent, Refused, Setup, Side, Values, Verdict,
};
use rpcrdma_sim::scene::{Made, Scene, header, rpc, stage};
use rpcrdma_wire::emit::{emit_reqprop, emit_resprop, emit_updprop};
use rpcrdma_wire::{BackwardRequests, Body, Direction, ErrorBody, Reject, Version, Xid};

fn data(properties: &[(u32, u32)]) -> Vec<(u32, [u8; 4])> {
    let encode = |&(id, value): &(u32, u32)| (id, value.to_be_bytes());
    properties.iter().map(encode).collect()
}

fn emitted(emit: impl FnOnce(&mut [u8]) -> Option<usize>) -> Vec<u8> {
    let mut buf = vec![0; 512];
    let len = emit(&mut buf).expect("room");
    buf.truncate(len);
    buf
}

fn reqprop(xid: u32, properties: &[(u32, u32)]) -> Vec<u8> {
    let data = data(properties);
    let set = data.iter().map(|(id, data)| (*id, data.as_slice()));
    emitted(|buf| emit_reqprop(buf, Xid(xid), 1, set))
}

fn updprop(properties: &[(u32, u32)]) -> Vec<u8> {
    let data = data(properties);
    let set = data.iter().map(|(id, data)| (*id, data.as_slice()));
    emitted(|buf| emit_updprop(buf, Xid(0xD0), 1, set))
}

fn resprop(xid: Xid, done: u32, rejected: u32, other: &[(u32, u32)]) -> Vec<u8> {
    let data = data(other);
    let set = data.iter().map(|(id, data)| (*id, data.as_slice()));
    emitted(|buf| emit_resprop(buf, xid, 1, [done], [rejected], set))
}

/// Done, rejected and other of a RESPROP.
fn parts_of(message: &[u8]) -> (Vec<u32>, Vec<u32>, Vec<(u32, u32)>) {
    match header(message).body {
        Body::RespProp {
            done,
            rejected,
            other,
        } => {
            let word = |data: &[u8]| u32::from_be_bytes(data.try_into().expect("a word"));
            let other = other.iter().map(|(_, id, data)| (id, word(data)));
            (
                done.iter().collect(),
                rejected.iter().collect(),
                other.collect(),
            )
        }
        other => panic!("{other:?}"),
    }
}

fn server<'m>(stage: &'m bumpalo::Bump, properties: &[(u32, u32)], nochg: &[u32]) -> Scene<'m> {
    let setup = Setup {
        receive_bytes: 8192,
        ..Setup::new(Side::Server)
    };
    let mut scene = Scene::new(stage, setup);
    acquainted(&mut scene, properties, nochg);
    scene
}

fn happened(scene: &mut Scene<'_>) -> PropertyEvent {
    assert_eq!(scene.event(), Some(Event::Property));
    let event = scene.with(|engine, _| engine.take_property_event());
    event.expect("a property event")
}

const DONE: Decision = Decision {
    receive_bytes: Verdict::Done,
    backward: Verdict::Done,
};

const LARGER: Values = Values {
    receive_bytes: Some(6000),
    backward: None,
};

#[test]
fn a_request_is_decided_by_control() {
    let stage = stage();
    let mut scene = server(&stage, &DEFAULTS, &[]);
    scene.tell(&reqprop(5, &[(2, 2), (1, 8192)]));
    let wanted = Values {
        receive_bytes: Some(8192),
        backward: Some(BackwardRequests::General),
    };
    assert_eq!(happened(&mut scene), PropertyEvent::Requested(wanted));
    let decision = Decision {
        receive_bytes: Verdict::Done,
        backward: Verdict::Other(BackwardRequests::None),
    };
    assert!(scene.with(|engine, desk| engine.decide(desk, decision)));
    let answer = scene.heard();
    assert_eq!(header(&answer).xid, Xid(5));
    assert_eq!(parts_of(&answer), (vec![1], vec![], vec![(2, 0)]));
    assert_eq!(scene.engine.receive_bytes(), 8192);
    // There is nothing to decide any more.
    assert!(!scene.with(|engine, desk| engine.decide(desk, decision)));
}

#[test]
fn v2_06_unknown_properties_keep_their_position_and_are_rejected() {
    let stage = stage();
    let mut scene = server(&stage, &DEFAULTS, &[]);
    scene.tell(&reqprop(5, &[(77, 1), (1, 8192), (78, 2)]));
    happened(&mut scene);
    scene.with(|engine, desk| engine.decide(desk, DONE));
    assert_eq!(parts_of(&scene.heard()), (vec![1], vec![0, 2], vec![]));
}

#[test]
fn v2_06_what_is_fixed_does_not_change() {
    let stage = stage();
    // RBSIZ is in `rdma_nochg`; BRS was never listed.
    let mut scene = server(&stage, &[(1, 4096)], &[1]);
    scene.tell(&updprop(&[(1, 8192), (2, 2)]));
    happened(&mut scene);
    assert_eq!(scene.engine.send_bytes(), 4096);
    assert_eq!(scene.desk().device().counters.properties_ignored, 1);
    let mut scene = server(&stage, &DEFAULTS, &[0]);
    scene.tell(&updprop(&[(1, 8192)]));
    assert_eq!(scene.engine.send_bytes(), 8192);
}

#[test]
fn v2_15_the_last_of_two_counts_and_the_earlier_is_rejected() {
    let stage = stage();
    let mut scene = server(&stage, &DEFAULTS, &[]);
    scene.tell(&reqprop(5, &[(1, 5000), (1, 7000)]));
    let wanted = Values {
        receive_bytes: Some(7000),
        backward: None,
    };
    assert_eq!(happened(&mut scene), PropertyEvent::Requested(wanted));
    scene.with(|engine, desk| engine.decide(desk, DONE));
    assert_eq!(parts_of(&scene.heard()), (vec![1], vec![0], vec![]));
    assert_eq!(scene.engine.receive_bytes(), 7000);
    let mut scene = server(&stage, &[(1, 1024), (1, 2048)], &[]);
    assert_eq!(scene.engine.send_bytes(), 2048);
    scene.tell(&updprop(&[(1, 5000), (1, 3000)]));
    assert_eq!(scene.engine.send_bytes(), 3000);
}

#[test]
fn v2_13_one_request_and_one_announcement() {
    let stage = stage();
    let mut scene = server(&stage, &DEFAULTS, &[]);
    scene.tell(&reqprop(5, &[(1, 5000)]));
    happened(&mut scene);
    scene.tell(&reqprop(6, &[(1, 6000)]));
    scene.tell(&connprop(&[(1, 1024)], &[]));
    assert_eq!((scene.event(), scene.said()), (None, None));
    assert_eq!(scene.engine.send_bytes(), 4096);
    assert_eq!(scene.desk().device().counters.properties_ignored, 2);
    // Our own: one at a time, and none before the peer has spoken.
    let ask =
        |scene: &mut Scene<'_>| scene.with(|engine, desk| engine.request_properties(desk, LARGER));
    assert!(ask(&mut scene));
    assert!(!ask(&mut scene));
    let mut scene = Scene::new(&stage, Setup::new(Side::Server));
    assert!(!ask(&mut scene));
}

#[test]
fn v2_13_updates_beyond_the_rate_close() {
    let stage = stage();
    let setup = Setup {
        updates_per_tick: 2,
        ..Setup::new(Side::Server)
    };
    let mut scene = Scene::new(&stage, setup);
    acquainted(&mut scene, &DEFAULTS, &[]);
    for bytes in [5000, 6000] {
        scene.tell(&updprop(&[(1, bytes)]));
        happened(&mut scene);
    }
    scene.with(|engine, desk| engine.tick(desk));
    for bytes in [7000, 8000] {
        scene.tell(&updprop(&[(1, bytes)]));
        happened(&mut scene);
    }
    assert_eq!(scene.engine.send_bytes(), 8000);
    scene.tell(&updprop(&[(1, 4096)]));
    assert_eq!(scene.event(), Some(Event::Lost(CloseReason::CreditOverrun)));
}

/// What is in force of a request for RBSIZ 2000 and BRS GENL after this answer.
fn answered(done: u32, rejected: u32, other: &[(u32, u32)]) -> (u32, Option<Values>) {
    let stage = stage();
    let mut scene = server(&stage, &DEFAULTS, &[]);
    let want = Values {
        receive_bytes: Some(2000),
        backward: Some(BackwardRequests::General),
    };
    assert!(scene.with(|engine, desk| engine.request_properties(desk, want)));
    let request = scene.heard();
    scene.tell(&resprop(header(&request).xid, done, rejected, other));
    let values = match scene.event() {
        Some(Event::Property) => match scene.engine.take_property_event() {
            Some(PropertyEvent::Responded(values)) => Some(values),
            other => panic!("{other:?}"),
        },
        None => None,
        other => panic!("{other:?}"),
    };
    (scene.engine.send_bytes(), values)
}

#[test]
fn v2_14_what_an_answer_leaves_out_or_says_twice_is_rejected() {
    let both = Values {
        receive_bytes: Some(2000),
        backward: Some(BackwardRequests::General),
    };
    let nothing = Values::default();
    assert_eq!(answered(0b11, 0, &[]), (2000, Some(both)));
    assert_eq!(answered(0, 0b11, &[]), (4096, Some(nothing)));
    assert_eq!(answered(0, 0, &[]), (4096, Some(nothing)), "missing");
    assert_eq!(answered(0b11, 0b11, &[]), (4096, Some(nothing)), "both");
    assert_eq!(answered(1, 0, &[(1, 3000)]).0, 4096, "done and other");
    let other = Values {
        receive_bytes: Some(3000),
        ..nothing
    };
    assert_eq!(answered(0, 0b10, &[(1, 3000)]), (3000, Some(other)));
    // Positions that were never asked for: dropped, and the request stays out.
    assert_eq!(answered(0b100, 0, &[]), (2000, None));
}

#[test]
fn v2_14_unrequested_properties_are_ignored() {
    let stage = stage();
    let mut scene = server(&stage, &DEFAULTS, &[]);
    let want = Values {
        receive_bytes: None,
        backward: Some(BackwardRequests::General),
    };
    assert!(scene.with(|engine, desk| engine.request_properties(desk, want)));
    let request = scene.heard();
    scene.tell(&resprop(header(&request).xid, 1, 0, &[(1, 1024)]));
    assert_eq!(happened(&mut scene), PropertyEvent::Responded(want));
    assert_eq!(scene.engine.send_bytes(), 4096);
}

#[test]
fn v2_14_an_answer_to_nothing_is_dropped() {
    let stage = stage();
    let mut scene = server(&stage, &DEFAULTS, &[]);
    scene.tell(&resprop(Xid(99), 1, 0, &[]));
    assert_eq!((scene.event(), scene.said()), (None, None));
    // Nor is one that cannot be parsed answered: its xid is ours.
    let mut bad = resprop(Xid(99), 1, 0, &[]);
    bad.pop();
    scene.tell(&bad);
    assert_eq!((scene.event(), scene.said()), (None, None));
    // Nor one to a side that does not speak of properties.
    let mut scene = Scene::new(&stage, two(Side::Server));
    scene.tell(&super::call(Version::Two, 1));
    scene.called();
    scene.tell(&resprop(Xid(99), 1, 0, &[]));
    assert_eq!((scene.event(), scene.said()), (None, None));
}

#[test]
fn v2_18_an_error_matches_a_control_message_and_no_call_has_its_xid() {
    let stage = stage();
    let mut scene = Scene::new(&stage, Setup::new(Side::Client));
    scene.tell(&connprop(&DEFAULTS, &[]));
    scene.heard();
    happened(&mut scene);
    assert!(scene.with(|engine, desk| engine.request_properties(desk, LARGER)));
    let request = scene.heard();
    let xid = header(&request).xid.0;
    let message = rpc(Direction::Call, xid, 40);
    let made = Made {
        parts: vec![(&message, false)],
        ..Made::default()
    };
    assert_eq!(scene.submit(xid, &made), Err(Refused::Busy));
    scene.tell(&error(2, xid, ErrorBody::InvalProc));
    let nothing = PropertyEvent::Responded(Values::default());
    assert_eq!(happened(&mut scene), nothing);
    let slot = scene.submit(xid, &made).expect("taken");
    scene.heard();
    scene.tell(&error(2, xid, ErrorBody::System));
    assert!(matches!(scene.event(), Some(Event::Failed(failed, _)) if failed == slot));
}

#[test]
fn v2_18_control_xids_avoid_our_own_live_ones() {
    let stage = stage();
    let mut scene = server(&stage, &DEFAULTS, &[]);
    let mut xids = Vec::new();
    // One backward Call at a time: each has the number that would come next.
    for _ in 0..3 {
        let ask = |scene: &mut Scene<'_>| {
            assert!(scene.with(|engine, desk| engine.request_properties(desk, LARGER)));
            let request = scene.heard();
            let xid = header(&request).xid;
            scene.tell(&resprop(xid, 0, 1, &[]));
            xid
        };
        let next = Xid(ask(&mut scene).0 + 1);
        let slot = scene.call(next.0, 40);
        scene.heard();
        let control = ask(&mut scene);
        assert_ne!(control, next);
        scene.tell(&super::reply(Version::Two, next.0, 1));
        scene.with(|engine, desk| engine.finish(desk, slot));
        xids.push(control);
    }
    xids.dedup();
    assert_eq!(xids.len(), 3);
}

#[test]
fn v2_21_who_asks_for_a_smaller_buffer_sends_no_larger_messages() {
    let stage = stage();
    let mut scene = server(&stage, &[(1, 8192)], &[]);
    let want = Values {
        receive_bytes: Some(2048),
        backward: None,
    };
    assert!(scene.with(|engine, desk| engine.request_properties(desk, want)));
    let request = scene.heard();
    assert_eq!(scene.engine.send_bytes(), 2048);
    // An update meanwhile does not change that.
    scene.tell(&updprop(&[(1, 6000)]));
    assert_eq!(scene.engine.send_bytes(), 2048);
    scene.tell(&resprop(header(&request).xid, 0, 1, &[]));
    assert_eq!(scene.engine.send_bytes(), 6000);
}

#[test]
fn v2_21_a_size_is_announced_within_what_is_posted_and_smaller_only_on_request() {
    let stage = stage();
    let mut scene = server(&stage, &DEFAULTS, &[]);
    let update = |scene: &mut Scene<'_>, bytes| {
        let now = Values {
            receive_bytes: Some(bytes),
            backward: None,
        };
        scene.with(|engine, desk| engine.update_properties(desk, now))
    };
    assert!(!update(&mut scene, 9000));
    assert!(!update(&mut scene, 2048));
    assert!(update(&mut scene, 8192));
    assert!(matches!(header(&scene.heard()).body, Body::UpdProp { .. }));
    assert_eq!(scene.engine.receive_bytes(), 8192);
    scene.tell(&reqprop(5, &[(1, 2048)]));
    happened(&mut scene);
    scene.with(|engine, desk| engine.decide(desk, DONE));
    assert_eq!(scene.engine.receive_bytes(), 2048);
    // Beyond what is posted: rejected, whatever control says.
    scene.heard();
    scene.tell(&reqprop(6, &[(1, 9000)]));
    happened(&mut scene);
    scene.with(|engine, desk| engine.decide(desk, DONE));
    assert_eq!(parts_of(&scene.heard()), (vec![], vec![0], vec![]));
}

#[test]
fn v2_21_and_v2_03_a_bad_value_applies_nothing() {
    let stage = stage();
    for bad in [[(2, 2), (1, 1023)], [(1, 8192), (2, 3)]] {
        let mut scene = server(&stage, &DEFAULTS, &[]);
        scene.tell(&updprop(&bad));
        assert_eq!(error_in(&scene.heard()), ErrorBody::Chunk);
        assert_eq!(scene.engine.last_refusal(), Some(Reject::PropertyValue));
        assert_eq!((scene.event(), scene.engine.send_bytes()), (None, 4096));
    }
}

#[test]
fn v2_23_octets_after_a_complete_message() {
    let stage = stage();
    let mut scene = server(&stage, &DEFAULTS, &[]);
    let mut message = updprop(&[(1, 8192)]);
    message.extend([0; 4]);
    scene.tell(&message);
    assert_eq!(error_in(&scene.heard()), ErrorBody::Chunk);
    assert_eq!(scene.engine.send_bytes(), 4096);
    let mut scene = Scene::new(&stage, two(Side::Client));
    scene.call(1, 40);
    scene.heard();
    let mut message = error(2, 1, ErrorBody::System);
    message.extend([0; 4]);
    scene.tell(&message);
    assert_eq!((scene.event(), scene.said()), (None, None));
}

#[test]
fn v2_22_our_own_backward_calls_keep_to_what_the_peer_takes() {
    let stage = stage();
    let message = rpc(Direction::Call, 1, 40);
    let long = rpc(Direction::Call, 1, 6000);
    let plain = Made {
        parts: vec![(&message, false)],
        ..Made::default()
    };
    let chunked = Made {
        results: vec![100],
        ..plain.clone()
    };
    let read = Made {
        parts: vec![(&long, false)],
        ..Made::default()
    };
    for (level, takes) in [(0, [false; 3]), (1, [true, false, false]), (2, [true; 3])] {
        for (made, taken) in [&plain, &chunked, &read].into_iter().zip(takes) {
            let mut scene = server(&stage, &[(2, level)], &[]);
            let submitted = scene.submit(1, made);
            match taken {
                true => assert!(submitted.is_ok(), "BRS {level}"),
                false => assert_eq!(submitted, Err(Refused::Unsupported), "BRS {level}"),
            }
        }
    }
    // RFC 8167 5.3.
    let mut scene = Scene::new(&stage, super::one(Side::Server));
    scene.tell(&super::call(Version::One, 1));
    scene.called();
    assert_eq!(scene.submit(1, &chunked), Err(Refused::Unsupported));
    assert_eq!(scene.submit(1, &read), Err(Refused::Unsupported));
    assert!(scene.submit(1, &plain).is_ok());
}

#[test]
fn v2_22_a_queued_call_that_the_peer_takes_no_more_fails() {
    let stage = stage();
    let mut scene = server(&stage, &[(2, 2)], &[]);
    let message = rpc(Direction::Call, 2, 40);
    let chunked = Made {
        parts: vec![(&message, false)],
        results: vec![100],
        reply: None,
    };
    // The first takes the one credit.
    scene.call(1, 40);
    scene.heard();
    let slot = scene.submit(2, &chunked).expect("taken");
    scene.tell(&updprop(&[(2, 1)]));
    happened(&mut scene);
    scene.tell(&super::reply(Version::Two, 1, 1));
    assert!(matches!(scene.event(), Some(Event::Reply(_))));
    let failed = Event::Failed(slot, rpcrdma_engine::CallError::System);
    assert_eq!(scene.event(), Some(failed));
    assert!(scene.said().is_none());
}
