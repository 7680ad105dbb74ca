//! What may arrive before what, and what belongs together: sections 6.6 and 10.

use super::out;
use crate::support::*;
use rpcrdma_fabric::{Refused, WorkId};
use rpcrdma_iwarp::session::WINDOW;
use rpcrdma_iwarp::{End, Flow, Misstep, Phase, Reject, StreamId};

/// Nothing follows the Initiate before the peer has answered it.
#[test]
fn section_6_6_nothing_overtakes_the_initiate() {
    let mut pair = Pair::new();
    pair.a.bind(S);
    pair.a.association.initiate(S, b"", true).unwrap();
    let endpoint = pair.a.endpoint();
    let refused = endpoint.send(&[], None, false, WorkId(1));
    assert_eq!(refused, Err(Refused::Broken));
    let initiate = out(&mut pair.a);
    pair.a.end(S);
    assert_eq!(pair.a.phase(), Phase::Abandoned);
    // Not even when it has arrived: a Terminate here is no legal sequence.
    pair.a.association.dry();
    assert_eq!(out(&mut pair.a), []);
    pair.b.receive(&initiate[0]);
    pair.b.bind(S);
    pair.b.association.accept(S, b"").unwrap();
    pair.exchange();
    assert_eq!(pair.a.heard(), [Told::Ended(End::Local)]);
    assert_eq!(pair.b.heard()[1..], [Told::Ended(End::Peer)]);
    assert_eq!(pair.a.phase(), Phase::Closed);
}

/// And where the peer's whole session has come before its Accept.
#[test]
fn section_6_6_an_abandoned_session_that_is_over_already() {
    let mut side = Side::new(1, 1);
    side.bind(S);
    side.association.initiate(S, b"", false).unwrap();
    side.pump();
    side.out.chunks.clear();
    side.end(S);
    side.receive(&control(2, 4, b""));
    side.receive(&untagged(1, 3, true, (0, 1, 0), b""));
    assert_eq!(side.phase(), Phase::Abandoned);
    side.receive(&control(0, 2, b""));
    assert_eq!(side.phase(), Phase::Closed);
    assert_eq!(out(&mut side), [control(1, 4, b"")]);
    assert_eq!(side.heard(), [Told::Ended(End::Local)]);
    side.association.dry();
    assert_eq!(side.phase(), Phase::Idle);
}

/// Also where the session is over before the Initiate could be sent.
#[test]
fn section_6_6_terminate_waits_for_an_initiate_that_waited() {
    let mut side = Side::new(1, 1);
    side.bind(S);
    side.association.initiate(S, b"", true).unwrap();
    side.out.room = 0;
    assert_eq!(side.pump(), Flow::Busy);
    side.receive(&chunk(99, 0, b""));
    assert_eq!(side.heard(), [Told::Ended(End::Reject(Reject::Ppid))]);
    side.out.room = usize::MAX;
    assert_eq!(out(&mut side), [control(0, 5, &[0, 4, 0, 4])]);
    side.association.dry();
    assert_eq!(out(&mut side), [control(1, 4, b"")]);
}

/// Nothing follows the Accept before it is known to have arrived.
#[test]
fn section_6_6_nothing_overtakes_the_accept() {
    let accepted = || {
        let mut pair = Pair::new();
        pair.a.bind(S);
        pair.a.association.initiate(S, b"", true).unwrap();
        pair.exchange();
        pair.b.bind(S);
        pair.b.association.accept(S, b"").unwrap();
        pair.b.endpoint().send(&[], None, false, WorkId(1)).unwrap();
        assert_eq!(out(&mut pair.b).len(), 1);
        assert_eq!(pair.b.pump(), Flow::Idle);
        assert_eq!(pair.b.out.chunks, []);
        pair
    };
    // An acknowledgement says so.
    let mut pair = accepted();
    pair.b.association.dry();
    assert_eq!(out(&mut pair.b).len(), 1);
    // Or a segment of the peer's.
    let mut pair = accepted();
    pair.b.post(1, span(0, 8));
    pair.b.receive(&untagged(1, 3, true, (0, 1, 0), b""));
    assert_eq!(out(&mut pair.b).len(), 1);
    // A Terminate waits too.
    let mut pair = accepted();
    pair.b.end(S);
    assert_eq!(out(&mut pair.b), []);
    pair.b.association.dry();
    assert_eq!(out(&mut pair.b), [control(1, 4, b"")]);
}

#[test]
fn section_6_6_streams_are_not_reused_while_chunks_may_be_outstanding() {
    let mut pair = Pair::open();
    pair.a.end(S);
    let terminate = out(&mut pair.a);
    let reuse = |side: &mut Side| side.association.initiate(S, b"", true);
    // Ours is acknowledged, but the peer may have sent something.
    pair.a.association.dry();
    assert_eq!(reuse(&mut pair.a), Err(Misstep::Sequence(Phase::Closing)));
    assert_eq!(pair.a.association.idle_stream(), Some(StreamId(1)));
    pair.b.receive(&terminate[0]);
    let answer = out(&mut pair.b);
    assert_eq!(reuse(&mut pair.b), Err(Misstep::Sequence(Phase::Closed)));
    pair.b.association.dry();
    assert_eq!(pair.b.phase(), Phase::Idle);
    assert_eq!(pair.a.association.unanswered(), 1);
    pair.a.receive(&answer[0]);
    assert_eq!(pair.a.phase(), Phase::Idle);
    assert_eq!(pair.a.association.unanswered(), 0);
    // Its endpoint is of the session before.
    assert_eq!(pair.a.association.idle_stream(), Some(StreamId(1)));
    pair.a.association.unbind(S).unwrap();
    assert_eq!(pair.a.association.idle_stream(), Some(S));
}

/// What comes late is not looked at, and a peer that is content with our Terminate may begin
/// again.
#[test]
fn section_6_6_late_chunks_are_dropped() {
    let mut pair = Pair::open();
    pair.b.post(1, span(0x8000, 8));
    let before = pair.b.ram.at(span(0x8000, 8)).to_vec();
    pair.b.end(S);
    pair.b.pump();
    assert_eq!(pair.b.association.unanswered(), 0, "not before it is there");
    pair.b.association.dry();
    assert_eq!(pair.b.association.unanswered(), 1);
    let reuse = pair.b.association.initiate(S, b"", true);
    assert_eq!(reuse, Err(Misstep::Sequence(Phase::Closing)));
    pair.b.told.clear();
    pair.b.receive(&untagged(1, 3, true, (0, 1, 0), b"late"));
    assert_eq!(pair.b.heard(), []);
    assert_eq!(pair.b.ram.at(span(0x8000, 8)), before);
    assert_eq!(pair.b.association.counts().dropped, 1);
    pair.b.association.unbind(S).unwrap();
    pair.b.receive(&control(0, 1, b"again"));
    assert_eq!(pair.b.association.unanswered(), 0);
    assert_eq!(pair.b.heard(), [Told::Requested(b"again".to_vec(), None)]);
}

/// The numbers wrap at 16 bits, several times.
#[test]
fn section_10_ssn_wraps() {
    let mut pair = Pair::open();
    let window = pair.b.open(span(0, 502), rpcrdma_fabric::Access::Write);
    for round in 0..140_u64 {
        for id in 0..16 {
            pair.a
                .endpoint()
                .write(span(0, 502), window, WorkId(id))
                .unwrap();
        }
        for _ in 0..63 {
            pair.a.pump();
            for id in 0..16 {
                pair.a
                    .endpoint()
                    .write(span(0, 502), window, WorkId(id))
                    .unwrap();
            }
        }
        pair.a.pump();
        let mut chunks = std::mem::take(&mut pair.a.out.chunks);
        assert_eq!(chunks.len(), 1024);
        assert_eq!(u64::from(chunks[0].ssn()), (1 + round * 1024) % 65536);
        chunks.reverse();
        chunks.iter().for_each(|chunk| pair.b.receive(chunk));
        pair.a.association.dry();
        pair.a.told.clear();
    }
    pair.b.post(1, span(0, 8));
    pair.a
        .endpoint()
        .send(&[span(0, 8)], None, false, WorkId(1))
        .unwrap();
    pair.exchange();
    assert_eq!(pair.b.heard(), [received(1, 8)]);
}

/// Posts Writes and sends what can be sent, until nothing more can be; how many chunks wait.
fn fill_window(side: &mut Side, window: rpcrdma_fabric::Segment) -> usize {
    loop {
        let before = side.out.chunks.len();
        for id in 0..16 {
            let _ = side.endpoint().write(span(0, 8), window, WorkId(id));
        }
        side.pump();
        let now = side.out.chunks.len();
        assert!(now <= usize::from(WINDOW));
        if now == before {
            return now;
        }
    }
}

/// The receiver counts from the oldest chunk that it lacks. So while the first is missing nothing
/// more is sent, whatever became of the others, and an honest session outlives the loss.
#[test]
fn section_10_no_more_than_32767_after_the_oldest_unacknowledged() {
    let mut pair = Pair::open();
    let window = pair.b.open(span(0, 8), rpcrdma_fabric::Access::Write);
    assert_eq!(fill_window(&mut pair.a, window), usize::from(WINDOW));
    let mut chunks = out(&mut pair.a);
    let lost = chunks.remove(0);
    chunks.iter().rev().for_each(|chunk| pair.b.receive(chunk));
    assert_eq!(fill_window(&mut pair.a, window), 0);
    assert_eq!((pair.b.heard(), pair.b.phase()), (vec![], Phase::Open));
    // It comes at last, and there is room for as many again, in any order.
    pair.b.receive(&lost);
    pair.a.association.dry();
    assert_eq!(fill_window(&mut pair.a, window), usize::from(WINDOW));
    let chunks = out(&mut pair.a);
    assert_eq!(chunks[0].ssn(), 1 + WINDOW);
    chunks.iter().rev().for_each(|chunk| pair.b.receive(chunk));
    assert_eq!((pair.b.heard(), pair.b.phase()), (vec![], Phase::Open));
}

#[test]
fn section_10_gaps_that_cannot_be_end_the_session() {
    for (ssn, reject) in [
        (0, Reject::SsnRepeat),
        (65535, Reject::SsnRepeat),
        (32768, Reject::SsnJump),
        (32769, Reject::SsnRepeat),
    ] {
        let mut pair = Pair::open();
        pair.b.receive(&tagged(ssn, 0, true, (0, 0), b""));
        assert_eq!(pair.b.heard(), [Told::Ended(End::Reject(reject))], "{ssn}");
        assert_eq!(pair.b.rejects(reject), 1);
    }
    let mut pair = Pair::open();
    pair.b.receive(&tagged(32767, 0, true, (0, 0), b""));
    assert_eq!(pair.b.heard(), []);
    pair.b.receive(&tagged(32767, 0, true, (0, 0), b""));
    assert_eq!(
        pair.b.heard(),
        [Told::Ended(End::Reject(Reject::SsnRepeat))]
    );
}
