//! The three chunk lists: Read list, Write list, Reply chunk (RFC 8166 section 4.3; version two
//! has the same ones, V2-07).
//!
//! Each list is walked entry by entry, and every entry is judged as it is met: its flag, its
//! limit, and that its offset and length do not wrap. Lengths are summed in u64 and held
//! against a u32 limit at every step, so no sum can wrap.

use crate::limits::Limits;
use crate::octets::take_word;
use crate::reject::Reject;
use crate::segment::{RawSegment, ReadSegment};
use crate::types::{Direction, Handle};
use zerocopy::FromBytes;

/// The chunk lists of an MSG or a NOMSG, checked.
#[derive(Clone, Copy, Debug)]
pub struct ChunkLists<'m> {
    /// Whose xid it is: told by the header in version two, by the RPC message or by the shape of
    /// a NOMSG in version one.
    pub direction: Direction,
    /// The handle that the responder may invalidate (version two 6.2.3). In a Call it equals a
    /// handle of the lists; in a Reply there is none.
    pub inv_handle: Option<Handle>,
    /// The Read list in list order: segments of one position make one chunk, in this order.
    pub reads: &'m [ReadSegment],
    /// The Write list.
    pub writes: WriteList<'m>,
    /// The Reply chunk. `Some(&[])` is present and of length zero (V1-08).
    pub reply: Option<&'m [RawSegment]>,
}

impl<'m> ChunkLists<'m> {
    /// Settles `rdma_inv_handle`: in a Call it must equal one of the lists' handles (V2-08), in
    /// a Reply it is ignored.
    #[inline]
    pub(super) fn matched(self) -> Result<ChunkLists<'m>, Reject> {
        match self.inv_handle {
            None => Ok(self),
            Some(_) if self.direction == Direction::Reply => Ok(ChunkLists {
                inv_handle: None,
                ..self
            }),
            Some(handle) if self.handles().any(|other| other == handle) => Ok(self),
            Some(_) => Err(Reject::UnmatchedInvHandle),
        }
    }

    /// Every handle of the three lists, in header order; one may come more than once.
    pub fn handles(&self) -> impl Iterator<Item = Handle> + 'm {
        let reads = self.reads.iter().map(|read| read.target().handle);
        let writes = self.writes.iter().flatten();
        let reply = self.reply.unwrap_or_default().iter();
        reads.chain(writes.chain(reply).map(|segment| segment.value().handle))
    }
}

/// A checked Write list: chunks, each an array of segments. A chunk of zero segments asks for
/// its result inline (V1-07).
#[derive(Clone, Copy, Debug)]
pub struct WriteList<'m> {
    /// The entries, without the flag that ends the list.
    entries: &'m [u8],
    chunks: u32,
}

impl<'m> WriteList<'m> {
    /// A Write list that is absent.
    pub const ABSENT: WriteList<'static> = WriteList {
        entries: &[],
        chunks: 0,
    };

    /// Chunks.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.chunks as usize
    }

    /// True when the list is absent.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.chunks == 0
    }

    /// The chunks, in order.
    #[inline]
    #[must_use]
    pub const fn iter(&self) -> WriteChunks<'m> {
        WriteChunks {
            entries: self.entries,
            chunks: self.chunks,
        }
    }
}

impl<'m> IntoIterator for WriteList<'m> {
    type Item = &'m [RawSegment];
    type IntoIter = WriteChunks<'m>;

    #[inline]
    fn into_iter(self) -> WriteChunks<'m> {
        self.iter()
    }
}

/// The chunks of a [`WriteList`].
#[derive(Clone, Debug)]
pub struct WriteChunks<'m> {
    entries: &'m [u8],
    chunks: u32,
}

impl<'m> Iterator for WriteChunks<'m> {
    type Item = &'m [RawSegment];

    #[inline]
    fn next(&mut self) -> Option<&'m [RawSegment]> {
        // Checked when the list was taken: none of these can fail before the last chunk.
        let (_flag, rest) = take_word(self.entries)?;
        let (count, rest) = take_word(rest)?;
        let (segments, rest) = segments(rest, count)?;
        self.entries = rest;
        self.chunks = self.chunks.saturating_sub(1);
        Some(segments)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.chunks as usize, Some(self.chunks as usize))
    }
}

impl ExactSizeIterator for WriteChunks<'_> {}

/// Takes `rdma_direction`, `rdma_inv_handle` and the three lists of version two.
#[inline]
pub(super) fn take_directed_lists<'m>(
    rest: &'m [u8],
    limits: &Limits,
) -> Result<(ChunkLists<'m>, &'m [u8]), Reject> {
    let (direction, rest) = take_word(rest).ok_or(Reject::Truncated)?;
    let (inv_handle, rest) = take_word(rest).ok_or(Reject::Truncated)?;
    let direction = Direction::of(direction).ok_or(Reject::DirectionValue)?;
    let (lists, rest) = take_lists(rest, limits)?;
    let lists = ChunkLists {
        direction,
        inv_handle: (inv_handle != 0).then_some(Handle(inv_handle)),
        ..lists
    };
    Ok((lists, rest))
}

/// Takes the three lists. The direction is the caller's to find out; until then it says Call.
#[inline]
pub(super) fn take_lists<'m>(
    rest: &'m [u8],
    limits: &Limits,
) -> Result<(ChunkLists<'m>, &'m [u8]), Reject> {
    let (reads, rest) = take_reads(rest, limits)?;
    let (writes, rest) = take_writes(rest, limits)?;
    let (reply, rest) = take_reply(rest, limits)?;
    let lists = ChunkLists {
        direction: Direction::Call,
        inv_handle: None,
        reads,
        writes,
        reply,
    };
    Ok((lists, rest))
}

/// Takes the XDR flag before an optional entry.
#[inline]
fn take_flag(octets: &[u8]) -> Result<(bool, &[u8]), Reject> {
    match take_word(octets) {
        Some((0, rest)) => Ok((false, rest)),
        Some((1, rest)) => Ok((true, rest)),
        Some(_) => Err(Reject::ListFlag),
        None => Err(Reject::Truncated),
    }
}

#[inline]
fn take_reads<'m>(
    list: &'m [u8],
    limits: &Limits,
) -> Result<(&'m [ReadSegment], &'m [u8]), Reject> {
    let mut left = limits.read_segments;
    let mut count: usize = 0;
    let mut entries = list;
    loop {
        let (more, rest) = take_flag(entries)?;
        if !more {
            // The loop has been over these octets: the view cannot fail.
            let (reads, _) = <[ReadSegment]>::ref_from_prefix_with_elems(list, count)
                .map_err(|_| Reject::Truncated)?;
            return Ok((reads, rest));
        }
        left = left.checked_sub(1).ok_or(Reject::ReadSegments)?;
        let (read, rest) = ReadSegment::ref_from_prefix(entries).map_err(|_| Reject::Truncated)?;
        if read.target().wraps() {
            return Err(Reject::SegmentWraps);
        }
        count = count.saturating_add(1);
        entries = rest;
    }
}

#[inline]
fn take_writes<'m>(list: &'m [u8], limits: &Limits) -> Result<(WriteList<'m>, &'m [u8]), Reject> {
    let mut chunks: u32 = 0;
    let mut room: u64 = 0;
    let mut entries = list;
    loop {
        let (more, rest) = take_flag(entries)?;
        if !more {
            let taken = list.len().saturating_sub(entries.len());
            let entries = list.get(..taken).unwrap_or_default();
            return Ok((WriteList { entries, chunks }, rest));
        }
        if chunks >= limits.write_chunks {
            return Err(Reject::WriteChunks);
        }
        let (_, rest) = take_chunk(rest, &mut room, limits)?;
        chunks = chunks.saturating_add(1);
        entries = rest;
    }
}

#[inline]
fn take_reply<'m>(
    octets: &'m [u8],
    limits: &Limits,
) -> Result<(Option<&'m [RawSegment]>, &'m [u8]), Reject> {
    let (present, rest) = take_flag(octets)?;
    if !present {
        return Ok((None, rest));
    }
    let (segments, rest) = take_chunk(rest, &mut 0, limits)?;
    Ok((Some(segments), rest))
}

/// Takes one counted array of segments, adding their lengths to `room`.
#[inline]
fn take_chunk<'m>(
    octets: &'m [u8],
    room: &mut u64,
    limits: &Limits,
) -> Result<(&'m [RawSegment], &'m [u8]), Reject> {
    let (count, rest) = take_word(octets).ok_or(Reject::Truncated)?;
    if count > limits.chunk_segments {
        return Err(Reject::ChunkSegments);
    }
    let (segments, rest) = segments(rest, count).ok_or(Reject::Truncated)?;
    for segment in segments.iter().map(RawSegment::value) {
        if segment.wraps() {
            return Err(Reject::SegmentWraps);
        }
        *room = room.saturating_add(u64::from(segment.length));
        if *room > u64::from(limits.reply_bytes) {
            return Err(Reject::ReplyBytes);
        }
    }
    Ok((segments, rest))
}

/// The first `count` segments of `octets`, and what is behind them.
#[inline]
fn segments(octets: &[u8], count: u32) -> Option<(&[RawSegment], &[u8])> {
    <[RawSegment]>::ref_from_prefix_with_elems(octets, count as usize).ok()
}
