//! How an RPC Call is to be laid into a message: inline, with Read chunks, or as a long Call.
//!
//! Only counting happens here, so that a Call which cannot be sent is refused before anything
//! of it is exposed.

use crate::api::{MAX_PARTS, Part};
use crate::work::Span;
use arrayvec::ArrayVec;
use rpcrdma_wire::{Version, emit::message_bytes};

/// Most segments, so most exposures, of one Call of ours.
pub(crate) const MAX_SEGMENTS: usize = 24;
/// Room for the longest header this side makes for a Call: 24 Read segments.
pub(crate) const HEADER_BYTES: usize = 1024;

/// The octets of XDR padding after `len` octets.
#[inline]
pub(crate) fn pad(len: u32) -> u32 {
    len.wrapping_neg() & 3
}

/// The octets that a message lacks at its end: the padding of a data item that ends it.
#[inline]
pub(crate) fn tail(parts: &[Part]) -> u32 {
    match parts.last() {
        Some(part) if part.item => pad(part.span.len),
        _ => 0,
    }
}

/// The next multiple of four.
#[inline]
pub(crate) fn round_up(len: u64) -> u64 {
    len.saturating_add(3) & !3
}

/// How a Call travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// All of it in the message.
    Inline,
    /// Its eligible items as Read chunks, the rest in the message.
    Reduced,
    /// Nothing in the message: position-zero chunk, and the eligible items as Read chunks.
    Long,
}

/// One run of a Call's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Where in the un-reduced stream it begins, octets.
    pub(crate) position: u32,
    /// Where it is in memory.
    pub(crate) span: Span,
    /// It may go by itself.
    pub(crate) item: bool,
}

/// The runs of `parts`; with `reduce`, items keep no padding in the stream around them.
///
/// Contiguous runs that are not items become one.
pub(crate) fn runs(parts: &[Part], reduce: bool) -> ArrayVec<Run, MAX_PARTS> {
    let mut runs = ArrayVec::<Run, MAX_PARTS>::new();
    let (mut position, mut skip) = (0u32, 0u32);
    for part in parts {
        let item = part.item && reduce;
        let span = part.span.skip(skip);
        let begins = position.saturating_add(part.span.len.min(skip));
        position = position.saturating_add(part.span.len);
        skip = if item { pad(part.span.len) } else { 0 };
        match runs.last_mut() {
            _ if span.len == 0 => {}
            Some(last) if !item && !last.item && follows(last.span, span) => {
                last.span.len = last.span.len.saturating_add(span.len);
            }
            _ => runs.extend(
                [Run {
                    position: begins,
                    span,
                    item,
                }]
                .into_iter()
                .take(1),
            ),
        }
    }
    runs
}

fn follows(first: Span, second: Span) -> bool {
    first.offset.wrapping_add(u64::from(first.len)) == second.offset
}

/// How many segments of at most `segment_bytes` hold `len` octets.
pub(crate) fn segments(len: u32, segment_bytes: u32) -> usize {
    len.div_ceil(segment_bytes.max(1)) as usize
}

/// The pieces of `span`, each at most `segment_bytes` long.
pub(crate) fn pieces(span: Span, segment_bytes: u32) -> impl Iterator<Item = Span> {
    let step = segment_bytes.max(1);
    let starts = (0..span.len).step_by(step as usize);
    starts.map(move |from| span.skip(from).first(step))
}

/// The counts from which a Call's shape follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outline {
    pub(crate) shape: Shape,
    /// Of the header, octets.
    pub(crate) header_bytes: usize,
    /// Segments to expose, in all.
    pub(crate) segments: usize,
}

impl Outline {
    /// The shape for a message of at most `limit` octets; `None` where no header can say it.
    pub(crate) fn of(
        version: Version,
        limit: u32,
        segment_bytes: u32,
        parts: &[Part],
        results: &[Span],
        reply: Option<Span>,
    ) -> Option<Self> {
        let total: u64 = parts.iter().map(|part| u64::from(part.span.len)).sum();
        let count = |span: &Span| segments(span.len, segment_bytes);
        let write_segments: usize = results.iter().map(count).sum();
        let reply_segments = reply.as_ref().map(count);
        let header = |reads| {
            message_bytes(
                version,
                reads,
                results.len(),
                write_segments,
                reply_segments,
            )
        };
        let chunks = write_segments.saturating_add(reply_segments.unwrap_or(0));
        let fits = |header: usize, body: u64| body.saturating_add(header as u64) <= limit.into();
        let outline = |shape, reads| Self {
            shape,
            header_bytes: header(reads),
            segments: chunks.saturating_add(reads),
        };
        let whole = outline(Shape::Inline, 0);
        if fits(whole.header_bytes, total.saturating_add(tail(parts).into())) {
            return whole.possible(limit);
        }
        let reduced = runs(parts, true);
        let (mut items, mut rest, mut body) = (0usize, 0usize, 0u64);
        for run in &reduced {
            let n = segments(run.span.len, segment_bytes);
            if run.item {
                items = items.saturating_add(n);
            } else {
                rest = rest.saturating_add(n);
                body = body.saturating_add(run.span.len.into());
            }
        }
        let short = outline(Shape::Reduced, items);
        if items > 0 && fits(short.header_bytes, body) {
            return short.possible(limit);
        }
        outline(Shape::Long, items.saturating_add(rest)).possible(limit)
    }

    fn possible(self, limit: u32) -> Option<Self> {
        let header_fits = self.header_bytes <= HEADER_BYTES.min(limit as usize);
        (header_fits && self.segments <= MAX_SEGMENTS).then_some(self)
    }
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "numbers far below the limits"
)]
mod tests;
