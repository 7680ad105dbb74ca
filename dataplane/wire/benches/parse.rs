//! What it costs to parse and check a header, beside a floor for it: reading every word of the
//! same header with a check that it is there, and doing nothing with it. And beside the oracle
//! of the tests, which does the same work in the simplest way.
#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "the oracle's numbers are small"
)]

#[path = "../tests/oracle/mod.rs"]
mod oracle;

use criterion::{Criterion, criterion_group, criterion_main};
use rpcrdma_wire::{
    Body, Direction, Emitter, Handle, Header, Limits, Procedure, Reject, Segment, Version, Xid,
    message_bytes, parse, rpc,
};
use std::hint::black_box;

const XID: Xid = Xid(0x0102_0304);

fn segment(handle: u32) -> Segment {
    Segment {
        handle: Handle(handle),
        length: 4096,
        offset: 0x7F00_0000_1000,
    }
}

/// An MSG Call: a header with as many one-segment chunks, and the head of an RPC Call.
fn message(version: Version, reads: u32, writes: u32) -> Vec<u8> {
    let mut buf = vec![0; 512];
    let mut out = Emitter::new(&mut buf);
    out.start(version, XID, 32, Procedure::Msg);
    out.direction(Direction::Call, (reads > 0).then_some(Handle(1)));
    for read in 0..reads {
        out.read(40 + read * 4096, segment(1 + read));
    }
    out.end_reads();
    for write in 0..writes {
        out.write_chunk(std::iter::once(segment(100 + write)));
    }
    out.end_writes();
    out.reply_chunk(None::<std::iter::Empty<Segment>>);
    let header = out.finish().unwrap();
    assert_eq!(
        header,
        message_bytes(
            version,
            reads as usize,
            writes as usize,
            writes as usize,
            None
        )
    );
    let call = rpc::emit_call(&mut buf[header..], XID, 100_003, 3, 7).unwrap();
    buf.truncate(header + call);
    buf
}

/// What a receiver does next with a header: branches on its body and looks at its parts.
#[inline(always)]
fn used(header: Result<Header<'_>, Reject>) -> usize {
    match header {
        Ok(header) => match header.body {
            Body::Msg(lists) => {
                let reply = lists.reply.map_or(0, <[_]>::len);
                let chunks = lists.reads.len() + lists.writes.len() + reply;
                chunks + header.xid.0 as usize + header.header_bytes + header.payload.len()
            }
            _ => header.header_bytes,
        },
        Err(reject) => reject.index(),
    }
}

fn floor(header: &[u8]) -> Option<u32> {
    let mut rest = header;
    let mut words: u32 = 0;
    while let Some((word, after)) = rest.split_first_chunk::<4>() {
        words ^= u32::from_be_bytes(black_box(*word));
        rest = after;
    }
    rest.is_empty().then_some(words)
}

fn benches(c: &mut Criterion) {
    let limits = Limits::default();
    let slow = oracle::Limit {
        reads: 16,
        chunks: 8,
        segments: 16,
        call: u128::from(limits.call_bytes),
        reply: u128::from(limits.reply_bytes),
        properties: 32,
        data: 256,
    };
    let cases = [
        ("null/v1", message(Version::One, 0, 0)),
        ("null/v2", message(Version::Two, 0, 0)),
        ("read+write/v1", message(Version::One, 1, 1)),
        ("read+write/v2", message(Version::Two, 1, 1)),
        ("4 reads+2 writes/v1", message(Version::One, 4, 2)),
    ];
    for (name, message) in &cases {
        let bytes = parse(message, &limits).unwrap().header_bytes;
        c.bench_function(&format!("parse/{name} ({bytes} octets)"), |b| {
            b.iter(|| used(parse(black_box(message), black_box(&limits))));
        });
        c.bench_function(&format!("oracle/{name} ({bytes} octets)"), |b| {
            b.iter(|| oracle::consult(black_box(message), black_box(&slow)));
        });
        c.bench_function(&format!("floor/{name} ({bytes} octets)"), |b| {
            b.iter(|| floor(black_box(&message[..bytes])));
        });
    }
}

criterion_group!(group, benches);
criterion_main!(group);
