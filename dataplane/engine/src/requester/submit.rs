//! From the upper layer's Call to its Send: at once where there is a credit, else in turn.
//!
//! A Call is refused before it takes a slot, or it has one event that ends it. One that waits for
//! a credit keeps its place in the queue whatever comes of the attempts to send it, unless no
//! message can carry it any more: then it fails, and the next one is tried.

use super::Then;
use crate::api::{Call, CallError, CloseReason, Event, MAX_PARTS, MAX_RESULTS, Part, SlotId};
use crate::connection::{Connection, count};
use crate::outline::{Outline, tail};
use crate::phase::{CallEvent, CallPhase, Phase};
use crate::setup::{FIRST_BYTES, Side, VERSION_TWO_BYTES};
use crate::work::{Io, Refused, Span, WorkError};
use rpcrdma_wire::Version;

/// A Call of at most so many octets, and a header without chunks, fits into any first message.
const SHORT_BYTES: u64 = 512;

impl Connection {
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
