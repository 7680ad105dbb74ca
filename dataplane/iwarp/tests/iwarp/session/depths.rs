//! Read depths: RFC 6581 sections 7 and 9.

use super::out;
use crate::support::*;
use rpcrdma_fabric::{Refused, WorkId};
use rpcrdma_iwarp::{Depths, End, Reject};

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
