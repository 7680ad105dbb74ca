//! The two ends of the rings between control and an lcore.
//!
//! Both rings are bounded, and a full one is an outcome: control gets its order back, an lcore
//! leaves the news where it is (see `report.rs`). Nobody waits for the other.

use crate::bell::Bell;
use crate::ring::{Arrival, LcoreOrder, Notice, Order, SeatOrder, Session};
use crate::seats::{ConnectionNumber, MAX_SEATS, SeatId};
use crate::snapshot::Snapshot;
use rpcrdma_upper::Upper;
use rpcrdma_wire::private_data::PrivateData;
use rtrb::{Consumer, Producer, PushError, RingBuffer};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How large the rings and tables between control and one lcore are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// Connections at a time, at most [`MAX_SEATS`].
    pub seats: usize,
    /// Orders under way.
    pub orders: usize,
    /// Notices under way.
    pub notices: usize,
}

impl Default for Places {
    fn default() -> Places {
        Places {
            seats: 1024,
            orders: 128,
            notices: 256,
        }
    }
}

/// Control's end: of one lcore whose fabric has endpoints `E`.
pub struct Line<E, U: Upper> {
    orders: Producer<Order<E, U>>,
    notices: Consumer<Notice<U>>,
    bell: Arc<Bell>,
    /// Seats that are free, each with the id its next occupant gets.
    free: Vec<SeatId>,
    surveyed: bool,
}

/// The lcore's end.
pub struct Link<E, U: Upper> {
    orders: Consumer<Order<E, U>>,
    notices: Producer<Notice<U>>,
    bell: Arc<Bell>,
    control: Arc<Bell>,
    seats: usize,
    /// Notices were pushed and control was not rung yet.
    news: bool,
}

/// A connection that could not be handed over now, with all that belongs to it.
pub struct NotTaken<E, U: Upper> {
    /// True when every seat is taken; false when only the ring was full: try again soon.
    pub no_seat: bool,
    /// The queue pair.
    pub endpoint: E,
    /// The connection.
    pub session: Box<Session<U>>,
}

/// Makes the rings between control, whose bell is `control`, and an lcore to come.
///
/// # Errors
///
/// No descriptors are left.
pub fn line<E, U: Upper>(
    places: Places,
    control: Arc<Bell>,
) -> io::Result<(Line<E, U>, Link<E, U>)> {
    let (order_in, order_out) = RingBuffer::new(places.orders);
    let (notice_in, notice_out) = RingBuffer::new(places.notices);
    let bell = Arc::new(Bell::new()?);
    let seats = places.seats.min(MAX_SEATS);
    let places = u32::try_from(seats).unwrap_or(0);
    let line = Line {
        orders: order_in,
        notices: notice_out,
        bell: Arc::clone(&bell),
        free: (0..places)
            .rev()
            .map(|place| SeatId::new(place, 0))
            .collect(),
        surveyed: false,
    };
    let link = Link {
        orders: order_out,
        notices: notice_in,
        bell,
        control,
        seats,
        news: false,
    };
    Ok((line, link))
}

impl<E, U: Upper> std::fmt::Debug for NotTaken<E, U> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.no_seat { "no seat" } else { "no room" })
    }
}

impl<E, U: Upper> Line<E, U> {
    /// Hands a queue pair and its connection to the lcore. [`Notice::Adopted`] says when connect
    /// or accept may follow; [`Notice::Closed`] brings the session back.
    ///
    /// `peer` is what the private data of who asks said (RFC 8797), if this is the accepting
    /// side and there was any: the peer's first message may be here before the news that the
    /// connection is established.
    ///
    /// # Errors
    ///
    /// No seat is free, or the ring is full: everything comes back.
    pub fn adopt(
        &mut self,
        number: ConnectionNumber,
        endpoint: E,
        peer: Option<PrivateData>,
        session: Box<Session<U>>,
    ) -> Result<SeatId, NotTaken<E, U>> {
        let Some(seat) = self.free.pop() else {
            return Err(NotTaken {
                no_seat: true,
                endpoint,
                session,
            });
        };
        let arrival = Arrival {
            seat,
            number,
            endpoint,
            peer,
            session,
        };
        match self.push(Order::Adopt(arrival)) {
            Err(Order::Adopt(arrival)) => {
                self.free.push(seat);
                Err(NotTaken {
                    no_seat: false,
                    endpoint: arrival.endpoint,
                    session: arrival.session,
                })
            }
            _ => Ok(seat),
        }
    }

    /// Tells one connection. It may be gone by the time the lcore looks: then nothing happens.
    ///
    /// # Errors
    ///
    /// The ring is full: the order comes back.
    pub fn tell(&mut self, seat: SeatId, order: SeatOrder<U>) -> Result<(), SeatOrder<U>> {
        match self.push(Order::One(seat, order)) {
            Err(Order::One(_, order)) => Err(order),
            _ => Ok(()),
        }
    }

    /// Drains every connection and declines later ones; [`Notice::Drained`] follows. False when
    /// the ring is full.
    #[must_use]
    pub fn drain(&mut self) -> bool {
        self.push(Order::All(LcoreOrder::Drain)).is_ok()
    }

    /// Closes every connection, waits at most `within` for all of them to be over, and ends the
    /// lcore. False when the ring is full.
    #[must_use]
    pub fn stop(&mut self, within: Duration) -> bool {
        self.push(Order::All(LcoreOrder::Stop { within })).is_ok()
    }

    /// Has the lcore fill `snapshot`, which comes back by [`Notice::Snapshot`].
    ///
    /// # Errors
    ///
    /// Another one is under way, or the ring is full: it comes back as it was.
    pub fn survey(&mut self, snapshot: Box<Snapshot<U>>) -> Result<(), Box<Snapshot<U>>> {
        if self.surveyed {
            return Err(snapshot);
        }
        match self.push(Order::All(LcoreOrder::Snapshot(snapshot))) {
            Err(Order::All(LcoreOrder::Snapshot(snapshot))) => Err(snapshot),
            _ => {
                self.surveyed = true;
                Ok(())
            }
        }
    }

    /// The next notice, without waiting. To wait, use control's [`Bell`].
    pub fn poll(&mut self) -> Option<Notice<U>> {
        let notice = self.notices.pop().ok()?;
        match &notice {
            Notice::Closed { seat, .. } => self.free.push(seat.next()),
            Notice::Snapshot(_) => self.surveyed = false,
            _ => {}
        }
        Some(notice)
    }

    /// How many more connections the lcore has seats for.
    #[must_use]
    pub fn free_seats(&self) -> usize {
        self.free.len()
    }

    /// True when there is room for another order: no one else takes it.
    #[must_use]
    pub fn has_room(&self) -> bool {
        !self.orders.is_full()
    }

    /// True when the lcore has ended, and all its notices were taken.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.notices.is_abandoned() && self.notices.is_empty()
    }

    fn push(&mut self, order: Order<E, U>) -> Result<(), Order<E, U>> {
        self.orders
            .push(order)
            .map_err(|PushError::Full(order)| order)?;
        self.bell.ring();
        Ok(())
    }
}

impl<E, U: Upper> Link<E, U> {
    /// How many seats control counts on.
    pub(crate) fn seats(&self) -> usize {
        self.seats
    }

    /// What ends the lcore's sleep when control has an order.
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// The next order.
    #[inline]
    pub(crate) fn order(&mut self) -> Option<Order<E, U>> {
        self.orders.pop().ok()
    }

    /// True when an order waits.
    pub(crate) fn has_order(&self) -> bool {
        !self.orders.is_empty()
    }

    /// True when a notice would find room now.
    pub(crate) fn has_room(&self) -> bool {
        !self.notices.is_full()
    }

    /// Sends a notice. Only after [`Link::has_room`] said yes.
    pub(crate) fn send(&mut self, notice: Notice<U>) {
        let sent = self.notices.push(notice);
        debug_assert!(sent.is_ok(), "room was made sure of");
        self.news = true;
    }

    /// Wakes control if there is anything new for it, once for all notices since the last time.
    #[inline]
    pub(crate) fn ring(&mut self) {
        if std::mem::take(&mut self.news) {
            self.control.ring();
        }
    }
}
