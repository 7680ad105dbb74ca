//! Memory that an upper layer lends to its engine, and what the engine says is missing of it.

use crate::link::Desk;
use crate::message::{Message, Rpc};
use rpcrdma_engine::{Io, Part, Span};

/// Fills rooms before anything is written into them.
pub(crate) const UNWRITTEN: u8 = 0xee;

pub(crate) fn release_all(desk: &mut Desk<'_, '_>, blocks: impl Iterator<Item = Span>) {
    blocks.for_each(|block| desk.release(block));
}

/// Memory for results and Reply.
pub(crate) fn rooms(
    desk: &mut Desk<'_, '_>,
    results: &[u32],
    reply: Option<u32>,
) -> Option<(Vec<Span>, Option<Span>)> {
    let mut taken = Vec::new();
    for len in results.iter().copied().chain(reply) {
        let Some(span) = desk.reserve(len) else {
            release_all(desk, taken.into_iter());
            return None;
        };
        desk.octets_mut(span).fill(UNWRITTEN);
        taken.push(span);
    }
    let reply = reply.and_then(|_| taken.pop());
    Some((taken, reply))
}

/// A Reply in one block of memory; its first field in ordinary memory where `headed`.
pub(crate) fn lay_out(
    desk: &mut Desk<'_, '_>,
    reply: &Message,
    headed: bool,
) -> Option<(Vec<u8>, Vec<Part>, Option<Span>)> {
    let fields = &reply.0;
    let (head, rest) = match headed {
        true => (fields[0].octets.clone(), &fields[1..]),
        false => (Vec::new(), &fields[..]),
    };
    let octets: Vec<u8> = rest.iter().flat_map(|field| field.octets.clone()).collect();
    if octets.is_empty() {
        return Some((head, Vec::new(), None));
    }
    let memory = desk.reserve(u32::try_from(octets.len()).expect("short"))?;
    desk.fill(memory, &octets);
    let mut at = 0;
    let mut parts = Vec::new();
    for field in rest {
        let len = u32::try_from(field.octets.len()).expect("short");
        let span = memory.skip(at).first(len);
        parts.push(Part {
            span,
            item: field.item,
        });
        at += len;
    }
    Some((head, parts, Some(memory)))
}

/// REPLY_RESOURCE names one segment only where it is too small, and by the right length (V2-11).
pub(crate) fn check_shortage(
    rpc: &Rpc,
    rooms: &[u32],
    reply: Option<Span>,
    segment_bytes: u32,
    segment: u32,
    length: u32,
) {
    let body = rpc.reply.without(rooms).0.len();
    let mut chunks: Vec<(u32, u32)> = Vec::new();
    let items = rpc
        .reply
        .items()
        .map(|item| u32::try_from(item.len()).expect("short"));
    chunks.extend(rooms.iter().copied().zip(items.chain(std::iter::repeat(0))));
    chunks.extend(reply.map(|span| (span.len, u32::try_from(body).expect("short"))));
    if segment == 0 {
        assert_eq!(length, 0);
        return;
    }
    let mut before = 0;
    for (room, needed) in chunks {
        let segments = room.div_ceil(segment_bytes);
        before += segments;
        if segment == before && segments > 0 {
            assert!(needed > room, "segment {segment} is large enough");
            let last = room - (segments - 1) * segment_bytes;
            assert_eq!(length, last + (needed - room), "segment {segment}");
            return;
        }
    }
    panic!("there is no chunk that ends with segment {segment}");
}
