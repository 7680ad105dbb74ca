//! A peer that leaves, at each point of a call's life. Nothing of it stays behind.
//!
//! A peer without receives stops the appliance wherever it likes: the first Send to it waits
//! for ever, and everything posted after that waits behind it.

use crate::scene::{FRONT, GRANT, SERVICE, Scene};
use crate::support::octets::{Two, WRITE_DATA, head, null, payload, read, success, word, write};
use crate::support::peer::Peer;
use crate::support::tcp::{Server, Stream, framed, nfs_null, nfs_read, nfs_read_reply};

const XID: u32 = 0x1EAF_0000;

#[test]
fn before_the_connection_stands() {
    let mut scene = Scene::new();
    for _ in 0..8 {
        scene.peer.ask(SERVICE, 16, &[]);
        scene.peer.leave();
    }
    scene.is_as_before();
}

#[test]
fn as_soon_as_the_connection_stands() {
    let mut scene = Scene::new();
    for _ in 0..8 {
        scene.peer.connect(SERVICE);
        scene.peer.leave();
    }
    scene.is_as_before();
}

#[test]
fn after_the_send() {
    let mut scene = Scene::new();
    for _ in 0..8 {
        scene.peer.connect(SERVICE);
        for xid in 1..=GRANT {
            scene.peer.send(&head(Two, xid).with(&null(xid)));
        }
        scene.peer.leave();
        scene.is_as_before();
    }
}

/// A connection with a Reply that waits for a receive, and a Call behind that. Returns once the
/// lcore has posted work for it (`counter` says so); how many Calls were handed up till then.
fn stuck(scene: &mut Scene, counter: &str, call: impl FnOnce(&mut Peer) -> Vec<u8>) -> u64 {
    scene.peer.connect_with(SERVICE, 0, &[]);
    let (before, after) = scene.alone(|peer, appliance| {
        let posted = appliance.state().counter(counter);
        peer.send(&head(Two, XID).with(&null(XID)));
        let call = call(peer);
        peer.send(&call);
        appliance.until_counter(counter, posted + 1);
    });
    after.counter("calls_in") - before.counter("calls_in")
}

#[test]
fn while_reads_are_outstanding() {
    let mut scene = Scene::new();
    let handed_up = stuck(&mut scene, "reads", |peer| {
        let data = peer.readable(&payload(5000, 1));
        let call = head(Two, XID + 1).read(WRITE_DATA, data);
        call.with(&write(XID + 1, 5000))
    });
    assert_eq!(handed_up, 1, "the data has not come");
    scene.peer.leave();
    scene.is_as_before();
}

#[test]
fn while_writes_are_outstanding() {
    let mut scene = Scene::new();
    stuck(&mut scene, "writes", |peer| {
        let (_, chunk) = peer.writable(5000);
        head(Two, XID + 1)
            .write(&[chunk])
            .with(&read(XID + 1, 0, 5000))
    });
    scene.peer.leave();
    scene.is_as_before();
}

#[test]
fn while_a_long_reply_is_being_written() {
    let mut scene = Scene::new();
    stuck(&mut scene, "writes", |peer| {
        let (_, chunk) = peer.writable(6000);
        head(Two, XID + 1)
            .reply(&[chunk])
            .with(&read(XID + 1, 0, 5000))
    });
    scene.peer.leave();
    scene.is_as_before();
}

#[test]
fn while_replies_wait_for_a_receive() {
    let mut scene = Scene::new();
    let mut xids = XID + 1..XID + 32;
    let handed_up = stuck(&mut scene, "replies_out", |peer| {
        // A Call that is answered has given its credit back, reply received or not.
        let last = xids.next_back().expect("many");
        for xid in xids {
            peer.send(&head(Two, xid).with(&null(xid)));
        }
        head(Two, last).with(&null(last))
    });
    assert!(handed_up >= 1);
    scene.peer.leave();
    scene.is_as_before();
}

/// What waits is not lost either: with receives posted late, everything comes, in order.
#[test]
fn not_at_all_but_slow() {
    let mut scene = Scene::new();
    stuck(&mut scene, "writes", |peer| {
        let (_, chunk) = peer.writable(5000);
        head(Two, XID + 1)
            .write(&[chunk])
            .with(&read(XID + 1, 0, 5000))
    });
    scene.peer.post(16);
    for xid in [XID, XID + 1] {
        assert_eq!(word(&scene.peer.answer(), 0), xid);
    }
    scene.peer.greet(Two, 1, GRANT);
    scene.end();
}

#[test]
fn before_the_reply_is_looked_at() {
    let mut scene = Scene::new();
    scene.peer.connect(SERVICE);
    let (before, after) = scene.alone(|peer, appliance| {
        let before = appliance.state().counter("replies_out");
        peer.send(&head(Two, XID).with(&null(XID)));
        appliance.until_counter("replies_out", before + 1);
    });
    assert_eq!(after.counter("calls_in"), before.counter("calls_in") + 1);
    scene.peer.leave();
    scene.is_as_before();
}

/// A Call that a backend has got, of a peer at the front.
fn with_the_backend(call: &[u8]) -> (Scene, Server, Stream) {
    let server = Server::new();
    let mut scene = Scene::with_backend(server.address());
    scene.peer.connect(FRONT);
    let (_, chunk) = scene.peer.writable(100_000);
    scene.peer.send(&head(Two, XID).write(&[chunk]).with(call));
    let mut stream = server.accept();
    assert_eq!(stream.record().as_deref(), Some(call));
    (scene, server, stream)
}

#[test]
fn while_the_backend_is_connected_to() {
    let server = Server::new();
    let mut scene = Scene::with_backend(server.address());
    scene.peer.connect(FRONT);
    scene.peer.send(&head(Two, XID).with(&nfs_null(XID)));
    scene.peer.leave();
    scene.is_as_before();
    // If the connection was made at all, nobody is at its other end.
    if let Some(mut stream) = server.accepted() {
        while stream.record().is_some() {}
    }
}

#[test]
fn while_the_backend_works() {
    let (mut scene, _server, mut stream) = with_the_backend(&nfs_null(XID));
    scene.peer.leave();
    assert_eq!(stream.record(), None, "the backend learns of it");
    scene.is_as_before();
}

#[test]
fn while_the_backend_answers() {
    let record = framed(&nfs_read_reply(XID, &payload(90_000, 5)));
    for sent in [1, 4, 20, 60, 2000, 80_000, record.len() - 1] {
        let (mut scene, _server, mut stream) = with_the_backend(&nfs_read(XID, 90_000));
        stream.write_raw(&record[..sent]);
        scene.peer.leave();
        assert_eq!(stream.record(), None);
        scene.is_as_before();
    }
}

#[test]
fn as_the_answer_of_the_backend_comes() {
    let (mut scene, _server, mut stream) = with_the_backend(&nfs_read(XID, 90_000));
    stream.send(&nfs_read_reply(XID, &payload(90_000, 5)));
    scene.peer.leave();
    assert_eq!(stream.record(), None);
    scene.is_as_before();
}

/// Its whole port goes: what a process that dies looks like.
#[test]
fn together_with_its_port() {
    let (mut scene, _server, mut stream) = with_the_backend(&nfs_read(XID, 90_000));
    scene.peer = Peer::new(&scene.appliance);
    assert_eq!(stream.record(), None);
    scene.is_as_before();
    scene.peer.connect(SERVICE);
    scene.peer.send(&head(Two, XID).with(&null(XID)));
    let reply = head(Two, XID).credits(GRANT).direction(1);
    assert_eq!(scene.peer.answer(), reply.with(&success(XID)));
    scene.end();
}
