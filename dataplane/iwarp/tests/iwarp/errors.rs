//! Everything that a peer can do wrong, what it is called, and what goes back: RFC 5040 section
//! 4.8 (figures 9 and 10), RFC 5041 section 7. The codes are written out here once more, from the
//! texts.

use crate::support::*;
use rpcrdma_fabric::{Access, WorkError, WorkId};
use rpcrdma_iwarp::rdmap::ReadRequest;
use rpcrdma_iwarp::{End, Phase, Reject, Scope, Stag};

/// What goes back.
#[derive(Clone, Copy)]
enum Back {
    /// Layer, type and code; the header is shown, or the header and the Read Request.
    Terminate(u8, u8, u8, Shown),
    /// The session's Terminate, and before it RDMAP's "something is wrong with the stream".
    Session,
}

#[derive(Clone, Copy, PartialEq)]
enum Shown {
    Nothing,
    Segment,
    Request,
}

struct Case {
    reject: Reject,
    back: Back,
    /// Makes the last of its chunks the wrong one.
    chunks: fn(&mut Pair) -> Vec<Chunk>,
}

const READ_REQUEST: u8 = 1;
const RESPONSE: u8 = 2;
const SEND: u8 = 3;
const SEND_INVALIDATE: u8 = 4;

fn read_request(ssn: u16, msn: u32, request: ReadRequest) -> Chunk {
    untagged(ssn, READ_REQUEST, true, (1, msn, 0), &request.octets())
}

/// A Read Request of `b`'s buffer, changed by `change`.
fn bad_read(pair: &mut Pair, access: Access, change: fn(&mut ReadRequest)) -> Vec<Chunk> {
    let segment = pair.b.open(span(0, 64), access);
    let mut request = ReadRequest {
        sink: Stag(5),
        sink_to: 6,
        size: 64,
        source: segment.handle.into(),
        source_to: segment.offset,
    };
    change(&mut request);
    vec![read_request(1, 1, request)]
}

/// A Write to `b`'s buffer.
fn bad_write(pair: &mut Pair, access: Access, len: usize, to: impl Fn(u64) -> u64) -> Vec<Chunk> {
    let segment = pair.b.open(span(0, 64), access);
    let to = to(segment.offset);
    vec![tagged(1, 0, true, (segment.handle.0, to), &vec![7; len])]
}

/// A buffer of `b`'s that is for somebody else.
fn foreign(pair: &mut Pair, access: Access) -> rpcrdma_fabric::Segment {
    let stags = &mut pair.b.stags;
    stags
        .open(party(9), Scope::Stream, span(0, 64), access)
        .unwrap()
}

/// Lets `b` ask for a Read of 8 octets; the request's sink.
fn asked(pair: &mut Pair) -> u32 {
    let source = pair.a.open(span(0, 8), Access::Read);
    pair.b
        .endpoint()
        .read(span(0, 8), source, WorkId(50))
        .unwrap();
    pair.b.pump();
    let request = pair.b.out.chunks.pop().unwrap();
    u32::from_be_bytes(request.octets[20..24].try_into().unwrap())
}

fn with_control(mut chunk: Chunk, ddp: u8, rdmap: u8) -> Chunk {
    chunk.octets[2] = ddp;
    chunk.octets[3] = rdmap;
    chunk
}

const fn ddp_tagged(code: u8) -> Back {
    Back::Terminate(1, 1, code, Shown::Segment)
}

const fn ddp_untagged(code: u8) -> Back {
    Back::Terminate(1, 2, code, Shown::Segment)
}

const fn protection(code: u8) -> Back {
    Back::Terminate(0, 1, code, Shown::Request)
}

const fn operation(code: u8) -> Back {
    Back::Terminate(0, 2, code, Shown::Segment)
}

/// In the order of [`Reject::ALL`].
const CASES: &[Case] = &[
    Case {
        reject: Reject::ChunkShort,
        back: Back::Session,
        chunks: |_| vec![chunk(CONTROL, 1, &[0])],
    },
    Case {
        reject: Reject::ChunkLong,
        back: Back::Session,
        chunks: |_| vec![tagged(1, 0, true, (0, 0), &[0; 65_536 - 16])],
    },
    Case {
        reject: Reject::Ppid,
        back: Back::Session,
        chunks: |_| vec![chunk(18, 1, &[0x41; 20])],
    },
    Case {
        reject: Reject::SsnRepeat,
        back: Back::Session,
        chunks: |_| {
            vec![
                tagged(5, 0, true, (0, 0), b""),
                tagged(5, 0, true, (0, 0), b""),
            ]
        },
    },
    Case {
        reject: Reject::SsnJump,
        back: Back::Session,
        chunks: |_| vec![tagged(32768, 0, true, (0, 0), b"")],
    },
    Case {
        reject: Reject::FunctionCode,
        back: Back::Session,
        chunks: |_| vec![control(1, 99, b"")],
    },
    Case {
        reject: Reject::PrivateDataLong,
        back: Back::Session,
        chunks: |_| vec![control(1, 2, &[0; 513])],
    },
    Case {
        reject: Reject::PrivateDataInTerminate,
        back: Back::Session,
        chunks: |_| vec![control(1, 4, b"x")],
    },
    Case {
        reject: Reject::DepthsMissing,
        back: Back::Session,
        chunks: |_| vec![control(1, 6, b"abc")],
    },
    Case {
        reject: Reject::ControlSequence,
        back: Back::Session,
        chunks: |_| vec![control(1, 2, b"")],
    },
    Case {
        reject: Reject::SegmentShort,
        back: Back::Terminate(0, 2, 0xFF, Shown::Nothing),
        chunks: |_| vec![chunk(SEGMENT, 1, &[0x41; 17])],
    },
    Case {
        reject: Reject::StagInvalid,
        back: ddp_tagged(0),
        chunks: |_| vec![tagged(1, 0, true, (0x1234_5678, 0), b"x")],
    },
    Case {
        reject: Reject::StagRights,
        back: ddp_tagged(0),
        chunks: |pair| bad_write(pair, Access::Read, 1, |base| base),
    },
    Case {
        reject: Reject::StagBounds,
        back: ddp_tagged(1),
        chunks: |pair| bad_write(pair, Access::Write, 64, |base| base + 1),
    },
    Case {
        reject: Reject::StagBounds,
        back: ddp_tagged(1),
        chunks: |pair| bad_write(pair, Access::Write, 64, |base| base - 1),
    },
    Case {
        reject: Reject::ResponseGaps,
        back: ddp_tagged(1),
        chunks: |pair| {
            let sink = asked(pair);
            vec![tagged(1, RESPONSE, true, (sink, 0), &[1; 7])]
        },
    },
    Case {
        reject: Reject::StagForeign,
        back: ddp_tagged(2),
        chunks: |pair| {
            let segment = foreign(pair, Access::Write);
            vec![tagged(1, 0, true, (segment.handle.0, segment.offset), b"x")]
        },
    },
    Case {
        reject: Reject::StagWrap,
        back: ddp_tagged(3),
        chunks: |pair| bad_write(pair, Access::Write, 2, |_| u64::MAX),
    },
    Case {
        reject: Reject::TaggedVersion,
        back: Back::Terminate(1, 1, 4, Shown::Nothing),
        chunks: |_| vec![with_control(tagged(1, 0, true, (0, 0), b""), 0xC2, 0x40)],
    },
    Case {
        reject: Reject::QueueNumber,
        back: ddp_untagged(1),
        chunks: |_| vec![untagged(1, SEND, true, (3, 1, 0), b"")],
    },
    Case {
        reject: Reject::NoBuffer,
        back: ddp_untagged(2),
        chunks: |_| vec![untagged(1, SEND, true, (0, 2, 0), b"")],
    },
    Case {
        reject: Reject::NoBuffer,
        back: ddp_untagged(2),
        // One Read more at once than agreed on.
        chunks: |_| {
            vec![read_request(
                1,
                1 + u32::from(DEPTHS.ird),
                ReadRequest::default(),
            )]
        },
    },
    Case {
        reject: Reject::MsnRange,
        back: ddp_untagged(3),
        chunks: |_| vec![untagged(1, SEND, true, (0, 0, 0), b"")],
    },
    Case {
        reject: Reject::MsnRange,
        back: ddp_untagged(3),
        // The second message ends where the first should.
        chunks: |pair| {
            pair.b.post(2, span(0, 8));
            vec![untagged(1, SEND, true, (0, 2, 0), b"")]
        },
    },
    Case {
        reject: Reject::MessageOffset,
        back: ddp_untagged(4),
        chunks: |_| vec![untagged(1, SEND, true, (0, 1, 101), b"x")],
    },
    Case {
        reject: Reject::MessageGaps,
        back: ddp_untagged(4),
        chunks: |_| vec![untagged(1, SEND, true, (0, 1, 1), b"x")],
    },
    Case {
        reject: Reject::MessageLong,
        back: ddp_untagged(5),
        chunks: |_| vec![untagged(1, SEND, true, (0, 1, 0), &[0; 101])],
    },
    Case {
        reject: Reject::UntaggedVersion,
        back: Back::Terminate(1, 2, 6, Shown::Nothing),
        chunks: |_| {
            vec![with_control(
                untagged(1, SEND, true, (0, 1, 0), b""),
                0x40,
                0x43,
            )]
        },
    },
    Case {
        reject: Reject::RdmapVersion,
        back: operation(5),
        chunks: |_| {
            vec![with_control(
                untagged(1, SEND, true, (0, 1, 0), b""),
                0x41,
                0x83,
            )]
        },
    },
    Case {
        reject: Reject::Opcode,
        back: operation(6),
        chunks: |_| vec![untagged(1, 8, true, (0, 1, 0), b"")],
    },
    Case {
        reject: Reject::Opcode,
        back: operation(6),
        chunks: |_| vec![untagged(1, READ_REQUEST, true, (0, 1, 0), b"")],
    },
    Case {
        reject: Reject::Opcode,
        back: operation(6),
        chunks: |_| vec![tagged(1, SEND, true, (0, 1), b"")],
    },
    Case {
        reject: Reject::UnaskedResponse,
        back: operation(6),
        chunks: |_| vec![tagged(1, RESPONSE, true, (0, 0), b"")],
    },
    Case {
        reject: Reject::RequestLength,
        back: operation(0xFF),
        chunks: |_| vec![untagged(1, READ_REQUEST, true, (1, 1, 0), &[0; 27])],
    },
    Case {
        reject: Reject::SourceInvalid,
        back: protection(0),
        chunks: |pair| bad_read(pair, Access::Read, |it| it.source.0 ^= 0x8000_0000),
    },
    Case {
        reject: Reject::SourceBounds,
        back: protection(1),
        chunks: |pair| bad_read(pair, Access::Read, |it| it.size = 65),
    },
    Case {
        reject: Reject::SourceRights,
        back: protection(2),
        chunks: |pair| bad_read(pair, Access::Write, |_| {}),
    },
    Case {
        reject: Reject::SourceForeign,
        back: protection(3),
        chunks: |pair| {
            let segment = foreign(pair, Access::Read);
            let request = ReadRequest {
                size: 1,
                source: segment.handle.into(),
                source_to: segment.offset,
                ..ReadRequest::default()
            };
            vec![read_request(1, 1, request)]
        },
    },
    Case {
        reject: Reject::SourceWrap,
        back: protection(4),
        chunks: |pair| bad_read(pair, Access::Read, |it| it.source_to = u64::MAX - 62),
    },
    Case {
        reject: Reject::CannotInvalidate,
        back: Back::Terminate(0, 1, 9, Shown::Segment),
        chunks: |_| vec![untagged(1, SEND_INVALIDATE, true, (0, 1, 0), b"")],
    },
];

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

/// Every name is in the table above, or has a test of its own in `session.rs`.
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
