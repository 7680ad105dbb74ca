//! What a port is made of: everything the control half prepares before an lcore gets it.

use super::poller::Poller;
use crate::expose::Means;
use rpcrdma_fabric::arena::Arena;
use std::sync::Arc;

/// Memory that the device knows.
#[derive(Debug)]
pub(crate) struct Registered {
    /// The memory, kept for as long as the port may post from it.
    pub(crate) arena: Arc<Arena>,
    /// Where its first octet is.
    pub(crate) address: u64,
    /// Its local key.
    pub(crate) lkey: u32,
}

/// Numbers fixed when the port is opened: what was wanted, clamped to the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Queue pairs that can be there at once; at most [`super::MOST_PAIRS`].
    pub(crate) queue_pairs: u32,
    /// Send-queue entries of one queue pair, of which one is kept for the end; at least 4.
    pub(crate) send_depth: u32,
    /// Receive-queue entries of one queue pair.
    pub(crate) receive_depth: u32,
    /// Elements of one Send's gather list; at most [`super::MOST_ELEMENTS`].
    pub(crate) gather: u32,
    /// Longest single transfer, octets.
    pub(crate) transfer_bytes: u32,
    /// Octets that a queue pair sends from memory of the port's own, at most at once.
    pub(crate) outbox_bytes: u32,
    /// Exposures of all queue pairs at once.
    pub(crate) windows: u32,
    /// Send With Invalidate can be sent.
    pub(crate) send_invalidate: bool,
    /// What it does to us is told.
    pub(crate) receive_invalidate: bool,
    /// Requests of so many octets or more are signalled, each of them.
    pub(crate) lazy_bytes: u32,
    /// What is posted behind an RDMA Read has to wait for it.
    pub(crate) fenced: bool,
}

/// What [`super::VerbsPort::new`] wants.
pub(crate) struct Parts {
    /// The completion queue and its channel.
    pub(crate) poller: Poller,
    /// What the engine's spans are of.
    pub(crate) arena: Registered,
    /// `queue_pairs` times `outbox_bytes` of memory for messages that are too long to go inline
    /// and are not in the arena.
    pub(crate) outbox: Registered,
    pub(crate) limits: Limits,
    /// How memory is exposed on this device.
    pub(crate) means: Means,
}
