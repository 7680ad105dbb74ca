//! What happens to one connection in one step: its engine does something, and what comes of it
//! goes to its upper layer, to control, or ends it.

use crate::counters::count;
use crate::memory::Desk;
use crate::regions::{Claim, Unmet};
use crate::ring::Session;
use crate::seats::{Occupant, SeatId};
use crate::sockets::Sockets;
use crate::turn::Lcore;
use rpcrdma_engine::phase::Phase;
use rpcrdma_engine::{CloseReason, Event, Io, Side, WorkError, WorkId};
use rpcrdma_fabric::{Completion, Outcome, Port};
use rpcrdma_upper::Upper;
use rpcrdma_wire::Handle;
use std::time::Instant;

/// Steps of one connection's engine that may follow from one completion, order or call. A
/// connection with more to do comes round again in the next turn.
const STEPS: usize = 64;

/// What became of a connection in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// It is there, and waits for memory or windows for these.
    There(Unmet),
    /// It was not there, or is over.
    Gone,
}

impl<U: Upper> Occupant<U> {
    /// The connection stands: engine and upper layer are told, once. True when they were: the
    /// upper layer is to be called then, because edges of sockets that came with earlier orders
    /// were not looked at.
    pub(crate) fn establish<'m>(
        &mut self,
        seat: SeatId,
        io: &mut impl Io<'m>,
        sockets: &mut Sockets,
        now: Instant,
    ) -> bool {
        let mut watcher = sockets.watcher(seat, &mut self.watching);
        let Session { connection, upper } = &mut *self.session;
        if connection.phase() != Phase::Adopted {
            return false;
        }
        let event = connection.established(io, self.peer);
        debug_assert_eq!(event, Event::None, "news comes of resuming");
        if !connection.phase().can_send() {
            return false;
        }
        upper.established(connection, io, &mut watcher, now);
        true
    }

    /// A message came before control's word that the connection is established. On the accepting
    /// side it proves the same. The asking side speaks first (V2-17), so a message that it did not
    /// wait for ends the connection.
    #[cold]
    fn overtaken<'m>(
        &mut self,
        seat: SeatId,
        io: &mut impl Io<'m>,
        sockets: &mut Sockets,
        now: Instant,
    ) -> bool {
        let connection = &mut self.session.connection;
        match connection.side() {
            Side::Server => self.establish(seat, io, sockets, now),
            Side::Client => {
                connection.close(io, CloseReason::Peer);
                false
            }
        }
    }
}

impl<P: Port, U: Upper> Lcore<P, U> {
    /// One completion: mostly a message.
    #[inline(always)]
    pub(crate) fn settle(&mut self, completion: Completion) {
        let Completion { token, id, outcome } = completion;
        let seat = SeatId::from_raw(token.0);
        match outcome {
            Outcome::Received { len, invalidated } => self.take_in(seat, id, len, invalidated),
            Outcome::Done => {
                self.settle_work(seat, id, Ok(()));
                // A retiring that took its time frees a window only now.
                self.bench.freed = true;
            }
            Outcome::Failed(error) => self.settle_work(seat, id, Err(error)),
            Outcome::Room => self.look_again(seat),
            Outcome::Disconnected => self.disconnected(seat),
        }
    }

    /// A message.
    #[inline(always)]
    fn take_in(&mut self, seat: SeatId, id: WorkId, len: u32, invalidated: Option<Handle>) {
        let now = self.clock.now();
        let mut stands = false;
        let served = self.serve(seat, |occupant, desk, sockets| {
            if occupant.session.connection.phase() == Phase::Adopted {
                stands = occupant.overtaken(seat, desk, sockets, now);
            }
            let connection = &mut occupant.session.connection;
            connection.receive(desk, id, len, invalidated)
        });
        if stands {
            self.eager.push(seat.place());
        }
        if served.is_none() {
            self.came_too_late();
        }
    }

    /// Outstanding work, or a receive that was flushed.
    #[inline(never)]
    fn settle_work(&mut self, seat: SeatId, id: WorkId, result: Result<(), WorkError>) {
        let served = self.serve(seat, |occupant, desk, _| {
            occupant.session.connection.settle(desk, id, result)
        });
        if served.is_none() {
            self.came_too_late();
        }
    }

    /// The port has room again that it had not.
    #[inline(never)]
    fn look_again(&mut self, seat: SeatId) {
        let served = self.serve(seat, |occupant, _, _| {
            occupant.session.connection.wake();
            Event::None
        });
        self.bench.freed = true;
        if served.is_none() {
            self.came_too_late();
        }
    }

    #[cold]
    fn disconnected(&mut self, seat: SeatId) {
        let served = self.serve(seat, |occupant, desk, _| {
            occupant.session.connection.disconnected(desk)
        });
        if served.is_none() {
            self.came_too_late();
        }
    }

    /// A completion for a connection that is gone.
    #[cold]
    fn came_too_late(&mut self) {
        count(&mut self.counts.stale_completions);
    }

    /// Has the engine and the upper layer of a place look for something to do. For what the
    /// connection waits afterwards.
    pub(crate) fn call_upper(&mut self, place: usize) -> Unmet {
        let Some(id) = self.seats.id_at(place) else {
            return Unmet::default();
        };
        count(&mut self.counts.upper_turns);
        let now = self.clock.now();
        let mut again = false;
        let served = self.serve(id, |occupant, desk, _| {
            let Session { connection, upper } = &mut *occupant.session;
            if connection.waits_for_memory() {
                connection.wake();
            }
            // Between `established` and `lost`.
            if connection.phase().can_send() {
                let claims = occupant.claims;
                desk.claims(claims.upper);
                again = upper.turn(connection, desk, now);
                desk.claims(claims.engine);
            }
            Event::None
        });
        if again && served != Some(Served::Gone) {
            self.eager.push(place);
        }
        match served {
            Some(Served::There(unmet)) => unmet,
            Some(Served::Gone) | None => Unmet::default(),
        }
    }

    /// Does `first` to the connection `id`, then whatever its engine finds to do after it.
    /// `None` when no such connection is there.
    #[inline]
    pub(crate) fn serve(
        &mut self,
        id: SeatId,
        first: impl FnOnce(&mut Occupant<U>, &mut Desk<'_, '_, P>, &mut Sockets) -> Event,
    ) -> Option<Served> {
        let occupant = self.seats.occupant(id)?;
        let now = self.clock.now();
        let claims = occupant.claims;
        let (qp, number) = (occupant.qp, occupant.number);
        let mut desk = Desk::new(&mut self.bench, &self.arena, qp, number, claims.engine);
        let mut event = first(occupant, &mut desk, &mut self.sockets);
        let mut steps = 0;
        loop {
            let Session { connection, upper } = &mut *occupant.session;
            if event.is_of_call() {
                desk.claims(claims.upper);
                upper.event(connection, &mut desk, event, now);
                desk.claims(claims.engine);
            } else if event != Event::None {
                match event {
                    Event::Property => occupant.owes_property = true,
                    Event::Lost(reason) => {
                        occupant.lost = Some(reason);
                        upper.lost(connection, &mut desk, reason);
                    }
                    Event::Closed => {
                        self.end(id);
                        return Some(Served::Gone);
                    }
                    _ => {}
                }
            }
            if !connection.runnable() {
                break;
            }
            if steps == STEPS {
                self.eager.push(id.place());
                break;
            }
            steps += 1;
            event = connection.resume(&mut desk);
        }
        let unmet = desk.unmet;
        if occupant.owes() {
            self.owing.push(id.place());
        }
        if !unmet.is_empty() {
            self.queue_for_memory(id, unmet);
        }
        Some(Served::There(unmet))
    }

    /// Puts a connection behind those that wait for the same.
    #[cold]
    fn queue_for_memory(&mut self, id: SeatId, unmet: Unmet) {
        for (claim, queue) in Claim::WAITING.into_iter().zip(&mut self.hungry) {
            if unmet.has(claim) && queue.push(id.place()) {
                count(&mut self.counts.memory_waits);
            }
        }
    }

    /// The engine says that nothing of this connection is outstanding: forgets its queue pair.
    #[cold]
    fn end(&mut self, id: SeatId) {
        if let Some(occupant) = self.seats.occupant(id) {
            occupant.session.upper.count(&mut self.sums);
        }
        let Some((qp, watching)) = self.seats.end(id) else {
            return;
        };
        self.bench.port.destroy(qp);
        if watching {
            self.sockets.closed();
        }
        // Its receives went back to the pool.
        self.bench.freed = true;
        count(&mut self.counts.closes);
        self.owing.push(id.place());
    }
}
