//! The vocabulary between an engine and whatever carries out its work.
//!
//! The engine does no I/O: it calls an [`Io`], which the caller supplies and the compiler
//! inlines. Memory is named by [`Span`]s, never by pointers, work by [`WorkId`]s. An engine
//! asks to look at octets only while no peer may write them: that is its side of the bargain.

use crate::counters::Counters;
use rpcrdma_wire::{Handle, Reject, Segment};

/// A run of octets in the lcore's registered arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Span {
    /// From the start of the arena, in octets.
    pub offset: u64,
    /// In octets.
    pub len: u32,
}

impl Span {
    /// The part of this span from `from` to its end; empty when `from` is beyond it.
    #[inline]
    #[must_use]
    pub fn skip(self, from: u32) -> Span {
        let from = if from < self.len { from } else { self.len };
        Span {
            offset: self.offset.wrapping_add(from as u64),
            len: self.len.wrapping_sub(from),
        }
    }

    /// The first `len` octets of this span, or all of it where it is shorter.
    #[inline]
    #[must_use]
    pub fn first(self, len: u32) -> Span {
        Span {
            offset: self.offset,
            len: if len < self.len { len } else { self.len },
        }
    }
}

/// Names one piece of outstanding work: chosen by the engine, given back in the completion.
/// What is in it is the engine's business (slot, generation and kind), never a pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WorkId(pub u64);

/// What a peer may do with exposed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// RDMA Read from it: Read chunks.
    Read,
    /// RDMA Write to it: Write chunks and Reply chunks.
    Write,
}

/// One element of a Send's gather list.
#[derive(Clone, Copy, Debug)]
pub enum Octets<'a> {
    /// Ordinary memory; taken before the call returns.
    Bytes(&'a [u8]),
    /// Arena memory; must stay unchanged until the Send is done.
    Span(Span),
}

/// What became of work that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// Done at once: the memory is free again and no completion will come.
    Done,
    /// A completion with this work's id will come.
    Pending,
}

/// Why work was not taken. Nothing of it happened, and no completion will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The queue is full, or no window or region is free now: try again after a completion.
    Busy,
    /// The queue pair is in error or closed.
    Broken,
    /// More than this fabric can ever do: too long, too many elements.
    Unsupported,
}

/// Why outstanding work failed. Any of these leaves the queue pair in error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkError {
    /// The peer's handle is wrong, its bounds or rights are exceeded (Read, Write, Send With Invalidate).
    RemoteAccess,
    /// The peer refused the message: longer than its receive.
    RemoteInvalid,
    /// A receive too short for the message that came.
    LocalLength,
    /// Our own memory or window was not what the work said.
    LocalProtection,
    /// The peer never posted a receive (RNR retries exceeded).
    NotReady,
    /// The transport gave up: retries exceeded, link lost.
    Transport,
    /// Not done: the queue pair was already in error.
    Flushed,
}

/// Everything a connection asks of its surroundings, statically dispatched.
///
/// `'m` is the arena's own lifetime, so that octets can be looked at while work is posted.
/// All work of one connection is carried out as on a reliable-connection queue pair: in order
/// of posting, and `expose` before any later Send.
pub trait Io<'m> {
    /// Takes `len` octets from the lcore's pool; `None` when its ceiling is reached.
    fn reserve(&mut self, len: u32) -> Option<Span>;

    /// Gives back a span as [`Io::reserve`] returned it.
    fn release(&mut self, span: Span);

    /// The octets of a span that no peer may write now.
    fn octets(&self, span: Span) -> &'m [u8];

    /// Copies `from` to the start of `span`; `from` is no longer than the span.
    fn fill(&mut self, span: Span, from: &[u8]);

    /// The octets of a span that is the caller's alone, to be filled in place: by a socket, say.
    fn octets_mut(&mut self, span: Span) -> &mut [u8];

    /// Posts a receive. Its completion arrives by [`crate::Connection::receive`].
    fn post_receive(&mut self, memory: Span, id: WorkId) -> Result<(), Refused>;

    /// Sends one message, gathered from `message`; with `invalidate`, Send With Invalidate.
    fn send(
        &mut self,
        message: &[Octets<'_>],
        invalidate: Option<Handle>,
        id: WorkId,
    ) -> Result<Posted, Refused>;

    /// RDMA Read of `from.length` octets of the peer's memory to the start of `into`.
    fn read(&mut self, into: Span, from: Segment, id: WorkId) -> Result<Posted, Refused>;

    /// RDMA Write of all of `from` to the start of the peer's segment `to`.
    fn write(&mut self, from: Span, to: Segment, id: WorkId) -> Result<Posted, Refused>;

    /// Lets the peer of this connection, and nobody else, read or write `memory`.
    /// The segment names it to the peer; in force before any later Send of this connection.
    fn expose(&mut self, memory: Span, access: Access) -> Result<Segment, Refused>;

    /// Ends an exposure. Once done (at once, or by completion) the peer cannot reach the memory.
    fn retire(&mut self, handle: Handle, id: WorkId) -> Result<Posted, Refused>;

    /// Says that the handle of one of our exposures was invalidated by the peer's Send, so
    /// that the fabric may use what stood behind it again.
    fn retired_by_peer(&mut self, handle: Handle);

    /// Moves the queue pair to error: everything outstanding is flushed by completions. From
    /// then on [`Io::retire`] still works, and nothing else is posted.
    fn disconnect(&mut self);

    /// The lcore's counters.
    fn counters(&mut self) -> &mut Counters;

    /// Shows a message whose header was refused, for the operator's eyes.
    fn refused(&mut self, reject: Reject, message: &[u8]);
}
