//! How a Reply is laid out: which of its items go by which Write chunk, what is left, whether that
//! goes inline or by the Reply chunk, and which room was missing. Nothing is sent here.

use crate::api::Part;
use crate::outline::pad;
use crate::responder::Incoming;
use crate::work::{Refused, Span};
use rpcrdma_wire::emit::message_bytes;
use rpcrdma_wire::segment::RawSegment;
use rpcrdma_wire::{ChunkLists, Direction, Emitter, Handle, Procedure, Segment, Version, Xid};

/// Room for any Reply header within the limits on a Call's chunks.
pub(crate) const HEADER_BYTES: usize = 4096;

/// Octets that fit into a chunk.
pub(crate) fn room(chunk: &[RawSegment]) -> u64 {
    chunk
        .iter()
        .map(|segment| u64::from(segment.value().length))
        .sum()
}

/// The header of the Reply to a Call with these lists, octets.
pub(crate) fn reply_header_bytes(version: Version, lists: &ChunkLists<'_>) -> usize {
    let segments = lists.writes.iter().map(<[RawSegment]>::len).sum();
    message_bytes(
        version,
        0,
        lists.writes.len(),
        segments,
        lists.reply.map(<[_]>::len),
    )
}

/// How a Reply travels.
pub(crate) struct Delivery<'m> {
    pub(crate) lists: ChunkLists<'m>,
    /// Parts that go by Write chunk, by place.
    pub(crate) reduced: u32,
    pub(crate) header_bytes: usize,
    /// Octets of the rest.
    pub(crate) body: u32,
    /// The rest goes by the Reply chunk.
    pub(crate) long: bool,
}

/// The room that was missing (V2-11).
pub(crate) struct TooSmall {
    pub(crate) segment: u32,
    pub(crate) length: u32,
}

/// Decides how a Reply travels, or says which segment is too small (V2-11).
pub(crate) fn deliver<'m>(
    version: Version,
    limit: u32,
    parts: &[Part],
    lists: ChunkLists<'m>,
) -> Result<Delivery<'m>, TooSmall> {
    let (mut reduced, mut body, mut skip) = (0u32, 0u64, 0u32);
    let mut chunks = lists.writes.iter();
    let (mut small, mut index) = (SmallSegments::default(), 0u32);
    for (part, place) in parts.iter().zip(0u32..) {
        let chunk = if part.item { chunks.next() } else { None };
        body = body.saturating_add(part.span.skip(skip).len.into());
        skip = 0;
        let Some(chunk) = chunk else { continue };
        if !chunk.is_empty() {
            small.judge(chunk, u64::from(part.span.len), index);
            reduced |= 1 << (place & 31);
            body = body.saturating_sub(part.span.len.into());
            skip = pad(part.span.len);
        }
        index = index.saturating_add(u32::try_from(chunk.len()).unwrap_or(0));
    }
    for chunk in chunks {
        index = index.saturating_add(u32::try_from(chunk.len()).unwrap_or(0));
    }
    let header_bytes = reply_header_bytes(version, &lists);
    let long = body.saturating_add(header_bytes as u64) > limit.into();
    if header_bytes > HEADER_BYTES.min(limit as usize) {
        small.unknown();
    }
    if long {
        match lists.reply {
            Some(chunk) if !chunk.is_empty() => small.judge(chunk, body, index),
            _ => small.unknown(),
        }
    }
    let body = u32::try_from(body).unwrap_or(u32::MAX);
    small.none().map(|()| Delivery {
        lists,
        reduced,
        header_bytes,
        body,
        long,
    })
}

/// Collects the chunks that are too small: one can be named, several cannot.
#[derive(Default)]
struct SmallSegments {
    first: Option<TooSmall>,
    several: bool,
}

impl SmallSegments {
    /// `before` segments stand before this chunk; `needed` octets are to go into it.
    fn judge(&mut self, chunk: &[RawSegment], needed: u64, before: u32) {
        let missing = needed.saturating_sub(room(chunk));
        let Some(last) = chunk.last().filter(|_| missing > 0) else {
            return;
        };
        self.several |= self.first.is_some();
        let length = missing.saturating_add(last.value().length.into());
        let segment = before.saturating_add(u32::try_from(chunk.len()).unwrap_or(0));
        self.first = Some(match u32::try_from(length) {
            Ok(length) => TooSmall { segment, length },
            Err(_) => TooSmall {
                segment: 0,
                length: 0,
            },
        });
    }

    fn unknown(&mut self) {
        self.several = true;
        self.first = Some(TooSmall {
            segment: 0,
            length: 0,
        });
    }

    fn none(self) -> Result<(), TooSmall> {
        match self.first {
            None => Ok(()),
            Some(_) if self.several => Err(TooSmall {
                segment: 0,
                length: 0,
            }),
            Some(small) => Err(small),
        }
    }
}

/// The parts that do not go by Write chunk, less the padding of those that do.
pub(crate) fn rest(parts: &[Part], reduced: u32) -> impl Iterator<Item = Span> + '_ {
    let mut skip = 0;
    parts.iter().zip(0u32..).filter_map(move |(part, place)| {
        let span = part.span.skip(skip);
        let gone = reduced >> (place & 31) & 1 == 1;
        skip = if gone { pad(part.span.len) } else { 0 };
        (!gone && span.len > 0).then_some(span)
    })
}

/// Cuts spans over the segments of one chunk, as if they lay one after the other.
pub(crate) fn spread(
    spans: impl Iterator<Item = Span>,
    chunk: &[RawSegment],
    mut each: impl FnMut(Span, Segment) -> Result<(), Refused>,
) -> Result<(), Refused> {
    let mut segments = chunk.iter().map(RawSegment::value);
    let Some(mut room) = segments.next() else {
        return Ok(());
    };
    for mut span in spans {
        while span.len > 0 {
            if room.length == 0 {
                match segments.next() {
                    Some(next) => room = next,
                    None => return Ok(()),
                }
                continue;
            }
            let piece = span.first(room.length);
            each(
                piece,
                Segment {
                    length: piece.len,
                    ..room
                },
            )?;
            span = span.skip(piece.len);
            room.offset = room.offset.wrapping_add(piece.len.into());
            room.length = room.length.saturating_sub(piece.len);
        }
    }
    Ok(())
}

/// The parts that go by Write chunk, each with its chunk.
pub(crate) fn written_parts<'a, 'm: 'a>(
    parts: &'a [Part],
    delivery: &'a Delivery<'m>,
) -> impl Iterator<Item = (&'a Part, &'m [RawSegment])> + 'a {
    let items = parts.iter().zip(0u32..).filter(|(part, _)| part.item);
    let chunks = items.zip(delivery.lists.writes.iter());
    chunks.filter_map(|((part, place), chunk)| {
        (delivery.reduced >> (place & 31) & 1 == 1).then_some((part, chunk))
    })
}

/// The Reply's header: the Call's Write list and Reply chunk with what was written (4.3.2).
pub(crate) fn emit_header(
    octets: &mut [u8],
    version: Version,
    xid: Xid,
    credits: u32,
    call: &Incoming,
    delivery: &Delivery<'_>,
) -> Option<usize> {
    let mut header = Emitter::new(octets);
    let procedure = if delivery.long {
        Procedure::NoMsg
    } else {
        Procedure::Msg
    };
    header.start(version, xid, credits, procedure);
    header.direction(Direction::Reply, None);
    header.end_reads();
    let mut items = call.parts.iter().zip(0u32..).filter(|(part, _)| part.item);
    for chunk in delivery.lists.writes.iter() {
        let written = match items.next() {
            Some((part, place)) if delivery.reduced >> (place & 31) & 1 == 1 => part.span.len,
            _ => 0,
        };
        header.write_chunk(filled(chunk, written));
    }
    header.end_writes();
    let written = if delivery.long { delivery.body } else { 0 };
    header.reply_chunk(delivery.lists.reply.map(|chunk| filled(chunk, written)));
    header.finish()
}

/// A chunk's segments with `written` octets put into them in order.
fn filled(chunk: &[RawSegment], written: u32) -> impl ExactSizeIterator<Item = Segment> + '_ {
    let mut left = written;
    chunk.iter().map(move |segment| {
        let segment = segment.value();
        let length = segment.length.min(left);
        left = left.saturating_sub(length);
        Segment { length, ..segment }
    })
}

/// The one distinct handle in all lists of a Call, if it is one.
pub(crate) fn only_handle(lists: &ChunkLists<'_>) -> Option<Handle> {
    let reads = lists.reads.iter().map(|read| read.target());
    let writes = lists
        .writes
        .iter()
        .chain(lists.reply)
        .flatten()
        .map(RawSegment::value);
    let mut handles = reads.chain(writes).map(|segment| segment.handle);
    let first = handles.next()?;
    handles.all(|handle| handle == first).then_some(first)
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "numbers far below the limits"
)]
mod tests;
