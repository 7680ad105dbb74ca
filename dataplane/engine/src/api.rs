//! What passes between the engine and the upper layer.

use crate::work::{Span, WorkError};
use rpcrdma_wire::{Reject, Xid};

/// Most parts one RPC message may come in.
pub const MAX_PARTS: usize = 8;
/// Most eligible results (Write chunks) of one Call this side makes.
pub const MAX_RESULTS: usize = 4;

/// One run of an RPC message in arena memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it is.
    pub span: Span,
    /// A DDP-eligible data item (RFC 8267), without its XDR padding: the next part begins
    /// with the 0 to 3 octets of padding, or the message ends there unpadded.
    pub item: bool,
}

/// An RPC Call for the peer. All its memory stays the caller's, untouched until
/// [`Event::Reply`], [`Event::Failed`] or [`Event::Cancelled`] has come for its slot.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Unique among the calls in flight on this connection.
    pub xid: Xid,
    /// The whole RPC Call message.
    pub parts: &'a [Part],
    /// Where each eligible result goes, in order; at most [`MAX_RESULTS`]. An empty span asks
    /// for that result inline (a Write chunk of zero segments).
    pub results: &'a [Span],
    /// Where a Reply goes that is too long to come inline, if one may be that long.
    pub reply: Option<Span>,
}

/// An RPC Reply for the peer: `head`, then `parts`.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    /// The first octets, in ordinary memory, taken before the call returns. May be empty.
    pub head: &'a [u8],
    /// The rest, in arena memory.
    pub parts: &'a [Part],
    /// Released to the pool once the reply has gone (or can no longer go).
    pub memory: Option<Span>,
}

/// A slot of a connection: one RPC in flight. Carries a generation, so a stale one is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotId {
    /// Below the connection's number of slots of that kind; good as an index.
    pub index: u16,
    /// Changes each time the slot is used again.
    pub generation: u16,
}

/// What the upper layer has to know. At most one comes of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing.
    None,
    /// A Call is here, whole: see [`Connection::call`](crate::Connection::call). Ends by [`Connection::answer`](crate::Connection::answer) or
    /// [`Connection::abandon`](crate::Connection::abandon).
    Call(SlotId),
    /// The Reply is here and nothing of the Call is exposed any more: see
    /// [`Connection::reply`](crate::Connection::reply). Ends by [`Connection::finish`](crate::Connection::finish).
    Reply(SlotId),
    /// The Call is over, without a Reply; nothing of it is exposed any more. The slot is free.
    Failed(SlotId, CallError),
    /// The responder needs more room (REPLY_RESOURCE): [`Connection::resubmit`](crate::Connection::resubmit) with larger
    /// results or reply memory, or [`Connection::cancel`](crate::Connection::cancel).
    NeedsRoom {
        /// The Call.
        slot: SlotId,
        /// The segment that was too short, from one; zero when it cannot be told.
        segment: u32,
        /// The octets it would need; zero when it cannot be told.
        length: u32,
    },
    /// The memory of a cancelled Call is the caller's again. The slot is free.
    Cancelled(SlotId),
    /// A property message for the control thread; see [`Connection::take_property_event`](crate::Connection::take_property_event).
    Property,
    /// The connection is being torn down: the upper layer abandons what it holds.
    Lost(CloseReason),
    /// All work has been flushed; the queue pair can be destroyed.
    Closed,
}

impl Event {
    /// It is about a Call: the upper layer's business alone.
    #[inline]
    #[must_use]
    pub fn is_of_call(&self) -> bool {
        match self {
            Event::Call(_)
            | Event::Reply(_)
            | Event::Failed(..)
            | Event::NeedsRoom { .. }
            | Event::Cancelled(_) => true,
            Event::None | Event::Property | Event::Lost(_) | Event::Closed => false,
        }
    }
}

/// Why a Call ended without a Reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallError {
    /// ERR_CHUNK or BAD_XDR: the responder could not use our header, or (version one) the
    /// reply does not fit what we offered.
    Chunk,
    /// REPLY_RESOURCE, and no retry.
    ReplyResource,
    /// SYSTEM, or an error that says the peer will never do it.
    System,
    /// The connection was lost and calls are not replayed.
    ConnectionLost,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// We were asked to.
    Local,
    /// The peer, or the fabric, ended it.
    Peer,
    /// Work failed.
    Work(WorkError),
    /// The peer broke the protocol in a way that has no other answer.
    Protocol(Reject),
    /// The peer sent more Calls than it was ever granted (V2-24).
    CreditOverrun,
    /// The peer invalidated a handle it was not told to (V2-19).
    WrongInvalidation,
    /// A handle could not be invalidated (V1-11).
    Invalidation,
    /// No version in common.
    Version,
    /// The arena ran dry where the plan says it cannot.
    Memory,
}

/// A Call as the upper layer of the responder sees it.
#[derive(Clone, Copy, Debug)]
pub struct IncomingCall {
    /// The whole RPC Call message, contiguous, as it would stand on TCP.
    pub message: Span,
    /// Its xid.
    pub xid: Xid,
    /// Octets of Reply that can go inline, the RPC message alone.
    pub inline_bytes: u32,
    /// Room in all Write chunks, octets.
    pub write_bytes: u32,
    /// Room in the Reply chunk, octets; `None` without one.
    pub reply_chunk_bytes: Option<u32>,
    /// True for a Call in the backward direction (RFC 8167).
    pub backward: bool,
}

impl IncomingCall {
    /// Octets that the longest Reply which could still be sent may have, padding included.
    #[must_use]
    pub fn reply_room(&self) -> u32 {
        let body = self.inline_bytes.max(self.reply_chunk_bytes.unwrap_or(0));
        body.saturating_add(self.write_bytes).saturating_add(16)
    }
}

/// A Reply as the upper layer of the requester sees it.
#[derive(Clone, Copy, Debug)]
pub struct IncomingReply {
    /// The Reply without its reduced results: in a receive buffer or the Call's reply memory.
    pub body: Span,
    /// Octets written to each of the Call's `results`; `None` where the result is inline.
    pub written: [Option<u32>; MAX_RESULTS],
}
