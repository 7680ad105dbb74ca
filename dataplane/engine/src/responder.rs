//! The Calls this side serves: from the message that brings one to the Reply that ends it.
//!
//! A Call's life is [`ServePhase`]. Its receive buffer is held, header and all, until the Reply
//! is on its way: the Reply's chunk lists are emitted from it. The buffer is posted again just
//! before the Reply's Send, so that the grant is never above the receives posted.

use crate::api::{CloseReason, Event, IncomingCall, MAX_PARTS, Part, SlotId};
use crate::connection::{Connection, count};
use crate::deferred::Arrival;
use crate::kept::Kept;
use crate::layout::MAX_READS;
use crate::phase::{Phase, ServeEvent, ServePhase};
use crate::receives::Buffer;
use crate::setup::Side;
use crate::slots::Slots;
use crate::work::{Io, Span};
use crate::xids::Xids;
use arrayvec::ArrayVec;
use rpcrdma_wire::property::BackwardRequests;
use rpcrdma_wire::{Body, ChunkLists, ErrorBody, Handle, Header, Limits, Version, Xid, parse};
use std::collections::VecDeque;

/// Most parts of a Reply that waits in its slot: head, parts, padding of the last item.
pub(crate) const STORED_PARTS: usize = MAX_PARTS + 2;
/// Xids whose Read or Write failed on the peer's handle: not tried a second time (V1-10).
const SUSPECTS: usize = 8;

/// One Call this side serves.
pub(crate) struct Incoming {
    pub(crate) phase: ServePhase,
    pub(crate) xid: Xid,
    /// With the header and the inline body; taken when the Reply goes.
    pub(crate) held: Option<Buffer>,
    /// Octets of the message in `held`.
    pub(crate) message_bytes: u32,
    /// It brought chunk lists.
    pub(crate) chunked: bool,
    pub(crate) inv_handle: Option<Handle>,
    /// Memory of the assembled Call.
    pub(crate) assembled: Option<Span>,
    /// The whole RPC Call.
    pub(crate) message: Span,
    /// Reads posted of the plan, and those that have not completed.
    pub(crate) posted: u16,
    pub(crate) reading: u16,
    /// The Reply.
    pub(crate) parts: ArrayVec<Part, STORED_PARTS>,
    pub(crate) memory: [Option<Span>; 2],
    /// Work of the Reply: posted, and what has not completed.
    pub(crate) writes_posted: u16,
    pub(crate) replying: u16,
    /// The longest message of the peer when the first Write was posted: the plan stays the same
    /// until the Send is posted.
    pub(crate) limit: u32,
}

impl Incoming {
    fn empty() -> Self {
        Self {
            phase: ServePhase::Free,
            xid: Xid(0),
            held: None,
            message_bytes: 0,
            chunked: false,
            inv_handle: None,
            assembled: None,
            message: Span::default(),
            posted: 0,
            reading: 0,
            parts: ArrayVec::new(),
            memory: [None; 2],
            writes_posted: 0,
            replying: 0,
            limit: 0,
        }
    }
}

/// All Calls this side serves on one connection.
pub(crate) struct Responder {
    pub(crate) slots: Slots<Incoming>,
    pub(crate) xids: Xids,
    /// Calls taken and not answered.
    in_flight: u32,
    credits: u16,
    /// Calls whose Reads wait for memory or for room in the send queue, in order.
    pub(crate) waiting: VecDeque<SlotId>,
    /// Calls whose Reply waits for room in the send queue, in order. Apart from the others: a
    /// Reply that goes gives memory back, so it must never stand behind a Call that waits for
    /// some.
    unsent: VecDeque<SlotId>,
    pub(crate) kept: Kept,
    suspects: ArrayVec<Xid, SUSPECTS>,
}

impl Responder {
    /// Twice the slots of the grant: a Reply's memory may be in use by the fabric while its
    /// credit is being used again.
    pub(crate) fn new(credits: u16) -> Self {
        let slots = credits.saturating_mul(2);
        Self {
            slots: Slots::new(slots, Incoming::empty),
            xids: Xids::new(slots),
            in_flight: 0,
            credits,
            waiting: VecDeque::with_capacity(usize::from(slots)),
            unsent: VecDeque::with_capacity(usize::from(slots)),
            kept: Kept::new(),
            suspects: ArrayVec::new(),
        }
    }

    /// The credit value of Replies: one at least, never more than the receives there are.
    #[inline]
    pub(crate) fn grant(&self) -> u32 {
        u32::from(self.credits.max(1))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.used_count() == 0
    }

    /// Nothing in use but what the kept replies hold.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_empty() && self.kept.is_empty()
    }

    pub(crate) fn has_stalled(&self) -> bool {
        !self.waiting.is_empty() || !self.unsent.is_empty()
    }

    /// A Reply is half sent: Writes of it are posted, its Send is not.
    pub(crate) fn is_writing(&self) -> bool {
        self.unsent.iter().any(|&slot| {
            self.slots
                .get(slot)
                .is_some_and(|call| call.writes_posted > 0)
        })
    }

    /// A Call would find a slot; always true where there are none at all.
    #[inline]
    pub(crate) fn may_take(&self) -> bool {
        self.slots.free_count() > 0 || self.slots.len() == 0
    }

    /// The Reply in this slot found no room in the send queue.
    pub(crate) fn unsent(&mut self, slot: SlotId) {
        if !self.unsent.contains(&slot) {
            self.unsent.push_back(slot);
        }
    }

    /// The Call has its answer: its credit is the peer's again.
    #[inline]
    pub(crate) fn answered(&mut self, xid: Xid, slot: SlotId) {
        if self.xids.find(xid) == Some(slot.index) {
            self.xids.remove(xid);
            self.in_flight = self.in_flight.saturating_sub(1);
        }
    }

    /// Work for this Call failed on the peer's handle.
    pub(crate) fn suspect(&mut self, slot: SlotId) {
        if let Some(call) = self.slots.get(slot)
            && !self.suspects.contains(&call.xid)
        {
            if self.suspects.is_full() {
                self.suspects.remove(0);
            }
            self.suspects.push(call.xid);
        }
    }
}

impl Connection {
    /// Credits of the direction this side serves: Calls in flight, and the grant.
    #[must_use]
    pub fn responder_credits(&self) -> (u32, u32) {
        (self.responder.in_flight, self.responder.grant())
    }

    /// Xids whose Read or Write ended in a remote access error: give them to the next
    /// connection of the same peer ([`Connection::set_suspects`]), so that the error is not
    /// repeated for ever (V1-10).
    #[must_use]
    pub fn suspects(&self) -> &[Xid] {
        &self.responder.suspects
    }

    /// What [`Connection::suspects`] of the peer's last connection said.
    pub fn set_suspects(&mut self, suspects: &[Xid]) {
        self.responder.suspects.clear();
        self.responder
            .suspects
            .extend(suspects.iter().copied().take(SUSPECTS));
    }

    pub(crate) fn call_arrived<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        buffer: Buffer,
        header: &Header<'m>,
        lists: &ChunkLists<'m>,
    ) -> Event {
        if self.phase == Phase::Draining && !self.responder.kept.holds(header.xid) {
            count(&mut io.counters().drained_calls);
            self.repost(io, buffer);
            self.end_if_quiet(io);
            return Event::None;
        }
        if self.responder.xids.find(header.xid).is_some() {
            count(&mut io.counters().duplicate_calls);
            self.repost(io, buffer);
            return Event::None;
        }
        let chunked = !lists.reads.is_empty() || !lists.writes.is_empty() || lists.reply.is_some();
        if let Some(error) = self.policy(header.xid, header.version, chunked) {
            count(&mut io.counters().calls_refused);
            self.repost(io, buffer);
            self.send_error(io, header.version.code(), header.xid, error);
            return Event::None;
        }
        let in_flight = self.responder.in_flight.saturating_add(self.deferred.len());
        if in_flight >= u32::from(self.responder.credits) {
            self.fail(io, CloseReason::CreditOverrun);
            self.repost(io, buffer);
            return Event::None;
        }
        let Some(slot) = self.responder.slots.take() else {
            let len = u32::try_from(message_bytes(header)).unwrap_or(u32::MAX);
            self.deferred.push(Arrival {
                buffer,
                len,
                invalidated: None,
            });
            return Event::None;
        };
        self.seat(slot, buffer, header, lists, chunked);
        if let Some(kept) = self.responder.kept.take(header.xid) {
            return self.answer_retry(io, slot, kept);
        }
        if lists.reads.is_empty() {
            self.step_serve(io, slot, ServeEvent::Arrive);
            count(&mut io.counters().calls_in);
            return Event::Call(slot);
        }
        self.step_serve(io, slot, ServeEvent::Reduce);
        self.responder.waiting.push_back(slot);
        if self.responder.waiting.len() > 1 {
            // Long Calls take memory in the order they came in.
            return Event::None;
        }
        self.fetch_first(io)
    }

    /// Puts a Call into its slot.
    fn seat<'m>(
        &mut self,
        slot: SlotId,
        buffer: Buffer,
        header: &Header<'m>,
        lists: &ChunkLists<'m>,
        chunked: bool,
    ) {
        self.responder.in_flight = self.responder.in_flight.saturating_add(1);
        self.responder.xids.insert(header.xid, slot.index);
        let Some(call) = self.responder.slots.get_mut(slot) else {
            return;
        };
        let from = u32::try_from(header.header_bytes).unwrap_or(u32::MAX);
        let len = u32::try_from(header.payload.len()).unwrap_or(0);
        call.xid = header.xid;
        call.message_bytes = from.saturating_add(len);
        call.message = buffer.span.skip(from).first(len);
        call.held = Some(buffer);
        call.chunked = chunked;
        call.inv_handle = lists.inv_handle;
        call.posted = 0;
        call.writes_posted = 0;
    }

    /// Why a Call is answered by an error at once.
    fn policy(&self, xid: Xid, version: Version, chunked: bool) -> Option<ErrorBody> {
        let refused = match version {
            Version::One => ErrorBody::Chunk,
            Version::Two => ErrorBody::System,
        };
        if self.responder.suspects.contains(&xid) || self.responder.kept.is_spent(xid) {
            return Some(refused);
        }
        if self.setup.side == Side::Server {
            return None;
        }
        // A Call that a client gets is one in the backward direction (RFC 8167 5.3, V2-22).
        match self.properties.backward() {
            _ if self.responder.credits == 0 => Some(refused),
            BackwardRequests::None => Some(refused),
            BackwardRequests::Inline if chunked => Some(ErrorBody::Chunk),
            _ if chunked && version == Version::One => Some(ErrorBody::Chunk),
            _ => None,
        }
    }

    /// The Call in this slot: from [`Event::Call`] until answered or abandoned.
    #[must_use]
    pub fn call<'m>(&self, io: &impl Io<'m>, slot: SlotId) -> Option<IncomingCall> {
        let call = self.responder.slots.get(slot)?;
        if call.phase != ServePhase::Serving {
            return None;
        }
        let (mut write_bytes, mut reply_chunk_bytes, mut header) = (0u64, None, 0usize);
        let version = self.version.unwrap_or(Version::One);
        if call.chunked
            && let Some(lists) = held_lists(io, call, &self.setup.limits)
        {
            let room = |chunk: &[_]| crate::delivery::room(chunk);
            write_bytes = lists.writes.iter().map(room).sum();
            reply_chunk_bytes = lists.reply.map(room);
            header = crate::delivery::reply_header_bytes(version, &lists);
        } else if !call.chunked {
            header = rpcrdma_wire::emit::message_bytes(version, 0, 0, 0, None);
        }
        let header = u32::try_from(header).unwrap_or(u32::MAX);
        let octets = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        Some(IncomingCall {
            message: call.message,
            xid: call.xid,
            inline_bytes: self.peer.receive_bytes.saturating_sub(header),
            write_bytes: octets(write_bytes),
            reply_chunk_bytes: reply_chunk_bytes.map(octets),
            backward: self.setup.side == Side::Client,
        })
    }

    /// Gives a Call up: no Reply will be sent, its buffers are free. With `error` the peer is
    /// told: SYSTEM in version two, ERR_CHUNK in version one.
    pub fn abandon<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId, error: bool) -> Event {
        let Some(call) = self.responder.slots.get(slot) else {
            return Event::None;
        };
        if call.phase != ServePhase::Serving {
            return Event::None;
        }
        let xid = call.xid;
        count(&mut io.counters().calls_refused);
        self.end_serve(io, slot);
        if error && let Some(version) = self.version {
            let body = match version {
                Version::One => ErrorBody::Chunk,
                Version::Two => ErrorBody::System,
            };
            self.send_error(io, version.code(), xid, body);
        }
        self.end_if_quiet(io);
        Event::None
    }

    /// Frees a slot and all it holds. None of it may be in use by the fabric.
    pub(crate) fn end_serve<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) {
        self.step_serve(io, slot, ServeEvent::End);
        let Some(call) = self.responder.slots.get_mut(slot) else {
            return;
        };
        let (xid, held) = (call.xid, call.held.take());
        for memory in call.memory.iter_mut().chain([&mut call.assembled]) {
            if let Some(span) = memory.take() {
                io.release(span);
            }
        }
        call.parts.clear();
        self.responder.answered(xid, slot);
        self.responder.slots.free(slot);
        if !self.deferred.is_empty() {
            self.look_again();
        }
        if let Some(buffer) = held {
            self.repost(io, buffer);
        }
        self.look_again_if_over();
    }

    /// Moves a Call; a step that must not happen ends the connection.
    #[inline]
    pub(crate) fn step_serve<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId, event: ServeEvent) {
        let next = self.responder.slots.get_mut(slot).map(|call| {
            let next = call.phase.next(event);
            if let Ok(phase) = next {
                call.phase = phase;
            }
            next
        });
        if !matches!(next, Some(Ok(_))) {
            self.illegal(io);
        }
    }

    /// Goes on with the Replies that have waited longest, then with the first Call that waits
    /// for its Reads.
    pub(crate) fn resume_responder<'m>(&mut self, io: &mut impl Io<'m>) -> Event {
        while let Some(slot) = self.responder.unsent.pop_front() {
            let before = self.responder.unsent.len();
            let call = self.responder.slots.get(slot);
            if call.is_some_and(|call| call.phase == ServePhase::Replying) {
                self.transmit(io, slot);
            }
            if self.responder.unsent.len() > before {
                // It waits again: back to the front, where it was.
                self.responder.unsent.rotate_right(1);
                break;
            }
        }
        self.fetch_first(io)
    }

    /// Frees what a broken connection's Calls hold, but for those with the upper layer.
    pub(crate) fn unwind_responder<'m>(&mut self, io: &mut impl Io<'m>) {
        self.responder.waiting.clear();
        self.responder.unsent.clear();
        self.drop_kept(io);
        while let Some(slot) = self.responder.slots.first_used(|call| {
            call.phase != ServePhase::Serving && call.reading == 0 && call.replying == 0
        }) {
            self.end_serve(io, slot);
        }
    }
}

/// Octets of a whole message.
fn message_bytes(header: &Header<'_>) -> usize {
    header.header_bytes.saturating_add(header.payload.len())
}

/// The chunk lists of a held Call.
pub(crate) fn held_lists<'m>(
    io: &impl Io<'m>,
    call: &Incoming,
    limits: &Limits,
) -> Option<ChunkLists<'m>> {
    match held_header(io, call, limits)?.body {
        Body::Msg(lists) | Body::NoMsg(lists) => Some(lists),
        _ => None,
    }
}

/// The header of a held Call, checked when it came and unchanged since: nobody else can write
/// to a receive buffer that is not posted.
pub(crate) fn held_header<'m>(
    io: &impl Io<'m>,
    call: &Incoming,
    limits: &Limits,
) -> Option<Header<'m>> {
    let message = call.held.as_ref()?.span.first(call.message_bytes);
    parse(io.octets(message), limits).ok()
}

/// The setup's limits, as far as the engine's own tables reach.
pub(crate) fn clamp(limits: Limits) -> Limits {
    let most = u32::try_from(MAX_READS).unwrap_or(u32::MAX);
    Limits {
        read_segments: limits.read_segments.min(most),
        // A RESPROP of ours has one word for each of its subsets.
        properties: limits.properties.min(32),
        ..limits
    }
}
