//! How the Calls this side makes end: exposures first, then the word to the upper layer.
//!
//! Whatever a Call becomes ([`Then`]), nothing of it may be reachable when the upper layer hears
//! of it: every exposure has been retired or was invalidated by the peer, and no device works on
//! its memory. What finds no room to be retired is taken up again after the next completion.

use crate::api::{CallError, CloseReason, Event, SlotId};
use crate::connection::{Connection, count};
use crate::ids::{Kind, work_id};
use crate::phase::{CallEvent, CallPhase};
use crate::requester::Then;
use crate::work::{Io, Posted, Refused, WorkError};

impl Connection {
    /// The Call has its answer, whatever that is: ends its exposures, then does `then`.
    pub(crate) fn settle_call<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        then: Then,
    ) -> Event {
        let Some(outgoing) = self.requester.slots.get_mut(slot) else {
            return Event::None;
        };
        if outgoing.step(CallEvent::Answer).is_err() {
            return self.illegal(io);
        }
        if outgoing.then != Then::Cancel {
            outgoing.then = then;
        }
        if outgoing.is_quiet() || self.retire_all(io, slot) {
            self.conclude(io, slot)
        } else {
            Event::None
        }
    }

    /// Ends what is still exposed of a Call. True when nothing is any more.
    pub(crate) fn retire_all<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) -> bool {
        let Some(outgoing) = self.requester.slots.get_mut(slot) else {
            return false;
        };
        let (mut pending, mut failed) = (0u32, false);
        for (place, &handle) in outgoing.exposures.iter().enumerate() {
            let bit = 1u32 << (place & 31);
            if outgoing.live & bit == 0 {
                continue;
            }
            match io.retire(handle, work_id(Kind::Retire, slot)) {
                Ok(Posted::Done) => count(&mut io.counters().local_invalidations),
                Ok(Posted::Pending) => {
                    outgoing.busy = outgoing.busy.saturating_add(1);
                    pending = pending.saturating_add(1);
                }
                Err(Refused::Busy) => {
                    self.requester.retire_again = true;
                    continue;
                }
                Err(_) => failed = true,
            }
            outgoing.live &= !bit;
        }
        let done = outgoing.is_quiet();
        self.outstanding = self.outstanding.saturating_add(pending);
        if failed {
            self.fail(io, CloseReason::Invalidation);
        }
        done
    }

    /// A retirement completed. One that failed ends the connection before any Reply goes up
    /// (V1-11).
    pub(crate) fn retire_done<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        result: Result<(), WorkError>,
    ) -> Event {
        if result.is_err() {
            self.fail(io, CloseReason::Invalidation);
        }
        count(&mut io.counters().local_invalidations);
        self.call_work_done(io, slot)
    }

    /// Work that used a Call's memory is done: its Send, or a retirement.
    pub(crate) fn call_work_done<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) -> Event {
        let Some(outgoing) = self.requester.slots.get_mut(slot) else {
            return Event::None;
        };
        outgoing.busy = outgoing.busy.saturating_sub(1);
        if outgoing.is_quiet() && outgoing.phase == CallPhase::Settling {
            return self.conclude(io, slot);
        }
        Event::None
    }

    /// Nothing uses the Call's memory any more: what was decided for it happens.
    fn conclude<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) -> Event {
        let Some(outgoing) = self.requester.slots.get_mut(slot) else {
            return Event::None;
        };
        outgoing.exposures.clear();
        if outgoing.then == Then::Deliver && !self.phase.is_over() {
            return self.deliver(io, slot);
        }
        self.conclude_otherwise(io, slot)
    }

    /// Anything but a Reply on a connection that stands.
    #[inline(never)]
    fn conclude_otherwise<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) -> Event {
        let over = self.phase.is_over();
        let Some(outgoing) = self.requester.slots.get(slot) else {
            return Event::None;
        };
        let then = match outgoing.then {
            // A Reply, or an invalidation, that came with the connection's end is not to be trusted.
            Then::Deliver | Then::NeedRoom { .. } if over => self.after_loss(),
            then => then,
        };
        match then {
            Then::Deliver => self.deliver(io, slot),
            Then::Fail(error) => {
                count(&mut io.counters().calls_failed);
                self.end_call(io, slot);
                Event::Failed(slot, error)
            }
            Then::NeedRoom { segment, length } => {
                self.step_call(io, slot, CallEvent::Starve);
                Event::NeedsRoom {
                    slot,
                    segment,
                    length,
                }
            }
            Then::Cancel => {
                self.end_call(io, slot);
                Event::Cancelled(slot)
            }
            Then::Requeue => {
                let held = self
                    .requester
                    .slots
                    .get_mut(slot)
                    .and_then(|call| call.held.take());
                if let Some(buffer) = held {
                    self.repost(io, buffer);
                }
                count(&mut io.counters().calls_replayed);
                self.enqueue_again(io, slot);
                self.look_again();
                Event::None
            }
        }
    }

    /// What a Call becomes that had no Reply when the connection was lost.
    fn after_loss(&self) -> Then {
        match self.setup.replay {
            true => Then::Requeue,
            false => Then::Fail(CallError::ConnectionLost),
        }
    }

    /// Goes on with retirements that found no room, and with queued Calls.
    pub(crate) fn resume_requester<'m>(&mut self, io: &mut impl Io<'m>) -> Event {
        let event = self.resume_retiring(io);
        if event == Event::None {
            self.pump(io);
        }
        event
    }

    /// Goes on with retirements that found no room.
    fn resume_retiring<'m>(&mut self, io: &mut impl Io<'m>) -> Event {
        while std::mem::take(&mut self.requester.retire_again) {
            let stuck = self.requester.slots.first_used(|call| {
                call.phase == CallPhase::Settling && (call.live != 0 || call.busy == 0)
            });
            let Some(slot) = stuck else {
                break;
            };
            if self.retire_all(io, slot) {
                self.requester.retire_again = true;
                return self.conclude(io, slot);
            }
            if self.requester.retire_again {
                // No room yet: the next completion looks again.
                break;
            }
            // All of it is under way; there may be another one.
            self.requester.retire_again = true;
        }
        Event::None
    }

    /// The Calls of a broken connection: their exposures end, and the upper layer is told of
    /// them one by one.
    pub(crate) fn unwind_requester<'m>(&mut self, io: &mut impl Io<'m>) -> Event {
        let replay = self.setup.replay;
        loop {
            let next = self.requester.slots.first_used(|call| match call.phase {
                CallPhase::Sent | CallPhase::Forsaken => true,
                CallPhase::Queued => !replay || call.live != 0,
                _ => false,
            });
            let Some(slot) = next else {
                break;
            };
            self.requester.unqueue(slot);
            self.requester.answered();
            let event = self.settle_call(io, slot, self.after_loss());
            if event != Event::None {
                return event;
            }
        }
        self.resume_retiring(io)
    }
}
