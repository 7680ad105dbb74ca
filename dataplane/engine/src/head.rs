//! What the requester and the responder need to know of the header of an RPC's message, beside
//! its chunk lists.

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
    /// Octets of the whole message.
    pub(crate) message_bytes: u32,
}

impl Head {
    /// Of a plain message of `message_bytes` octets.
    #[inline]
    pub(crate) fn plain(plain: &Plain, message_bytes: u32) -> Self {
        Self {
            xid: plain.xid,
            version: plain.version,
            credits: plain.credits,
            long: false,
            header_bytes: plain.header_bytes,
            message_bytes,
        }
    }

    /// Of any.
    pub(crate) fn of(header: &Header<'_>) -> Self {
        let octets = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        let header_bytes = octets(header.header_bytes);
        Self {
            xid: header.xid,
            version: header.version,
            credits: header.credits,
            long: matches!(header.body, Body::NoMsg(_)),
            header_bytes,
            message_bytes: header_bytes.saturating_add(octets(header.payload.len())),
        }
    }
}
