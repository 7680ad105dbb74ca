//! One scenario for each ruling that is about behaviour in time, named after it.

mod answers;
mod calls;
mod credits;
mod invalidation;
mod properties;
mod teardown;
mod versions;

use rpcrdma_engine::{Setup, Side};
use rpcrdma_sim::scene::{Scene, message, no_lists, plain};
use rpcrdma_wire::emit::{emit_connprop, emit_error};
use rpcrdma_wire::{Direction, ErrorBody, Procedure, Version, Xid};

/// A client or server of version one.
fn one(side: Side) -> Setup {
    Setup {
        version_max: Version::One,
        ..Setup::new(side)
    }
}

/// A client or server of version two that does not speak of properties.
fn two(side: Side) -> Setup {
    Setup {
        properties: false,
        ..Setup::new(side)
    }
}

/// A Call without chunks.
fn call(version: Version, xid: u32) -> Vec<u8> {
    plain(version, Direction::Call, xid, 32, 40)
}

/// A Reply without chunks that grants `credits`.
fn reply(version: Version, xid: u32, credits: u32) -> Vec<u8> {
    plain(version, Direction::Reply, xid, credits, 24)
}

/// An ERROR.
fn error(vers: u32, xid: u32, body: ErrorBody) -> Vec<u8> {
    let mut buf = vec![0; 64];
    let len = emit_error(&mut buf, vers, Xid(xid), 1, body).expect("room");
    buf.truncate(len);
    buf
}

/// A CONNPROP with these properties and words of `rdma_nochg`.
fn connprop(properties: &[(u32, u32)], nochg: &[u32]) -> Vec<u8> {
    let data: Vec<(u32, [u8; 4])> = properties
        .iter()
        .map(|(id, value)| (*id, value.to_be_bytes()))
        .collect();
    let set = data.iter().map(|(id, data)| (*id, data.as_slice()));
    let mut buf = vec![0; 256];
    let words = nochg.iter().copied();
    let len = emit_connprop(&mut buf, Xid(0xC0), 99, set, words).expect("room");
    buf.truncate(len);
    buf
}

/// RBSIZ and BRS of a peer that takes all defaults.
const DEFAULTS: [(u32, u32); 2] = [(1, 4096), (2, 1)];

/// A version-two client or server that has exchanged properties with its peer.
fn acquainted(scene: &mut Scene<'_>, properties: &[(u32, u32)], nochg: &[u32]) {
    scene.tell(&connprop(properties, nochg));
    scene.heard();
    while let Some(event) = scene.event() {
        assert_eq!(event, rpcrdma_engine::Event::Property);
    }
    while scene
        .with(|engine, _| engine.take_property_event())
        .is_some()
    {}
}

/// The error in a message.
fn error_in(message: &[u8]) -> ErrorBody {
    match rpcrdma_sim::scene::header(message).body {
        rpcrdma_wire::Body::Error(error) => error,
        other => panic!("{other:?} is no error"),
    }
}

/// A NOMSG or MSG Call with one Read chunk.
fn call_with_read(
    version: Version,
    xid: u32,
    position: u32,
    segment: rpcrdma_wire::Segment,
) -> Vec<u8> {
    let lists = |header: &mut rpcrdma_wire::Emitter<'_>| {
        header.direction(Direction::Call, None);
        header.read(position, segment).end_reads().end_writes();
        header.reply_chunk(None::<std::iter::Empty<rpcrdma_wire::Segment>>);
    };
    let payload = rpcrdma_sim::scene::rpc(Direction::Call, xid, 40);
    match position {
        0 => message(version, Procedure::NoMsg, (xid, 32), lists, &[]),
        _ => message(version, Procedure::Msg, (xid, 32), lists, &payload),
    }
}

/// A Call with these Write chunks and this Reply chunk.
fn call_with_rooms(
    version: Version,
    xid: u32,
    writes: &[&[rpcrdma_wire::Segment]],
    reply: Option<&[rpcrdma_wire::Segment]>,
) -> Vec<u8> {
    let lists = |header: &mut rpcrdma_wire::Emitter<'_>| {
        header.direction(Direction::Call, None);
        header.end_reads();
        for chunk in writes {
            header.write_chunk(chunk.iter().copied());
        }
        header.end_writes();
        header.reply_chunk(reply.map(|chunk| chunk.iter().copied()));
    };
    let payload = rpcrdma_sim::scene::rpc(Direction::Call, xid, 40);
    message(version, Procedure::Msg, (xid, 32), lists, &payload)
}

/// A message of any procedure without chunks.
fn raw(version: Version, procedure: Procedure, xid: u32, direction: Direction) -> Vec<u8> {
    message(version, procedure, (xid, 1), no_lists(direction), &[])
}
