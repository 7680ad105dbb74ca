//! The upper layers as one type, for lcores that serve all roles.

use crate::back::Back;
use crate::counters::Counters;
use crate::front::{Front, FrontNotice, FrontOrder};
use crate::program::Service;
use crate::{Upper, Watch};
use rpcrdma_engine::{CloseReason, Connection, Event, Io};
use std::time::Instant;

/// What stands above one connection.
#[derive(Debug)]
pub enum Role {
    /// The built-in benchmark program.
    Service(Service),
    /// RDMA in, TCP out. Boxed, so that the many connections of a service stay small.
    Front(Box<Front>),
    /// TCP in, RDMA out.
    Back(Box<Back>),
}

/// Calls the same method on whichever role it is.
macro_rules! each {
    ($role:expr, $upper:ident => $call:expr) => {
        match $role {
            Role::Service($upper) => $call,
            Role::Front($upper) => $call,
            Role::Back($upper) => $call,
        }
    };
}

impl Upper for Role {
    /// Only a front takes orders: one that reaches another role is dropped, its socket closed.
    type Order = FrontOrder;
    type Notice = FrontNotice;
    type Counters = Counters;

    fn established<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        watch: &mut impl Watch,
        now: Instant,
    ) {
        each!(self, upper => upper.established(conn, io, watch, now));
    }

    #[inline]
    fn event<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        event: Event,
        now: Instant,
    ) {
        each!(self, upper => upper.event(conn, io, event, now));
    }

    fn order<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        watch: &mut impl Watch,
        order: FrontOrder,
        now: Instant,
    ) {
        match self {
            Role::Front(front) => front.order(conn, io, watch, order, now),
            Role::Service(_) | Role::Back(_) => drop(order),
        }
    }

    fn turn<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, now: Instant) -> bool {
        each!(self, upper => upper.turn(conn, io, now))
    }

    fn lost<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, reason: CloseReason) {
        each!(self, upper => upper.lost(conn, io, reason));
    }

    #[inline]
    fn has_notice(&self) -> bool {
        each!(self, upper => upper.has_notice())
    }

    fn take_notice(&mut self) -> Option<FrontNotice> {
        match self {
            Role::Front(front) => front.take_notice(),
            Role::Service(_) | Role::Back(_) => None,
        }
    }

    fn count(&mut self, sum: &mut Counters) {
        each!(self, upper => upper.count(sum));
    }
}
