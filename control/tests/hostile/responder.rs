//! What a hostile responder behind a back sends in place of Replies: errors, messages that are
//! none, another version, and nothing, at each point of a Call's life.

use crate::support::octets::{ERROR, One, error, head, payload, segment, success, words};
use crate::support::tcp::{nfs_null, nfs_read, nfs_write, nfs_write_reply};
use crate::upstream::{Upstream, XID, is_answered_after_all, waiting};

/// Octets of a READ or WRITE that goes by chunk.
const BYTES: u32 = 20_000;

/// Every error there is: the client is told, and its next Call is as good as any.
#[test]
fn errors_of_every_code() {
    let mut upstream = Upstream::new();
    let codes: [&[u32]; 5] = [&[1, 1, 2], &[2], &[4], &[5], &[6]];
    for (xid, code) in (XID..).zip(codes) {
        upstream.call(&nfs_null(xid));
        upstream.peer().send(&error(2, xid, 8, code));
        upstream.client_is_refused(xid);
    }
    let state = upstream.state();
    assert_eq!(state.counter("calls_failed"), 5);
    // The first one said that there are no properties.
    assert_eq!(state.counter("errors_in"), 1 + 5);
    upstream.end();
}

/// REPLY_RESOURCE has the Call go again with more room, once.
#[test]
fn room_without_end() {
    let mut upstream = Upstream::new();
    let asked = upstream.call(&nfs_read(XID, BYTES));
    let room = asked.result().length;
    upstream
        .peer()
        .send(&error(2, XID, 8, &[3, 1, room + 4096]));
    let again = upstream.next();
    assert_eq!((again.xid, again.result().length), (XID, room + 4096));
    upstream.peer().send(&error(2, XID, 8, &[3, 1, u32::MAX]));
    upstream.client_is_refused(XID);
    let state = upstream.state();
    assert_eq!(state.counter("upper_calls_enlarged"), 1);
    upstream.end();
}

/// Errors that cannot be read, or are about nothing, are dropped.
#[test]
fn errors_that_say_nothing() {
    let (mut upstream, asked) = waiting();
    let cut = words(&[XID, 2, 8, ERROR]);
    for (message, counter) in [
        (error(2, XID, 8, &[77]), "error-code"),
        (cut, "short"),
        (error(2, XID, 8, &[3, 1]), "error-truncated"),
        (error(2, XID, 8, &[2, 0, 0]), "error-trailing"),
        (error(2, XID + 9, 8, &[2]), "strays"),
    ] {
        let before = upstream.state().counter(counter);
        upstream.peer().send(&message);
        upstream.counts(counter, before + 1);
    }
    is_answered_after_all(upstream, &asked);
}

/// Messages that are none: dropped or answered, each counted, and the Call waits.
#[test]
fn garbage() {
    let (mut upstream, asked) = waiting();
    let reply = asked.answer().with(&success(XID));
    let messages = [
        Vec::new(),
        vec![0; 3],
        reply[..19].to_vec(),
        reply[..27].to_vec(),
        reply[..35].to_vec(),
        vec![0; 64],
        vec![0xFF; 64],
        payload(700, 9),
        // A Read list in a Reply, a list that goes on beyond the message.
        asked.answer().read(0, segment(1, 4, 0)).with(&success(XID)),
        words(&[XID, 2, 8, 0, 1, 0, 0, 1, 1_000, 7]),
    ];
    let mut refused = upstream.state().refused();
    for message in messages {
        upstream.peer().send(&message);
        refused += 1;
        upstream.scene.bystander.parked(|| {
            let what = format!("{} octets refused", message.len());
            let counted = |state: &crate::support::appliance::State| {
                (state.refused() >= refused).then_some(())
            };
            upstream.scene.appliance.until(&what, counted);
        });
        assert_eq!(upstream.state().refused(), refused, "{message:02x?}");
    }
    // Those that claim another version are told which there are; that is no Call for us.
    while upstream.peer().has_come() {
        let told = upstream.peer().answer();
        assert_eq!(told[12..16], words(&[ERROR]), "{told:02x?}");
    }
    is_answered_after_all(upstream, &asked);
}

/// V1-04: RDMA_DONE says nothing to anybody.
#[test]
fn done_in_version_one() {
    let mut upstream = Upstream::in_version_one();
    let asked = upstream.call(&nfs_null(XID));
    upstream.peer().send(&asked.answer().procedure(3).with(&[]));
    upstream.counts("done", 1);
    // MSGP is not spoken.
    let padded = asked.answer().procedure(2).with(&success(XID));
    upstream.peer().send(&padded);
    upstream.counts("msgp", 1);
    is_answered_after_all(upstream, &asked);
}

/// The one error of version one, and ERR_VERS in mid-connection.
#[test]
fn errors_in_version_one() {
    let mut upstream = Upstream::in_version_one();
    for (xid, code) in (XID..).zip([&[2_u32][..], &[1, 1, 1]]) {
        upstream.call(&nfs_null(xid));
        upstream.peer().send(&error(1, xid, 8, code));
        upstream.client_is_refused(xid);
    }
    upstream.end();
}

/// Another version in mid-connection (V2-24): a Call would be told which there are, a Reply is
/// dropped.
#[test]
fn a_reply_in_another_version() {
    let (mut upstream, asked) = waiting();
    let one = head(One, XID);
    upstream.peer().send(&one.with(&success(XID)));
    upstream.counts("strays", 1);
    is_answered_after_all(upstream, &asked);
}

#[test]
fn an_end_with_a_call_in_flight() {
    let (mut upstream, _) = waiting();
    upstream.peer().leave();
    assert_eq!(upstream.client.record(), None);
    upstream.scene.is_as_before();
}

/// Half of the result is written, and the message that says so never comes.
#[test]
fn an_end_in_the_middle_of_a_reply() {
    let mut upstream = Upstream::new();
    let asked = upstream.call(&nfs_read(XID, BYTES));
    upstream.peer().put(asked.result(), &payload(BYTES / 2, 3));
    upstream.peer().leave();
    assert_eq!(upstream.client.record(), None);
    upstream.scene.is_as_before();
}

/// V2-09: an end in place of an answer to the offer of version two. Its client is shown out; the
/// next one is spoken for in version one.
#[test]
fn an_end_in_place_of_a_version() {
    let mut upstream = Upstream::without_a_word();
    upstream.client.send(&nfs_null(XID));
    upstream.peer().answer();
    upstream.peer().leave();
    assert_eq!(upstream.client.record(), None);
    upstream.again_in_version_one();
    let asked = upstream.call(&nfs_null(XID));
    is_answered_after_all(upstream, &asked);
}

/// A client that loses patience: its Call is given up, and its memory is the appliance's again when the
/// connection is over.
#[test]
fn no_answer_at_all() {
    let mut upstream = Upstream::new();
    upstream.call(&nfs_write(XID, &payload(BYTES, 1)));
    upstream.client.close();
    upstream.counts("calls_cancelled", 1);
    upstream.peer().leave();
    upstream.scene.is_as_before();
}

/// A Reply to a Call that was given up is dropped, and its memory is free.
#[test]
fn an_answer_that_comes_too_late() {
    let mut upstream = Upstream::new();
    let asked = upstream.call(&nfs_write(XID, &payload(BYTES, 1)));
    upstream.client.close();
    upstream.counts("calls_cancelled", 1);
    let reply = asked.answer().with(&nfs_write_reply(XID, BYTES));
    upstream.peer().send(&reply);
    upstream.peer().until_over();
    upstream.scene.is_as_before();
}
