//! What control says, carried out.

use crate::counters::count;
use crate::regions::{Claim, Unmet};
use crate::report::Survey;
use crate::ring::{Arrival, Ending, LcoreOrder, Order, SeatOrder, Session};
use crate::seats::{Departure, Occupant, SeatId};

use crate::turn::{Lcore, Mode};
use rpcrdma_engine::{CloseReason, Event};
use rpcrdma_fabric::Port;
use rpcrdma_upper::Upper;
use std::time::Instant;

/// Orders obeyed in one turn.
const ORDERS: usize = 16;

impl<P: Port, U: Upper> Lcore<P, U> {
    /// Obeys a burst of orders.
    #[inline]
    pub(crate) fn obey(&mut self) -> usize {
        let mut obeyed = 0;
        while obeyed < ORDERS
            && let Some(order) = self.link.order()
        {
            obeyed += 1;
            self.carry_out(order);
        }
        obeyed
    }

    #[cold]
    fn carry_out(&mut self, order: Order<P::Endpoint, U>) {
        count(&mut self.counts.orders);
        match order {
            Order::Adopt(arrival) => self.adopt(arrival),
            Order::One(seat, order) => self.tell(seat, order),
            Order::All(LcoreOrder::Drain) => self.drain(),
            Order::All(LcoreOrder::Stop { within }) => {
                self.mode = Mode::Stopping(Instant::now().checked_add(within));
                self.for_each(|lcore, seat| lcore.tell(seat, SeatOrder::Close(CloseReason::Local)));
            }
            Order::All(LcoreOrder::Snapshot(snapshot)) => {
                debug_assert!(self.survey.is_none(), "control asks for one at a time");
                self.survey = Some(Survey::new(snapshot));
            }
        }
    }

    /// Takes a connection over: its queue pair becomes the port's, its receives are posted.
    fn adopt(&mut self, arrival: Arrival<P::Endpoint, U>) {
        let Arrival {
            seat,
            number,
            endpoint,
            peer,
            session,
        } = arrival;
        if !self.seats.is_free(seat) {
            debug_assert!(false, "control gives away {seat:?} only when it is free");
            return;
        }
        let adopted = match self.mode {
            Mode::Open => self
                .bench
                .port
                .adopt(endpoint, seat.token())
                .map_err(Ending::Refused),
            _ => Err(Ending::Declined),
        };
        match adopted {
            Ok(qp) => {
                count(&mut self.counts.adoptions);
                self.seats
                    .take(seat, Occupant::new(number, qp, peer, session));
                self.post_receives(seat);
            }
            Err(ending) => {
                count(&mut self.counts.adoptions_declined);
                let departure = Departure {
                    number,
                    session,
                    ending,
                };
                self.seats.decline(seat, departure);
            }
        }
        self.owing.push(seat.place());
    }

    /// Posts the receives of a new connection, or closes it where there is no memory for them:
    /// those that were posted have to be flushed like any others.
    fn post_receives(&mut self, seat: SeatId) {
        self.serve(seat, |occupant, desk, _| {
            let connection = &mut occupant.session.connection;
            desk.claims(Claim::Receives);
            match connection.adopt(desk) {
                Ok(()) => {
                    occupant.owes_adopted = true;
                    Event::None
                }
                Err(_) => {
                    // It does not wait for memory: it goes.
                    desk.unmet = Unmet::default();
                    connection.close(desk, CloseReason::Memory)
                }
            }
        });
    }

    /// Tells one connection.
    fn tell(&mut self, seat: SeatId, order: SeatOrder<U>) {
        let now = self.clock.now();
        let (mut in_vain, mut stands) = (false, false);
        let served = self.serve(seat, |occupant, desk, sockets| {
            if let SeatOrder::Established { peer } = order {
                occupant.peer = peer.or(occupant.peer);
                stands = occupant.establish(seat, desk, sockets, now);
                return Event::None;
            }
            let Session { connection, upper } = &mut *occupant.session;
            match order {
                SeatOrder::Established { .. } => Event::None,
                SeatOrder::RequestProperties(values) => {
                    in_vain = !connection.request_properties(desk, values);
                    Event::None
                }
                SeatOrder::UpdateProperties(values) => {
                    in_vain = !connection.update_properties(desk, values);
                    Event::None
                }
                SeatOrder::Decide(decision) => {
                    in_vain = !connection.decide(desk, decision);
                    Event::None
                }
                SeatOrder::Fail => connection.close(desk, CloseReason::Peer),
                SeatOrder::NegotiationTimedOut => connection.negotiation_timed_out(desk),
                SeatOrder::Drain => connection.drain(desk),
                SeatOrder::Close(reason) => connection.close(desk, reason),
                SeatOrder::Upper(order) => {
                    // One that crossed the loss of the connection is dropped.
                    if !connection.phase().is_over() {
                        let mut watcher = sockets.watcher(seat, &mut occupant.watching);
                        desk.claims(occupant.claims.upper);
                        upper.order(connection, desk, &mut watcher, order, now);
                    }
                    Event::None
                }
            }
        });
        if served.is_none() {
            count(&mut self.counts.stale_orders);
        }
        if stands {
            self.eager.push(seat.place());
        }
        if in_vain {
            count(&mut self.counts.orders_in_vain);
        }
    }

    fn drain(&mut self) {
        if self.mode == Mode::Open {
            self.mode = Mode::Draining;
        }
        self.for_each(|lcore, seat| lcore.tell(seat, SeatOrder::Drain));
    }

    /// Does something to every connection.
    pub(crate) fn for_each(&mut self, mut each: impl FnMut(&mut Self, SeatId)) {
        for place in 0..self.seats.len() {
            if let Some(seat) = self.seats.id_at(place) {
                each(self, seat);
            }
        }
    }
}
