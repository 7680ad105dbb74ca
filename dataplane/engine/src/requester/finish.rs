//! The end of a Call as the upper layer has it: the Reply was read, or is waited for no more.

use super::Then;
use crate::api::{Event, IncomingReply, SlotId};
use crate::connection::{Connection, count};
use crate::phase::{CallEvent, CallPhase};
use crate::work::Io;

impl Connection {
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
}
