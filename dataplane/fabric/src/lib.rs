//! What an lcore asks of an RDMA fabric: the [`Port`] trait, and nothing else.
//!
//! A port belongs to one lcore and carries all its queue pairs: one completion queue, one
//! arena of registered memory. It is dispatched statically. The words for memory and work
//! ([`Span`], [`WorkId`], ...) are the engine's.
//!
//! Beside it stand the two things every lcore needs to use a port: the [`arena`] that its
//! memory lies in, and the [`pool`] that says who has which part of it. How connections are
//! made is the control thread's side: [`connect`], with what fabrics need for it: the [`stage`]s of a
//! connection, a [`bell`] between threads, an [`outlet`] to each port and [`names`] of hosts.
//! [`datagram`]s, to one or to a multicast group, are its business alone.
//!
//! Implementations: `rpcrdma-memory` (two endpoints in one process), `rpcrdma-verbs` (RDMA devices,
//! by rdma-core) and `rpcrdma-iwarp-sctp` (RDMA in software, on SCTP). What every one of them keeps
//! is in `tests/promises`, which the tests of each ask.

#![deny(unsafe_code)]

#[expect(unsafe_code, reason = "raw memory is this module's job")]
pub mod arena;
pub mod bell;
mod bits;
pub mod connect;
mod counts;
pub mod datagram;
#[expect(unsafe_code, reason = "an instruction of the processor")]
pub mod fetch;
#[expect(
    unsafe_code,
    reason = "the rate of copying memory is taken of raw memory"
)]
pub mod floor;
#[expect(unsafe_code, reason = "raw memory is this module's job")]
mod mapping;
pub mod names;
pub mod numa;
pub mod outlet;
pub mod pool;
#[expect(unsafe_code, reason = "raw memory is this module's job")]
pub mod short;
pub mod stage;
#[expect(unsafe_code, reason = "raw memory is this module's job")]
mod tract;

pub use counts::{PortCounts, PortRejects};
pub use rpcrdma_engine::work::{Access, Octets, Posted, Refused, Span, WorkError, WorkId};
pub use rpcrdma_wire::{Handle, Segment};

/// A queue pair of one port. Small, dense, reused with care: see [`Port::adopt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueuePair(pub u32);

/// What the owner of a queue pair calls it; given back with each of its completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(pub u32);

/// One thing that happened on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The queue pair's owner.
    pub token: Token,
    /// The id the work was posted with; meaningless with [`Outcome::Disconnected`] and
    /// [`Outcome::Room`].
    pub id: WorkId,
    /// What happened.
    pub outcome: Outcome,
}

/// What a completion says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A message arrived in the receive that `id` names.
    Received {
        /// Its length in octets.
        len: u32,
        /// The handle of ours that the peer's Send invalidated.
        invalidated: Option<Handle>,
    },
    /// Send, Read, Write or retire that was [`Posted::Pending`] is done.
    Done,
    /// Work failed; for a receive, always [`WorkError::Flushed`] or [`WorkError::LocalLength`].
    Failed(WorkError),
    /// What was refused as [`Refused::Busy`] to this queue pair, or to one that has ended since,
    /// may be tried again. Only from a port where room can come without any work of the owner's
    /// having completed.
    Room,
    /// The connection is gone. Comes once; whatever is outstanding is flushed, before or after.
    Disconnected,
}

/// What a port can do. Read once, before plans are made: a plan is clamped to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Queue pairs of a port at once.
    pub queue_pairs: u32,
    /// Elements of one Send's gather list.
    pub gather: u32,
    /// Send-queue entries of one queue pair.
    pub send_depth: u32,
    /// Receive-queue entries of one queue pair.
    pub receive_depth: u32,
    /// Longest single Read or Write, octets.
    pub transfer_bytes: u32,
    /// Memory windows (or what stands for them) of the port.
    pub windows: u32,
    /// A Send With Invalidate can be sent: what a responder does for a requester that wants it.
    pub send_invalidate: bool,
    /// What the peer's Send With Invalidate does to our handles does no harm, and is told
    /// ([`Outcome::Received`]): what a requester has to be sure of that wants it (RFC 8797 3.2,
    /// V2-19).
    pub receive_invalidate: bool,
}

/// What stands behind the handles that peers are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// A window of the connection's own, or what a fabric in software has for one: it opens
    /// exactly what is exposed, to that peer.
    Window,
    /// A region of exactly what is exposed, for as long as it is: other peers of the port may use
    /// it, should they know its handle.
    Region,
    /// The region of all the port's memory: every peer has all of it for good.
    Arena,
}

impl Exposure {
    /// Its name in configurations and in what programs read.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Exposure::Window => "window",
            Exposure::Region => "region",
            Exposure::Arena => "arena",
        }
    }
}

/// How many messages [`Port::foresee`] looks ahead.
pub const FORESIGHT: usize = 3;

/// One lcore's door to a fabric.
pub trait Port {
    /// A queue pair made by the control thread, not yet adopted by an lcore.
    type Endpoint: Send;

    /// What this port can do.
    fn capabilities(&self) -> Capabilities;

    /// What stands behind the handles of this port.
    fn exposure(&self) -> Exposure {
        Exposure::Window
    }

    /// What it has counted so far.
    fn counts(&self) -> PortCounts {
        PortCounts::default()
    }

    /// What its peers did wrong so far, where it is the port that finds out.
    fn rejects(&self) -> PortRejects {
        PortRejects::NONE
    }

    /// Takes over a queue pair. Receives may be posted from now on; the rest works once the
    /// connection is established. `token` comes back with every completion.
    fn adopt(&mut self, endpoint: Self::Endpoint, token: Token) -> Result<QueuePair, Refused>;

    /// Moves a queue pair to error: outstanding work is flushed by completions, the peer sees
    /// [`Outcome::Disconnected`], and so does this side.
    fn disconnect(&mut self, qp: QueuePair);

    /// Forgets a queue pair that is in error and has nothing outstanding. Its number may be
    /// used again afterwards, and no completion for its token comes any more.
    fn destroy(&mut self, qp: QueuePair);

    /// Posts a receive.
    fn post_receive(&mut self, qp: QueuePair, memory: Span, id: WorkId) -> Result<(), Refused>;

    /// Send, or Send With Invalidate.
    fn send(
        &mut self,
        qp: QueuePair,
        message: &[Octets<'_>],
        invalidate: Option<Handle>,
        id: WorkId,
    ) -> Result<Posted, Refused>;

    /// RDMA Read of `from.length` octets to the start of `into`.
    fn read(
        &mut self,
        qp: QueuePair,
        into: Span,
        from: Segment,
        id: WorkId,
    ) -> Result<Posted, Refused>;

    /// RDMA Write of all of `from` to the start of `to`.
    fn write(
        &mut self,
        qp: QueuePair,
        from: Span,
        to: Segment,
        id: WorkId,
    ) -> Result<Posted, Refused>;

    /// Lets the peer of this queue pair alone reach `memory`; effective before any later Send.
    /// [`Refused::Busy`] when no window is free.
    fn expose(&mut self, qp: QueuePair, memory: Span, access: Access) -> Result<Segment, Refused>;

    /// Ends an exposure. Works on a queue pair in error too (that is how memory comes back).
    fn retire(&mut self, qp: QueuePair, handle: Handle, id: WorkId) -> Result<Posted, Refused>;

    /// The peer's Send has invalidated this handle of ours: what stood behind it is free.
    fn retired_by_peer(&mut self, qp: QueuePair, handle: Handle);

    /// Up to `completions.len()` things that happened, oldest first; how many.
    fn reap(&mut self, completions: &mut [Completion]) -> usize;

    /// The oldest thing that happened, if any: [`Port::reap`] of one. For a port that finds them
    /// one by one, the way from there to its user without an array between them.
    #[inline]
    fn reap_one(&mut self) -> Option<Completion> {
        let mut one = [Completion {
            token: Token(0),
            id: WorkId(0),
            outcome: Outcome::Disconnected,
        }];
        (self.reap(&mut one) == 1).then_some(one[0])
    }

    /// Whose the messages are that will be reaped next, the very next one first, as far as can be
    /// told at once; asks on the way for what the port itself will need ([`fetch`]). A hint: none of
    /// them need come, and anything may come between them. A port that cannot tell says nothing.
    #[inline]
    fn foresee(&self) -> [Option<Token>; FORESIGHT] {
        [None; FORESIGHT]
    }

    /// Makes everything posted since the last call visible to the peers: once a turn.
    fn ring(&mut self);

    /// Before sleeping: asks for a wake-up through [`Port::waker`]. `false` when something is
    /// there already: do not sleep.
    fn arm(&mut self) -> bool;

    /// The descriptor that becomes readable when an armed port has work.
    fn waker(&self) -> std::os::fd::BorrowedFd<'_>;
}
