//! Each limit: what just fits is taken, and refused by name when the limit is one less.

use rpcrdma_wire::emit::emit_updprop;
use rpcrdma_wire::{
    Direction, Emitter, Handle, Limits, Procedure, Reject, Segment, Version, Xid, parse, rpc,
};

const XID: Xid = Xid(1);

fn segment(length: u32) -> Segment {
    Segment {
        handle: Handle(7),
        length,
        offset: 0,
    }
}

/// An MSG Call of 40 octets with these Reads at its end, Write chunks, and Reply chunk.
fn call(reads: &[u32], writes: &[&[u32]], reply: Option<&[u32]>) -> Vec<u8> {
    let mut buf = vec![0; 1024];
    let mut out = Emitter::new(&mut buf);
    out.start(Version::Two, XID, 1, Procedure::Msg);
    out.direction(Direction::Call, None);
    for read in reads {
        out.read(40, segment(*read));
    }
    out.end_reads();
    for write in writes {
        out.write_chunk(write.iter().copied().map(segment));
    }
    out.end_writes();
    out.reply_chunk(reply.map(|reply| reply.iter().copied().map(segment)));
    let header = out.finish().unwrap();
    let payload = rpc::emit_call(&mut buf[header..], XID, 1, 1, 0).unwrap();
    buf.truncate(header + payload);
    buf
}

/// `message` is taken with `limits` and refused as `reject` once `less` has tightened them.
fn check(message: &[u8], limits: Limits, reject: Reject, less: impl FnOnce(&mut Limits)) {
    assert_eq!(parse(message, &limits).err(), None, "{reject:?}");
    let mut tight = limits;
    less(&mut tight);
    assert_eq!(parse(message, &tight).err(), Some(reject));
}

/// The limits at which a message of one short segment of each kind just fits.
const ONE: Limits = Limits {
    read_segments: 1,
    write_chunks: 1,
    chunk_segments: 1,
    call_bytes: 48,
    reply_bytes: 8,
    properties: 1,
    property_bytes: 3,
};

#[test]
fn one_of_each() {
    let read = call(&[5], &[], None);
    check(&read, ONE, Reject::ReadSegments, |l| l.read_segments -= 1);
    check(&read, ONE, Reject::CallBytes, |l| l.call_bytes -= 1);
    let write = call(&[], &[&[8]], None);
    check(&write, ONE, Reject::WriteChunks, |l| l.write_chunks -= 1);
    check(&write, ONE, Reject::ChunkSegments, |l| {
        l.chunk_segments -= 1
    });
    check(&write, ONE, Reject::ReplyBytes, |l| l.reply_bytes -= 1);
    let reply = call(&[], &[], Some(&[8]));
    check(&reply, ONE, Reject::ChunkSegments, |l| {
        l.chunk_segments -= 1
    });
    check(&reply, ONE, Reject::ReplyBytes, |l| l.reply_bytes -= 1);
}

#[test]
fn several_of_each() {
    let limits = Limits {
        read_segments: 3,
        write_chunks: 2,
        chunk_segments: 2,
        call_bytes: 40 + 16,
        reply_bytes: 24,
        ..ONE
    };
    let message = call(&[1, 8, 4], &[&[8, 8], &[8]], Some(&[20, 4]));
    check(&message, limits, Reject::ReadSegments, |l| {
        l.read_segments -= 1
    });
    check(&message, limits, Reject::CallBytes, |l| l.call_bytes -= 1);
    check(&message, limits, Reject::WriteChunks, |l| {
        l.write_chunks -= 1
    });
    check(&message, limits, Reject::ChunkSegments, |l| {
        l.chunk_segments -= 1
    });
    check(&message, limits, Reject::ReplyBytes, |l| l.reply_bytes -= 1);
}

#[test]
fn properties() {
    let mut buf = [0; 64];
    let bytes = emit_updprop(&mut buf, XID, 1, [(77, &b"abc"[..])]).unwrap();
    let message = &buf[..bytes];
    check(message, ONE, Reject::TooManyProperties, |l| {
        l.properties -= 1
    });
    check(message, ONE, Reject::PropertyBytes, |l| {
        l.property_bytes -= 1
    });
}

/// A receiver that takes no chunks at all takes a message without any.
#[test]
fn none_of_each() {
    let none = Limits {
        read_segments: 0,
        write_chunks: 0,
        chunk_segments: 0,
        call_bytes: 0,
        reply_bytes: 0,
        properties: 0,
        property_bytes: 0,
    };
    assert!(parse(&call(&[], &[], None), &none).is_ok());
}
