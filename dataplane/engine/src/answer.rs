//! Answering a Call: results to their Write chunks, the rest inline or to the Reply chunk.
//!
//! RDMA Writes are posted before the Send, on one queue pair, so the peer has the data when it
//! has the Reply. What finds no room in the send queue waits in phase `Replying` and is taken
//! up at the number it stopped at.

use crate::api::{CloseReason, Event, MAX_PARTS, Part, Reply, SlotId};
use crate::connection::{Connection, count, count_bytes};
use crate::delivery::{
    Delivery, HEADER_BYTES, TooSmall, deliver, emit_header, only_handle, rest, spread,
    written_parts,
};
use crate::ids::{Kind, work_id};
use crate::outline::tail;
use crate::phase::{ServeEvent, ServePhase};
use crate::responder::{Incoming, STORED_PARTS, held_lists};
use crate::work::{Io, Octets, Posted, Refused, Span, WorkError};
use arrayvec::ArrayVec;
use rpcrdma_wire::plain::{PLAIN_BYTES, emit_plain};
use rpcrdma_wire::{ChunkLists, Direction, ErrorBody, Handle, Segment, Version};

/// A Reply's gather list: header, head, parts, padding of the last item.
type Gather<'a> = ArrayVec<Octets<'a>, { STORED_PARTS + 1 }>;
/// Room for the header of most Replies with chunks.
const SHORT_HEADER_BYTES: usize = 256;

impl Connection {
    /// Answers a Call. A stale slot's reply is dropped, its memory released all the same; one
    /// of more than [`MAX_PARTS`] parts is no reply: the Call is abandoned, with an error.
    #[inline]
    pub fn answer<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId, reply: Reply<'_>) -> Event {
        let over = self.phase.is_over();
        let limit = self.peer.receive_bytes;
        let version = self.version.unwrap_or(Version::One);
        let grant = self.responder.grant();
        let serving = self
            .responder
            .slots
            .get_mut(slot)
            .filter(|call| call.phase == ServePhase::Serving);
        let Some(call) = serving else {
            reply.memory.into_iter().for_each(|span| io.release(span));
            return Event::None;
        };
        if reply.parts.len() > MAX_PARTS {
            reply.memory.into_iter().for_each(|span| io.release(span));
            return self.abandon(io, slot, true);
        }
        call.memory[0] = reply.memory;
        if over {
            self.end_serve(io, slot);
            self.look_again();
            return Event::None;
        }
        if call.step(ServeEvent::Answer).is_err() {
            return self.illegal(io);
        }
        let room = u64::from(limit).saturating_sub(PLAIN_BYTES as u64);
        if !call.chunked && reply_bytes(&reply) <= room {
            let sent = call.send_plain(io, slot, version, grant, &reply);
            if self.settle_reply(io, slot, sent, false) {
                return Event::None;
            }
        }
        self.store(io, slot, &reply)
    }

    /// A Reply's Send was tried. False when it found no room.
    ///
    /// The receive its Call came in is posted after it, so that a Send without room leaves the
    /// Call as it was. The grant is covered all the same: one receive at a time is missing, and
    /// two more than the grant are posted.
    #[inline(always)]
    fn settle_reply<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        sent: Result<Posted, Refused>,
        invalidate: bool,
    ) -> bool {
        match sent {
            Ok(posted) => {
                self.sent(io, slot, posted, invalidate);
                true
            }
            Err(Refused::Busy) => false,
            Err(_) => {
                self.fail(io, CloseReason::Work(WorkError::Transport));
                true
            }
        }
    }

    #[inline(always)]
    fn sent<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId, posted: Posted, invalidate: bool) {
        count(&mut io.counters().replies_out);
        if invalidate {
            count(&mut io.counters().sends_with_invalidate);
        }
        self.posted(posted);
        let Some(call) = self.responder.slots.get_mut(slot) else {
            return;
        };
        if call.step(ServeEvent::Send).is_err() {
            self.illegal(io);
            return;
        }
        if posted == Posted::Pending {
            call.replying = call.replying.saturating_add(1);
        }
        if call.replying == 0 {
            self.take_apart(io, slot);
        } else {
            self.linger(io, slot);
        }
        self.end_if_quiet(io);
    }

    /// The Reply is on its way: its Call's receive is the fabric's again, its credit the peer's.
    #[inline(never)]
    fn linger<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) {
        let Some(call) = self.responder.slots.get_mut(slot) else {
            return;
        };
        let held = call.held.take();
        if std::mem::take(&mut call.open) {
            let xid = call.xid;
            self.responder.answered(xid);
        }
        if let Some(buffer) = held {
            self.repost(io, buffer);
        }
    }

    /// Keeps a Reply in its slot, then sends it in as many steps as it takes.
    #[inline(never)]
    fn store<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId, reply: &Reply<'_>) -> Event {
        if self.store_head(slot, reply) {
            return self.transmit(io, slot);
        }
        let head = u32::try_from(reply.head.len()).unwrap_or(u32::MAX);
        let tail = tail(reply.parts);
        let own = head.saturating_add(tail);
        let memory = if own > 0 { io.reserve(own) } else { None };
        let Some(call) = self.responder.slots.get_mut(slot) else {
            return Event::None;
        };
        if own > 0 && memory.is_none() {
            self.fail(io, CloseReason::Memory);
            return Event::None;
        }
        let memory = memory.unwrap_or_default();
        call.parts.clear();
        if own > 0 {
            io.fill(memory, reply.head);
            io.fill(
                memory.skip(head),
                [0; 3].get(..tail as usize).unwrap_or_default(),
            );
            call.memory = [reply.memory, Some(memory)];
        }
        if head > 0 {
            call.parts.push(plain(memory.first(head)));
        }
        call.parts.extend(reply.parts.iter().copied());
        if tail > 0 {
            call.parts.push(plain(memory.skip(head)));
        }
        self.transmit(io, slot)
    }

    /// Keeps a Reply of a few octets without any memory of the pool. False: it is none.
    fn store_head(&mut self, slot: SlotId, reply: &Reply<'_>) -> bool {
        let call = self.responder.slots.get_mut(slot);
        match (call, ArrayVec::try_from(reply.head)) {
            (Some(call), Ok(head)) if reply.parts.is_empty() => {
                call.parts.clear();
                call.head = head;
                true
            }
            _ => false,
        }
    }

    /// Makes parts of such a Reply, because chunks leave no room for it beside the header.
    #[cold]
    fn move_head<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) -> Event {
        let Some(call) = self.responder.slots.get_mut(slot) else {
            return Event::None;
        };
        let Some(memory) = io.reserve(call.head_part().span.len) else {
            self.fail(io, CloseReason::Memory);
            return Event::None;
        };
        io.fill(memory, &call.head);
        call.memory[1] = Some(memory);
        call.parts.push(plain(memory));
        call.head.clear();
        self.transmit(io, slot)
    }

    /// Posts what is left of a Reply: its RDMA Writes, then its Send.
    pub(crate) fn transmit<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) -> Event {
        let version = self.version.unwrap_or(Version::One);
        let Some(call) = self.responder.slots.get_mut(slot) else {
            return Event::None;
        };
        if call.writes_posted == 0 {
            call.limit = self.peer.receive_bytes;
        }
        let limit = call.limit;
        let Some(lists) = held_lists(io, call, &self.receives, &self.setup.limits) else {
            return self.illegal(io);
        };
        let is_head = !call.head.is_empty();
        let head = [call.head_part()];
        let parts = if is_head { &head[..] } else { &call.parts };
        let delivery = match deliver(version, limit, parts, lists) {
            Ok(delivery) if !(is_head && delivery.long) => delivery,
            Err(small) if !is_head => return self.no_room(io, slot, version, small),
            _ => return self.move_head(io, slot),
        };
        let (pending, result) = write_all(io, call, slot, &delivery);
        self.outstanding = self.outstanding.saturating_add(pending);
        match result {
            Ok(()) if delivery.header_bytes <= SHORT_HEADER_BYTES => {
                self.send_delivery(io, slot, version, &delivery, &mut [0; SHORT_HEADER_BYTES]);
            }
            Ok(()) => self.send_delivery(io, slot, version, &delivery, &mut [0; HEADER_BYTES]),
            Err(Refused::Busy) => self.responder.unsent(slot),
            Err(_) => self.fail(io, CloseReason::Work(WorkError::Transport)),
        }
        Event::None
    }

    /// The Reply's Send, all Writes being posted.
    fn send_delivery<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        version: Version,
        delivery: &Delivery<'m>,
        octets: &mut [u8],
    ) {
        let invalidate = self.invalidates(slot, version, &delivery.lists);
        let credits = self.responder.grant();
        let Some(call) = self.responder.slots.get(slot) else {
            return;
        };
        let Some(len) = emit_header(octets, version, call.xid, credits, call, delivery) else {
            self.illegal(io);
            return;
        };
        let header = octets.get(..len).unwrap_or_default();
        let sent = call.send_delivery(io, slot, header, delivery, invalidate);
        if !self.settle_reply(io, slot, sent, invalidate.is_some()) {
            self.responder.unsent(slot);
        }
    }

    /// The handle to take from the peer with this Reply: the one it named, or in version one,
    /// with both flags set, the one distinct handle of its Call (section 4).
    fn invalidates(
        &self,
        slot: SlotId,
        version: Version,
        lists: &ChunkLists<'_>,
    ) -> Option<Handle> {
        if !self.setup.remote_invalidate {
            return None;
        }
        match version {
            Version::Two => self.responder.slots.get(slot)?.inv_handle,
            Version::One => {
                let agreed = self
                    .peer
                    .private
                    .is_some_and(|private| private.remote_invalidate);
                if agreed { only_handle(lists) } else { None }
            }
        }
    }

    /// The Reply fits nowhere: the answer the protocol names, the connection kept (V1-09).
    fn no_room<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        version: Version,
        small: TooSmall,
    ) -> Event {
        let Some(call) = self.responder.slots.get(slot) else {
            return Event::None;
        };
        let xid = call.xid;
        let error = match version {
            Version::One => ErrorBody::Chunk,
            Version::Two => {
                self.keep(io, slot);
                ErrorBody::ReplyResource {
                    segment: small.segment,
                    length: small.length,
                }
            }
        };
        count(&mut io.counters().calls_refused);
        self.end_serve(io, slot);
        self.send_error(io, version.code(), xid, error);
        self.end_if_quiet(io);
        Event::None
    }

    /// Work of a Reply completed: its memory is free when the last has.
    pub(crate) fn reply_work_done<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) -> Event {
        let Some(call) = self.responder.slots.get_mut(slot) else {
            return Event::None;
        };
        call.replying = call.replying.saturating_sub(1);
        if call.replying == 0 && call.phase == ServePhase::Lingering {
            self.end_serve(io, slot);
        }
        Event::None
    }
}

/// A part that is no data item.
fn plain(span: Span) -> Part {
    Part { span, item: false }
}

impl Incoming {
    /// What a Reply that is kept here would be in the pool: its length alone is true.
    fn head_part(&self) -> Part {
        let len = u32::try_from(self.head.len()).unwrap_or(u32::MAX);
        plain(Span { offset: 0, len })
    }

    /// Behind its header, what does not go by RDMA Write.
    fn send_delivery<'m>(
        &self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        header: &[u8],
        delivery: &Delivery<'_>,
        invalidate: Option<Handle>,
    ) -> Result<Posted, Refused> {
        let mut message = Gather::new();
        message.push(Octets::Bytes(header));
        if !self.head.is_empty() {
            message.push(Octets::Bytes(&self.head));
        }
        if !delivery.long {
            message.extend(rest(&self.parts, delivery.reduced).map(Octets::Span));
        }
        io.send(&message, invalidate, work_id(Kind::Reply, slot))
    }

    /// The common case: no chunks, and it fits.
    #[inline]
    fn send_plain<'m>(
        &self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        version: Version,
        grant: u32,
        reply: &Reply<'_>,
    ) -> Result<Posted, Refused> {
        let mut room = [0; PLAIN_BYTES];
        let header = emit_plain(&mut room, version, self.xid, grant, Direction::Reply);
        let mut message = Gather::new();
        message.push(Octets::Bytes(header));
        if !reply.head.is_empty() {
            message.push(Octets::Bytes(reply.head));
        }
        for part in reply.parts {
            message.push(Octets::Span(part.span));
        }
        let tail = tail(reply.parts) as usize;
        if tail > 0 {
            message.push(Octets::Bytes([0; 3].get(..tail).unwrap_or_default()));
        }
        io.send(&message, None, work_id(Kind::Reply, slot))
    }
}

/// Octets of a Reply, the padding that may lack at its end included.
#[inline]
fn reply_bytes(reply: &Reply<'_>) -> u64 {
    let parts = reply.parts.iter().map(|part| u64::from(part.span.len));
    // A few lengths of 32 bits, and one of ordinary memory.
    let bytes = parts.sum::<u64>().wrapping_add(reply.head.len() as u64);
    bytes.wrapping_add(tail(reply.parts).into())
}

/// Posts the Writes of a Reply that are not posted yet. How many will complete, and whether all
/// are posted.
fn write_all<'m>(
    io: &mut impl Io<'m>,
    call: &mut Incoming,
    slot: SlotId,
    delivery: &Delivery<'m>,
) -> (u32, Result<(), Refused>) {
    let (mut number, mut pending) = (0u16, 0u32);
    let parts = std::mem::take(&mut call.parts);
    let mut write = |from: Span, to: Segment| {
        number = number.saturating_add(1);
        if number <= call.writes_posted {
            return Ok(());
        }
        let posted = io.write(from, to, work_id(Kind::Write, slot))?;
        call.writes_posted = number;
        if posted == Posted::Pending {
            call.replying = call.replying.saturating_add(1);
            pending = pending.saturating_add(1);
        }
        count(&mut io.counters().writes);
        count_bytes(&mut io.counters().write_bytes, from.len);
        Ok(())
    };
    let result = (|| {
        for (part, chunk) in written_parts(&parts, delivery) {
            spread([part.span].into_iter(), chunk, &mut write)?;
        }
        match delivery.lists.reply.filter(|_| delivery.long) {
            Some(chunk) => spread(rest(&parts, delivery.reduced), chunk, &mut write),
            None => Ok(()),
        }
    })();
    call.parts = parts;
    (pending, result)
}
