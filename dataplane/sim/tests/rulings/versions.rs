//! Which version a connection speaks.

use super::{DEFAULTS, call, connprop, error, error_in, one, reply, two};
use rpcrdma_engine::phase::Phase;
use rpcrdma_engine::{CallError, CloseReason, Event, PropertyEvent, Setup, Side};
use rpcrdma_sim::scene::{Scene, header, stage};
use rpcrdma_wire::{Body, ErrorBody, Reject, Version, Xid};

const ONLY_ONE: ErrorBody = ErrorBody::Version { low: 1, high: 1 };

#[test]
fn v2_04_first_message_is_short() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Client));
    scene.call(1, 2000);
    let first = scene.heard();
    assert!(first.len() <= 1024, "{} octets", first.len());
    assert!(matches!(header(&first).body, Body::NoMsg(_)));
    scene.tell(&reply(Version::Two, 1, 8));
    scene.call(2, 2000);
    let second = scene.heard();
    assert!(matches!(header(&second).body, Body::Msg(_)));
    assert_eq!(scene.engine.send_bytes(), 4096);
}

#[test]
fn v2_09_fall_back_on_the_same_connection() {
    for vers in [1, 2] {
        let stage = stage();
        let mut scene = Scene::new(&stage, two(Side::Client));
        let slot = scene.call(7, 40);
        assert_eq!(header(&scene.heard()).version, Version::Two);
        scene.tell(&error(vers, 7, ONLY_ONE));
        let again = scene.heard();
        let again = header(&again);
        assert_eq!((again.version, again.xid), (Version::One, Xid(7)));
        scene.tell(&reply(Version::One, 7, 1));
        // Nobody has properties in version one.
        assert_eq!(scene.event(), Some(Event::Property));
        assert_eq!(scene.event(), Some(Event::Reply(slot)));
        assert_eq!(scene.desk().device().counters.fallbacks, 1);
    }
}

#[test]
fn v2_09_fall_back_after_properties_were_offered() {
    let stage = stage();
    let mut scene = Scene::new(&stage, Setup::new(Side::Client));
    scene.call(7, 40);
    let offer = scene.heard();
    assert!(scene.said().is_none(), "a Call before the version is known");
    scene.tell(&error(1, header(&offer).xid.0, ONLY_ONE));
    assert_eq!(header(&scene.heard()).version, Version::One);
    assert_eq!(scene.event(), Some(Event::Property));
    let event = scene.engine.take_property_event();
    assert_eq!(event, Some(PropertyEvent::None));
}

#[test]
fn v2_09_no_version_in_common_fails_by_name() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Client));
    let slot = scene.call(7, 40);
    scene.tell(&error(2, 7, ErrorBody::Version { low: 3, high: 4 }));
    assert_eq!(scene.event(), Some(Event::Lost(CloseReason::Version)));
    let lost = Event::Failed(slot, CallError::ConnectionLost);
    assert_eq!(scene.event(), Some(lost));
    scene.check_closed();
}

#[test]
fn v2_09_timeout() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Client));
    scene.call(7, 40);
    scene.with(|engine, desk| engine.negotiation_timed_out(desk));
    assert_eq!(scene.event(), Some(Event::Lost(CloseReason::Version)));
    assert!(scene.engine.broke_while_offering());
    scene.event();
    scene.check_closed();
}

#[test]
fn v2_09_no_timeout_once_the_version_is_known() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Client));
    scene.call(7, 40);
    scene.tell(&reply(Version::Two, 7, 1));
    scene.event();
    scene.with(|engine, desk| engine.negotiation_timed_out(desk));
    assert_eq!(scene.event(), None);
    assert_eq!(scene.engine.phase(), Phase::Open);
}

#[test]
fn v2_09_a_drop_while_offering_is_remembered() {
    for answered in [false, true] {
        let stage = stage();
        let mut scene = Scene::new(&stage, two(Side::Client));
        scene.call(7, 40);
        if answered {
            scene.tell(&reply(Version::Two, 7, 1));
        }
        scene.link.sever();
        scene.play();
        assert_eq!(scene.engine.broke_while_offering(), !answered);
    }
}

#[test]
fn v2_17_the_client_speaks_first_and_calls_when_answered() {
    let stage = stage();
    let mut scene = Scene::new(&stage, Setup::new(Side::Client));
    let offer = scene.heard();
    assert!((28..=1024).contains(&offer.len()));
    assert!(matches!(header(&offer).body, Body::ConnProp { .. }));
    scene.call(1, 40);
    assert!(scene.said().is_none());
    scene.tell(&connprop(&DEFAULTS, &[]));
    assert_eq!(header(&scene.heard()).xid, Xid(1));
    assert_eq!(scene.engine.version(), Some(Version::Two));
}

#[test]
fn v2_17_a_responder_answers_connprop_at_once() {
    let stage = stage();
    let mut scene = Scene::new(&stage, Setup::new(Side::Server));
    assert!(scene.said().is_none());
    scene.tell(&connprop(&DEFAULTS, &[]));
    assert!(matches!(header(&scene.heard()).body, Body::ConnProp { .. }));
    let mut scene = Scene::new(&stage, two(Side::Server));
    scene.tell(&connprop(&DEFAULTS, &[]));
    assert_eq!(error_in(&scene.heard()), ErrorBody::InvalOption);
    assert_eq!(scene.engine.version(), Some(Version::Two));
}

#[test]
fn v2_02_either_error_says_that_the_peer_has_no_properties() {
    for body in [ErrorBody::InvalOption, ErrorBody::InvalProc] {
        let stage = stage();
        let setup = Setup {
            receive_bytes: 8192,
            announced_bytes: 8192,
            ..Setup::new(Side::Client)
        };
        let mut scene = Scene::new(&stage, setup);
        let offer = scene.heard();
        scene.call(1, 40);
        scene.tell(&error(2, header(&offer).xid.0, body));
        assert_eq!(scene.engine.version(), Some(Version::Two));
        assert_eq!(scene.event(), Some(Event::Property));
        let event = scene.engine.take_property_event();
        assert_eq!(event, Some(PropertyEvent::None));
        assert_eq!(header(&scene.heard()).xid, Xid(1));
        // It was not told of the larger receives.
        assert_eq!(scene.engine.receive_bytes(), 4096);
    }
}

#[test]
fn v2_24_another_version_in_mid_connection() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Server));
    scene.tell(&call(Version::Two, 1));
    scene.called();
    let range = ErrorBody::Version { low: 1, high: 2 };
    for (message, vers) in [(call(Version::One, 2), 1), (malformed(Version::One), 1)] {
        scene.tell(&message);
        let answer = scene.heard();
        assert_eq!((error_in(&answer), header(&answer).vers), (range, vers));
    }
    // Errors and replies of another version answer nothing of ours.
    scene.tell(&error(1, 5, ErrorBody::Chunk));
    scene.tell(&reply(Version::One, 5, 1));
    assert!(scene.said().is_none());
    scene.tell(&call(Version::Two, 3));
    scene.called();
}

/// A Call whose Read list has a flag that is none.
fn malformed(version: Version) -> Vec<u8> {
    let mut message = call(version, 9);
    let at = if version == Version::One { 16 } else { 24 };
    message[at + 3] = 7;
    message
}

#[test]
fn v1_02_a_version_one_server_says_so_of_whatever_is_in_version_two() {
    let stage = stage();
    let mut scene = Scene::new(&stage, one(Side::Server));
    for message in [
        call(Version::Two, 1),
        malformed(Version::Two),
        connprop(&DEFAULTS, &[]),
    ] {
        scene.tell(&message);
        let answer = scene.heard();
        assert_eq!((error_in(&answer), header(&answer).vers), (ONLY_ONE, 2));
    }
    // An empty CONNPROP is 24 octets: shorter than any message of version one.
    scene.tell(&connprop(&[], &[]));
    assert!(scene.said().is_none());
    assert_eq!(scene.engine.last_refusal(), Some(Reject::Short));
    scene.tell(&call(Version::One, 2));
    scene.called();
}

#[test]
fn v1_05_what_a_client_of_version_one_cannot_read_is_a_bad_reply() {
    let stage = stage();
    let mut scene = Scene::new(&stage, one(Side::Client));
    scene.call(1, 40);
    scene.heard();
    // Lists that cannot be walked: at a client that is a bad Reply (V1-05).
    scene.tell(&malformed(Version::One));
    assert!(scene.said().is_none());
    scene.tell(&reply(Version::One, 1, 1));
    assert!(matches!(scene.event(), Some(Event::Reply(_))));
}
