//! Calls that arrive: which are taken, which are turned away and how.

use crate::api::{CloseReason, Event, SlotId};
use crate::connection::{Connection, count};
use crate::deferred::Arrival;
use crate::head::Head;
use crate::phase::{Phase, ServeEvent};
use crate::receives::Buffer;
use crate::setup::Side;
use crate::work::Io;
use crate::xids::Sought;
use rpcrdma_wire::property::BackwardRequests;
use rpcrdma_wire::{ChunkLists, ErrorBody, Version, Xid};

/// Why a Call is not taken.
#[derive(Clone, Copy)]
enum Unwelcome {
    /// The connection drains.
    Late,
    /// Its xid is in flight already (V2-24).
    Duplicate,
    /// It is answered by this error.
    Refused(ErrorBody),
    /// It is beyond the grant (V2-24).
    Overrun,
}

impl Connection {
    /// A Call has come whose header is good.
    #[inline(always)]
    pub(crate) fn call_arrived<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        buffer: Buffer,
        head: &Head,
        lists: &ChunkLists<'m>,
    ) -> Event {
        let chunked = !lists.reads.is_empty() || !lists.writes.is_empty() || lists.reply.is_some();
        let sought = self.responder.xids.seek(head.xid);
        if let Err(why) = self.welcome(head, chunked, sought) {
            return self.turn_away(io, buffer, head.xid, head.version, why);
        }
        let Some((slot, call)) = self.responder.slots.take() else {
            return self.defer(buffer, head.whole.len);
        };
        call.seat(buffer, head, lists, chunked);
        // No more than the credits.
        self.responder.in_flight = self.responder.in_flight.wrapping_add(1);
        self.responder.xids.put(sought, head.xid, slot.index);
        if self.responder.wary
            && let Some(kept) = self.responder.kept.take(head.xid)
        {
            return self.answer_retry(io, slot, kept);
        }
        if !lists.reads.is_empty() {
            return self.fetch_in_turn(io, slot);
        }
        if call.step(ServeEvent::Arrive).is_err() {
            return self.illegal(io);
        }
        count(&mut io.counters().calls_in);
        Event::Call(slot)
    }

    /// Judges a Call by what is known of its xid, its kind and the credits.
    #[inline(always)]
    fn welcome(&self, head: &Head, chunked: bool, sought: Sought) -> Result<(), Unwelcome> {
        if self.phase == Phase::Draining && self.leaves(head.xid) {
            return Err(Unwelcome::Late);
        }
        if sought.slot.is_some() {
            return Err(Unwelcome::Duplicate);
        }
        if self.responder.wary
            && let Some(error) = self.policy(head.xid, head.version, chunked)
        {
            return Err(Unwelcome::Refused(error));
        }
        let credits = u32::from(self.responder.credits);
        if self.responder.in_flight.saturating_add(self.deferred.len()) >= credits {
            return Err(Unwelcome::Overrun);
        }
        Ok(())
    }

    /// Nothing keeps a draining connection up but, perhaps, this Call. While Calls of our own are
    /// in flight it stays up anyway, and Calls that cross them are served: two sides that drain,
    /// and drop each other's, would wait for ever.
    #[cold]
    fn leaves(&self, xid: Xid) -> bool {
        self.requester.is_empty() && !self.responder.kept.holds(xid)
    }

    /// Why a Call is answered by an error at once.
    #[inline(never)]
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

    /// Does with a Call what is done with one that is not taken.
    #[cold]
    #[inline(never)]
    fn turn_away<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        buffer: Buffer,
        xid: Xid,
        version: Version,
        why: Unwelcome,
    ) -> Event {
        match why {
            Unwelcome::Late => {
                count(&mut io.counters().drained_calls);
                self.repost(io, buffer);
                self.end_if_quiet(io);
            }
            Unwelcome::Duplicate => {
                count(&mut io.counters().duplicate_calls);
                self.repost(io, buffer);
            }
            Unwelcome::Refused(error) => {
                count(&mut io.counters().calls_refused);
                self.repost(io, buffer);
                self.send_error(io, version.code(), xid, error);
            }
            Unwelcome::Overrun => {
                self.fail(io, CloseReason::CreditOverrun);
                self.repost(io, buffer);
            }
        }
        Event::None
    }

    /// A Call within the grant for which there is no slot yet.
    #[cold]
    fn defer(&mut self, buffer: Buffer, len: u32) -> Event {
        self.deferred.push(Arrival {
            buffer,
            len,
            invalidated: None,
        });
        Event::None
    }

    /// A Call with Read chunks. Long Calls take memory in the order they came in.
    #[inline(never)]
    fn fetch_in_turn<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) -> Event {
        self.step_serve(io, slot, ServeEvent::Reduce);
        self.responder.waiting.push_back(slot);
        if self.responder.waiting.len() > 1 {
            return Event::None;
        }
        self.fetch_first(io)
    }
}
