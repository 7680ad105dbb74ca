//! The chunk plan of a Call that came with Read chunks: where in the assembled Call each octet
//! belongs, so that every RDMA Read goes straight to its place.
//!
//! The assembled Call is the un-reduced XDR stream. A Read chunk of position *p* and length *n*
//! stands at *p* to *p + n*, padding to a multiple of four after it; what is left is filled, in
//! order, from the message's body or, in a NOMSG, from the position-zero chunk (RFC 8166 3.4.5,
//! 3.5.3). `wire` has checked that all of this fits; here it is only carried out.

use crate::outline::{pad, round_up};
use arrayvec::ArrayVec;
use rpcrdma_wire::{ReadSegment, Segment};

/// Most Read segments a Call may have; limits are clamped to it.
pub(crate) const MAX_READS: usize = 32;

/// One Read chunk that is not at position zero of a NOMSG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk {
    position: u32,
    len: u32,
}

/// A run of the assembled Call that comes from the body or the position-zero chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    /// Where in the assembled Call.
    pub(crate) to: u32,
    /// Where in the body.
    pub(crate) from: u32,
    /// In octets.
    pub(crate) len: u32,
}

/// Where everything goes.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// By position.
    chunks: ArrayVec<Chunk, MAX_READS>,
    /// Of the body or the position-zero chunk, octets.
    body: u32,
    /// Of the assembled Call, octets.
    pub(crate) total: u32,
    /// A NOMSG: position zero is the body.
    long: bool,
}

impl Layout {
    /// The plan for a checked Read list. `payload` is the length of the inline body; `None` for
    /// a NOMSG.
    pub(crate) fn of(reads: &[ReadSegment], payload: Option<u32>) -> Option<Self> {
        let long = payload.is_none();
        let mut chunks = ArrayVec::<Chunk, MAX_READS>::new();
        let mut body = payload.unwrap_or(0);
        for read in reads {
            let (position, len) = (read.position(), read.target().length);
            if long && position == 0 {
                body = body.checked_add(len)?;
                continue;
            }
            match chunks.iter_mut().find(|chunk| chunk.position == position) {
                Some(chunk) => chunk.len = chunk.len.checked_add(len)?,
                None => chunks.try_push(Chunk { position, len }).ok()?,
            }
        }
        chunks.sort_unstable_by_key(|chunk| chunk.position);
        let data: u64 = chunks.iter().map(|chunk| round_up(chunk.len.into())).sum();
        let total = u32::try_from(data.saturating_add(body.into())).ok()?;
        Some(Self {
            chunks,
            body,
            total,
            long,
        })
    }

    /// The runs between the chunks, in order.
    pub(crate) fn fills(&self) -> impl Iterator<Item = Fill> + '_ {
        let ends = self
            .chunks
            .iter()
            .map(|chunk| (chunk.position, round_up(chunk.len.into())));
        let ends = ends.chain([(self.total, 0)]);
        let (mut to, mut from) = (0u32, 0u32);
        ends.filter_map(move |(position, skip)| {
            let len = position
                .saturating_sub(to)
                .min(self.body.saturating_sub(from));
            let fill = Fill { to, from, len };
            from = from.saturating_add(len);
            to = u32::try_from(u64::from(position).saturating_add(skip)).unwrap_or(u32::MAX);
            (len > 0).then_some(fill)
        })
    }

    /// Where the padding of each chunk goes, and how much of it there is.
    pub(crate) fn pads(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let pads = self
            .chunks
            .iter()
            .map(|chunk| (chunk.position.saturating_add(chunk.len), pad(chunk.len)));
        pads.filter(|&(_, len)| len > 0)
    }

    /// Every RDMA Read: where in the assembled Call, and from where. The order is that of the
    /// list, so that a plan can be taken up again at a number.
    pub(crate) fn reads<'a>(
        &'a self,
        reads: &'a [ReadSegment],
    ) -> impl Iterator<Item = (u32, Segment)> + 'a {
        let plain = reads
            .iter()
            .enumerate()
            .filter(|(_, read)| !self.is_body(read));
        let plain = plain.map(|(index, read)| {
            let before = reads
                .iter()
                .take(index)
                .filter(|other| other.position() == read.position());
            let before: u32 = before
                .map(|other| other.target().length)
                .fold(0, u32::saturating_add);
            (read.position().saturating_add(before), read.target())
        });
        let body = reads.iter().filter(|read| self.is_body(read));
        plain
            .chain(self.scatter(body))
            .filter(|(_, segment)| segment.length > 0)
    }

    fn is_body(&self, read: &ReadSegment) -> bool {
        self.long && read.position() == 0
    }

    /// The position-zero segments, cut where the chunks inside the Call stand.
    fn scatter<'a>(
        &'a self,
        segments: impl Iterator<Item = &'a ReadSegment> + 'a,
    ) -> impl Iterator<Item = (u32, Segment)> + 'a {
        let mut from = 0u32;
        segments.flat_map(move |read| {
            let begins = from;
            let target = read.target();
            from = from.saturating_add(target.length);
            let ends = from;
            self.fills()
                .filter_map(move |fill| cut(fill, begins, ends, target))
        })
    }
}

/// The part of a position-zero segment, octets `begins` to `ends` of the body, that `fill` takes.
fn cut(fill: Fill, begins: u32, ends: u32, target: Segment) -> Option<(u32, Segment)> {
    let first = fill.from.max(begins);
    let last = fill.from.saturating_add(fill.len).min(ends);
    let length = last.checked_sub(first).filter(|&length| length > 0)?;
    let offset = target
        .offset
        .wrapping_add(first.wrapping_sub(begins).into());
    let to = fill.to.saturating_add(first.wrapping_sub(fill.from));
    Some((
        to,
        Segment {
            handle: target.handle,
            length,
            offset,
        },
    ))
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "numbers far below the limits"
)]
mod tests;
