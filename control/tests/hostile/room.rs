//! Replies for which the peer offers too little room: an error, and the connection kept (V1-09,
//! V2-11, V2-20).

use crate::scene::{FORGETFUL, GRANT, SERVICE, Scene};
use crate::support::octets::{
    Head, One, Segment, Two, Version, error, head, read, segment, source, success, words,
};

const XID: u32 = 0x9000_0001;
/// What is read: more than fits inline.
const BYTES: u32 = 8192;
/// The whole Reply: header, length word, data.
const REPLY_BYTES: u32 = 24 + 4 + BYTES;

/// Reads with this header; what comes back is REPLY_RESOURCE with this segment and length, or
/// in version one ERR_CHUNK.
fn too_little(resource: (u32, u32), offer: impl Fn(Head) -> Head) {
    for version in [One, Two] {
        let mut scene = Scene::new();
        scene.peer.connect(SERVICE);
        scene.peer.greet(version, 1, GRANT);
        let before = scene.state();
        let call = offer(head(version, XID)).with(&read(XID, 5, BYTES));
        scene.peer.send(&call);
        assert_eq!(scene.peer.answer(), refusal(version, resource));
        scene.peer.greet(version, 2, GRANT);
        let after = scene.state();
        let rose = |name| after.counter(name) - before.counter(name);
        assert_eq!((rose("calls_refused"), rose("errors_out")), (1, 1));
        scene.end();
    }
}

fn refusal(version: Version, (segment, length): (u32, u32)) -> Vec<u8> {
    match version {
        One => error(1, XID, GRANT, &[2]),
        Two => error(2, XID, GRANT, &[3, segment, length]),
    }
}

/// Memory that nobody has: a Write there, in vain, would end the connection.
fn nowhere(length: u32) -> Segment {
    segment(0x0BAD_0BAD, length, 0)
}

#[test]
fn no_room_at_all() {
    too_little((0, 0), |head| head);
}

#[test]
fn a_reply_chunk_too_small() {
    too_little((1, REPLY_BYTES), |head| head.reply(&[nowhere(100)]));
}

#[test]
fn a_reply_chunk_too_small_by_one_octet() {
    let almost = REPLY_BYTES - 1;
    too_little((1, REPLY_BYTES), |head| head.reply(&[nowhere(almost)]));
}

#[test]
fn a_reply_chunk_too_small_in_two_segments() {
    let chunk = [nowhere(100), nowhere(200)];
    too_little((2, REPLY_BYTES - 100), |head| head.reply(&chunk));
}

/// V1-08: without segments it has no room, and there is none to name.
#[test]
fn a_reply_chunk_without_segments() {
    too_little((0, 0), |head| head.reply(&[]));
}

#[test]
fn a_write_chunk_too_small() {
    too_little((1, BYTES), |head| head.write(&[nowhere(100)]));
}

#[test]
fn a_write_chunk_too_small_in_two_segments() {
    let chunk = [nowhere(100), nowhere(0)];
    too_little((2, BYTES - 100), |head| head.write(&chunk));
}

/// "Return this result inline", where inline is too short for it, and nothing else is offered.
#[test]
fn a_write_chunk_without_segments() {
    too_little((0, 0), |head| head.write(&[]));
}

/// V2-20: the retry is answered from what was kept. The service runs nothing twice.
#[test]
fn a_retry_with_room_is_answered_from_what_was_kept() {
    let mut scene = Scene::new();
    scene.peer.connect(SERVICE);
    scene.peer.greet(Two, 1, GRANT);
    let before = scene.state();
    let body = read(XID, 5, BYTES);
    scene.peer.send(&head(Two, XID).with(&body));
    assert_eq!(scene.peer.answer(), refusal(Two, (0, 0)));
    let (span, chunk) = scene.peer.writable(REPLY_BYTES + 100);
    scene.peer.send(&head(Two, XID).reply(&[chunk]).with(&body));
    let written = [chunk.of(REPLY_BYTES)];
    let reply = head(Two, XID).credits(GRANT).procedure(1).direction(1);
    assert_eq!(scene.peer.answer(), reply.reply(&written).with(&[]));
    let whole = [success(XID), words(&[BYTES]), source(5, BYTES)].concat();
    let seen = scene.peer.memory.see(span);
    assert!(seen[..whole.len()] == whole, "the reply that was kept");
    assert!(seen[whole.len()..].iter().all(|&octet| octet == 0xEE));
    let after = scene.state();
    let rose = |name| after.counter(name) - before.counter(name);
    assert_eq!((rose("replies_kept"), rose("retries_answered")), (1, 1));
    scene.peer.retire(chunk);
    scene.is_as_in(&before);
    scene.end();
}

/// V2-20: what was not kept is not run a second time.
#[test]
fn a_retry_of_what_was_not_kept_gets_system() {
    let mut scene = Scene::new();
    scene.peer.connect(FORGETFUL);
    scene.peer.greet(Two, 1, GRANT);
    let body = read(XID, 5, BYTES);
    scene.peer.send(&head(Two, XID).with(&body));
    assert_eq!(scene.peer.answer(), refusal(Two, (0, 0)));
    let (before, after) = scene.alone(|peer, _| {
        let retry = head(Two, XID).reply(&[nowhere(REPLY_BYTES)]);
        peer.send(&retry.with(&body));
        assert_eq!(peer.answer(), error(2, XID, GRANT, &[6]));
    });
    assert_eq!(after.counter("calls_in"), before.counter("calls_in"));
    scene.peer.greet(Two, 2, GRANT);
    scene.end();
}

/// As many replies as are asked for in vain, and no more memory held than for a few of them.
#[test]
fn replies_kept_are_bounded() {
    let mut scene = Scene::new();
    scene.peer.connect(SERVICE);
    scene.peer.greet(Two, 1, GRANT);
    let before = scene.state().in_use()["memory_bytes"];
    for xid in XID..XID + 100 {
        scene.peer.send(&head(Two, xid).with(&read(xid, 0, BYTES)));
        assert_eq!(scene.peer.answer(), error(2, xid, GRANT, &[3, 0, 0]));
    }
    let after = scene.state().in_use()["memory_bytes"];
    assert!(after - before <= 64 << 10, "{} octets", after - before);
    scene.end();
}
