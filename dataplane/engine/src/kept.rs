//! Replies kept for a retry after REPLY_RESOURCE (V2-20): the service ran the Call, the
//! requester had too little room for the Reply, and the same xid with more room is answered
//! from here. Bounded in count, in octets and in time; once a reply is gone its xid is
//! remembered for a while, so that the Call is not run a second time for a late retry.

use crate::api::{Event, Part, SlotId};
use crate::connection::{Connection, count};
use crate::phase::ServeEvent;
use crate::responder::STORED_PARTS;
use crate::work::{Io, Span};
use arrayvec::ArrayVec;
use rpcrdma_wire::Xid;

/// Replies kept at a time.
const KEPT: usize = 4;
/// Xids remembered whose reply is gone.
const SPENT: usize = 64;

/// One reply, and the memory it owns.
pub(crate) struct KeptReply {
    pub(crate) xid: Xid,
    pub(crate) parts: ArrayVec<Part, STORED_PARTS>,
    pub(crate) memory: [Option<Span>; 2],
    bytes: u32,
    age: u32,
}

/// The replies kept of one connection.
pub(crate) struct Kept {
    replies: ArrayVec<KeptReply, KEPT>,
    spent: ArrayVec<Xid, SPENT>,
    bytes: u32,
}

impl Kept {
    pub(crate) fn new() -> Self {
        Self {
            replies: ArrayVec::new(),
            spent: ArrayVec::new(),
            bytes: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// The reply to this Call is gone, and the Call must not run again.
    pub(crate) fn is_spent(&self, xid: Xid) -> bool {
        self.spent.contains(&xid)
    }

    /// There is a reply for this Call.
    pub(crate) fn holds(&self, xid: Xid) -> bool {
        self.replies.iter().any(|kept| kept.xid == xid)
    }

    /// The kept reply of a retry.
    pub(crate) fn take(&mut self, xid: Xid) -> Option<KeptReply> {
        let at = self.replies.iter().position(|kept| kept.xid == xid)?;
        let kept = self.replies.remove(at);
        self.bytes = self.bytes.saturating_sub(kept.bytes);
        Some(kept)
    }

    /// A reply of `bytes` octets does not fit beside the others.
    fn is_short_of(&self, bytes: u32, most: u32) -> bool {
        self.replies.is_full() || self.bytes.saturating_add(bytes) > most
    }

    fn spend(&mut self, xid: Xid) {
        if self.spent.is_full() {
            self.spent.remove(0);
        }
        self.spent.push(xid);
    }
}

impl Connection {
    /// Keeps the Reply in `slot` for a retry, or remembers that there is none to keep.
    pub(crate) fn keep<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) {
        let most = self.setup.kept_bytes;
        self.responder.wary = true;
        let Some(call) = self.responder.slots.get(slot) else {
            return;
        };
        let owned = call.memory.iter().flatten().map(|span| span.len);
        let bytes = owned.fold(0u32, u32::saturating_add);
        let xid = call.xid;
        if bytes > most {
            self.responder.kept.spend(xid);
            return;
        }
        // The oldest make room: a retry comes soon or not at all.
        while self.responder.kept.is_short_of(bytes, most)
            && let Some(oldest) = self.responder.kept.replies.first().map(|kept| kept.xid)
        {
            self.responder.kept.spend(oldest);
            self.release_kept(io, oldest);
        }
        let Some(call) = self.responder.slots.get_mut(slot) else {
            return;
        };
        let kept = &mut self.responder.kept;
        kept.bytes = kept.bytes.saturating_add(bytes);
        kept.replies.push(KeptReply {
            xid,
            parts: std::mem::take(&mut call.parts),
            memory: std::mem::take(&mut call.memory),
            bytes,
            age: 0,
        });
        count(&mut io.counters().replies_kept);
    }

    /// A retry of a Call whose reply was kept: nothing of the Call is fetched or run again.
    pub(crate) fn answer_retry<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        kept: KeptReply,
    ) -> Event {
        self.step_serve(io, slot, ServeEvent::Arrive);
        self.step_serve(io, slot, ServeEvent::Answer);
        if let Some(call) = self.responder.slots.get_mut(slot) {
            call.parts = kept.parts;
            call.memory = kept.memory;
        }
        count(&mut io.counters().retries_answered);
        self.transmit(io, slot)
    }

    /// Kept replies grow older; the oldest go.
    pub(crate) fn expire_kept<'m>(&mut self, io: &mut impl Io<'m>) {
        let most = self.setup.kept_ticks;
        for kept in &mut self.responder.kept.replies {
            kept.age = kept.age.saturating_add(1);
        }
        let old = |kept: &KeptReply| kept.age > most;
        while let Some(xid) = self
            .responder
            .kept
            .replies
            .iter()
            .find(|kept| old(kept))
            .map(|kept| kept.xid)
        {
            self.responder.kept.spend(xid);
            self.release_kept(io, xid);
        }
    }

    /// The connection is over: no retry will come.
    pub(crate) fn drop_kept<'m>(&mut self, io: &mut impl Io<'m>) {
        while let Some(xid) = self.responder.kept.replies.first().map(|kept| kept.xid) {
            self.release_kept(io, xid);
        }
    }

    fn release_kept<'m>(&mut self, io: &mut impl Io<'m>, xid: Xid) {
        if let Some(kept) = self.responder.kept.take(xid) {
            kept.memory
                .into_iter()
                .flatten()
                .for_each(|span| io.release(span));
        }
    }
}
