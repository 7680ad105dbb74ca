//! The one memory module of this crate: the engine's [`Io`] over a port, a pool and an arena.
//!
//! # Who keeps the promises
//!
//! [`Io::octets`] and [`Io::octets_mut`] look safe, and lean on a bargain that
//! `rpcrdma_engine::work` states: octets are looked at only while no peer may write them. The
//! parties to it are few. A span comes from this lcore's regions, which never give an octet to
//! two owners. Its owner is the engine or an upper layer, on this same thread, so nobody else
//! in this process looks at it at the same time. The fabric writes a span only while it is
//! posted as a receive, being read into, or exposed for writing; the engine's state machines
//! know each of these times, and hand memory up only when they are over: by the completion of
//! the receive or the read, or of the retiring of the exposure. A port makes a completion
//! visible after the octets it speaks of.
//!
//! The arena outlives every slice: they all carry the lifetime of the lcore's own reference.

#![expect(unsafe_code, reason = "slices over the arena: see the module text")]

use crate::refusals::Refusals;
use crate::regions::{Claim, Regions, Unmet};
use crate::seats::ConnectionNumber;
use rpcrdma_engine::{Access, Counters, Io, Octets, Posted, Refused, Span, WorkId};
use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::pool::Pool;
use rpcrdma_fabric::{Port, QueuePair};
use rpcrdma_wire::{Handle, Reject, Segment};

/// Takes `bytes` octets out of a pool for good and has `fill` fill them, before the lcore that
/// gets the pool starts: data that upper layers send from. `None` when the pool has not as much.
///
/// `pool` must be over `arena`, as for [`crate::Lcore::new`].
pub fn stock(
    pool: &mut Pool,
    arena: &Arena,
    bytes: u32,
    fill: impl FnOnce(&mut [u8]),
) -> Option<Span> {
    let span = pool.reserve(bytes)?;
    // SAFETY: the span was reserved just now, so nobody else knows of it yet.
    fill(unsafe { arena.octets_mut(span) });
    Some(span)
}

/// What all connections of an lcore work with.
pub(crate) struct Bench<P> {
    pub(crate) port: P,
    pub(crate) regions: Regions,
    pub(crate) counters: Counters,
    pub(crate) refusals: Refusals,
    /// Memory or a window came back since those who wait for some were looked at.
    pub(crate) freed: bool,
    /// Exposures in force, or being ended.
    windows_out: usize,
}

impl<P: Port> Bench<P> {
    pub(crate) fn new(port: P, regions: Regions) -> Bench<P> {
        Bench {
            port,
            regions,
            counters: Counters::default(),
            refusals: Refusals::new(),
            freed: false,
            windows_out: 0,
        }
    }

    /// What is in use now, to be compared later.
    pub(crate) fn in_use(&self) -> InUse {
        InUse {
            bytes: self.regions.in_use_bytes(),
            windows: self.windows_out,
        }
    }
}

/// How much memory and how many windows are in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InUse {
    bytes: u64,
    windows: usize,
}

impl InUse {
    /// True when there is less of either than `before`.
    pub(crate) fn is_below(self, before: InUse) -> bool {
        self.bytes < before.bytes || self.windows < before.windows
    }
}

/// The bench as one connection sees it.
pub(crate) struct Desk<'a, 'm, P> {
    bench: &'a mut Bench<P>,
    arena: &'m Arena,
    qp: QueuePair,
    number: ConnectionNumber,
    /// What memory is wanted for, should any be.
    claim: Claim,
    /// Claims for which the regions, or the port's windows, had too little.
    pub(crate) unmet: Unmet,
}

impl<'a, 'm, P: Port> Desk<'a, 'm, P> {
    #[inline]
    pub(crate) fn new(
        bench: &'a mut Bench<P>,
        arena: &'m Arena,
        qp: QueuePair,
        number: ConnectionNumber,
        claim: Claim,
    ) -> Desk<'a, 'm, P> {
        Desk {
            bench,
            arena,
            qp,
            number,
            claim,
            unmet: Unmet::default(),
        }
    }

    /// What memory is wanted for from now on.
    #[inline]
    pub(crate) fn claims(&mut self, claim: Claim) {
        self.claim = claim;
    }

    #[inline]
    fn one_window_less(&mut self) {
        self.bench.freed = true;
        self.bench.windows_out = self.bench.windows_out.saturating_sub(1);
    }
}

impl<'m, P: Port> Io<'m> for Desk<'_, 'm, P> {
    #[inline]
    fn reserve(&mut self, len: u32) -> Option<Span> {
        let span = self.bench.regions.reserve(self.claim, len);
        if span.is_none() {
            self.unmet.add(self.claim);
        }
        span
    }

    #[inline]
    fn release(&mut self, span: Span) {
        self.bench.regions.release(span);
        self.bench.freed = true;
    }

    #[inline]
    fn octets(&self, span: Span) -> &'m [u8] {
        // SAFETY: the caller owns the span and no peer may write it now: the module text.
        unsafe { self.arena.octets(span) }
    }

    #[inline]
    fn fill(&mut self, span: Span, from: &[u8]) {
        // SAFETY: the caller owns the span, holds no slice of it, and no peer may write it.
        let filled = unsafe { self.arena.fill(span, from) };
        debug_assert!(filled, "{} octets into {span:?}", from.len());
    }

    #[inline]
    fn octets_mut(&mut self, span: Span) -> &mut [u8] {
        // SAFETY: the caller owns the span, holds no other slice of it, and no peer may reach
        // it; the result borrows this desk, so there is one at a time.
        unsafe { self.arena.octets_mut(span) }
    }

    #[inline]
    fn post_receive(&mut self, memory: Span, id: WorkId) -> Result<(), Refused> {
        self.bench.port.post_receive(self.qp, memory, id)
    }

    #[inline]
    fn send(
        &mut self,
        message: &[Octets<'_>],
        invalidate: Option<Handle>,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        self.bench.port.send(self.qp, message, invalidate, id)
    }

    #[inline]
    fn read(&mut self, into: Span, from: Segment, id: WorkId) -> Result<Posted, Refused> {
        self.bench.port.read(self.qp, into, from, id)
    }

    #[inline]
    fn write(&mut self, from: Span, to: Segment, id: WorkId) -> Result<Posted, Refused> {
        self.bench.port.write(self.qp, from, to, id)
    }

    #[inline]
    fn expose(&mut self, memory: Span, access: Access) -> Result<Segment, Refused> {
        let exposed = self.bench.port.expose(self.qp, memory, access);
        if exposed == Err(Refused::Busy) {
            self.unmet.add(Claim::Made);
        }
        self.bench.windows_out += usize::from(exposed.is_ok());
        exposed
    }

    #[inline]
    fn retire(&mut self, handle: Handle, id: WorkId) -> Result<Posted, Refused> {
        let retired = self.bench.port.retire(self.qp, handle, id);
        if retired.is_ok() {
            self.one_window_less();
        }
        retired
    }

    #[inline]
    fn retired_by_peer(&mut self, handle: Handle) {
        self.one_window_less();
        self.bench.port.retired_by_peer(self.qp, handle);
    }

    fn disconnect(&mut self) {
        self.bench.port.disconnect(self.qp);
    }

    #[inline]
    fn counters(&mut self) -> &mut Counters {
        &mut self.bench.counters
    }

    fn refused(&mut self, reject: Reject, message: &[u8]) {
        self.bench.refusals.keep(self.number, reject, message);
    }
}
