//! What spans name: the lcore's arena, and the port's own memory for octets that are not in it.

use rpcrdma_fabric::Span;
use rpcrdma_fabric::arena::Arena;
use rpcrdma_iwarp::Memory;
use std::sync::Arc;

/// Offsets from here on are in the outbox. No arena is so long.
const OUTBOX: u64 = 1 << 63;

/// Both arenas. Spans have been checked when work was posted or memory exposed.
#[derive(Debug)]
pub(super) struct Places {
    arena: Arc<Arena>,
    outbox: Arena,
}

impl Places {
    pub(super) fn new(arena: Arc<Arena>, outbox: Arena) -> Places {
        Places { arena, outbox }
    }

    /// A span of the outbox, as work names it.
    pub(super) fn of_outbox(span: Span) -> Span {
        Span {
            offset: span.offset | OUTBOX,
            len: span.len,
        }
    }

    /// Whether a span lies in the lcore's arena.
    #[inline]
    pub(super) fn has(&self, span: Span) -> bool {
        self.arena.contains(span)
    }

    /// Writes to a span of the outbox that nothing else uses.
    #[inline]
    pub(super) fn keep(&self, span: Span, octets: &[u8]) {
        // SAFETY: the port alone has the outbox, and forms no slices over it.
        let kept = unsafe { self.outbox.fill(span, octets) };
        debug_assert!(kept, "{span:?} is of the outbox, and long enough");
    }
}

impl Memory for Places {
    #[inline]
    fn place(&mut self, to: Span, octets: &[u8]) {
        // SAFETY: a posted receive, a Read's sink, or memory exposed for writing: nobody looks at
        // it until that is over, and only this port writes it.
        let placed = unsafe { self.arena.fill(to, octets) };
        debug_assert!(placed, "{to:?} was checked when it was posted or exposed");
    }

    #[inline]
    fn fetch(&self, from: Span, into: &mut [u8]) {
        if from.len as usize != into.len() {
            debug_assert!(false, "{from:?} into {} octets", into.len());
            return;
        }
        let (arena, offset) = if from.offset & OUTBOX == 0 {
            (&*self.arena, from.offset)
        } else {
            (&self.outbox, from.offset & !OUTBOX)
        };
        let from = Span { offset, ..from };
        // SAFETY: `into` is as long, and is a chunk's memory, not the arena's.
        let fetched = unsafe { arena.copy_out(from, into.as_mut_ptr()) };
        debug_assert!(
            fetched,
            "{from:?} was checked when it was posted or exposed"
        );
    }
}
