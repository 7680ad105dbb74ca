//! The Calls this side serves: from the message that brings one to the Reply that ends it.
//!
//! A Call's life is [`ServePhase`]. Its receive buffer is held, header and all, until the Reply
//! is on its way: the Reply's chunk lists are emitted from it. The buffer is posted again just
//! before the Reply's Send, so that the grant is never above the receives posted.

use crate::api::{Event, IncomingCall, MAX_PARTS, Part, SlotId};
use crate::connection::{Connection, count};
use crate::head::Head;
use crate::kept::Kept;
use crate::layout::MAX_READS;
use crate::phase::{Illegal, ServeEvent, ServePhase};
use crate::receives::{Buffer, Receives};
use crate::setup::Side;
use crate::slots::Slots;
use crate::work::{Io, Span};
use crate::xids::Xids;
use arrayvec::ArrayVec;
use rpcrdma_wire::plain::header_bytes;
use rpcrdma_wire::{Body, ChunkLists, ErrorBody, Handle, Header, Limits, Version, Xid, parse};
use std::collections::VecDeque;

/// Most parts of a Reply that waits in its slot: head, parts, padding of the last item.
pub(crate) const STORED_PARTS: usize = MAX_PARTS + 2;
/// Xids whose Read or Write failed on the peer's handle: not tried a second time (V1-10).
const SUSPECTS: usize = 8;
/// Octets of the longest Reply that waits without memory of the pool: an RPC error with two words.
const HEAD_BYTES: usize = 32;

/// One Call this side serves. Laid out by hand: what each Call needs, then what those with chunks,
/// and Replies that wait, need.
#[repr(C)]
pub(crate) struct Incoming {
    pub(crate) phase: ServePhase,
    /// Its xid is that of a Call in flight: it uses a credit.
    pub(crate) open: bool,
    /// It brought chunk lists.
    pub(crate) chunked: bool,
    /// With the header and the inline body; taken when the Reply goes.
    pub(crate) held: Option<Buffer>,
    pub(crate) xid: Xid,
    /// Octets of the message in `held`.
    pub(crate) message_bytes: u32,
    /// Reads posted of the plan, and those that have not completed.
    pub(crate) posted: u16,
    pub(crate) reading: u16,
    /// Work of the Reply: posted, and what has not completed.
    pub(crate) writes_posted: u16,
    pub(crate) replying: u16,
    pub(crate) inv_handle: Option<Handle>,
    /// The whole RPC Call.
    pub(crate) message: Span,
    /// Memory of the assembled Call.
    pub(crate) assembled: Option<Span>,
    pub(crate) memory: [Option<Span>; 2],
    /// The longest message of the peer when the first Write was posted: the plan stays the same
    /// until the Send is posted.
    pub(crate) limit: u32,
    /// The Reply, where it is kept; what the slot's last use has left in it, where it is not.
    pub(crate) parts: ArrayVec<Part, STORED_PARTS>,
    /// A Reply so short that it is kept here, all of it, and has no parts; otherwise empty. An error has to be said even when the
    /// pool has nothing left.
    pub(crate) head: ArrayVec<u8, HEAD_BYTES>,
}

impl Incoming {
    fn empty() -> Self {
        Self {
            phase: ServePhase::Free,
            xid: Xid(0),
            held: None,
            message_bytes: 0,
            open: false,
            chunked: false,
            inv_handle: None,
            assembled: None,
            message: Span::default(),
            posted: 0,
            reading: 0,
            parts: ArrayVec::new(),
            head: ArrayVec::new(),
            memory: [None; 2],
            writes_posted: 0,
            replying: 0,
            limit: 0,
        }
    }

    /// Fills a slot with a Call that came in `buffer`.
    #[inline]
    pub(crate) fn seat(
        &mut self,
        buffer: Buffer,
        head: &Head,
        lists: &ChunkLists<'_>,
        chunked: bool,
    ) {
        self.xid = head.xid;
        self.message_bytes = head.whole.len;
        self.message = head.body();
        self.held = Some(buffer);
        self.open = true;
        self.chunked = chunked;
        self.inv_handle = lists.inv_handle;
        self.posted = 0;
        self.writes_posted = 0;
        self.head.clear();
    }

    /// It has memory of the pool.
    #[inline]
    fn owns_memory(&self) -> bool {
        let [first, second] = &self.memory;
        first.is_some() || second.is_some() || self.assembled.is_some()
    }

    /// Gives its memory back to the pool.
    #[inline(never)]
    fn release_memory<'m>(&mut self, io: &mut impl Io<'m>) {
        for memory in self.memory.iter_mut().chain([&mut self.assembled]) {
            if let Some(span) = memory.take() {
                io.release(span);
            }
        }
    }

    /// Moves the Call. A step that must not happen leaves it where it is, and is an error.
    #[inline]
    pub(crate) fn step(&mut self, event: ServeEvent) -> Result<(), Illegal> {
        self.phase = self.phase.next(event)?;
        Ok(())
    }
}

/// All Calls this side serves on one connection.
#[repr(C)]
pub(crate) struct Responder {
    /// Calls taken and not answered.
    pub(crate) in_flight: u32,
    pub(crate) credits: u16,
    /// Each Call is looked at closely: there are or were xids in `kept` or `suspects`, or Calls
    /// that come here are backward ones.
    pub(crate) wary: bool,
    pub(crate) xids: Xids,
    pub(crate) slots: Slots<Incoming>,
    /// Calls whose Reads wait for memory or for room in the send queue, in order.
    pub(crate) waiting: VecDeque<SlotId>,
    /// Calls whose Reply waits for room in the send queue, in order. Apart from the others: a
    /// Reply that goes gives memory back, so it must never stand behind a Call that waits for
    /// some.
    unsent: VecDeque<SlotId>,
    /// Large and seldom used, like the next: apart from what each message needs.
    pub(crate) kept: Box<Kept>,
    pub(crate) suspects: Box<ArrayVec<Xid, SUSPECTS>>,
}

impl Responder {
    /// Twice the slots of the grant: a Reply's memory may be in use by the fabric while its
    /// credit is being used again.
    pub(crate) fn new(credits: u16, side: Side) -> Self {
        let slots = credits.saturating_mul(2);
        Self {
            slots: Slots::new(slots, Incoming::empty),
            xids: Xids::new(slots),
            in_flight: 0,
            credits,
            wary: side == Side::Client,
            waiting: VecDeque::with_capacity(usize::from(slots)),
            unsent: VecDeque::with_capacity(usize::from(slots)),
            kept: Box::new(Kept::new()),
            suspects: Box::default(),
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

    /// The open Call with this xid has its answer: its credit is the peer's again.
    #[inline]
    pub(crate) fn answered(&mut self, xid: Xid) {
        self.xids.remove(xid);
        self.in_flight = self.in_flight.saturating_sub(1);
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
            self.wary = true;
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
        self.responder.wary |= !suspects.is_empty();
        self.responder.suspects.clear();
        self.responder
            .suspects
            .extend(suspects.iter().copied().take(SUSPECTS));
    }

    /// The Call in this slot: from [`Event::Call`] until answered or abandoned.
    #[inline(always)]
    #[must_use]
    pub fn call<'m>(&self, io: &impl Io<'m>, slot: SlotId) -> Option<IncomingCall> {
        let call = self.responder.slots.get(slot)?;
        if call.phase != ServePhase::Serving {
            return None;
        }
        let incoming = IncomingCall {
            message: call.message,
            xid: call.xid,
            inline_bytes: 0,
            write_bytes: 0,
            reply_chunk_bytes: None,
            backward: self.setup.side == Side::Client,
        };
        let version = self.version.unwrap_or(Version::One);
        if call.chunked {
            return Some(self.with_rooms(io, call, version, incoming));
        }
        Some(IncomingCall {
            inline_bytes: self
                .peer
                .receive_bytes
                .saturating_sub(header_bytes(version)),
            ..incoming
        })
    }

    /// A Call with what its chunks, and its peer's receives, have room for.
    #[inline(never)]
    fn with_rooms<'m>(
        &self,
        io: &impl Io<'m>,
        call: &Incoming,
        version: Version,
        incoming: IncomingCall,
    ) -> IncomingCall {
        let octets = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let room = |chunk: &[_]| crate::delivery::room(chunk);
        let lists = held_lists(io, call, &self.receives, &self.setup.limits);
        let header = lists.map_or(0, |lists| {
            crate::delivery::reply_header_bytes(version, &lists) as u64
        });
        IncomingCall {
            inline_bytes: self.peer.receive_bytes.saturating_sub(octets(header)),
            write_bytes: octets(lists.map_or(0, |lists| lists.writes.iter().map(room).sum())),
            reply_chunk_bytes: lists.and_then(|lists| lists.reply).map(room).map(octets),
            ..incoming
        }
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
    #[inline(never)]
    pub(crate) fn end_serve<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) {
        self.take_apart(io, slot);
    }

    /// The same, on the way of every Call.
    #[inline(always)]
    pub(crate) fn take_apart<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) {
        let Some(call) = self.responder.slots.free(slot) else {
            return;
        };
        let ended = call.step(ServeEvent::End);
        if call.owns_memory() {
            call.release_memory(io);
        }
        let held = call.held.take();
        if std::mem::take(&mut call.open) {
            let xid = call.xid;
            self.responder.answered(xid);
        }
        if ended.is_err() {
            self.illegal(io);
        }
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
        let call = self.responder.slots.get_mut(slot);
        if call.is_none_or(|call| call.step(event).is_err()) {
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

/// The chunk lists of a held Call.
pub(crate) fn held_lists<'m>(
    io: &impl Io<'m>,
    call: &Incoming,
    receives: &Receives,
    limits: &Limits,
) -> Option<ChunkLists<'m>> {
    match held_header(io, call, receives, limits)?.body {
        Body::Msg(lists) | Body::NoMsg(lists) => Some(lists),
        _ => None,
    }
}

/// The header of a held Call, checked when it came and unchanged since: nobody else can write
/// to a receive buffer that is not posted.
pub(crate) fn held_header<'m>(
    io: &impl Io<'m>,
    call: &Incoming,
    receives: &Receives,
    limits: &Limits,
) -> Option<Header<'m>> {
    let memory = receives.span(call.held.as_ref()?);
    let message = memory.first(call.message_bytes);
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
