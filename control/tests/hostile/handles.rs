//! Handles of memory that is not there, not for this, or not the peer's (V1-10, V2-08, V2-19).
//!
//! RDMA that fails ends the connection; so does an invalidation of what is no handle. The second
//! time for the same peer and xid there is an error instead, so that it does not go on for ever.

use crate::scene::{GRANT, SERVICE, Scene};
use crate::support::octets::{
    NOMSG, One, Segment, Two, Version, WRITE_DATA, error, head, null, payload, read, segment,
    source, success, words, write,
};
use crate::support::peer::{Came, Peer};

const XID: u32 = 0x4A4D_0001;

/// A Call that makes the appliance use a segment, and what the peer gets for it.
type Uses = fn(Version, Segment) -> Vec<u8>;

fn reads(version: Version, from: Segment) -> Vec<u8> {
    let call = head(version, XID).read(WRITE_DATA, from);
    call.with(&write(XID, from.length))
}

fn reads_a_long_call(version: Version, from: Segment) -> Vec<u8> {
    let call = head(version, XID).procedure(NOMSG).read(0, from);
    call.with(&[])
}

fn writes(version: Version, to: Segment) -> Vec<u8> {
    let call = head(version, XID).write(&[to]);
    call.with(&read(XID, 0, to.length))
}

fn writes_a_long_reply(version: Version, to: Segment) -> Vec<u8> {
    let call = head(version, XID).reply(&[to]);
    call.with(&read(XID, 0, to.length - 28))
}

/// The connection ends; the same Call on the next one gets an error, and any other its answer.
fn ends_and_is_not_repeated(uses: Uses, memory: impl Fn(&mut Peer) -> Segment) {
    for version in [One, Two] {
        let mut scene = Scene::new();
        scene.peer.connect(SERVICE);
        scene.peer.greet(version, 1, GRANT);
        let bad = memory(&mut scene.peer);
        scene.peer.send(&uses(version, bad));
        assert_eq!(scene.peer.until_over(), Vec::<Vec<u8>>::new());
        scene.is_as_before();
        assert_eq!(scene.state().counter("work_closes"), 1);

        scene.peer.connect(SERVICE);
        scene.peer.greet(version, 2, GRANT);
        scene.peer.send(&uses(version, bad));
        let code = match version {
            One => 2,
            Two => 6,
        };
        let again = error(version.code(), XID, GRANT, &[code]);
        assert_eq!(scene.peer.answer(), again, "ERR_CHUNK or SYSTEM");
        scene.peer.greet(version, 3, GRANT);
        let state = scene.state();
        assert_eq!(state.counter("work_closes"), 1, "once was enough");
        assert_eq!(state.counter("calls_refused"), 1);
        scene.end();
    }
}

/// A segment that nobody ever had.
fn nowhere(_: &mut Peer) -> Segment {
    segment(0x0BAD_0BAD, 4096, 0)
}

#[test]
fn a_read_of_memory_that_is_not_there() {
    ends_and_is_not_repeated(reads, nowhere);
}

#[test]
fn a_long_call_in_memory_that_is_not_there() {
    ends_and_is_not_repeated(reads_a_long_call, nowhere);
}

#[test]
fn a_write_to_memory_that_is_not_there() {
    ends_and_is_not_repeated(writes, nowhere);
}

#[test]
fn a_long_reply_to_memory_that_is_not_there() {
    ends_and_is_not_repeated(writes_a_long_reply, |_| segment(0x0BAD_0BAD, 8192, 0));
}

#[test]
fn a_read_of_memory_that_may_be_written_alone() {
    ends_and_is_not_repeated(reads, |peer| peer.writable(4096).1);
}

#[test]
fn a_write_to_memory_that_may_be_read_alone() {
    ends_and_is_not_repeated(writes, |peer| peer.readable(&[1; 4096]));
}

#[test]
fn a_read_beyond_the_end() {
    ends_and_is_not_repeated(reads, |peer| peer.readable(&[1; 4096]).of(4100));
}

#[test]
fn a_read_before_the_beginning() {
    ends_and_is_not_repeated(reads, |peer| {
        let exposed = peer.readable(&[1; 4096]);
        segment(exposed.handle, 64, exposed.offset.wrapping_sub(64))
    });
}

#[test]
fn a_read_of_what_was_taken_back() {
    ends_and_is_not_repeated(reads, |peer| {
        let exposed = peer.readable(&[1; 4096]);
        peer.retire(exposed);
        exposed
    });
}

/// One peer names another one's memory: it is neither read nor written.
#[test]
fn memory_of_somebody_else() {
    let mut scene = Scene::new();
    let mut other = Peer::new(&scene.appliance);
    other.connect(SERVICE);
    other.greet(Two, 1, GRANT);
    let (span, theirs) = other.writable(4096);
    scene.peer.connect(SERVICE);
    scene.peer.greet(Two, 1, GRANT);
    scene.peer.send(&writes(Two, theirs));
    assert_eq!(scene.peer.until_over(), Vec::<Vec<u8>>::new());
    assert!(other.memory.see(span).iter().all(|&octet| octet == 0xEE));
    other.greet(Two, 2, GRANT);
    other.leave();
    scene.is_as_before();
}

/// A handle that its Call names, and that does not exist: the Reply's Send With Invalidate
/// fails, which ends the connection.
#[test]
fn a_handle_to_invalidate_that_does_not_exist() {
    let mut scene = Scene::new();
    scene.peer.connect(SERVICE);
    scene.peer.greet(Two, 1, GRANT);
    let call = head(Two, XID).invalidate(0x0BAD_0BAD);
    let call = call.write(&[segment(0x0BAD_0BAD, 4096, 0)]);
    scene.peer.send(&call.with(&null(XID)));
    assert_eq!(scene.peer.until_over(), Vec::<Vec<u8>>::new());
    assert_eq!(scene.state().counter("work_closes"), 1);
    scene.is_as_before();
}

/// A peer invalidates a handle that the appliance never gave it.
#[test]
fn an_invalidation_out_of_the_blue() {
    for handle in [0, 1, 0x0BAD_0BAD, u32::MAX] {
        let mut scene = Scene::new();
        scene.peer.connect(SERVICE);
        scene.peer.greet(Two, 1, GRANT);
        let calls = scene.state().counter("calls_in");
        let call = head(Two, XID).with(&null(XID));
        scene.peer.send_invalidating(&call, handle);
        assert_eq!(scene.peer.until_over(), Vec::<Vec<u8>>::new());
        assert_eq!(scene.state().counter("remote_invalidations"), 0);
        // The bystander may have called meanwhile: this Call never came.
        assert!(calls > 0);
        scene.is_as_before();
    }
}

/// READ of 64 octets by Write chunk.
fn read_by_chunk(peer: &mut Peer, head: crate::support::octets::Head) -> Came {
    peer.send(&head.with(&read(XID, 9, 64)));
    peer.next()
}

/// Version two: the handle that was named goes, and no other.
#[test]
fn what_was_named_is_invalidated_and_nothing_else() {
    let mut scene = Scene::new();
    scene.peer.connect(SERVICE);
    scene.peer.greet(Two, 1, GRANT);
    let (span, chunk) = scene.peer.writable(64);
    let call = head(Two, XID).write(&[chunk]);
    let came = read_by_chunk(&mut scene.peer, call.clone());
    assert_eq!(came.invalidated, None, "none was named");
    let came = read_by_chunk(&mut scene.peer, call.invalidate(chunk.handle));
    assert_eq!(came.invalidated, Some(chunk.handle));
    let reply = head(Two, XID).credits(GRANT).direction(1).write(&[chunk]);
    let body = [success(XID), words(&[64])].concat();
    assert_eq!(came.octets, reply.with(&body));
    assert_eq!(scene.peer.memory.see(span), source(9, 64));
    // It is gone: used once more it ends the connection.
    scene.peer.send(
        &head(Two, XID + 1)
            .write(&[chunk])
            .with(&read(XID + 1, 9, 64)),
    );
    scene.peer.until_over();
    scene.is_as_before();
}

/// Private data of RFC 8797: the magic, version 1, flags, 4096 octets each way.
fn private_data(invalidates: bool) -> Vec<u8> {
    [0xF6, 0xAB, 0x0E, 0x18, 1, u8::from(invalidates), 3, 3].to_vec()
}

/// Version one: the only handle of its Call, with both flags set (RFC 8797 section 4.1).
#[test]
fn version_one_invalidates_when_both_said_so() {
    for (private, agreed) in [
        (private_data(true), true),
        (private_data(false), false),
        (Vec::new(), false),
        // Magic and version are right, the rest is missing.
        (private_data(true)[..6].to_vec(), false),
        // Another version of the private data.
        ([0xF6, 0xAB, 0x0E, 0x18, 2, 1, 3, 3].to_vec(), false),
        // It need not stand at the beginning (5.2).
        ([&[9; 31], &private_data(true)[..]].concat(), true),
    ] {
        let mut scene = Scene::new();
        let answer = scene.peer.connect_with(SERVICE, 16, &private);
        assert_eq!(answer, private_data(true));
        scene.peer.greet(One, 1, GRANT);
        let (_, chunk) = scene.peer.writable(64);
        let call = head(One, XID).write(&[chunk]);
        let came = read_by_chunk(&mut scene.peer, call);
        let expected = agreed.then_some(chunk.handle);
        assert_eq!(came.invalidated, expected, "{private:x?}");
        scene.end();
    }
}

/// Version one: of two distinct handles neither goes.
#[test]
fn version_one_invalidates_none_of_two() {
    let mut scene = Scene::new();
    scene.peer.connect_with(SERVICE, 16, &private_data(true));
    scene.peer.greet(One, 1, GRANT);
    let data = payload(64, 3);
    let (readable, (_, writable)) = (scene.peer.readable(&data), scene.peer.writable(64));
    let call = head(One, XID).read(WRITE_DATA, readable).reply(&[writable]);
    scene.peer.send(&call.with(&write(XID, 64)));
    assert_eq!(scene.peer.next().invalidated, None);
    scene.end();
}
