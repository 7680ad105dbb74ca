//! Reads that this side has asked for, and where their data goes.
//!
//! Each has a sink STag of its own, good for that one Read and for Read Responses only: slot
//! number and random bits, as the tags of [`crate::stag`], but in a table of the stream's own. So
//! a Read needs no exposure, and no RDMA Write ever reaches its sink (RFC 5042 section 6.3.5).

use crate::ddp::Tagged;
use crate::ddp::assembly::Tiling;
use crate::reject::Reject;
use crate::ring::Ring;
use crate::stag::Stag;
use rpcrdma_fabric::Span;

#[derive(Clone, Copy, Debug, Default)]
struct Read {
    stag: Stag,
    into: Span,
    /// What has come, as in [`crate::ddp::assembly`].
    sum: u64,
}

/// The outstanding Reads, oldest first.
#[derive(Debug)]
pub(crate) struct Reads {
    ring: Ring<Read>,
    /// How many may be outstanding: agreed on when the session began, at most what there is room
    /// for.
    limit: u32,
}

impl Reads {
    pub(crate) fn new(capacity: u16) -> Reads {
        Reads {
            ring: Ring::new(u32::from(capacity)),
            limit: u32::from(capacity),
        }
    }

    pub(crate) fn limit(&mut self, limit: u16) {
        self.limit = u32::from(limit).min(self.ring.capacity());
    }

    pub(crate) fn allowed(&self) -> bool {
        self.limit > 0
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.ring.len() >= self.limit
    }

    /// The STag that the next Read would have.
    pub(crate) fn offer(&self, random: u64) -> Stag {
        let mask = self.ring.mask();
        let slot = self.ring.slot(self.ring.len());
        let key = u32::try_from(random >> 32).unwrap_or(0);
        Stag(key & !mask | slot)
    }

    /// It has been asked for.
    pub(crate) fn push(&mut self, stag: Stag, into: Span) {
        self.ring.push(Read { stag, into, sum: 0 });
    }

    /// Where a response's payload goes, after every check.
    #[inline]
    pub(crate) fn place(
        &mut self,
        header: &Tagged,
        len: usize,
        tiling: Tiling,
    ) -> Result<Span, Reject> {
        let slot = header.stag.0 & self.ring.mask();
        let read = self
            .ring
            .in_slot_mut(slot)
            .filter(|read| read.stag == header.stag)
            .ok_or(Reject::StagInvalid)?;
        let octets = u64::try_from(len).unwrap_or(u64::MAX);
        let end = header.to.checked_add(octets).ok_or(Reject::StagWrap)?;
        if end > u64::from(read.into.len) {
            return Err(Reject::StagBounds);
        }
        // Neither is longer than the sink.
        let from = u32::try_from(header.to).unwrap_or(u32::MAX);
        let end = u32::try_from(end).unwrap_or(u32::MAX);
        read.sum = read.sum.wrapping_add(tiling.piece(from, end));
        Ok(read.into.skip(from).first(end.wrapping_sub(from)))
    }

    /// The last segment of a response has had its turn. Responses come in the order of requests
    /// (RFC 5040 section 5.2.2), so it is the oldest Read's, and all of that must be here.
    pub(crate) fn deliver(&mut self, tiling: Tiling) -> Result<(), Reject> {
        let read = self.ring.pop().ok_or(Reject::UnaskedResponse)?;
        if read.sum != tiling.piece(0, read.into.len) {
            return Err(Reject::ResponseGaps);
        }
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        while self.ring.pop().is_some() {}
    }
}
