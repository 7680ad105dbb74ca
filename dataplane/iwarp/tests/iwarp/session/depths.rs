//! Read depths: RFC 6581 sections 7 and 9.

use super::out;
use crate::support::*;
use rpcrdma_fabric::{Refused, WorkId};
use rpcrdma_iwarp::{Depths, End, Phase, Reject, StreamId};

/// RFC 6581 section 7: its own function codes, the word before the private data, and answers in
/// kind.
#[test]
fn rfc_6581_section_7_enhanced_sessions() {
    let mut pair = Pair::new();
    pair.a.bind(S);
    pair.a.association.initiate(S, b"pd", true).unwrap();
    let initiate = out(&mut pair.a);
    assert_eq!(initiate, [control(0, 5, &[0, 4, 0, 4, b'p', b'd'])]);
    pair.b.receive(&initiate[0]);
    let mut small = outfit(0);
    small.depths = Depths { ird: 2, ord: 9 };
    pair.b.bind_outfit(S, small);
    pair.b.association.accept(S, b"pd").unwrap();
    let accept = out(&mut pair.b);
    assert_eq!(accept, [control(0, 6, &[0, 2, 0, 4, b'p', b'd'])]);
    // A plain answer is none.
    pair.a.receive(&control(0, 2, b"pd"));
    let ended = [Told::Ended(End::Reject(Reject::ControlSequence))];
    assert_eq!(pair.a.heard(), ended);
}

#[test]
fn rfc_6581_section_9_1_no_more_reads_than_agreed() {
    let mut pair = Pair::new();
    pair.a.bind(S);
    pair.a.association.initiate(S, b"", true).unwrap();
    pair.exchange();
    let mut small = outfit(0);
    small.depths = Depths { ird: 2, ord: 9 };
    pair.b.bind_outfit(S, small);
    pair.b.association.accept(S, b"").unwrap();
    pair.exchange();
    let source = pair.b.open(span(0, 8), rpcrdma_fabric::Access::Read);
    for id in 0..4 {
        pair.a
            .endpoint()
            .read(span(0, 8), source, WorkId(id))
            .unwrap();
    }
    assert_eq!(out(&mut pair.a).len(), 2);
}

#[test]
fn rfc_6581_section_9_1_no_reads_of_a_peer_that_answers_none() {
    let mut pair = Pair::new();
    pair.a.bind(S);
    pair.a.association.initiate(S, b"", true).unwrap();
    pair.exchange();
    let mut small = outfit(0);
    small.depths = Depths { ird: 0, ord: 9 };
    pair.b.bind_outfit(S, small);
    pair.b.association.accept(S, b"").unwrap();
    pair.exchange();
    let source = pair.b.open(span(0, 8), rpcrdma_fabric::Access::Read);
    let refused = pair.a.endpoint().read(span(0, 8), source, WorkId(1));
    assert_eq!(refused, Err(Refused::Unsupported));
}

/// RFC 6581 section 9.1: the side that asked cannot answer as many as the other will ask for.
#[test]
fn rfc_6581_section_9_1_too_few_reads() {
    let mut pair = Pair::new();
    pair.a.bind(S);
    pair.a.association.initiate(S, b"", true).unwrap();
    pair.a.pump();
    pair.a.out.chunks.clear();
    pair.a.receive(&control(0, 6, &[0, 4, 0, 5]));
    assert_eq!(
        pair.a.heard(),
        [Told::Ended(End::Reject(Reject::TooFewReads))]
    );
    let sent = out(&mut pair.a);
    // Layer 2, error type 0, code 6, and no header.
    assert_eq!(sent[0], untagged(1, 7, true, (2, 1, 0), &[0x20, 6, 0, 0]));
    assert_eq!(sent[1], control(2, 4, b""));
}

/// An enhanced request is out, and the peer, of RFC 5043 alone, has answered it with Terminate.
fn turned_away() -> Side {
    let mut side = Side::new(1, 2);
    side.bind(S);
    side.post(1, span(0x8000, 64));
    side.association.initiate(S, b"pd", true).unwrap();
    assert_eq!(out(&mut side), [control(0, 5, &[0, 4, 0, 4, b'p', b'd'])]);
    side.receive(&control(0, 4, b""));
    assert_eq!(side.heard(), []);
    side
}

/// RFC 6581 section 9.3: a responder has to take plain requests, and one that knows no others
/// turns an enhanced one away.
#[test]
fn rfc_6581_section_9_3_asked_again_without_the_word() {
    let mut side = turned_away();
    assert_eq!(out(&mut side), [control(0, 1, b"pd")]);
    side.receive(&control(0, 2, b"yes"));
    assert_eq!(side.heard(), [Told::Accepted(b"yes".to_vec(), None)]);
    assert_eq!(side.phase(), Phase::Open);
    // Nothing was said of Reads: one at a time.
    let source = side.open(span(0, 8), rpcrdma_fabric::Access::Read);
    for id in 2..4 {
        let asked = side.endpoint().read(span(0, 8), source, WorkId(id));
        asked.unwrap();
    }
    assert_eq!(out(&mut side).len(), 1);
    // The receive that was posted before is still there.
    side.receive(&untagged(1, 3, true, (0, 1, 0), b"x"));
    assert!(matches!(side.told.last(), Some((_, Told::Received { .. }))));
    // And now it is known what the peer speaks.
    side.bind(StreamId(1));
    let asked = side.association.initiate(StreamId(1), b"", true);
    asked.unwrap();
    side.transmit(StreamId(1), 1);
    assert_eq!(side.out.chunks.last().map(Chunk::body), Some(&[0, 1][..]));
}

#[test]
fn rfc_6581_section_9_3_asked_again_once() {
    let mut side = turned_away();
    out(&mut side);
    side.receive(&control(0, 4, b""));
    let told = side.heard();
    assert_eq!(told.last(), Some(&Told::Ended(End::TurnedAway)));
    assert_eq!(out(&mut side), []);
    side.association.dry();
    assert_eq!(side.phase(), Phase::Idle);
}

/// Where there is more than one request there may be no room; where the peer has spoken RFC 6581,
/// that is why.
#[test]
fn rfc_6581_section_9_3_no_room_is_no_reason_to_ask_again() {
    let mut side = Side::new(1, 2);
    for stream in [StreamId(0), StreamId(1)] {
        side.bind(stream);
        side.association.initiate(stream, b"", true).unwrap();
        side.transmit(stream, 1);
    }
    side.receive(&control(0, 4, b""));
    assert_eq!(side.heard(), [Told::Ended(End::TurnedAway)]);
    let mut side = Side::new(1, 1);
    side.receive(&control(0, 5, &[0; 4]));
    side.reject(S, b"");
    out(&mut side);
    side.association.dry();
    side.told.clear();
    side.bind(S);
    side.association.initiate(S, b"", true).unwrap();
    out(&mut side);
    side.receive(&control(0, 4, b""));
    assert_eq!(side.heard(), [Told::Ended(End::TurnedAway)]);
}

/// Nobody here wants it any more, or the peer's upper layer has decided.
#[test]
fn rfc_6581_section_9_3_not_asked_again() {
    let asked = || {
        let mut side = Side::new(1, 1);
        side.bind(S);
        side.association.initiate(S, b"", true).unwrap();
        out(&mut side);
        side
    };
    let mut side = asked();
    side.end(S);
    side.receive(&control(0, 4, b""));
    assert_eq!(out(&mut side), []);
    for function in [3, 7] {
        let mut side = asked();
        side.receive(&control(0, function, b""));
        assert_eq!(side.heard().last(), Some(&Told::Ended(End::Rejected)));
        assert_eq!(out(&mut side), []);
    }
}
