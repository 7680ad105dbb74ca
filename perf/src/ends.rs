//! Both ends of a measurement, as one type: an lcore has one kind of upper layer.

use crate::load::{Load, Notice, Order};
use rpcrdma_engine::{CloseReason, Connection, Event, Io};
use rpcrdma_upper::counters::Counters;
use rpcrdma_upper::program::Service;
use rpcrdma_upper::{Upper, Watch};
use std::time::Instant;

/// The upper layer of one connection.
pub enum End {
    /// The requester.
    Load(Box<Load>),
    /// The responder.
    Service(Service),
}

impl Upper for End {
    type Order = Order;
    type Notice = Notice;
    type Counters = Counters;

    fn established<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        watch: &mut impl Watch,
        now: Instant,
    ) {
        match self {
            End::Load(load) => load.established(conn, io, watch, now),
            End::Service(service) => service.established(conn, io, watch, now),
        }
    }

    #[inline]
    fn event<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        event: Event,
        now: Instant,
    ) {
        match self {
            End::Load(load) => load.event(conn, io, event, now),
            End::Service(service) => service.event(conn, io, event, now),
        }
    }

    fn order<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        watch: &mut impl Watch,
        order: Order,
        now: Instant,
    ) {
        // A service takes no orders: nobody gives it any.
        if let End::Load(load) = self {
            load.order(conn, io, watch, order, now);
        }
    }

    fn turn<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, now: Instant) -> bool {
        match self {
            End::Load(load) => load.turn(conn, io, now),
            End::Service(service) => service.turn(conn, io, now),
        }
    }

    fn lost<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, reason: CloseReason) {
        match self {
            End::Load(load) => load.lost(conn, io, reason),
            End::Service(service) => service.lost(conn, io, reason),
        }
    }

    #[inline]
    fn has_notice(&self) -> bool {
        match self {
            End::Load(load) => load.has_notice(),
            End::Service(service) => service.has_notice(),
        }
    }

    fn take_notice(&mut self) -> Option<Notice> {
        match self {
            End::Load(load) => load.take_notice(),
            End::Service(_) => None,
        }
    }

    fn count(&mut self, sum: &mut Counters) {
        if let End::Service(service) = self {
            service.count(sum);
        }
    }
}
