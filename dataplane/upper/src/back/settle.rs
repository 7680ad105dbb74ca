//! What the engine says of the Calls in flight, and what becomes of them.

use super::restore::restore;
use super::{Answer, Back};
use crate::answers::{self, RpcError};
use crate::record::Full;
use rpcrdma_engine::{CallError, Connection, Event, Io, Reply, SlotId};

impl Back {
    /// One event of the engine's.
    pub(super) fn settle<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, event: Event) {
        match event {
            Event::Reply(slot) => self.reply(conn, io, slot),
            Event::Failed(slot, error) => self.failed(conn, io, slot, error),
            Event::Cancelled(slot) => {
                if let Some((_, flight)) = self.flights.take_slot(slot) {
                    flight.memory.release(io);
                }
            }
            Event::NeedsRoom {
                slot,
                segment,
                length,
            } => {
                self.enlarge(conn, io, slot, segment, length);
            }
            Event::Call(slot) => backward(conn, io, slot),
            Event::None | Event::Property | Event::Lost(_) | Event::Closed => {}
        }
    }

    /// The Reply is here: queues it for the client, results from where they were written.
    fn reply<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, slot: SlotId) {
        let Some((xid, flight)) = self.flights.take_slot(slot) else {
            conn.finish(io, slot);
            return;
        };
        let mut memory = flight.memory;
        if let Some(call) = memory.call.take() {
            io.release(call);
        }
        let restored = conn
            .reply(slot)
            .and_then(|reply| restore(io, flight.binding, &reply, &memory.results));
        let wanted = self.stream.is_some();
        let answer = Answer {
            slot: Some(slot),
            memory,
        };
        match restored {
            Some(restored) if wanted => {
                self.counters.results_restored += restored.results;
                self.counters.restored_bytes += restored.octets;
                if let Err(Full(answer)) = self.writer.push(&[], &restored.spans, answer) {
                    // There is a place for each Call in flight, so it was a length that no
                    // record can have.
                    super::end(conn, io, answer);
                    self.fail(conn, io, xid);
                }
            }
            _ => {
                super::end(conn, io, answer);
                self.fail(conn, io, xid);
            }
        }
    }

    /// The Call is over without a Reply. Where the connection is lost, so is the client's.
    fn failed<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        slot: SlotId,
        error: CallError,
    ) {
        let Some((xid, flight)) = self.flights.take_slot(slot) else {
            return;
        };
        flight.memory.release(io);
        if error == CallError::ConnectionLost {
            self.cut_off = true;
        } else {
            self.fail(conn, io, xid);
        }
    }

    /// The Reply found too little room: once more with more, or it has failed.
    fn enlarge<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        slot: SlotId,
        segment: u32,
        length: u32,
    ) {
        let wanted = self.stream.is_some();
        let enlarged = self
            .flights
            .by_slot_mut(slot)
            .filter(|flight| wanted && !flight.enlarged);
        let enlarged = enlarged.and_then(|flight| {
            let room = flight.room.enlarged(segment, length, &self.settings)?;
            flight.memory.exchange(io, &room)?;
            flight.room = room;
            flight.enlarged = true;
            Some((flight.memory.offered(&flight.room), flight.memory.reply))
        });
        if let Some((results, reply)) = enlarged {
            self.counters.calls_enlarged += 1;
            conn.resubmit(io, slot, &results, reply);
            return;
        }
        let xid = self.flights.xid_of(slot);
        let event = conn.cancel(io, slot);
        self.settle(conn, io, event);
        if let Some(xid) = xid {
            self.fail(conn, io, xid);
        }
    }

    /// The client has left: its Calls are cancelled, and the connection ends with the last.
    pub(super) fn leave<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>) {
        self.disconnect(conn, io);
        for at in (0..self.flights.len()).rev() {
            let Some(slot) = self.flights.slot_at(at) else {
                continue;
            };
            self.counters.calls_cancelled += 1;
            let event = conn.cancel(io, slot);
            self.settle(conn, io, event);
        }
        conn.drain(io);
    }
}

/// A Call in the backward direction: no program is served here (RFC 8167).
fn backward<'m>(conn: &mut Connection, io: &mut impl Io<'m>, slot: SlotId) {
    let Some(call) = conn.call(io, slot) else {
        return;
    };
    let head = answers::short(call.xid, RpcError::ProgramUnavailable);
    conn.answer(
        io,
        slot,
        Reply {
            head: &head,
            parts: &[],
            memory: None,
        },
    );
}
