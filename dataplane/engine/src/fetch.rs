//! Getting the Read chunks of a Call: memory for the assembled Call, one RDMA Read for each run of
//! octets straight to its place, and the judgement of what could not be judged before.
//!
//! Calls take memory in the order they came in, so that a long one is not passed by short ones
//! for ever.

use crate::api::{CloseReason, Event, SlotId};
use crate::connection::{Connection, count, count_bytes};
use crate::ids::{Kind, work_id};
use crate::layout::Layout;
use crate::phase::{ServeEvent, ServePhase};
use crate::receives::Receives;
use crate::responder::{Incoming, held_header};
use crate::work::{Io, Posted, Refused, Span, WorkError};
use rpcrdma_wire::header::check_long;
use rpcrdma_wire::{Body, Direction, Limits, ReadSegment, Reject, Version};

impl Connection {
    /// Posts what is left of the Reads of the Call that has waited longest. It stays in front
    /// where it finds no memory or no room.
    pub(crate) fn fetch_first<'m>(&mut self, io: &mut impl Io<'m>) -> Event {
        let Some(&slot) = self.responder.waiting.front() else {
            return Event::None;
        };
        let limits = self.setup.limits;
        let Some(call) = self.responder.slots.get_mut(slot) else {
            self.responder.waiting.pop_front();
            return Event::None;
        };
        let Some((reads, payload)) = held_reads(io, call, &self.receives, &limits) else {
            return self.illegal(io);
        };
        let inline = payload.map(|payload| u32::try_from(payload.len()).unwrap_or(u32::MAX));
        let Some(layout) = Layout::of(reads, inline) else {
            return self.illegal(io);
        };
        if call.assembled.is_none() {
            let Some(memory) = io.reserve(layout.total.max(1)) else {
                count(&mut io.counters().memory_waits);
                return Event::None;
            };
            call.assembled = Some(memory);
            call.message = memory.first(layout.total);
            fill(io, call.message, &layout, payload.unwrap_or_default());
        }
        let mut pending = 0u32;
        let mut refused = None;
        for (to, from) in layout.reads(reads).skip(usize::from(call.posted)) {
            let into = call.message.skip(to).first(from.length);
            match io.read(into, from, work_id(Kind::Read, slot)) {
                Ok(posted) => {
                    call.posted = call.posted.saturating_add(1);
                    if posted == Posted::Pending {
                        call.reading = call.reading.saturating_add(1);
                        pending = pending.saturating_add(1);
                    }
                    count(&mut io.counters().reads);
                    count_bytes(&mut io.counters().read_bytes, from.length);
                }
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        self.outstanding = self.outstanding.saturating_add(pending);
        match refused {
            None => {
                self.responder.waiting.pop_front();
                if !self.responder.waiting.is_empty() {
                    self.look_again();
                }
                self.step_serve(io, slot, ServeEvent::Fetch);
                self.complete_if_read(io, slot)
            }
            Some(Refused::Busy) => Event::None,
            Some(_) => {
                self.fail(io, CloseReason::Work(WorkError::Transport));
                Event::None
            }
        }
    }

    /// An RDMA Read completed.
    pub(crate) fn read_done<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) -> Event {
        let Some(call) = self.responder.slots.get_mut(slot) else {
            return Event::None;
        };
        call.reading = call.reading.saturating_sub(1);
        if call.phase == ServePhase::Fetching && !self.phase.is_over() {
            return self.complete_if_read(io, slot);
        }
        Event::None
    }

    /// The Call goes up when its last Read is done. That of a NOMSG is judged now (V2-10).
    fn complete_if_read<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) -> Event {
        let Some(call) = self.responder.slots.get(slot) else {
            return Event::None;
        };
        if call.reading > 0 {
            return Event::None;
        }
        let (xid, message) = (call.xid, call.message);
        let version = self.version.unwrap_or(Version::One);
        if let Err(reject) = check_long(xid, version, Direction::Call, io.octets(message)) {
            return self.refuse_assembled(io, slot, reject);
        }
        self.step_serve(io, slot, ServeEvent::Complete);
        count(&mut io.counters().calls_in);
        Event::Call(slot)
    }

    fn refuse_assembled<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        reject: Reject,
    ) -> Event {
        let held = self.responder.slots.get_mut(slot).and_then(|call| {
            let buffer = call.held.take()?;
            let message = self.receives.span(&buffer).first(call.message_bytes);
            Some((buffer, message))
        });
        self.end_serve(io, slot);
        let Some((buffer, message)) = held else {
            return Event::None;
        };
        let message = io.octets(message);
        let event = self.refuse(io, buffer, reject, message);
        self.end_if_quiet(io);
        event
    }
}

/// The Read list of a held Call, and its inline body; `None` for the body of a NOMSG.
fn held_reads<'m>(
    io: &impl Io<'m>,
    call: &Incoming,
    receives: &Receives,
    limits: &Limits,
) -> Option<(&'m [ReadSegment], Option<&'m [u8]>)> {
    let header = held_header(io, call, receives, limits)?;
    match header.body {
        Body::Msg(lists) => Some((lists.reads, Some(header.payload))),
        Body::NoMsg(lists) => Some((lists.reads, None)),
        _ => None,
    }
}

/// Copies the inline body to its places, and clears the padding of the chunks: no octet of the
/// memory's last user goes up.
fn fill<'m>(io: &mut impl Io<'m>, message: Span, layout: &Layout, payload: &[u8]) {
    for fill in layout.fills() {
        let from = fill.from as usize;
        let run = payload.get(from..from.saturating_add(fill.len as usize));
        // Of a NOMSG nothing is here yet.
        if let Some(run) = run {
            io.fill(message.skip(fill.to), run);
        }
    }
    for (at, len) in layout.pads() {
        let zeros = [0u8; 3];
        io.fill(
            message.skip(at),
            zeros.get(..len as usize).unwrap_or_default(),
        );
    }
}
