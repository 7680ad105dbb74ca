//! One Call that this side makes, and what is kept of it until its end.

use crate::api::{Call, CallError, MAX_PARTS, MAX_RESULTS, Part};
use crate::outline::MAX_SEGMENTS;
use crate::phase::{CallEvent, CallPhase, Illegal};
use crate::receives::Buffer;
use crate::work::Span;
use arrayvec::ArrayVec;
use rpcrdma_wire::{Handle, Xid};

/// What a Call becomes once nothing of it is exposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Its Reply goes up.
    Deliver,
    /// It has failed.
    Fail(CallError),
    /// The upper layer looks for more room.
    NeedRoom { segment: u32, length: u32 },
    /// Nobody wants it.
    Cancel,
    /// It is sent again.
    Requeue,
}

/// One Call this side makes. Laid out by hand: what each Call needs, then what those with chunks
/// need.
#[repr(C)]
pub(crate) struct Outgoing {
    pub(crate) phase: CallPhase,
    /// Its xid is in the table of those in flight.
    pub(crate) open: bool,
    /// Work that has not completed and uses this Call's memory: its Send, and retirements.
    pub(crate) busy: u8,
    /// The receive buffer with the Reply.
    pub(crate) held: Option<Buffer>,
    pub(crate) xid: Xid,
    pub(crate) then: Then,
    /// Which of the exposures are still in force, by place.
    pub(crate) live: u32,
    /// Octets of the whole Call, padding included.
    pub(crate) bytes: u64,
    pub(crate) body: Span,
    pub(crate) reply: Option<Span>,
    pub(crate) results: ArrayVec<Span, MAX_RESULTS>,
    pub(crate) written: [Option<u32>; MAX_RESULTS],
    pub(crate) parts: ArrayVec<Part, MAX_PARTS>,
    /// The handle the peer may invalidate (version two 6.2.3).
    pub(crate) named: Option<Handle>,
    /// Handles given to the peer for this Call.
    pub(crate) exposures: ArrayVec<Handle, MAX_SEGMENTS>,
}

impl Outgoing {
    pub(super) fn empty() -> Self {
        Self {
            phase: CallPhase::Free,
            then: Then::Deliver,
            xid: Xid(0),
            open: false,
            parts: ArrayVec::new(),
            bytes: 0,
            results: ArrayVec::new(),
            reply: None,
            exposures: ArrayVec::new(),
            live: 0,
            busy: 0,
            named: None,
            held: None,
            body: Span::default(),
            written: [None; MAX_RESULTS],
        }
    }

    /// Fills a slot with a Call of `bytes` octets.
    #[inline]
    pub(super) fn seat(&mut self, call: &Call<'_>, bytes: u64) {
        self.then = Then::Deliver;
        self.xid = call.xid;
        self.open = true;
        self.bytes = bytes;
        self.parts.clear();
        self.results.clear();
        match (call.parts, call.results) {
            // Most are in one piece.
            (&[part], []) => self.parts.push(part),
            (parts, results) => {
                self.parts.extend(parts.iter().copied());
                self.results.extend(results.iter().copied());
            }
        }
        self.reply = call.reply;
    }

    /// Nothing of it is exposed, and no device works on its memory.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.live == 0 && self.busy == 0
    }

    /// Moves the Call. A step that must not happen leaves it where it is, and is an error.
    #[inline]
    pub(crate) fn step(&mut self, event: CallEvent) -> Result<(), Illegal> {
        self.phase = self.phase.next(event)?;
        Ok(())
    }
}
