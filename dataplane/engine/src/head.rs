//! What the requester and the responder need to know of the header of an RPC's message, beside
//! its chunk lists.

use crate::work::Span;
use rpcrdma_wire::{Body, ChunkLists, Direction, Header, Plain, Version, WriteList, Xid};

/// The chunk lists of a plain message. Their direction is looked at before, if at all.
pub(crate) const NO_LISTS: ChunkLists<'static> = ChunkLists {
    direction: Direction::Call,
    inv_handle: None,
    reads: &[],
    writes: WriteList::ABSENT,
    reply: None,
};

/// A checked MSG or NOMSG, but for its lists.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub(crate) xid: Xid,
    pub(crate) version: Version,
    pub(crate) credits: u32,
    /// A NOMSG: the RPC message is not in it.
    pub(crate) long: bool,
    /// Where the RPC message begins, octets from the start.
    pub(crate) header_bytes: u32,
    /// The whole message.
    pub(crate) whole: Span,
}

impl Head {
    /// Of a plain message.
    #[inline(always)]
    pub(crate) fn plain(plain: &Plain, whole: Span) -> Self {
        Self {
            xid: plain.xid,
            version: plain.version,
            credits: plain.credits,
            long: false,
            header_bytes: plain.header_bytes,
            whole,
        }
    }

    /// Of any.
    pub(crate) fn of(header: &Header<'_>, whole: Span) -> Self {
        Self {
            xid: header.xid,
            version: header.version,
            credits: header.credits,
            long: matches!(header.body, Body::NoMsg(_)),
            header_bytes: u32::try_from(header.header_bytes).unwrap_or(u32::MAX),
            whole,
        }
    }

    /// The RPC message, or what of it is inline.
    #[inline]
    pub(crate) fn body(&self) -> Span {
        self.whole.skip(self.header_bytes)
    }
}
