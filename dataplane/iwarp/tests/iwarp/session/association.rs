//! Associations and their streams: sections 7, 8 and 11.

use super::out;
use crate::support::*;
use rpcrdma_fabric::{WorkError, WorkId};
use rpcrdma_iwarp::{
    Association, Depths, End, Indication, Misstep, Phase, Refusal, Settings, StreamId,
};

#[test]
fn an_endpoint_is_bound_to_a_stream_of_its_own_until_the_end() {
    let mut pair = Pair::new();
    pair.a.bind(S);
    let other = rpcrdma_iwarp::Endpoint::new(outfit(5), &mut pair.a.stags);
    let refused = pair.a.association.bind(S, Box::new(other));
    assert_eq!(refused.unwrap_err().party(), party(5));
    let mut pair = Pair::open();
    assert!(pair.a.association.unbind(S).is_none());
    let other = rpcrdma_iwarp::Endpoint::new(outfit(5), &mut pair.a.stags);
    assert!(pair.a.association.bind(S, Box::new(other)).is_err());
    pair.a.end(S);
    assert_eq!(pair.a.association.unbind(S).unwrap().party(), party(0));
}

/// Section 7.1 and 11.1: the three cases.
#[test]
fn section_11_1_what_the_peer_indicates() {
    let waiting = || {
        let mut side = Side::unsettled(1, 2, Settings::default());
        side.bind(S);
        side.association.initiate(S, b"", true).unwrap();
        assert_eq!(out(&mut side), [], "not before it is known");
        side
    };
    let mut side = waiting();
    assert_eq!(side.indication(Indication::Ddp), Ok(()));
    assert_eq!(out(&mut side).len(), 1);
    for (indication, refusal) in [
        (Indication::None, Refusal::NoAdaptation),
        (Indication::Other(7), Refusal::OtherAdaptation(7)),
    ] {
        let mut side = waiting();
        assert_eq!(side.indication(indication), Err(refusal));
        assert_eq!(side.heard(), [Told::Ended(End::Lost)]);
        assert_eq!(out(&mut side), []);
        side.receive(&control(0, 1, b""));
        assert_eq!((side.heard(), out(&mut side)), (vec![], vec![]));
    }
}

/// Data can be delivered before the news of the peer's indication.
#[test]
fn section_11_1_a_request_that_is_early_waits() {
    let mut side = Side::unsettled(1, 2, Settings::default());
    side.receive(&control(0, 5, &[0, 3, 0, 2, b'h', b'i']));
    assert_eq!(side.heard(), []);
    side.indication(Indication::Ddp).unwrap();
    let depths = Some(Depths { ird: 3, ord: 2 });
    assert_eq!(side.heard(), [Told::Requested(b"hi".to_vec(), depths)]);
    side.indication(Indication::Ddp).unwrap();
    assert_eq!(side.heard(), []);
    // One that the upper layer has not heard of is not its to answer, and ends without a word.
    let mut side = Side::unsettled(1, 2, Settings::default());
    side.receive(&control(0, 1, b""));
    side.bind(S);
    let accepted = side.association.accept(S, b"");
    assert_eq!(accepted, Err(Misstep::Sequence(Phase::Pending)));
    side.receive(&control(1, 1, b""));
    side.indication(Indication::Ddp).unwrap();
    assert_eq!(side.heard(), []);
    assert_eq!(out(&mut side), [control(0, 4, b"")]);
}

#[test]
fn section_8_equal_numbers_of_streams() {
    let new = |inbound, outbound| Association::new(Settings::default(), inbound, outbound);
    assert_eq!(new(8, 8).unwrap().streams(), 8);
    for (inbound, outbound) in [(8, 9), (9, 8), (10, 65535)] {
        let refused = Refusal::StreamCounts { inbound, outbound };
        assert_eq!(new(inbound, outbound).unwrap_err(), refused);
    }
}

/// Each stream is a connection of its own.
#[test]
fn section_8_streams_are_independent() {
    let mut pair = Pair::new();
    for stream in (0..4).map(StreamId) {
        pair.a.bind(stream);
        pair.a.association.initiate(stream, b"", true).unwrap();
    }
    pair.exchange();
    for stream in (0..4).map(StreamId) {
        pair.b.bind(stream);
        pair.b.association.accept(stream, b"").unwrap();
    }
    pair.exchange();
    // One does wrong, one is ended; the others notice nothing, nor does the association.
    pair.b.receive(&control(77, 2, b""));
    pair.a.end(StreamId(1));
    pair.exchange();
    pair.a.told.clear();
    pair.b.told.clear();
    for stream in [StreamId(2), StreamId(3)] {
        let receive = |side: &mut Side| {
            side.association
                .endpoint(stream)
                .unwrap()
                .post_receive(span(0, 8), WorkId(1))
        };
        receive(&mut pair.b).unwrap();
        let endpoint = pair.a.association.endpoint(stream).unwrap();
        endpoint
            .send(&[span(0, 8)], None, false, WorkId(2))
            .unwrap();
        pair.exchange();
        assert_eq!(pair.a.told.pop(), Some((stream, Told::Done(2))));
        assert_eq!(pair.b.told.pop(), Some((stream, received(1, 8))));
        assert_eq!(pair.b.association.phase(stream), Some(Phase::Open));
    }
}

#[test]
fn section_8_no_such_stream() {
    let mut pair = Pair::open();
    let mut chunk = control(0, 1, b"");
    chunk.stream = StreamId(4);
    pair.b.receive(&chunk);
    assert_eq!(pair.b.heard(), []);
    assert_eq!(pair.b.association.counts().dropped, 1);
    let missing = pair.b.association.initiate(StreamId(4), b"", true);
    assert_eq!(missing, Err(Misstep::NoStream));
}

#[test]
fn section_11_3_all_streams_are_told_and_nothing_is_sent() {
    let mut pair = Pair::new();
    for stream in (0..3).map(StreamId) {
        pair.a.bind(stream);
        pair.a.association.initiate(stream, b"", true).unwrap();
    }
    pair.exchange();
    pair.b.bind(S);
    pair.b.association.accept(S, b"").unwrap();
    pair.exchange();
    pair.a.told.clear();
    pair.b.told.clear();
    let source = pair.b.open(span(0, 8), rpcrdma_fabric::Access::Read);
    pair.a
        .endpoint()
        .read(span(0, 8), source, WorkId(1))
        .unwrap();
    pair.a.pump();
    pair.a.out.chunks.clear();
    pair.a.lost();
    pair.b.lost();
    let mut told = vec![(S, Told::Failed(1, WorkError::Transport))];
    told.extend((0..3).map(|stream| (StreamId(stream), Told::Ended(End::Lost))));
    assert_eq!(pair.a.told, told);
    assert_eq!(pair.b.told, told[1..]);
    assert_eq!((out(&mut pair.a), out(&mut pair.b)), (vec![], vec![]));
    pair.a.lost();
    pair.a.end(S);
    assert_eq!(pair.a.told.len(), 4);
    assert!(pair.a.association.unbind(S).is_some());
}

/// Ending a stream does not end the association.
#[test]
fn section_11_3_a_stream_ends_alone() {
    let mut pair = Pair::open();
    pair.a.end(S);
    pair.exchange();
    pair.a.told.clear();
    pair.b.told.clear();
    let next = pair.a.association.idle_stream().unwrap();
    pair.a.bind(next);
    pair.a.association.initiate(next, b"", true).unwrap();
    pair.exchange();
    assert_eq!(
        pair.b.told,
        [(next, Told::Requested(Vec::new(), Some(DEPTHS)))]
    );
}
