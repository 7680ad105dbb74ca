//! Calls in wrong numbers: more than were granted, the same one twice, updates without end. And
//! backends that misbehave while calls are with them.

use crate::scene::{FRONT, GRANT, SERVICE, Scene};
use crate::support::octets::{One, Two, Version, head, success, words};
use crate::support::tcp::{Server, Stream, nfs_null};
use crate::support::until;

const XID: u32 = 0xCA11_0000;

/// A Call through the front that its backend has got.
fn begun(version: Version) -> (Scene, Server, Stream) {
    let server = Server::new();
    let mut scene = Scene::with_backend(server.address());
    scene.peer.connect(FRONT);
    scene.peer.send(&head(version, XID).with(&nfs_null(XID)));
    let mut stream = server.accept();
    assert_eq!(stream.record(), Some(nfs_null(XID)));
    (scene, server, stream)
}

/// The Reply of [`begun`]'s Call, or of one like it.
fn reply(version: Version, xid: u32) -> Vec<u8> {
    let direction = u32::from(version == Two);
    let reply = head(version, xid).credits(GRANT).direction(direction);
    reply.with(&success(xid))
}

/// V2-24.
#[test]
fn more_calls_than_credits() {
    for version in [One, Two] {
        let (mut scene, _server, mut stream) = begun(version);
        for xid in XID + 1..XID + GRANT {
            scene.peer.send(&head(version, xid).with(&nfs_null(xid)));
            assert_eq!(stream.record(), Some(nfs_null(xid)));
        }
        let closes = scene.state().counter("protocol_closes");
        assert!(!scene.peer.is_over(), "as many as were granted");
        let one_more = XID + GRANT;
        scene
            .peer
            .send(&head(version, one_more).with(&nfs_null(one_more)));
        assert_eq!(scene.peer.until_over(), Vec::<Vec<u8>>::new());
        assert_eq!(stream.record(), None, "its backend's connection goes too");
        assert_eq!(scene.state().counter("protocol_closes"), closes + 1);
        scene.is_as_before();
    }
}

/// V2-24: the second one is dropped, and the first one answered once.
#[test]
fn the_same_call_twice() {
    for version in [One, Two] {
        let (mut scene, _server, mut stream) = begun(version);
        scene.peer.send(&head(version, XID).with(&nfs_null(XID)));
        scene.appliance.until_counter("duplicate_calls", 1);
        let next = XID + 1;
        scene.peer.send(&head(version, next).with(&nfs_null(next)));
        assert_eq!(stream.record(), Some(nfs_null(next)), "no duplicate came");
        stream.send(&success(XID));
        assert_eq!(scene.peer.answer(), reply(version, XID));
        stream.send(&success(next));
        assert_eq!(scene.peer.answer(), reply(version, next));
        // Once it is answered, the xid is as good as any other.
        scene.peer.send(&head(version, XID).with(&nfs_null(XID)));
        assert_eq!(stream.record(), Some(nfs_null(XID)));
        stream.send(&success(XID));
        assert_eq!(scene.peer.answer(), reply(version, XID));
        assert_eq!(scene.state().counter("duplicate_calls"), 1);
        scene.end();
    }
}

/// Replies come in the backend's order, each to the Call with its xid.
#[test]
fn answers_in_another_order() {
    let (mut scene, _server, mut stream) = begun(Two);
    scene
        .peer
        .send(&head(Two, XID + 1).with(&nfs_null(XID + 1)));
    assert_eq!(stream.record(), Some(nfs_null(XID + 1)));
    for xid in [XID + 1, XID] {
        stream.send(&success(xid));
        assert_eq!(scene.peer.answer(), reply(Two, xid));
    }
    scene.end();
}

/// V2-13: beyond the rate the connection ends.
#[test]
fn updates_without_end() {
    let mut scene = Scene::new();
    scene.peer.connect(SERVICE);
    scene.peer.greet(Two, 1, GRANT);
    let update = words(&[XID, 2, 8, 9, 1, 2, 4, 0]);
    // Sixteen a second are borne: the tick of the clock may let a few more through.
    until("the end of patience", || {
        let over = scene.peer.is_over();
        if !over {
            scene.peer.offer(&update);
        }
        over.then_some(())
    });
    assert_eq!(scene.peer.until_over(), Vec::<Vec<u8>>::new());
    assert_eq!(scene.state().counter("protocol_closes"), 1);
    scene.is_as_before();
}

/// A backend that answers what nobody asked does no harm; one that sends no RPC at all is left.
#[test]
fn a_backend_that_makes_things_up() {
    let (mut scene, _server, mut stream) = begun(Two);
    stream.send(&success(XID + 77));
    stream.send(&success(XID));
    assert_eq!(scene.peer.answer(), reply(Two, XID));
    assert_eq!(scene.state().counter("upper_unknown_replies"), 1);
    scene
        .peer
        .send(&head(Two, XID + 1).with(&nfs_null(XID + 1)));
    assert_eq!(stream.record(), Some(nfs_null(XID + 1)));
    stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n\r\n");
    assert_eq!(scene.peer.until_over(), Vec::<Vec<u8>>::new());
    assert_eq!(stream.record(), None);
    scene.is_as_before();
}

/// The client's way to learn that a backend is gone is that its connection is.
#[test]
fn a_backend_that_goes_away_with_calls() {
    let (mut scene, _server, stream) = begun(Two);
    stream.close();
    assert_eq!(scene.peer.until_over(), Vec::<Vec<u8>>::new());
    assert_eq!(scene.state().counter("upper_backends_lost"), 1);
    scene.is_as_before();
}

#[test]
fn a_backend_that_is_not_there() {
    let address = Server::new().address();
    let mut scene = Scene::with_backend(address);
    scene.peer.connect(FRONT);
    scene.peer.send(&head(Two, XID).with(&nfs_null(XID)));
    assert_eq!(scene.peer.until_over(), Vec::<Vec<u8>>::new());
    assert_eq!(scene.state().counter("upper_backends_unreachable"), 1);
    scene.is_as_before();
}
