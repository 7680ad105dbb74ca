//! Replies of a hostile responder behind a back: to no Call, with chunks and lengths that do not fit
//! it, with memory touched that was not given for that, with other credits than it has.
//!
//! What cannot be believed is dropped and counted (V1-05), and the Call waits for a Reply that can;
//! what touches memory it must not ends the connection, so that the client calls again on another.

use crate::support::octets::{NOMSG, Segment, call, payload, segment, success, words};
use crate::support::tcp::{nfs_null, nfs_read, nfs_read_reply, nfs_write};
use crate::upstream::{Asked, Upstream, XID, is_answered_after_all, waiting};

/// Octets of a READ whose result goes by Write chunk.
const BYTES: u32 = 20_000;
/// A program without a binding: its Replies get a Reply chunk.
const UNBOUND: u32 = 400_000;

/// READ3resok up to its data, which was written.
fn read_head(bytes: u32) -> Vec<u8> {
    [success(XID), words(&[0, 0, bytes, 1, bytes])].concat()
}

/// Writes the result of a READ and answers with these chunks.
fn answer_read(upstream: &mut Upstream, asked: &Asked, chunk: &[Segment], body: &[u8]) {
    let reply = asked.answer().write(chunk).with(body);
    upstream.peer().send(&reply);
}

/// A READ that waits, whose result has been written.
fn reading() -> (Upstream, Asked) {
    let mut upstream = Upstream::new();
    let asked = upstream.call(&nfs_read(XID, BYTES));
    let result = asked.result();
    assert_eq!(asked.invalidate, result.handle);
    upstream.peer().put(result, &payload(BYTES, 3));
    (upstream, asked)
}

fn is_read_after_all(mut upstream: Upstream, asked: &Asked) {
    let chunk = [asked.result().of(BYTES)];
    answer_read(&mut upstream, asked, &chunk, &read_head(BYTES));
    upstream.client_gets(&nfs_read_reply(XID, &payload(BYTES, 3)));
    upstream.end();
}

#[test]
fn replies_to_no_call() {
    let (mut upstream, asked) = waiting();
    for xid in [XID + 1, 0, u32::MAX] {
        let stray = asked.as_of(xid).answer().with(&success(xid));
        upstream.peer().send(&stray);
    }
    upstream.counts("strays", 3);
    is_answered_after_all(upstream, &asked);
}

#[test]
fn the_same_reply_twice() {
    let (mut upstream, asked) = waiting();
    let reply = asked.answer().with(&success(XID));
    upstream.peer().send(&reply);
    upstream.client_gets(&success(XID));
    upstream.peer().send(&reply);
    upstream.counts("strays", 1);
    let next = upstream.call(&nfs_null(XID + 1));
    upstream.peer().send(&next.answer().with(&success(XID + 1)));
    upstream.client_gets(&success(XID + 1));
    upstream.end();
}

#[test]
fn a_header_for_one_call_with_the_reply_to_another() {
    let (mut upstream, asked) = waiting();
    upstream
        .peer()
        .send(&asked.answer().with(&success(XID + 1)));
    upstream.counts("xid-mismatch", 1);
    is_answered_after_all(upstream, &asked);
}

#[test]
fn chunks_that_were_not_offered() {
    let (mut upstream, asked) = waiting();
    let chunk = [segment(0x0BAD_0BAD, 64, 0)];
    let replies = [
        asked.answer().write(&chunk).with(&success(XID)),
        asked.answer().write(&[]).with(&success(XID)),
        asked.answer().reply(&chunk).with(&success(XID)),
        asked.answer().procedure(NOMSG).reply(&chunk).with(&[]),
    ];
    for reply in &replies {
        upstream.peer().send(reply);
    }
    upstream.counts("bad_replies", 4);
    is_answered_after_all(upstream, &asked);
}

#[test]
fn more_written_than_there_was_room_for() {
    let (mut upstream, asked) = reading();
    let result = asked.result();
    let chunks: [&[Segment]; 4] = [
        &[result.of(result.length + 1)],
        &[result.of(1 << 20)],
        &[result, result],
        &[],
    ];
    for chunk in chunks {
        answer_read(&mut upstream, &asked, chunk, &read_head(BYTES));
    }
    upstream.counts("bad_replies", 4);
    // More than any Reply may have is refused before that.
    let most = [result.of(u32::MAX)];
    answer_read(&mut upstream, &asked, &most, &read_head(BYTES));
    upstream.counts("reply-bytes", 1);
    // Without its Write list, too.
    upstream
        .peer()
        .send(&asked.answer().with(&read_head(BYTES)));
    upstream.counts("bad_replies", 5);
    is_read_after_all(upstream, &asked);
}

#[test]
fn another_length_than_was_written() {
    for said in [BYTES - 1, BYTES + 4] {
        let (mut upstream, asked) = reading();
        let chunk = [asked.result().of(BYTES)];
        answer_read(&mut upstream, &asked, &chunk, &read_head(said));
        upstream.client_is_refused(XID);
        assert_eq!(upstream.state().counter("upper_local_errors"), 1);
        upstream.end();
    }
}

#[test]
fn a_long_reply_that_is_none() {
    let mut upstream = Upstream::new();
    let asked = upstream.call(&call(XID, UNBOUND, 1, 1));
    let chunk = asked.lists.reply.clone().expect("a Reply chunk");
    upstream.peer().put(chunk[0], &[0xEE; 5000]);
    let reply = asked.answer().procedure(NOMSG);
    upstream
        .peer()
        .send(&reply.reply(&[chunk[0].of(5000)]).with(&[]));
    upstream.client_is_refused(XID);
    assert_eq!(upstream.state().counter("bad_replies"), 1);
    assert_eq!(upstream.state().counter("calls_failed"), 1);
    upstream.end();
}

/// More is written than the memory that was offered has: the device lets nothing of it in.
#[test]
fn a_write_beyond_the_chunk() {
    let mut upstream = Upstream::new();
    let asked = upstream.call(&nfs_read(XID, BYTES));
    let result = asked.result();
    let beyond = vec![0xEE; result.length as usize + 4];
    upstream.peer().put(result, &beyond);
    upstream.both_end();
}

#[test]
fn a_write_to_what_may_be_read_alone() {
    let mut upstream = Upstream::new();
    let asked = upstream.call(&nfs_write(XID, &payload(BYTES, 1)));
    let (_, data) = asked.lists.reads[0];
    upstream.peer().put(data, &[0xEE; 64]);
    upstream.both_end();
}

/// V2-19: one that is not the one that was named, and one that belongs to another Call than the
/// Reply's.
#[test]
fn handles_invalidated_that_were_not_to_be() {
    for stray in [false, true] {
        let mut upstream = Upstream::new();
        // A Call that does not fit a message: it is exposed, and so is room for its Reply.
        let long = [call(XID, UNBOUND, 1, 1), payload(8192, 1)].concat();
        let asked = upstream.call(&long);
        let read = asked.lists.reads[0].1.handle;
        let reply = asked.lists.reply.clone().expect("a Reply chunk")[0];
        let other = if asked.invalidate == read {
            reply.handle
        } else {
            read
        };
        let (xid, handle) = match stray {
            false => (XID, other),
            true => (XID + 1, asked.invalidate),
        };
        let header = asked.as_of(xid).answer();
        let header = if stray {
            header
        } else {
            header.reply(&[reply.of(0)])
        };
        upstream
            .peer()
            .send_invalidating(&header.with(&success(xid)), handle);
        upstream.counts("protocol_closes", 1);
        upstream.both_end();
    }
}

#[test]
fn a_handle_invalidated_that_nobody_has() {
    let (mut upstream, asked) = waiting();
    let reply = asked.answer().with(&success(XID));
    upstream.peer().send_invalidating(&reply, 0x0BAD_0BAD);
    upstream.both_end();
}

/// Section 4 of RFC 8166: a grant of zero counts as one.
#[test]
fn no_credits() {
    let mut upstream = Upstream::new();
    for xid in XID..XID + 4 {
        upstream.client.send(&nfs_null(xid));
    }
    for xid in XID..XID + 4 {
        let asked = upstream.next();
        assert_eq!(asked.xid, xid);
        let reply = asked.answer().credits(0).with(&success(xid));
        upstream.peer().send(&reply);
        upstream.client_gets(&success(xid));
    }
    upstream.end();
}

/// More than was asked for is no more than that.
#[test]
fn credits_without_end() {
    let mut upstream = Upstream::new();
    let asked = upstream.call(&nfs_null(XID));
    let reply = asked.answer().credits(u32::MAX).with(&success(XID));
    upstream.peer().send(&reply);
    upstream.client_gets(&success(XID));
    let calls = XID + 1..XID + 13;
    for xid in calls.clone() {
        upstream.client.send(&nfs_null(xid));
    }
    for xid in calls {
        let asked = upstream.next();
        let reply = asked.answer().credits(u32::MAX).with(&success(asked.xid));
        upstream.peer().send(&reply);
        upstream.client_gets(&success(xid));
    }
    upstream.end();
}
