//! RFC 5043, rule by rule.

use crate::support::*;
use rpcrdma_fabric::{Refused, WorkError, WorkId};
use rpcrdma_iwarp::session::{PRIVATE_DATA_BYTES, WINDOW};
use rpcrdma_iwarp::{
    Association, Depths, End, Flow, Indication, Misstep, Phase, Refusal, Reject, SegmentBytes,
    Settings, StreamId,
};

/// The chunks that `side` has for its peer, taken away.
fn out(side: &mut Side) -> Vec<Chunk> {
    side.pump();
    std::mem::take(&mut side.out.chunks)
}

const TERMINATE: &[u8] = &[0, 4];

#[test]
fn section_5_1_adaptation_indication_is_1() {
    assert_eq!(rpcrdma_iwarp::session::ADAPTATION_DDP, 1);
    assert_eq!(Indication::of(Some(1)), Indication::Ddp);
    assert_eq!(Indication::of(Some(2)), Indication::Other(2));
    assert_eq!(Indication::of(None), Indication::None);
}

#[test]
fn section_5_2_two_ppids() {
    let mut pair = Pair::open();
    pair.b.post(1, span(0, 100));
    pair.a
        .endpoint()
        .send(&[span(0, 9)], None, false, WorkId(1))
        .unwrap();
    assert_eq!(out(&mut pair.a)[0].ppid, 16);
    pair.a.end(S);
    assert_eq!(out(&mut pair.a)[0].ppid, 17);
}

#[test]
fn section_5_2_any_other_ppid_ends_the_session() {
    for ppid in [0, 15, 18, 46, u32::MAX, 16 << 24, 17 << 24] {
        let mut pair = Pair::open();
        pair.b.receive(&chunk(ppid, 1, &[0x41; 20]));
        assert_eq!(pair.b.heard(), [Told::Ended(End::Reject(Reject::Ppid))]);
        assert_eq!(pair.b.rejects(Reject::Ppid), 1);
    }
}

#[test]
fn section_5_2_1_ssn_counts_what_was_submitted() {
    let mut pair = Pair::open();
    let window = pair.b.open(span(0, 5000), rpcrdma_fabric::Access::Write);
    pair.a
        .endpoint()
        .write(span(0, 5000), window, WorkId(1))
        .unwrap();
    let ssns: Vec<u16> = out(&mut pair.a).iter().map(Chunk::ssn).collect();
    // Number 0 was the Initiate.
    assert_eq!(ssns, (1..=10).collect::<Vec<_>>());
}

#[test]
fn section_5_2_2_a_segment_is_behind_its_ssn() {
    let mut pair = Pair::open();
    pair.a
        .endpoint()
        .send(&[span(0, 3)], None, false, WorkId(1))
        .unwrap();
    let sent = out(&mut pair.a);
    let payload = pair.a.ram.at(span(0, 3)).to_vec();
    assert_eq!(sent, [untagged(1, 3, true, (0, 1, 0), &payload)]);
}

#[test]
fn section_5_2_3_function_codes() {
    let mut pair = Pair::new();
    pair.a.bind(S);
    pair.a.association.initiate(S, b"hello", false).unwrap();
    let initiate = out(&mut pair.a);
    assert_eq!(initiate, [control(0, 1, b"hello")]);
    pair.b.receive(&initiate[0]);
    pair.b.bind(S);
    pair.b.association.accept(S, b"").unwrap();
    let accept = out(&mut pair.b);
    assert_eq!(accept, [control(0, 2, b"")]);
    pair.a.receive(&accept[0]);
    assert_eq!(pair.a.heard(), [Told::Accepted(Vec::new(), None)]);
    pair.a.end(S);
    assert_eq!(out(&mut pair.a), [control(1, 4, b"")]);

    let mut pair = Pair::new();
    pair.a.receive(&initiate[0]);
    pair.a.reject(S, b"no");
    assert_eq!(out(&mut pair.a), [control(0, 3, b"no")]);
}

#[test]
fn section_5_2_3_unknown_function_codes_end_the_session() {
    for code in [0, 8, 9, 0x0100, 0x0400, 0xFFFF] {
        let mut pair = Pair::open();
        pair.b.receive(&control(1, code, b""));
        let ended = [Told::Ended(End::Reject(Reject::FunctionCode))];
        assert_eq!(pair.b.heard(), ended);
        let sent = out(&mut pair.b);
        assert_eq!(sent.last().unwrap().body(), TERMINATE);
    }
}

#[test]
fn section_5_2_3_private_data_of_0_to_512_octets() {
    for (len, enhanced) in [(0, false), (512, false), (0, true), (508, true)] {
        let data = vec![0xA5; len];
        let mut pair = Pair::new();
        pair.a.bind(S);
        pair.a.association.initiate(S, &data, enhanced).unwrap();
        pair.exchange();
        let depths = enhanced.then_some(DEPTHS);
        assert_eq!(pair.b.heard(), [Told::Requested(data.clone(), depths)]);
        pair.b.bind(S);
        pair.b.association.accept(S, &data).unwrap();
        pair.exchange();
        assert_eq!(pair.a.heard(), [Told::Accepted(data.clone(), depths)]);

        let mut pair = Pair::new();
        pair.a.bind(S);
        pair.a.association.initiate(S, b"", enhanced).unwrap();
        pair.exchange();
        pair.b.reject(S, &data);
        pair.exchange();
        let told = [Told::Rejected(data), Told::Ended(End::Rejected)];
        assert_eq!(pair.a.heard(), told);
    }
}

#[test]
fn section_5_2_3_no_more_private_data_than_512_octets() {
    let mut pair = Pair::new();
    pair.a.bind(S);
    let long = [0; PRIVATE_DATA_BYTES + 1];
    let refused = Err(Misstep::PrivateData);
    assert_eq!(pair.a.association.initiate(S, &long, false), refused);
    assert_eq!(pair.a.association.initiate(S, &long[..509], true), refused);
    assert_eq!(pair.a.phase(), Phase::Idle);
    for function in [1, 2, 3, 5, 6, 7] {
        let mut pair = Pair::new();
        pair.b.receive(&control(0, function, &long));
        assert_eq!(pair.b.rejects(Reject::PrivateDataLong), 1);
        assert_eq!(out(&mut pair.b), [control(0, 4, b"")]);
    }
}

#[test]
fn section_5_2_3_no_private_data_with_terminate() {
    let mut pair = Pair::open();
    pair.b.receive(&control(1, 4, b"x"));
    let ended = [Told::Ended(End::Reject(Reject::PrivateDataInTerminate))];
    assert_eq!(pair.b.heard(), ended);
}

#[test]
fn section_6_1_ssn_begins_at_0_in_each_session() {
    let mut pair = Pair::open();
    pair.a.end(S);
    pair.exchange();
    for side in [&mut pair.a, &mut pair.b] {
        side.association.dry();
        assert_eq!(side.phase(), Phase::Idle);
        side.association.unbind(S).unwrap();
        side.told.clear();
    }
    // The other way round this time.
    pair.b.bind(S);
    pair.b.association.initiate(S, b"", false).unwrap();
    let initiate = out(&mut pair.b);
    assert_eq!(initiate[0].ssn(), 0);
    pair.a.receive(&initiate[0]);
    pair.a.bind(S);
    pair.a.association.accept(S, b"").unwrap();
    assert_eq!(out(&mut pair.a)[0].ssn(), 0);
}

/// Every control message out of its place ends the session.
#[test]
fn section_6_1_no_other_sequences() {
    let accept = |ssn| control(ssn, 2, b"");
    let cases = [
        ("Initiate in an open session", control(1, 1, b"")),
        ("Accept at the accepting side", accept(1)),
        ("Reject in an open session", control(1, 3, b"")),
        (
            "Enhanced Initiate in an open session",
            control(1, 5, &[0; 4]),
        ),
    ];
    for (what, chunk) in cases {
        let mut pair = Pair::open();
        pair.b.receive(&chunk);
        let ended = [Told::Ended(End::Reject(Reject::ControlSequence))];
        assert_eq!(pair.b.heard(), ended, "{what}");
        assert_eq!(pair.b.phase(), Phase::Closing, "{what}");
        // RDMAP says that something is wrong with the stream, then the session ends.
        let sent = out(&mut pair.b);
        assert_eq!(sent[0].octets[20..22], [0x02, 0x07], "{what}");
        assert_eq!(sent[1].body(), TERMINATE, "{what}");
    }
}

#[test]
fn section_6_1_nothing_but_initiate_on_an_idle_stream() {
    for (what, chunk) in [
        ("Accept", control(0, 2, b"")),
        ("Reject", control(0, 3, b"")),
        ("Terminate", control(0, 4, b"")),
        ("Initiate with another number", control(1, 1, b"")),
        ("segment", untagged(0, 3, true, (0, 1, 0), b"")),
    ] {
        let mut pair = Pair::new();
        pair.b.receive(&chunk);
        assert_eq!(pair.b.heard(), [], "{what}");
        assert_eq!(out(&mut pair.b), [control(0, 4, b"")], "{what}");
        // A peer that has done wrong can do right.
        pair.b.receive(&control(0, 1, b""));
        assert_eq!(
            pair.b.heard(),
            [Told::Requested(Vec::new(), None)],
            "{what}"
        );
    }
}

#[test]
fn section_6_1_segment_before_accept() {
    // From the side that asked: it cannot have seen an Accept.
    let mut pair = Pair::new();
    pair.b.receive(&control(0, 1, b""));
    pair.b.receive(&untagged(1, 3, true, (0, 1, 0), b""));
    let ended = Told::Ended(End::Reject(Reject::SegmentSequence));
    assert_eq!(pair.b.heard()[1], ended);
    assert_eq!(out(&mut pair.b), [control(0, 4, b"")]);
    // From the side that was asked, in the place of the Accept.
    let mut pair = Pair::new();
    pair.a.bind(S);
    pair.a.association.initiate(S, b"", false).unwrap();
    pair.a.pump();
    pair.a.receive(&untagged(0, 3, true, (0, 1, 0), b""));
    assert_eq!(pair.a.heard(), [ended]);
}

#[test]
fn section_6_1_crossing_initiates_end_both() {
    let mut pair = Pair::new();
    for side in [&mut pair.a, &mut pair.b] {
        side.bind(S);
        side.association.initiate(S, b"", true).unwrap();
    }
    pair.exchange();
    for side in [&mut pair.a, &mut pair.b] {
        let ended = [Told::Ended(End::Reject(Reject::CrossedInitiates))];
        assert_eq!(side.heard(), ended);
        // The Terminate must not overtake the Initiate.
        assert_eq!(side.out.chunks, []);
        side.association.dry();
    }
    pair.exchange();
    for side in [&mut pair.a, &mut pair.b] {
        assert_eq!(side.phase(), Phase::Closed);
        side.association.dry();
        assert_eq!(side.phase(), Phase::Idle);
    }
}

#[test]
fn section_6_2_accepted_session() {
    let mut pair = Pair::open();
    pair.b.post(1, span(0x8000, 8));
    pair.a.post(2, span(0x8000, 8));
    pair.a
        .endpoint()
        .send(&[span(0, 8)], None, false, WorkId(3))
        .unwrap();
    pair.b
        .endpoint()
        .send(&[span(0, 8)], None, false, WorkId(4))
        .unwrap();
    pair.exchange();
    assert_eq!(pair.a.heard(), [Told::Done(3), received(2, 8)]);
    assert_eq!(pair.b.heard(), [Told::Done(4), received(1, 8)]);
    pair.a.end(S);
    assert_eq!(pair.a.heard(), [Told::Ended(End::Local)]);
    pair.exchange();
    assert_eq!(pair.b.heard(), [Told::Ended(End::Peer)]);
    for side in [&mut pair.a, &mut pair.b] {
        assert_eq!(side.phase(), Phase::Closed);
        side.association.dry();
        assert_eq!(side.phase(), Phase::Idle);
        assert_eq!(side.association.counts().rejects, [0; Reject::COUNT]);
    }
}

/// Segments may overtake the Accept of a peer that does not hold them back: it is the numbers
/// that count.
#[test]
fn section_6_2_segments_that_overtake_the_accept() {
    let mut pair = Pair::new();
    pair.a.bind(S);
    pair.a.association.initiate(S, b"", false).unwrap();
    pair.a.pump();
    pair.a.post(1, span(0x8000, 8));
    pair.a.receive(&untagged(1, 3, true, (0, 1, 0), b"early"));
    pair.a.receive(&control(2, 4, b""));
    assert_eq!(pair.a.heard(), []);
    assert_eq!(pair.a.ram.at(span(0x8000, 5)), b"early");
    pair.a.receive(&control(0, 2, b"yes"));
    let told = [
        Told::Accepted(b"yes".to_vec(), None),
        received(1, 5),
        Told::Ended(End::Peer),
    ];
    assert_eq!(pair.a.heard(), told);
}

/// What was sent before a Terminate is delivered before it, in whatever order it comes.
#[test]
fn section_6_2_terminate_is_the_last_chunk() {
    let mut pair = Pair::open();
    for id in 0..3 {
        pair.b.post(id, span(0x8000, 8));
        pair.a
            .endpoint()
            .send(&[span(0, 8)], None, false, WorkId(id))
            .unwrap();
    }
    pair.a.pump();
    pair.a.end(S);
    let mut chunks = out(&mut pair.a);
    chunks.reverse();
    chunks.iter().for_each(|chunk| pair.b.receive(chunk));
    let told = [
        received(0, 8),
        received(1, 8),
        received(2, 8),
        Told::Ended(End::Peer),
    ];
    assert_eq!(pair.b.heard(), told);
}

#[test]
fn section_6_3_rejected_session() {
    let mut pair = Pair::new();
    pair.a.bind(S);
    pair.a.association.initiate(S, b"ask", true).unwrap();
    pair.exchange();
    assert_eq!(
        pair.b.heard(),
        [Told::Requested(b"ask".to_vec(), Some(DEPTHS))]
    );
    pair.b.reject(S, b"no");
    assert_eq!(pair.b.heard(), [Told::Ended(End::Local)]);
    pair.exchange();
    let told = [Told::Rejected(b"no".to_vec()), Told::Ended(End::Rejected)];
    assert_eq!(pair.a.heard(), told);
    // Each side has sent its one message.
    for side in [&mut pair.a, &mut pair.b] {
        assert_eq!(side.association.counts().chunks_out, 1);
        side.association.dry();
        assert_eq!(side.phase(), Phase::Idle);
    }
}

#[test]
fn section_6_4_pending_requests_are_limited() {
    let settings = Settings {
        pending: 2,
        ..Settings::default()
    };
    let mut side = Side::unsettled(1, 4, settings);
    side.indication(Indication::Ddp).unwrap();
    let ask = |side: &mut Side, stream: u16| {
        let mut chunk = control(0, 1, b"");
        chunk.stream = StreamId(stream);
        side.receive(&chunk);
    };
    (0..3).for_each(|stream| ask(&mut side, stream));
    // The third is answered with Terminate, not Reject, and the upper layer never hears of it.
    assert_eq!(side.told.len(), 2);
    let sent = out(&mut side);
    assert_eq!((sent.len(), sent[0].stream), (1, StreamId(2)));
    assert_eq!((sent[0].ssn(), sent[0].body()), (0, TERMINATE));
    assert_eq!(side.rejects(Reject::TooManyPending), 1);
    // There is room when the upper layer has decided.
    side.reject(S, b"");
    ask(&mut side, 3);
    assert_eq!(side.association.phase(StreamId(3)), Some(Phase::Pending));
    // The one turned away may try again.
    side.association
        .turn_away(StreamId(1), &mut |_, _| {})
        .unwrap();
    ask(&mut side, 2);
    assert_eq!(side.association.phase(StreamId(2)), Some(Phase::Pending));
}

#[test]
fn section_6_4_turned_away() {
    let mut pair = Pair::new();
    pair.a.bind(S);
    pair.a.association.initiate(S, b"", true).unwrap();
    pair.exchange();
    pair.b.association.turn_away(S, &mut |_, _| {}).unwrap();
    pair.exchange();
    assert_eq!(pair.a.heard(), [Told::Ended(End::TurnedAway)]);
    assert_eq!(pair.a.association.counts().chunks_out, 1);
    pair.a.association.dry();
    assert_eq!(pair.a.phase(), Phase::Idle);
}

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

/// The peer's answer to an Initiate, where the session was ended for something it did before.
#[test]
fn section_6_1_an_answer_that_comes_after_a_breach() {
    let breached = || {
        let mut side = Side::new(1, 1);
        side.bind(S);
        side.association.initiate(S, b"", false).unwrap();
        side.pump();
        side.out.chunks.clear();
        side.receive(&chunk(99, 1, b""));
        assert_eq!(side.heard(), [Told::Ended(End::Reject(Reject::Ppid))]);
        side
    };
    // An Accept: the session has to be ended.
    let mut side = breached();
    side.receive(&control(0, 2, b""));
    assert_eq!(out(&mut side), [control(1, 4, b"")]);
    assert_eq!(side.phase(), Phase::Closing);
    side.receive(&control(1, 4, b""));
    assert_eq!(side.phase(), Phase::Closed);
    // A Reject or a Terminate: it is over, and nothing more is to be said.
    for function in [3, 4] {
        let mut side = breached();
        side.receive(&control(0, function, b""));
        assert_eq!(side.phase(), Phase::Closed);
        side.association.dry();
        assert_eq!((out(&mut side), side.heard()), (vec![], vec![]));
        assert_eq!(side.phase(), Phase::Idle);
    }
}

/// A stream whose last words are still to be sent takes no request.
#[test]
fn section_6_1_no_request_before_the_terminate_is_sent() {
    let mut pair = Pair::open();
    pair.b.end(S);
    pair.b.told.clear();
    pair.b.receive(&control(0, 1, b""));
    assert_eq!(pair.b.heard(), []);
    assert_eq!(pair.b.rejects(Reject::ControlSequence), 1);
    assert_eq!(out(&mut pair.b), [control(1, 4, b"")]);
}

/// The peer's Terminate has its turn behind the chunk that was wrong, and then nobody is there to
/// hear what was wrong with it.
#[test]
fn section_6_1_the_peers_end_after_its_error() {
    for errors_first in [true, false] {
        let mut pair = Pair::open();
        let mut chunks = [untagged(1, 3, true, (9, 1, 0), b""), control(2, 4, b"")];
        if !errors_first {
            chunks.reverse();
        }
        chunks.iter().for_each(|chunk| pair.b.receive(chunk));
        let ended = [Told::Ended(End::Reject(Reject::QueueNumber))];
        assert_eq!(pair.b.heard(), ended);
        if errors_first {
            assert_eq!(pair.b.phase(), Phase::Closed);
            assert_eq!(out(&mut pair.b), [control(1, 4, b"")]);
        }
    }
}

/// And behind its RDMAP's Terminate.
#[test]
fn section_6_2_terminate_follows_the_one_of_rdmap() {
    let mut pair = Pair::open();
    pair.b.receive(&control(2, 4, b""));
    pair.b
        .receive(&untagged(1, 7, true, (2, 1, 0), &[0x21, 7, 0, 0]));
    assert!(matches!(
        pair.b.heard()[..],
        [Told::Ended(End::Terminated(_))]
    ));
    assert_eq!(pair.b.phase(), Phase::Closed);
}

/// What is wrong on a stream that has had sessions is answered in a session of its own.
#[test]
fn section_6_1_the_answer_to_nonsense_is_number_0() {
    let mut pair = Pair::open();
    pair.a.end(S);
    pair.exchange();
    pair.b.association.dry();
    assert_eq!(pair.b.phase(), Phase::Idle);
    pair.b.receive(&control(0, 2, b""));
    assert_eq!(out(&mut pair.b), [control(0, 4, b"")]);
}

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
    pair.b.association.acknowledged(S, 1);
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
    pair.b.association.acknowledged(S, 1);
    assert_eq!(pair.b.phase(), Phase::Idle);
    pair.a.receive(&answer[0]);
    assert_eq!(pair.a.phase(), Phase::Idle);
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
    pair.b.told.clear();
    pair.b.receive(&untagged(1, 3, true, (0, 1, 0), b"late"));
    assert_eq!(pair.b.heard(), []);
    assert_eq!(pair.b.ram.at(span(0x8000, 8)), before);
    assert_eq!(pair.b.association.counts().dropped, 1);
    pair.b.association.unbind(S).unwrap();
    pair.b.receive(&control(0, 1, b"again"));
    assert_eq!(pair.b.heard(), [Told::Requested(b"again".to_vec(), None)]);
}

/// The endpoint of a session that is over serves no other.
#[test]
fn section_6_an_endpoint_is_for_one_session() {
    let mut pair = Pair::open();
    pair.a.end(S);
    pair.exchange();
    pair.a.association.dry();
    pair.b.association.dry();
    let again = |side: &mut Side| side.association.initiate(S, b"", true);
    assert_eq!(again(&mut pair.a), Err(Misstep::Unbound));
    // Asked for while the old one is still there.
    pair.b.association.unbind(S).unwrap();
    pair.b.bind(S);
    again(&mut pair.b).unwrap();
    pair.exchange();
    let accept = |side: &mut Side| side.association.accept(S, b"");
    assert_eq!(accept(&mut pair.a), Err(Misstep::Unbound));
    pair.a.association.unbind(S).unwrap();
    pair.a.bind(S);
    accept(&mut pair.a).unwrap();
    pair.exchange();
    assert_eq!(pair.b.phase(), Phase::Open);
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
    let refused = Refusal::StreamCounts {
        inbound: 8,
        outbound: 9,
    };
    assert_eq!(new(8, 9).unwrap_err(), refused);
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
fn section_9_the_maximum_is_at_least_516_octets() {
    assert_eq!(SegmentBytes::new(515), None);
    assert_eq!(SegmentBytes::new(516), Some(SegmentBytes::LEAST));
    assert_eq!(
        SegmentBytes::new(65_533).map(SegmentBytes::octets),
        Some(65_533)
    );
    assert_eq!(SegmentBytes::new(65_534), None);
    assert_eq!(SegmentBytes::of_chunk(100), SegmentBytes::LEAST);
    assert_eq!(SegmentBytes::of_chunk(1400).octets(), 1398);
    assert_eq!(SegmentBytes::of_chunk(1 << 20).octets(), 65_533);
    // The longest control message fits.
    assert!(2 + PRIVATE_DATA_BYTES <= SegmentBytes::LEAST.octets());
}

#[test]
fn section_9_longer_chunks_are_refused() {
    let settings = Settings {
        chunk_bytes: 600,
        ..Settings::default()
    };
    let mut side = Side::unsettled(1, 1, settings);
    side.indication(Indication::Ddp).unwrap();
    side.receive(&control(0, 1, b""));
    side.bind(S);
    side.association.accept(S, b"").unwrap();
    side.post(1, span(0, 1000));
    side.receive(&untagged(1, 3, false, (0, 1, 0), &[0; 600 - 20]));
    assert_eq!(side.heard().len(), 1);
    side.receive(&untagged(2, 3, true, (0, 1, 580), &[0; 600 - 19]));
    let told = [
        Told::Failed(1, WorkError::Flushed),
        Told::Ended(End::Reject(Reject::ChunkLong)),
    ];
    assert_eq!(side.heard(), told);
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

#[test]
fn section_10_no_more_than_32767_unacknowledged() {
    let mut pair = Pair::open();
    let window = pair.b.open(span(0, 8), rpcrdma_fabric::Access::Write);
    let mut sent = 0;
    loop {
        for id in 0..16 {
            let _ = pair.a.endpoint().write(span(0, 8), window, WorkId(id));
        }
        pair.a.pump();
        let now = pair.a.out.chunks.len();
        if now == sent {
            break;
        }
        sent = now;
    }
    assert_eq!(sent, usize::from(WINDOW));
    // Room for as many as were acknowledged.
    pair.a.association.acknowledged(S, 3);
    pair.a.pump();
    assert_eq!(pair.a.out.chunks.len(), usize::from(WINDOW) + 3);
    // And the receiver can take them in any order.
    let mut chunks = std::mem::take(&mut pair.a.out.chunks);
    chunks.truncate(usize::from(WINDOW));
    chunks.reverse();
    chunks.iter().for_each(|chunk| pair.b.receive(chunk));
    assert_eq!(pair.b.heard(), []);
    assert_eq!(pair.b.phase(), Phase::Open);
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

#[test]
fn a_short_chunk_ends_the_session() {
    for (ppid, len) in [
        (CONTROL, 0),
        (CONTROL, 1),
        (CONTROL, 3),
        (SEGMENT, 0),
        (SEGMENT, 1),
    ] {
        let mut pair = Pair::open();
        pair.b.receive_octets(S, ppid, &[0, 1, 0][..len]);
        let ended = [Told::Ended(End::Reject(Reject::ChunkShort))];
        assert_eq!(pair.b.heard(), ended);
    }
}
