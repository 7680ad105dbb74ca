//! One way, at least, to be wrong in each way there is.

use crate::support::*;
use rpcrdma_fabric::{Access, WorkId};
use rpcrdma_iwarp::rdmap::ReadRequest;
use rpcrdma_iwarp::{Reject, Scope, Stag};

/// What goes back.
#[derive(Clone, Copy)]
pub(super) enum Back {
    /// Layer, type and code; the header is shown, or the header and the Read Request.
    Terminate(u8, u8, u8, Shown),
    /// The session's Terminate, and before it RDMAP's "something is wrong with the stream".
    Session,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Shown {
    Nothing,
    Segment,
    Request,
}

pub(super) struct Case {
    pub(super) reject: Reject,
    pub(super) back: Back,
    /// Makes the last of its chunks the wrong one.
    pub(super) chunks: fn(&mut Pair) -> Vec<Chunk>,
}

const READ_REQUEST: u8 = 1;
pub(super) const RESPONSE: u8 = 2;
pub(super) const SEND: u8 = 3;
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
pub(super) fn asked(pair: &mut Pair) -> u32 {
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
pub(super) const CASES: &[Case] = &[
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
