//! What is at this side: memory, and who may reach it.

use crate::stag::StagTable;
use rpcrdma_fabric::Span;

/// The octets that spans name. Every span has been checked when it came in: those of posted work
/// by whoever posts it, those of tagged buffers by [`StagTable::open`]'s caller.
///
/// A span that a peer may still write must have no slice over it: that is why this is a trait of
/// copies.
pub trait Memory {
    /// Copies `octets` to `to`, which is as long.
    fn place(&mut self, to: Span, octets: &[u8]);

    /// Copies the octets of `from` into `into`, which is as long.
    fn fetch(&self, from: Span, into: &mut [u8]);
}

/// What a segment can be placed in or fetched from.
#[derive(Debug)]
pub struct Local<'a, M> {
    /// The memory.
    pub memory: &'a mut M,
    /// Its tagged buffers.
    pub stags: &'a mut StagTable,
}
