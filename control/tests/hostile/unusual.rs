//! What looks wrong and is not: it is answered, octet for octet, and nothing is counted against
//! the peer.

use crate::scene::{GRANT, SERVICE, Scene};
use crate::support::octets::{
    Head, NOMSG, One, Two, Version, WRITE_DATA, head, null, payload, read, segment, source,
    success, sum, words, write,
};

const XID: u32 = 0x0DD0_0001;

/// Sends a message on a connection of its version, and looks at what comes back.
fn answered(
    version: Version,
    call: impl FnOnce(&mut Scene) -> Vec<u8>,
    reply: impl FnOnce(&mut Scene) -> Vec<u8>,
) {
    let mut scene = Scene::new();
    scene.peer.connect(SERVICE);
    scene.peer.greet(version, 1, GRANT);
    let before = scene.state();
    let call = call(&mut scene);
    scene.peer.send(&call);
    let answer = scene.peer.answer();
    assert_eq!(answer, reply(&mut scene), "version {}", version.code());
    scene.peer.greet(version, 2, GRANT);
    let after = scene.state();
    assert_eq!(after.refused(), before.refused(), "nothing is refused");
    assert_eq!(
        after.counter("calls_refused"),
        before.counter("calls_refused")
    );
    scene.end();
}

/// A Reply's header as the appliance makes it.
fn reply(version: Version) -> Head {
    let direction = u32::from(version == Two);
    head(version, XID).credits(GRANT).direction(direction)
}

/// Eight octets of the source by READ, inline.
fn eight_octets() -> Vec<u8> {
    [success(XID), words(&[8]), source(3, 8)].concat()
}

#[test]
fn a_request_for_no_credits() {
    for version in [One, Two] {
        answered(
            version,
            |_| head(version, XID).credits(0).with(&null(XID)),
            |_| reply(version).with(&success(XID)),
        );
    }
}

#[test]
fn a_request_for_all_credits_there_are() {
    for version in [One, Two] {
        answered(
            version,
            |_| head(version, XID).credits(u32::MAX).with(&null(XID)),
            |_| reply(version).with(&success(XID)),
        );
    }
}

/// V1-07: "return this result inline".
#[test]
fn a_write_chunk_without_segments() {
    for version in [One, Two] {
        answered(
            version,
            |_| head(version, XID).write(&[]).with(&read(XID, 3, 8)),
            |_| reply(version).write(&[]).with(&eight_octets()),
        );
    }
}

/// V1-08: a Reply that does not need it is sent inline.
#[test]
fn a_reply_chunk_without_segments() {
    for version in [One, Two] {
        answered(
            version,
            |_| head(version, XID).reply(&[]).with(&null(XID)),
            |_| reply(version).reply(&[]).with(&success(XID)),
        );
    }
}

/// Chunks that are not needed come back with nothing in them; whether there is memory behind
/// them does not matter then.
#[test]
fn chunks_that_nobody_needs() {
    let (first, second) = (segment(0xBAD1, 64, 4096), segment(0xBAD2, 128, 1 << 40));
    for version in [One, Two] {
        answered(
            version,
            |_| {
                let call = head(version, XID).write(&[first, second]).reply(&[second]);
                call.with(&null(XID))
            },
            |_| {
                let chunk = [first.of(0), second.of(0)];
                let reply = reply(version).write(&chunk).reply(&[second.of(0)]);
                reply.with(&success(XID))
            },
        );
    }
}

/// V1-06: segments of one chunk need not stand together, nor chunks in order.
#[test]
fn one_chunk_in_pieces() {
    let data = payload(300, 1);
    for version in [One, Two] {
        answered(
            version,
            |scene| {
                let (first, second) = data.split_at(100);
                let (first, second) = (scene.peer.readable(first), scene.peer.readable(second));
                let call = head(version, XID).read(WRITE_DATA, first);
                call.read(WRITE_DATA, second).with(&write(XID, 300))
            },
            |_| {
                let results = words(&[300, sum(&data)]);
                reply(version).with(&[success(XID), results].concat())
            },
        );
    }
}

/// A long Call whose data is a chunk of its own, inside the one at position zero.
#[test]
fn a_chunk_inside_a_long_call() {
    let data = payload(1000, 2);
    for version in [One, Two] {
        answered(
            version,
            |scene| {
                let body = scene.peer.readable(&write(XID, 1000));
                let data = scene.peer.readable(&data);
                let call = head(version, XID).procedure(NOMSG).read(WRITE_DATA, data);
                call.read(0, body).with(&[])
            },
            |_| {
                let results = words(&[1000, sum(&data)]);
                reply(version).with(&[success(XID), results].concat())
            },
        );
    }
}

/// A property message of version two: what stands behind its fixed header.
fn property(procedure: u32, body: &[u32]) -> Vec<u8> {
    words(&[&[XID, 2, 8, procedure], body].concat())
}

/// What comes back, but for xid and credits, which are the appliance's own.
fn property_answer(scene: &mut Scene, message: &[u8]) -> Vec<u8> {
    scene.peer.send(message);
    scene.peer.answer().split_off(12)
}

#[test]
fn properties_that_nobody_knows() {
    let mut scene = Scene::new();
    scene.peer.connect(SERVICE);
    let unknown = property(
        6,
        &[2, 0xFFFF_FF17, 5, 0x6161_6161, 0x6100_0000, 99, 0, 1, 3],
    );
    // Receives of 4096 octets, backward Calls inline; neither is fixed.
    let own = words(&[6, 2, 1, 4, 4096, 2, 4, 1, 0]);
    assert_eq!(property_answer(&mut scene, &unknown), own);
    let wanted = property(7, &[3, 99, 0, 1, 4, 2048, 0xFFFF_FF00, 4, 7]);
    // The second is done, the first and the third are not.
    let response = words(&[8, 1, 0b010, 1, 0b101, 0]);
    assert_eq!(property_answer(&mut scene, &wanted), response);
    scene.peer.send(&property(9, &[1, 0xFFFF_FFFF, 0]));
    scene.peer.greet(Two, 2, GRANT);
    assert_eq!(scene.state().refused(), 0);
    scene.end();
}

/// V2-21: a larger receive than there is gets the largest.
#[test]
fn a_wish_for_receives_of_four_gibibytes() {
    let mut scene = Scene::new();
    scene.peer.connect(SERVICE);
    scene.peer.greet(Two, 1, GRANT);
    let wanted = property(7, &[1, 1, 4, u32::MAX]);
    let response = words(&[8, 1, 0, 1, 0, 1, 1, 4, 4096]);
    assert_eq!(property_answer(&mut scene, &wanted), response);
    scene.end();
}

/// V2-13: one CONNPROP a side.
#[test]
fn a_second_announcement() {
    let mut scene = Scene::new();
    scene.peer.connect(SERVICE);
    property_answer(&mut scene, &property(6, &[1, 1, 4, 8192, 0]));
    scene.peer.send(&property(6, &[1, 1, 4, 1024, 0]));
    scene.peer.greet(Two, 2, GRANT);
    assert_eq!(scene.state().counter("properties_ignored"), 1);
    scene.end();
}
