//! A peer's registered memory. The one place of the tests that looks at octets of an arena.
#![allow(unsafe_code, reason = "tests look at arenas that are theirs alone")]

use rpcrdma_fabric::Span;
use rpcrdma_fabric::arena::{Arena, Hugepages};
use std::sync::Arc;

/// An arena, given out from its start and never taken back.
pub(crate) struct Memory {
    arena: Arc<Arena>,
    next: u64,
}

impl Memory {
    pub(crate) fn new(bytes: u64) -> Self {
        let arena = Arena::map(bytes, Hugepages::Off).expect("memory");
        Self {
            arena: Arc::new(arena),
            next: 0,
        }
    }

    pub(crate) fn arena(&self) -> Arc<Arena> {
        Arc::clone(&self.arena)
    }

    /// Memory nobody else has.
    pub(crate) fn take(&mut self, len: u32) -> Span {
        let offset = self.next;
        self.next += u64::from(len).next_multiple_of(64);
        assert!(self.next <= self.arena.len(), "the test's arena is full");
        Span { offset, len }
    }

    /// What was given out since [`Memory::mark`] said `mark` is free again.
    pub(crate) fn rewind(&mut self, mark: u64) {
        self.next = mark;
    }

    pub(crate) fn mark(&self) -> u64 {
        self.next
    }

    pub(crate) fn put(&self, span: Span, octets: &[u8]) {
        // SAFETY: no slice over an arena of the tests outlives a statement, and peers write to
        // what is exposed only between a message that says so and its answer.
        assert!(unsafe { self.arena.fill(span, octets) }, "it fits");
    }

    pub(crate) fn see(&self, span: Span) -> Vec<u8> {
        // SAFETY: as above.
        unsafe { self.arena.octets(span) }.to_vec()
    }
}
