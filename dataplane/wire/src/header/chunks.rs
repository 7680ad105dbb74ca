//! The three chunk lists: Read list, Write list, Reply chunk (RFC 8166 section 4.3; version two
//! has the same ones, V2-07).
//!
//! Each list is walked entry by entry, and every entry is judged as it is met: its flag, its
//! limit, and that its offset and length do not wrap. Lengths are summed in u64.
//!
//! Absent lists, and lists of one segment, are nearly all there is. `Lists::glance` sees
//! those: straight code, no loop, and no reason given when it sees something else.
//! `Lists::take` walks any list, those too, and is the one that says what is wrong.

use crate::limits::Limits;
use crate::octets::take_word;
use crate::reject::Reject;
use crate::segment::{OneChunk, OneRead, RawSegment, ReadSegment};
use crate::types::{Direction, Handle};
use core::slice;
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
    /// The message from the first entry on.
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
        self.chunks = self.chunks.checked_sub(1)?;
        // Checked when the list was taken: none of these can fail.
        let (_flag, rest) = take_word(self.entries)?;
        let (count, rest) = take_word(rest)?;
        let (segments, rest) = segments(rest, count)?;
        self.entries = rest;
        Some(segments)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.chunks as usize, Some(self.chunks as usize))
    }
}

impl ExactSizeIterator for WriteChunks<'_> {}

/// Something taken off the front of a message, and what is behind it.
pub(super) type Taken<'m, T> = Result<(T, &'m [u8]), Reject>;

/// The three lists, before it is known whose they are.
#[derive(Clone, Copy)]
pub(super) struct Lists<'m> {
    pub(super) reads: &'m [ReadSegment],
    pub(super) writes: WriteList<'m>,
    pub(super) reply: Option<&'m [RawSegment]>,
}

impl<'m> Lists<'m> {
    const ABSENT: Lists<'static> = Lists {
        reads: &[],
        writes: WriteList::ABSENT,
        reply: None,
    };

    /// Takes the three lists, walking each: themselves, and what is behind them.
    pub(super) fn take(octets: &'m [u8], limits: &Limits) -> Taken<'m, Lists<'m>> {
        let (reads, rest) = take_reads(octets, limits)?;
        let (writes, rest) = take_writes(rest, limits)?;
        let (reply, rest) = take_reply(rest, limits)?;
        let lists = Lists {
            reads,
            writes,
            reply,
        };
        Ok((lists, rest))
    }

    /// What `Lists::take` gives, for lists of at most one segment each in which nothing is
    /// wrong. `None` says only that they have to be walked.
    #[inline(always)]
    pub(super) fn glance(octets: &'m [u8], limits: &Limits) -> Option<(Lists<'m>, &'m [u8])> {
        // Most messages have none of them: one look instead of three.
        if let Some((flags, rest)) = octets.split_first_chunk::<12>()
            && *flags == [0; 12]
        {
            return Some((Lists::ABSENT, rest));
        }
        let (reads, rest) = glance_reads(octets, limits)?;
        let (writes, rest) = glance_writes(rest, limits)?;
        let (reply, rest) = glance_chunk(rest, limits)?;
        let lists = Lists {
            reads,
            writes,
            reply: reply.map(slice::from_ref),
        };
        Some((lists, rest))
    }

    /// The lists of a message whose direction and handle to invalidate are known.
    #[inline]
    pub(super) fn directed(self, direction: Direction, inv: Option<Handle>) -> ChunkLists<'m> {
        ChunkLists {
            direction,
            inv_handle: inv,
            reads: self.reads,
            writes: self.writes,
            reply: self.reply,
        }
    }

    /// True when no list is there.
    #[inline]
    pub(super) fn all_absent(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty() && self.reply.is_none()
    }

    /// True when `handle` is one of the lists'.
    #[inline]
    pub(super) fn hold(self, handle: Handle) -> bool {
        // The first Read is the usual one to name, or else the first Write.
        self.reads
            .first()
            .is_some_and(|read| read.handle() == handle)
            || self.hold_any(handle)
    }

    #[inline(never)]
    fn hold_any(self, handle: Handle) -> bool {
        let among = |segments: &[RawSegment]| segments.iter().any(|s| s.handle() == handle);
        self.writes.iter().any(among)
            || self.reads.iter().any(|read| read.handle() == handle)
            || self.reply.is_some_and(among)
    }
}

/// Takes the XDR flag before an optional entry.
#[inline(always)]
fn take_flag(octets: &[u8]) -> Taken<'_, bool> {
    match take_word(octets) {
        Some((0, rest)) => Ok((false, rest)),
        Some((1, rest)) => Ok((true, rest)),
        Some(_) => Err(Reject::ListFlag),
        None => Err(Reject::Truncated),
    }
}

fn take_reads<'m>(list: &'m [u8], limits: &Limits) -> Taken<'m, &'m [ReadSegment]> {
    let mut count: u32 = 0;
    let mut entries = list;
    while let (true, _) = take_flag(entries)? {
        if count >= limits.read_segments {
            return Err(Reject::ReadSegments);
        }
        let (read, rest) = ReadSegment::ref_from_prefix(entries).map_err(|_| Reject::Truncated)?;
        if read.target().wraps() {
            return Err(Reject::SegmentWraps);
        }
        count = count.wrapping_add(1);
        entries = rest;
    }
    // The loop has been over these octets: the view cannot fail.
    let (reads, rest) = <[ReadSegment]>::ref_from_prefix_with_elems(list, count as usize)
        .map_err(|_| Reject::Truncated)?;
    let (_, rest) = take_flag(rest)?;
    Ok((reads, rest))
}

fn take_writes<'m>(list: &'m [u8], limits: &Limits) -> Taken<'m, WriteList<'m>> {
    let mut chunks: u32 = 0;
    let mut room: u64 = 0;
    let mut entries = list;
    loop {
        let (more, rest) = take_flag(entries)?;
        if !more {
            let writes = WriteList {
                entries: list,
                chunks,
            };
            return Ok((writes, rest));
        }
        if chunks >= limits.write_chunks {
            return Err(Reject::WriteChunks);
        }
        (_, entries) = take_chunk(rest, limits, &mut room)?;
        chunks = chunks.wrapping_add(1);
    }
}

fn take_reply<'m>(octets: &'m [u8], limits: &Limits) -> Taken<'m, Option<&'m [RawSegment]>> {
    match take_flag(octets)? {
        (false, rest) => Ok((None, rest)),
        (true, rest) => {
            let (segments, rest) = take_chunk(rest, limits, &mut 0)?;
            Ok((Some(segments), rest))
        }
    }
}

/// Takes one counted array of segments, whose lengths are added to `room`. That cannot wrap:
/// there are fewer than 2^32 of them in a message, each less than 2^32.
fn take_chunk<'m>(
    octets: &'m [u8],
    limits: &Limits,
    room: &mut u64,
) -> Taken<'m, &'m [RawSegment]> {
    let (count, rest) = take_word(octets).ok_or(Reject::Truncated)?;
    if count > limits.chunk_segments {
        return Err(Reject::ChunkSegments);
    }
    let (segments, rest) = segments(rest, count).ok_or(Reject::Truncated)?;
    for segment in segments.iter().map(RawSegment::value) {
        if segment.wraps() {
            return Err(Reject::SegmentWraps);
        }
        *room = room.wrapping_add(u64::from(segment.length));
    }
    if *room > u64::from(limits.reply_bytes) {
        return Err(Reject::ReplyBytes);
    }
    Ok((segments, rest))
}

/// An absent Read list, or one of one good entry.
#[inline(always)]
fn glance_reads<'m>(list: &'m [u8], limits: &Limits) -> Option<(&'m [ReadSegment], &'m [u8])> {
    if let Some((0, rest)) = take_word(list) {
        return Some((&[], rest));
    }
    let (one, rest) = OneRead::ref_from_prefix(list).ok()?;
    let good = one.read.more() == 1 && one.end.get() == 0 && !one.read.target().wraps();
    (good && limits.read_segments >= 1).then_some((slice::from_ref(&one.read), rest))
}

/// An absent Write list, or one of one chunk of one good segment.
#[inline(always)]
fn glance_writes<'m>(list: &'m [u8], limits: &Limits) -> Option<(WriteList<'m>, &'m [u8])> {
    let (chunk, rest) = glance_chunk(list, limits)?;
    if chunk.is_none() {
        return Some((WriteList::ABSENT, rest));
    }
    let writes = WriteList {
        entries: list,
        chunks: 1,
    };
    match take_word(rest)? {
        (0, rest) if limits.write_chunks >= 1 => Some((writes, rest)),
        _ => None,
    }
}

/// No chunk, or one of one good segment.
#[inline(always)]
fn glance_chunk<'m>(
    octets: &'m [u8],
    limits: &Limits,
) -> Option<(Option<&'m RawSegment>, &'m [u8])> {
    if let Some((0, rest)) = take_word(octets) {
        return Some((None, rest));
    }
    let (one, rest) = OneChunk::ref_from_prefix(octets).ok()?;
    let segment = one.segment.value();
    let good = one.present.get() == 1 && one.count.get() == 1 && !segment.wraps();
    let within = limits.chunk_segments >= 1 && segment.length <= limits.reply_bytes;
    (good && within).then_some((Some(&one.segment), rest))
}

/// The first `count` segments of `octets`, and what is behind them.
#[inline]
fn segments(octets: &[u8], count: u32) -> Option<(&[RawSegment], &[u8])> {
    <[RawSegment]>::ref_from_prefix_with_elems(octets, count as usize).ok()
}
