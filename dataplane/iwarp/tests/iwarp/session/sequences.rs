//! Which chunk may follow which: sections 6.1 to 6.5.

use super::{TERMINATE, out};
use crate::support::*;
use rpcrdma_fabric::WorkId;
use rpcrdma_iwarp::{End, Flow, Indication, Misstep, Phase, Reject, Settings, StreamId};

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
        // Where the answer belongs there was something else: this is none.
        side.receive(&control(0, 6, &[0; 4]));
        assert_eq!(side.rejects(Reject::ControlSequence), 1);
        // The Terminate must not overtake the Initiate.
        assert_eq!(side.pump(), Flow::Idle);
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
    let sent = out(&mut pair.b);
    assert_eq!(sent, [control(0, 7, b"no")], "enhanced, as the request");
    pair.a.receive(&sent[0]);
    let told = [Told::Rejected(b"no".to_vec()), Told::Ended(End::Rejected)];
    assert_eq!(pair.a.heard(), told);
    // Each side has sent its one message.
    for side in [&mut pair.a, &mut pair.b] {
        assert_eq!(side.association.counts().chunks_out, 1);
        side.association.dry();
        assert_eq!(side.phase(), Phase::Idle);
    }
}

/// RFC 6581 sections 7 and 10: the answer is of the request's kind.
#[test]
fn section_10_of_rfc_6581_which_reject_goes_with_which_request() {
    let mut side = Side::new(1, 1);
    side.receive(&control(0, 1, b""));
    side.reject(S, b"no");
    assert_eq!(out(&mut side), [control(0, 3, b"no")]);
    let cases = [
        (true, 7, End::Rejected),
        (true, 3, End::Rejected),
        (false, 3, End::Rejected),
        (false, 7, End::Reject(Reject::ControlSequence)),
    ];
    for (enhanced, function, end) in cases {
        let mut side = Side::new(1, 1);
        side.bind(S);
        side.association.initiate(S, b"", enhanced).unwrap();
        side.pump();
        side.receive(&control(0, function, b"no"));
        let heard = side.heard();
        assert_eq!(
            heard.last(),
            Some(&Told::Ended(end)),
            "{enhanced} {function}"
        );
        let told = heard.contains(&Told::Rejected(b"no".to_vec()));
        assert_eq!(told, end == End::Rejected, "{enhanced} {function}");
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
    // The one turned away may try again, when another has been answered.
    side.association
        .turn_away(StreamId(1), &mut |_, _| {})
        .unwrap();
    ask(&mut side, 2);
    assert_eq!(side.association.phase(StreamId(2)), Some(Phase::Pending));
    // And one that was ended for what it did makes room as well, or was accepted.
    let mut wrong = chunk(99, 1, b"");
    wrong.stream = StreamId(3);
    side.receive(&wrong);
    side.bind(StreamId(2));
    side.association.accept(StreamId(2), b"").unwrap();
    out(&mut side);
    for stream in [0, 1, 3] {
        ask(&mut side, stream);
    }
    let pending = |stream: u16| side.association.phase(StreamId(stream)) == Some(Phase::Pending);
    assert_eq!([0, 1, 2, 3].map(pending), [true, true, false, false]);
}

#[test]
fn section_6_4_turned_away() {
    let mut pair = Pair::new();
    pair.a.bind(S);
    pair.a.association.initiate(S, b"", false).unwrap();
    pair.exchange();
    pair.b.association.turn_away(S, &mut |_, _| {}).unwrap();
    pair.exchange();
    assert_eq!(pair.a.heard(), [Told::Ended(End::TurnedAway)]);
    assert_eq!(pair.a.association.counts().chunks_out, 1);
    pair.a.association.dry();
    assert_eq!(pair.a.phase(), Phase::Idle);
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

/// What RFC 6581 adds is asked for or it is not there: all that an upper layer needs is done by
/// the sequences that everybody has.
#[test]
fn section_6_5_the_mandatory_sequences_suffice() {
    let mut pair = Pair::new();
    let mut said = Vec::new();
    let mut exchange = |pair: &mut Pair| {
        loop {
            let (there, back) = (out(&mut pair.a), out(&mut pair.b));
            if there.is_empty() && back.is_empty() {
                return;
            }
            let controls = there.iter().chain(&back).filter(|chunk| chunk.ppid == 17);
            said.extend(controls.map(|chunk| chunk.body()[..2].to_vec()));
            there.iter().for_each(|chunk| pair.b.receive(chunk));
            back.iter().for_each(|chunk| pair.a.receive(chunk));
            // All of it has arrived.
            pair.a.association.dry();
            pair.b.association.dry();
        }
    };
    pair.a.bind(S);
    pair.a.association.initiate(S, b"", false).unwrap();
    exchange(&mut pair);
    pair.b.bind(S);
    pair.b.association.accept(S, b"").unwrap();
    exchange(&mut pair);
    pair.b.post(1, span(0x8000, 8));
    let source = pair.b.open(span(0, 900), rpcrdma_fabric::Access::Read);
    let window = pair
        .b
        .open(span(0x4000, 900), rpcrdma_fabric::Access::Write);
    let endpoint = pair.a.endpoint();
    endpoint.write(span(0, 900), window, WorkId(1)).unwrap();
    endpoint.read(span(0xA000, 900), source, WorkId(2)).unwrap();
    endpoint
        .send(&[span(0, 8)], None, false, WorkId(3))
        .unwrap();
    exchange(&mut pair);
    let told = pair.a.heard();
    assert_eq!(told[1..], [Told::Done(1), Told::Done(2), Told::Done(3)]);
    pair.a.end(S);
    exchange(&mut pair);
    assert_eq!(said, [[0, 1], [0, 2], [0, 4], [0, 4]]);
}
