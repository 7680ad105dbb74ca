//! Writing headers from values into a caller's buffer.
//!
//! A header is written front to back by an [`Emitter`]; what does not fit makes it overflow, and
//! it then stays overflowed, so that one look at [`Emitter::finish`] is enough. Sizes are known
//! beforehand: [`message_bytes`].

use crate::cel_v2_03 as cel;
use crate::header::{ErrorBody, FixedHeader};
use crate::octets::padding;
use crate::segment::Segment;
use crate::types::{Direction, Handle, Procedure, Version, Xid};

const XDR_TRUE: u32 = 1;
const XDR_FALSE: u32 = 0;

/// A buffer that is filled from the front.
pub(crate) struct Octets<'b> {
    buf: &'b mut [u8],
    /// Octets written; `None` once something did not fit.
    len: Option<usize>,
}

impl<'b> Octets<'b> {
    #[inline]
    pub(crate) fn new(buf: &'b mut [u8]) -> Octets<'b> {
        Octets { buf, len: Some(0) }
    }

    /// Writes some octets, or overflows.
    #[inline]
    pub(crate) fn put<const N: usize>(&mut self, octets: [u8; N]) {
        let Some(at) = self.len else { return };
        match self
            .buf
            .get_mut(at..)
            .and_then(|rest| rest.first_chunk_mut())
        {
            Some(place) => {
                *place = octets;
                self.len = at.checked_add(N);
            }
            None => self.len = None,
        }
    }

    #[inline]
    pub(crate) fn word(&mut self, word: u32) {
        self.put(word.to_be_bytes());
    }

    /// Writes XDR opaque data: length, data, padding.
    fn opaque(&mut self, data: &[u8]) {
        let Ok(length) = u32::try_from(data.len()) else {
            self.len = None;
            return;
        };
        self.word(length);
        self.bytes(data);
        self.bytes([0; 3].get(..padding(length)).unwrap_or_default());
    }

    fn bytes(&mut self, data: &[u8]) {
        let place = self.len.and_then(|at| {
            let end = at.checked_add(data.len())?;
            Some((self.buf.get_mut(at..end)?, end))
        });
        self.len = place.map(|(place, end)| {
            place.copy_from_slice(data);
            end
        });
    }

    /// Writes a count of what `fill` is going to write, then that.
    fn counted(&mut self, fill: impl FnOnce(&mut Self) -> u32) {
        let at = self.len;
        self.word(0);
        let count = fill(self);
        let end = self.len;
        if end.is_some() {
            self.len = at;
            self.word(count);
            self.len = end;
        }
    }

    #[inline]
    pub(crate) fn finish(&self) -> Option<usize> {
        self.len
    }
}

/// Writes an MSG or NOMSG header: [`start`](Self::start), [`direction`](Self::direction), any
/// number of [`read`](Self::read) and [`end_reads`](Self::end_reads), any number of
/// [`write_chunk`](Self::write_chunk) and [`end_writes`](Self::end_writes),
/// [`reply_chunk`](Self::reply_chunk), [`finish`](Self::finish), in this order.
pub struct Emitter<'b> {
    out: Octets<'b>,
    version: Version,
}

impl<'b> Emitter<'b> {
    /// Starts at the front of `buf`.
    #[inline]
    #[must_use]
    pub fn new(buf: &'b mut [u8]) -> Emitter<'b> {
        Emitter {
            out: Octets::new(buf),
            version: Version::One,
        }
    }

    /// The four fixed words.
    #[inline]
    pub fn start(
        &mut self,
        version: Version,
        xid: Xid,
        credits: u32,
        procedure: Procedure,
    ) -> &mut Self {
        self.version = version;
        start(&mut self.out, version.code(), xid, credits, procedure);
        self
    }

    /// `rdma_direction` and `rdma_inv_handle`; nothing in version one, which has neither. In a
    /// Reply the handle is written as zero (V2-08).
    #[inline]
    pub fn direction(&mut self, direction: Direction, inv_handle: Option<Handle>) -> &mut Self {
        if self.version == Version::Two {
            let handle = match direction {
                Direction::Call => inv_handle.map_or(0, |handle| handle.0),
                Direction::Reply => 0,
            };
            self.out.word(direction.code());
            self.out.word(handle);
        }
        self
    }

    /// One Read list entry.
    #[inline]
    pub fn read(&mut self, position: u32, segment: Segment) -> &mut Self {
        self.out.word(XDR_TRUE);
        self.out.word(position);
        self.segment(segment);
        self
    }

    /// The end of the Read list.
    #[inline]
    pub fn end_reads(&mut self) -> &mut Self {
        self.out.word(XDR_FALSE);
        self
    }

    /// One Write chunk; of zero segments to ask for its result inline.
    #[inline]
    pub fn write_chunk(&mut self, segments: impl ExactSizeIterator<Item = Segment>) -> &mut Self {
        self.out.word(XDR_TRUE);
        self.chunk(segments);
        self
    }

    /// The end of the Write list.
    #[inline]
    pub fn end_writes(&mut self) -> &mut Self {
        self.out.word(XDR_FALSE);
        self
    }

    /// The Reply chunk, or its absence.
    #[inline]
    pub fn reply_chunk(
        &mut self,
        segments: Option<impl ExactSizeIterator<Item = Segment>>,
    ) -> &mut Self {
        match segments {
            Some(segments) => {
                self.out.word(XDR_TRUE);
                self.chunk(segments);
            }
            None => self.out.word(XDR_FALSE),
        }
        self
    }

    /// Octets written; `None` when the buffer was too short for them.
    #[inline]
    #[must_use]
    pub fn finish(&self) -> Option<usize> {
        self.out.finish()
    }

    /// A counted array of segments; the count is what the iterator says it is.
    #[inline]
    fn chunk(&mut self, segments: impl ExactSizeIterator<Item = Segment>) {
        let Ok(count) = u32::try_from(segments.len()) else {
            self.out.len = None;
            return;
        };
        self.out.word(count);
        for segment in segments {
            self.segment(segment);
        }
    }

    #[inline]
    fn segment(&mut self, segment: Segment) {
        let head = u64::from(segment.handle.0) << 32 | u64::from(segment.length);
        let octets = u128::from(head) << 64 | u128::from(segment.offset);
        self.out.put(octets.to_be_bytes());
    }
}

#[inline]
fn start(out: &mut Octets<'_>, vers: u32, xid: Xid, credits: u32, procedure: Procedure) {
    out.word(xid.0);
    out.word(vers);
    out.word(credits);
    out.word(procedure.code());
}

/// Exact octets of an MSG or NOMSG header: `reads` Read list entries, `write_chunks` Write
/// chunks with `write_segments` segments in all of them together, a Reply chunk of so many
/// segments or none.
#[must_use]
pub const fn message_bytes(
    version: Version,
    reads: usize,
    write_chunks: usize,
    write_segments: usize,
    reply_segments: Option<usize>,
) -> usize {
    let fixed = match version {
        Version::One => FixedHeader::BYTES,
        Version::Two => FixedHeader::BYTES.saturating_add(8),
    };
    let reads = reads.saturating_mul(24).saturating_add(4);
    let writes = write_chunks.saturating_mul(8).saturating_add(4);
    let (reply, reply_segments) = match reply_segments {
        Some(segments) => (8, segments),
        None => (4, 0),
    };
    let segments = write_segments
        .saturating_add(reply_segments)
        .saturating_mul(16);
    fixed
        .saturating_add(reads)
        .saturating_add(writes)
        .saturating_add(reply)
        .saturating_add(segments)
}

/// Writes an ERROR. `vers` is that of the message that caused it, whatever it was (version two
/// 6.2.4, RFC 8166 section 4.5). Returns its octets: 20 or 28; `None` when `buf` is shorter.
#[must_use]
pub fn emit_error(
    buf: &mut [u8],
    vers: u32,
    xid: Xid,
    credits: u32,
    body: ErrorBody,
) -> Option<usize> {
    let mut out = Octets::new(buf);
    start(&mut out, vers, xid, credits, Procedure::Error);
    out.word(body.code());
    if let Some((first, second)) = body.words() {
        out.word(first);
        out.word(second);
    }
    out.finish()
}

/// Writes an OPTIONAL message. Returns its octets; `None` when `buf` is shorter.
#[must_use]
pub fn emit_optional(
    buf: &mut [u8],
    xid: Xid,
    credits: u32,
    direction: Direction,
    option: u32,
    info: &[u8],
) -> Option<usize> {
    let mut out = Octets::new(buf);
    start(&mut out, cel::VERSION, xid, credits, Procedure::Optional);
    out.word(direction.code());
    out.word(option);
    out.opaque(info);
    out.finish()
}

/// Writes a CONNPROP: properties as (identifier, data), and the words of `rdma_nochg`. Returns
/// its octets; `None` when `buf` is shorter.
#[must_use]
pub fn emit_connprop<'p>(
    buf: &mut [u8],
    xid: Xid,
    credits: u32,
    start_set: impl IntoIterator<Item = (u32, &'p [u8])>,
    nochg: impl IntoIterator<Item = u32>,
) -> Option<usize> {
    let mut out = Octets::new(buf);
    start(&mut out, cel::VERSION, xid, credits, Procedure::ConnProp);
    set(&mut out, start_set);
    subset(&mut out, nochg);
    out.finish()
}

/// Writes a REQPROP. Returns its octets; `None` when `buf` is shorter.
#[must_use]
pub fn emit_reqprop<'p>(
    buf: &mut [u8],
    xid: Xid,
    credits: u32,
    want: impl IntoIterator<Item = (u32, &'p [u8])>,
) -> Option<usize> {
    let mut out = Octets::new(buf);
    start(&mut out, cel::VERSION, xid, credits, Procedure::ReqProp);
    set(&mut out, want);
    out.finish()
}

/// Writes a RESPROP: the words of `rdma_done` and `rdma_rejected`, and `rdma_other`. Returns its
/// octets; `None` when `buf` is shorter.
#[must_use]
pub fn emit_resprop<'p>(
    buf: &mut [u8],
    xid: Xid,
    credits: u32,
    done: impl IntoIterator<Item = u32>,
    rejected: impl IntoIterator<Item = u32>,
    other: impl IntoIterator<Item = (u32, &'p [u8])>,
) -> Option<usize> {
    let mut out = Octets::new(buf);
    start(&mut out, cel::VERSION, xid, credits, Procedure::RespProp);
    subset(&mut out, done);
    subset(&mut out, rejected);
    set(&mut out, other);
    out.finish()
}

/// Writes an UPDPROP. Returns its octets; `None` when `buf` is shorter.
#[must_use]
pub fn emit_updprop<'p>(
    buf: &mut [u8],
    xid: Xid,
    credits: u32,
    now: impl IntoIterator<Item = (u32, &'p [u8])>,
) -> Option<usize> {
    let mut out = Octets::new(buf);
    start(&mut out, cel::VERSION, xid, credits, Procedure::UpdProp);
    set(&mut out, now);
    out.finish()
}

fn set<'p>(out: &mut Octets<'_>, properties: impl IntoIterator<Item = (u32, &'p [u8])>) {
    out.counted(|out| {
        let mut count: u32 = 0;
        for (id, data) in properties {
            out.word(id);
            out.opaque(data);
            count = count.saturating_add(1);
        }
        count
    });
}

fn subset(out: &mut Octets<'_>, words: impl IntoIterator<Item = u32>) {
    out.counted(|out| {
        let mut count: u32 = 0;
        for word in words {
            out.word(word);
            count = count.saturating_add(1);
        }
        count
    });
}
