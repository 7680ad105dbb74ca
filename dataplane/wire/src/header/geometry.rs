//! Where Read chunks go (RFC 8166 sections 3.4.5 and 4.3.1, V1-06).
//!
//! A Call is an XDR stream. Its sender takes chunks out of it ("reduces" it) and sends the rest
//! as the body: the payload of an MSG, or the position-zero Read chunk of a NOMSG. A chunk's
//! position is its offset in the stream as it was, so the octet of the *body* it goes in front
//! of is its position less the lengths of the chunks before it, each rounded up to four because
//! the padding of a reduced item leaves the stream with it.
//!
//! ```text
//!   stream   0 ........ 40 [ chunk A, 10 + 2 ] 52 ... 60 [ chunk B, 8 ] 68 .. 76
//!   body     0 ........ 40                     40 ... 48                48 .. 56
//! ```
//!
//! Positions are judged in the order of the stream, not of the list; the segments of one chunk
//! need not stand together. A chunk may end the body (its place is the body's length) but not
//! lie beyond it, and may not begin before the chunk before it has ended.
//!
//! Nothing is sorted and nothing stored: the next position is looked for each time. With the
//! Read list limited to a handful of entries that is cheaper than it sounds, and the usual
//! case of one segment (`fits`) takes no loop at all.

use crate::limits::Limits;
use crate::reject::Reject;
use crate::segment::ReadSegment;

/// What the chunks are put into.
#[derive(Clone, Copy)]
pub(super) enum Body {
    /// The payload of an MSG, so many octets.
    Payload(usize),
    /// The position-zero Read chunk of a NOMSG.
    PositionZero,
}

/// True when one chunk of one segment fits a payload of so many octets: what nearly every
/// WRITE is. [`check`] says the same, and why not.
#[inline]
pub(super) fn fits(read: &ReadSegment, payload: usize, limits: &Limits) -> bool {
    let (position, body) = (u64::from(read.position()), payload as u64);
    let call = body.saturating_add(padded(u64::from(read.length())));
    let inside = position != 0 && position.is_multiple_of(4) && position <= body;
    inside && call <= u64::from(limits.call_bytes)
}

/// Judges a Read list that is not empty.
pub(super) fn check(reads: &[ReadSegment], body: Body, limits: &Limits) -> Result<(), Reject> {
    if !reads.iter().all(|read| read.position().is_multiple_of(4)) {
        return Err(Reject::PositionUnaligned);
    }
    let at_zero = reads.iter().any(|read| read.position() == 0);
    let body = match body {
        Body::Payload(_) if at_zero => return Err(Reject::PositionZeroInMsg),
        Body::Payload(bytes) => bytes as u64,
        Body::PositionZero if !at_zero => return Err(Reject::NoPositionZero),
        Body::PositionZero => chunk_bytes(reads, 0),
    };
    // Octets of the chunks so far, padding included; and where the last of them ended.
    let mut reduced: u64 = 0;
    let mut end: u64 = 0;
    let mut last: u32 = 0;
    while let Some(next) = next_position(reads, last) {
        let position = u64::from(next);
        if position < end {
            return Err(Reject::ChunksOverlap);
        }
        // `end` is never less than `reduced`, so this cannot go below zero.
        if position.saturating_sub(reduced) > body {
            return Err(Reject::PositionBeyondBody);
        }
        let bytes = padded(chunk_bytes(reads, next));
        reduced = reduced.saturating_add(bytes);
        end = position.saturating_add(bytes);
        last = next;
    }
    if body.saturating_add(reduced) > u64::from(limits.call_bytes) {
        return Err(Reject::CallBytes);
    }
    Ok(())
}

/// The least position greater than `last`.
fn next_position(reads: &[ReadSegment], last: u32) -> Option<u32> {
    let positions = reads.iter().map(ReadSegment::position);
    positions.filter(|position| *position > last).min()
}

/// Octets of the chunk at `position`.
fn chunk_bytes(reads: &[ReadSegment], position: u32) -> u64 {
    let segments = reads.iter().filter(|read| read.position() == position);
    segments.map(|read| u64::from(read.length())).sum()
}

/// `bytes` rounded up to a multiple of four.
#[inline]
fn padded(bytes: u64) -> u64 {
    bytes.saturating_add(3) & !3
}
