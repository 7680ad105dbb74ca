//! Everything that a peer can do wrong, what it is called, and what goes back: RFC 5040 section
//! 4.8 (figures 9 and 10), RFC 5041 section 7. The codes are written out here once more, from the
//! texts.

mod cases;

use crate::support::*;
use cases::{Back, CASES, Case, RESPONSE, SEND, Shown, asked};
use rpcrdma_fabric::{Access, WorkError, WorkId};
use rpcrdma_iwarp::{End, Phase, Reject};

/// Runs a case, and gives what went back.
fn run(case: &Case) -> (Pair, Vec<Chunk>, Vec<Chunk>) {
    let mut pair = Pair::open();
    pair.b.post(1, span(0x8000, 100));
    let chunks = (case.chunks)(&mut pair);
    chunks.iter().for_each(|chunk| pair.b.receive(chunk));
    let heard = pair.b.heard();
    let ended = Told::Ended(End::Reject(case.reject));
    assert_eq!(heard.last(), Some(&ended), "{:?}", case.reject);
    let receive = Told::Failed(1, WorkError::Flushed);
    assert!(heard.contains(&receive), "{:?}", case.reject);
    assert_eq!(pair.b.rejects(case.reject), 1);
    pair.b.pump();
    let back = std::mem::take(&mut pair.b.out.chunks);
    (pair, chunks, back)
}

#[test]
fn each_has_its_answer() {
    for case in CASES {
        let (pair, chunks, back) = run(case);
        let name = case.reject.name();
        assert_eq!(back.len(), 2, "{name}");
        assert_eq!(back[1].body(), [0, 4], "{name}");
        assert_eq!(pair.b.phase(), Phase::Closing, "{name}");
        // Control, RDMAP control, no STag, queue 2, message 1, offset 0.
        let head = [
            &[0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1][..],
            &[0; 4],
        ]
        .concat();
        assert_eq!(back[0].body()[..18], head, "{name}");
        let (layer, kind, code, shown) = match case.back {
            Back::Session => (0, 2, 7, Shown::Nothing),
            Back::Terminate(layer, kind, code, shown) => (layer, kind, code, shown),
        };
        let wrong = chunks.last().unwrap().body();
        let bits = match shown {
            Shown::Nothing => 0,
            Shown::Segment => 0xC0,
            Shown::Request => 0xE0,
        };
        let mut wanted = vec![layer << 4 | kind, code, bits, 0];
        if shown != Shown::Nothing {
            wanted.extend((wrong.len() as u16).to_be_bytes());
            let header = if wrong[0] & 0x80 == 0 { 18 } else { 14 };
            wanted.extend(&wrong[..header]);
        }
        if shown == Shown::Request {
            wanted.extend(&wrong[18..]);
        }
        assert_eq!(back[0].body()[18..], wanted, "{name}");
    }
}

/// Every name is in the table above, or has a test of its own in `session`.
#[test]
fn none_is_forgotten() {
    let elsewhere = [
        Reject::SegmentSequence,
        Reject::CrossedInitiates,
        Reject::TooManyPending,
        Reject::TooFewReads,
    ];
    for reject in Reject::ALL {
        let here = CASES.iter().any(|case| case.reject == *reject);
        assert!(here || elsewhere.contains(reject), "{reject:?}");
    }
    let names: std::collections::HashSet<_> = Reject::ALL.iter().map(|it| it.name()).collect();
    assert_eq!(names.len(), Reject::COUNT);
}

/// The peer's side of it: RDMAP's Terminate is heard, the session ends, and Reads that were out
/// fail by what it says.
#[test]
fn the_peer_hears_why() {
    for case in CASES {
        let (mut pair, _, back) = run(case);
        pair.a.post(9, span(0, 8));
        if back[0].ssn() == 2 {
            // Number 1 asked for a Read, and was taken away.
            pair.a.receive(&tagged(1, 0, true, (0, 0), b""));
        }
        back.iter().for_each(|chunk| pair.a.receive(chunk));
        let heard = pair.a.heard();
        let Some(Told::Ended(End::Terminated(terminate))) = heard.last() else {
            panic!("{}: {heard:?}", case.reject.name());
        };
        if let Back::Terminate(layer, kind, code, shown) = case.back {
            let said = terminate.code;
            assert_eq!(
                (said.layer, said.error_type, said.error_code),
                (layer, kind, code)
            );
            assert_eq!(terminate.of_request, shown == Shown::Request);
        }
        assert_eq!(heard[0], Told::Failed(9, WorkError::Flushed));
        pair.exchange();
        for side in [&mut pair.a, &mut pair.b] {
            side.association.dry();
        }
        assert_eq!(pair.a.phase(), Phase::Idle);
    }
}

/// RFC 5041 section 7.1: the rest is dropped in silence, and places nothing.
#[test]
fn section_7_1_of_rfc_5041_what_follows_an_error_is_dropped() {
    let mut pair = Pair::open();
    pair.b.post(1, span(0x8000, 8));
    let window = pair.b.open(span(0x8000, 8), Access::Write);
    let before = pair.b.ram.at(span(0x8000, 8)).to_vec();
    pair.b.receive(&untagged(1, SEND, true, (7, 1, 0), b""));
    pair.b.told.clear();
    pair.b.receive(&untagged(2, SEND, true, (0, 1, 0), b"send"));
    pair.b.receive(&tagged(
        3,
        0,
        true,
        (window.handle.0, window.offset),
        b"write",
    ));
    pair.b
        .receive(&untagged(9, 99, true, (5, 5, 5), b"nonsense"));
    assert_eq!(pair.b.heard(), []);
    assert_eq!(pair.b.ram.at(span(0x8000, 8)), before);
    assert_eq!(pair.b.association.counts().dropped, 3);
    assert_eq!(pair.b.association.counts().rejects.iter().sum::<u64>(), 1);
}

/// RFC 5040 section 7.1, rule 4: the first error is the one that is told.
#[test]
fn section_7_1_of_rfc_5040_rule_4_the_first_error_is_told() {
    let mut pair = Pair::open();
    pair.b.receive(&untagged(2, SEND, true, (7, 1, 0), b""));
    pair.b.receive(&tagged(1, 0, true, (0xBAD, 0), b"x"));
    pair.b.pump();
    assert_eq!(pair.b.out.chunks[0].octets[20..22], [0x12, 0x01]);
}

/// A segment is shown only if it is the one that was wrong.
#[test]
fn section_7_1_of_rfc_5040_no_other_segment_is_shown() {
    let mut pair = Pair::open();
    let sink = asked(&mut pair);
    pair.b
        .receive(&tagged(2, RESPONSE, true, (sink, 0), &[1; 7]));
    assert_eq!(pair.b.heard(), []);
    pair.b.receive(&tagged(1, 0, true, (0, 0), b""));
    pair.b.pump();
    // Layer 1, type 1, code 1, and nothing behind it.
    assert_eq!(pair.b.out.chunks[0].octets[20..], [0x11, 1, 0, 0]);
}

/// Work fails by what the peer says only if it was on its way.
#[test]
fn what_was_not_sent_is_flushed() {
    let mut pair = Pair::open();
    let source = pair.a.open(span(0, 8), Access::Read);
    pair.b
        .endpoint()
        .read(span(0, 8), source, WorkId(1))
        .unwrap();
    let terminate = untagged(1, 7, true, (2, 1, 0), &[0x01, 0, 0, 0]);
    pair.b.receive(&terminate);
    assert_eq!(pair.b.heard()[0], Told::Failed(1, WorkError::Flushed));
}

/// RFC 5042 section 6.3.5: a Read's sink is no buffer that can be written, and the reverse.
#[test]
fn section_6_3_5_of_rfc_5042_sinks_and_windows_are_apart() {
    let mut pair = Pair::open();
    let sink = asked(&mut pair);
    pair.b.receive(&tagged(1, 0, true, (sink, 0), b"12345678"));
    let invalid = Told::Ended(End::Reject(Reject::StagInvalid));
    assert_eq!(pair.b.heard().last(), Some(&invalid));

    let mut pair = Pair::open();
    let window = pair.b.open(span(0, 8), Access::Write);
    asked(&mut pair);
    pair.b.receive(&tagged(
        1,
        RESPONSE,
        true,
        (window.handle.0, window.offset),
        b"12345678",
    ));
    assert_eq!(pair.b.heard().last(), Some(&invalid));
}

/// A response's data after its end, and a response that is told twice.
#[test]
fn section_5_2_2_a_response_ends_once() {
    let mut pair = Pair::open();
    let sink = asked(&mut pair);
    pair.b
        .receive(&tagged(1, RESPONSE, true, (sink, 0), b"12345678"));
    assert_eq!(pair.b.heard(), [Told::Done(50)]);
    pair.b
        .receive(&tagged(2, RESPONSE, false, (sink, 0), b"87654321"));
    assert_eq!(pair.b.ram.at(span(0, 8)), b"12345678");
    let invalid = Told::Ended(End::Reject(Reject::StagInvalid));
    assert_eq!(pair.b.heard(), [invalid]);
}

/// RFC 5042 section 6.3.2: no message is delivered with octets that were there before.
#[test]
fn section_6_3_2_of_rfc_5042_nothing_stale_is_delivered() {
    for (first, second) in [
        ((0, 4), (5, 3)),
        ((0, 5), (4, 4)),
        ((0, 4), (0, 4)),
        ((2, 2), (4, 4)),
    ] {
        let mut pair = Pair::open();
        pair.b.post(1, span(0x8000, 100));
        for (ssn, last, (mo, len)) in [(1, false, first), (2, true, second)] {
            let payload = vec![b'!'; len];
            pair.b
                .receive(&untagged(ssn, SEND, last, (0, 1, mo), &payload));
        }
        let gaps = Told::Ended(End::Reject(Reject::MessageGaps));
        assert_eq!(pair.b.heard().last(), Some(&gaps), "{first:?} {second:?}");
    }
}

/// A Terminate that cannot be read ends the session all the same.
#[test]
fn a_terminate_of_less_than_4_octets() {
    let mut pair = Pair::open();
    pair.b.receive(&untagged(1, 7, true, (2, 1, 0), b"abc"));
    assert!(matches!(pair.b.heard()[..], [Told::Ended(End::Reject(_))]));
    let mut pair = Pair::open();
    pair.b
        .receive(&untagged(1, 7, true, (2, 1, 0), &[0x21, 0x42, 0, 0]));
    let heard = pair.b.heard();
    assert!(
        matches!(heard[..], [Told::Ended(End::Terminated(_))]),
        "{heard:?}"
    );
    // No Terminate is answered by one of RDMAP.
    pair.b.pump();
    assert_eq!(pair.b.out.chunks, [control(1, 4, b"")]);
}
