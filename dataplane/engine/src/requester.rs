//! The Calls this side makes: slots, credits, and what happens to each Call until its Reply.
//!
//! A Call's life is [`CallPhase`]. The engine never owns the memory of a Call: it tells the
//! upper layer, by one event for each Call, when the peer can no longer reach it. Until then
//! every exposure is in `exposures`, and `live` says which are still in force.

use crate::api::{
    Call, CallError, CloseReason, Event, IncomingReply, MAX_PARTS, MAX_RESULTS, Part, SlotId,
};
use crate::connection::{Connection, count};
use crate::outline::{MAX_SEGMENTS, Outline, tail};
use crate::phase::{CallEvent, CallPhase, Illegal, Phase};
use crate::receives::Buffer;
use crate::setup::{FIRST_BYTES, Side, VERSION_TWO_BYTES};
use crate::slots::Slots;
use crate::work::{Io, Refused, Span, WorkError};
use crate::xids::Xids;
use arrayvec::ArrayVec;
use rpcrdma_wire::{Handle, Version, Xid};
use std::collections::VecDeque;

/// A Call of at most so many octets, and a header without chunks, fits into any first message.
const SHORT_BYTES: u64 = 512;

/// What a Call becomes once nothing of it is exposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Its Reply goes up.
    Deliver,
    /// It has failed.
    Fail(CallError),
    /// The upper layer looks for more room.
    NeedRoom { segment: u32, length: u32 },
    /// Nobody wants it.
    Cancel,
    /// It is sent again.
    Requeue,
}

/// One Call this side makes. Laid out by hand: what each Call needs, then what those with chunks
/// need.
#[repr(C)]
pub(crate) struct Outgoing {
    pub(crate) phase: CallPhase,
    /// Its xid is in the table of those in flight.
    pub(crate) open: bool,
    /// Work that has not completed and uses this Call's memory: its Send, and retirements.
    pub(crate) busy: u8,
    /// The receive buffer with the Reply.
    pub(crate) held: Option<Buffer>,
    pub(crate) xid: Xid,
    pub(crate) then: Then,
    /// Which of the exposures are still in force, by place.
    pub(crate) live: u32,
    /// Octets of the whole Call, padding included.
    pub(crate) bytes: u64,
    pub(crate) body: Span,
    pub(crate) reply: Option<Span>,
    pub(crate) results: ArrayVec<Span, MAX_RESULTS>,
    pub(crate) written: [Option<u32>; MAX_RESULTS],
    pub(crate) parts: ArrayVec<Part, MAX_PARTS>,
    /// The handle the peer may invalidate (version two 6.2.3).
    pub(crate) named: Option<Handle>,
    /// Handles given to the peer for this Call.
    pub(crate) exposures: ArrayVec<Handle, MAX_SEGMENTS>,
}

impl Outgoing {
    fn empty() -> Self {
        Self {
            phase: CallPhase::Free,
            then: Then::Deliver,
            xid: Xid(0),
            open: false,
            parts: ArrayVec::new(),
            bytes: 0,
            results: ArrayVec::new(),
            reply: None,
            exposures: ArrayVec::new(),
            live: 0,
            busy: 0,
            named: None,
            held: None,
            body: Span::default(),
            written: [None; MAX_RESULTS],
        }
    }

    /// Fills a slot with a Call of `bytes` octets.
    #[inline]
    fn seat(&mut self, call: &Call<'_>, bytes: u64) {
        self.then = Then::Deliver;
        self.xid = call.xid;
        self.open = true;
        self.bytes = bytes;
        self.parts.clear();
        self.results.clear();
        match (call.parts, call.results) {
            // Most are in one piece.
            (&[part], []) => self.parts.push(part),
            (parts, results) => {
                self.parts.extend(parts.iter().copied());
                self.results.extend(results.iter().copied());
            }
        }
        self.reply = call.reply;
    }

    /// Nothing of it is exposed, and no device works on its memory.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.live == 0 && self.busy == 0
    }

    /// Moves the Call. A step that must not happen leaves it where it is, and is an error.
    #[inline]
    pub(crate) fn step(&mut self, event: CallEvent) -> Result<(), Illegal> {
        self.phase = self.phase.next(event)?;
        Ok(())
    }
}

/// All Calls this side makes on one connection.
#[repr(C)]
pub(crate) struct Requester {
    pub(crate) slots: Slots<Outgoing>,
    pub(crate) xids: Xids,
    /// Calls at a time, at most: what this side asks for.
    wanted: u32,
    /// What the peer last granted, one at least.
    granted: u32,
    /// Calls sent and not answered.
    in_flight: u32,
    /// A retirement was refused for want of room.
    pub(crate) retire_again: bool,
    /// Slots in phase `Queued`, in order.
    queue: VecDeque<u16>,
}

impl Requester {
    pub(crate) fn new(count: u16) -> Self {
        Self {
            slots: Slots::new(count, Outgoing::empty),
            xids: Xids::new(count),
            queue: VecDeque::with_capacity(usize::from(count)),
            wanted: count.into(),
            granted: 1,
            in_flight: 0,
            retire_again: false,
        }
    }

    /// Before the first Reply exactly one Call may be out (8166 3.3.3, V2-17).
    pub(crate) fn reset_credits(&mut self) {
        self.granted = 1;
        self.in_flight = 0;
    }

    /// A grant from the peer: zero counts as one (section 4), and no more than there are slots.
    #[inline]
    pub(crate) fn grant(&mut self, credits: u32) {
        self.granted = credits.min(self.wanted).max(1);
    }

    /// One Call more is in flight: no more than there are slots.
    #[inline]
    fn launched(&mut self) {
        self.in_flight = self.in_flight.wrapping_add(1);
    }

    /// One Call fewer is in flight.
    #[inline]
    pub(crate) fn answered(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// What this side asks for in its Calls.
    #[inline]
    pub(crate) fn wanted(&self) -> u32 {
        self.wanted
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.used_count() == 0
    }

    pub(crate) fn only_queued(&self) -> bool {
        self.slots.used_count() == self.queue.len()
    }

    /// Something here found no room: the next completion, or released memory, may bring it.
    pub(crate) fn waits(&self) -> bool {
        self.retire_again || !self.queue.is_empty() && self.in_flight < self.granted
    }

    pub(crate) fn unqueue(&mut self, slot: SlotId) {
        self.queue.retain(|&index| index != slot.index);
    }
}

impl Connection {
    /// Credits of the forward or backward direction this side makes Calls in: in use, granted.
    #[must_use]
    pub fn requester_credits(&self) -> (u32, u32) {
        (self.requester.in_flight, self.requester.granted)
    }

    /// True when [`Connection::submit`] would take a Call now.
    #[inline]
    #[must_use]
    pub fn can_submit(&self) -> bool {
        let taking = matches!(self.phase, Phase::Offering | Phase::Open)
            || self.setup.replay && self.phase.is_over();
        taking && self.requester.slots.free_count() > 0
    }

    /// True while no Call waits for a credit: another one would be sent at once.
    #[inline]
    #[must_use]
    pub fn has_credit(&self) -> bool {
        self.requester.queue.is_empty() && self.requester.in_flight < self.requester.granted
    }

    /// Octets of Reply, the RPC message alone, that are sure to come inline to a Call with
    /// `results` Write chunks of one segment and no Reply chunk.
    #[must_use]
    pub fn reply_inline_bytes(&self, results: usize) -> u32 {
        let version = self.version.unwrap_or(Version::One);
        let header = rpcrdma_wire::emit::message_bytes(version, 0, results, results, None);
        self.receive_bytes()
            .saturating_sub(u32::try_from(header).unwrap_or(u32::MAX))
    }

    /// Takes a Call: sends it now, or as soon as the credits allow.
    ///
    /// [`Refused::Busy`]: no slot, or the xid is in flight, be it as that of a control message of
    /// ours: an error would not tell the two apart (V2-18). [`Refused::Unsupported`]: more parts
    /// or segments than a header can name, or a backward Call that the peer does not take.
    /// [`Refused::Broken`]: the connection takes no Calls.
    #[inline]
    pub fn submit<'m>(&mut self, io: &mut impl Io<'m>, call: Call<'_>) -> Result<SlotId, Refused> {
        let sought = self.requester.xids.seek(call.xid);
        let taken = sought.slot.is_some() || self.properties.asks(call.xid);
        if taken || !self.can_submit() {
            return Err(self.takes_none());
        }
        let bytes = call_bytes(call.parts);
        let plain = call.results.is_empty() && call.reply.is_none();
        if !plain || bytes > SHORT_BYTES || call.parts.len() > MAX_PARTS {
            self.check(&call)?;
        }
        if !self.peer_takes(call.parts, call.results, call.reply) {
            return Err(Refused::Unsupported);
        }
        let terms = self.terms();
        let at_once = self.requester.queue.is_empty() && self.may_launch();
        let Some((slot, outgoing)) = self.requester.slots.take() else {
            return Err(Refused::Busy);
        };
        outgoing.seat(&call, bytes);
        self.requester.xids.put(sought, call.xid, slot.index);
        count(&mut io.counters().calls_out);
        if outgoing.step(CallEvent::Submit).is_err() {
            self.illegal(io);
            return Err(Refused::Broken);
        }
        if plain
            && at_once
            && terms.has_room_for(bytes)
            && let Ok(posted) = outgoing.send_plain(io, slot, &terms)
            && outgoing.step(CallEvent::Launch).is_ok()
        {
            self.posted(posted);
            self.requester.launched();
        } else {
            self.requester.queue.push_back(slot.index);
            self.pump(io);
        }
        Ok(slot)
    }

    /// Why no Call is taken now.
    #[cold]
    fn takes_none(&self) -> Refused {
        let over = self.phase.is_over() || self.phase == Phase::Draining;
        if over && !self.setup.replay {
            Refused::Broken
        } else {
            Refused::Busy
        }
    }

    /// A Call that no message can carry is refused before it takes a slot. The smallest inline
    /// limit makes the most segments, so what passes here can always be sent.
    #[inline(never)]
    fn check(&self, call: &Call<'_>) -> Result<(), Refused> {
        if call.parts.len() > MAX_PARTS || call.results.len() > MAX_RESULTS {
            return Err(Refused::Unsupported);
        }
        let outline = |limit| {
            Outline::of(
                Version::Two,
                limit,
                self.setup.segment_bytes,
                call.parts,
                call.results,
                call.reply,
            )
        };
        match (outline(FIRST_BYTES), outline(VERSION_TWO_BYTES)) {
            (Some(_), Some(_)) => Ok(()),
            _ => Err(Refused::Unsupported),
        }
    }

    /// Sends queued Calls while there are credits.
    #[inline]
    pub(crate) fn pump<'m>(&mut self, io: &mut impl Io<'m>) {
        if !self.requester.queue.is_empty() {
            self.pump_queue(io);
        }
    }

    #[inline(never)]
    fn pump_queue<'m>(&mut self, io: &mut impl Io<'m>) {
        while self.may_launch()
            && let Some(&index) = self.requester.queue.front()
            && let Some(slot) = self.requester.slots.id_at(index)
        {
            match self.launch(io, slot) {
                Ok(()) => {
                    self.requester.queue.pop_front();
                    self.requester.launched();
                    self.step_call(io, slot, CallEvent::Launch);
                }
                Err(refused) => {
                    if !self.not_launched(io, slot, refused) {
                        return;
                    }
                }
            }
        }
    }

    /// A queued Call could not be sent. True when the next one may be.
    #[inline(never)]
    fn not_launched<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId, why: Refused) -> bool {
        match why {
            Refused::Busy => {}
            Refused::Unsupported => self.doom(io, slot),
            Refused::Broken => self.fail(io, CloseReason::Work(WorkError::Transport)),
        }
        why == Refused::Unsupported
    }

    /// A queued Call can no longer be sent: the peer has changed what it takes. It fails, with
    /// the next [`Connection::resume`].
    fn doom<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) {
        self.requester.unqueue(slot);
        self.step_call(io, slot, CallEvent::Answer);
        if let Some(outgoing) = self.requester.slots.get_mut(slot) {
            outgoing.then = Then::Fail(CallError::System);
        }
        self.requester.retire_again = true;
        self.look_again();
    }

    /// A credit is free, and the version is known or a Call is what asks for it (V2-17).
    #[inline]
    fn may_launch(&self) -> bool {
        let ready = match self.phase {
            Phase::Open => true,
            Phase::Offering | Phase::Draining => {
                let may_offer = self.setup.side == Side::Client && !self.properties.offer_is_out();
                self.version.is_some() || may_offer
            }
            _ => false,
        };
        ready && self.requester.in_flight < self.requester.granted
    }

    /// After [`Event::NeedsRoom`]: the same Call again, with larger results or reply memory.
    pub fn resubmit<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        results: &[Span],
        reply: Option<Span>,
    ) -> Event {
        let Some(outgoing) = self.requester.slots.get_mut(slot) else {
            return Event::None;
        };
        if outgoing.phase != CallPhase::Starved || results.len() > MAX_RESULTS {
            return Event::None;
        }
        outgoing.results.clear();
        outgoing.results.extend(results.iter().copied());
        outgoing.reply = reply;
        self.enqueue_again(io, slot);
        self.pump(io);
        self.look_again_if_over();
        Event::None
    }

    pub(crate) fn enqueue_again<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) {
        self.step_call(io, slot, CallEvent::Requeue);
        if let Some(outgoing) = self.requester.slots.get_mut(slot) {
            if !std::mem::replace(&mut outgoing.open, true) {
                let sought = self.requester.xids.seek(outgoing.xid);
                self.requester.xids.put(sought, outgoing.xid, slot.index);
            }
            self.requester.queue.push_back(slot.index);
        }
    }

    /// The Reply in this slot: from [`Event::Reply`] until finished.
    #[inline]
    #[must_use]
    pub fn reply(&self, slot: SlotId) -> Option<IncomingReply> {
        let outgoing = self.requester.slots.get(slot)?;
        (outgoing.phase == CallPhase::Answered).then_some(IncomingReply {
            body: outgoing.body,
            written: outgoing.written,
        })
    }

    /// The upper layer is done with a Reply: its receive is posted again, the slot is free.
    #[inline]
    pub fn finish<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) -> Event {
        match self.requester.slots.get(slot) {
            Some(outgoing) if outgoing.phase == CallPhase::Answered => self.end_call(io, slot),
            _ => {}
        }
        Event::None
    }

    /// Nobody waits for this Call any more. [`Event::Cancelled`], now or later, gives its memory
    /// back (8166 4.4.1).
    pub fn cancel<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) -> Event {
        let Some(outgoing) = self.requester.slots.get_mut(slot) else {
            return Event::None;
        };
        if outgoing.then == Then::Cancel {
            return Event::None;
        }
        count(&mut io.counters().calls_cancelled);
        match outgoing.phase {
            // An attempt to send it may have left something to be ended.
            CallPhase::Queued => {
                self.requester.unqueue(slot);
                self.settle_call(io, slot, Then::Cancel)
            }
            CallPhase::Answered | CallPhase::Starved => {
                self.end_call(io, slot);
                Event::Cancelled(slot)
            }
            CallPhase::Sent | CallPhase::Settling => {
                outgoing.then = Then::Cancel;
                self.step_call(io, slot, CallEvent::Forsake);
                Event::None
            }
            CallPhase::Free | CallPhase::Forsaken => Event::None,
        }
    }

    /// Frees a slot, its xid and its receive.
    #[inline]
    pub(crate) fn end_call<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) {
        let Some(outgoing) = self.requester.slots.free(slot) else {
            return;
        };
        let ended = outgoing.step(CallEvent::End);
        let held = outgoing.held.take();
        if std::mem::take(&mut outgoing.open) {
            self.requester.xids.remove(outgoing.xid);
        }
        if ended.is_err() {
            self.illegal(io);
        }
        if let Some(buffer) = held {
            self.repost(io, buffer);
        }
        self.look_again_if_over();
        self.end_if_quiet(io);
    }

    /// Moves a Call; a step that must not happen ends the connection.
    #[inline]
    pub(crate) fn step_call<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId, event: CallEvent) {
        let call = self.requester.slots.get_mut(slot);
        if call.is_none_or(|call| call.step(event).is_err()) {
            self.illegal(io);
        }
    }
}

/// Octets of a Call, the padding that may lack at its end included.
#[inline]
fn call_bytes(parts: &[Part]) -> u64 {
    let bytes = match parts {
        // Most are in one piece.
        [part] => part.span.len.into(),
        _ => parts
            .iter()
            .map(|part| u64::from(part.span.len))
            .sum::<u64>(),
    };
    // A few lengths of 32 bits.
    bytes.wrapping_add(tail(parts).into())
}
