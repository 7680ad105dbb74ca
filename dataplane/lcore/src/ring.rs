//! What control and an lcore say to each other.
//!
//! What is lent comes back: a [`Session`] goes in with its adoption and comes out with
//! [`Notice::Closed`], a [`Snapshot`] goes in empty and comes out full. So an lcore neither
//! allocates nor frees memory for them, and control sees the last state of what it made.

use crate::seats::{ConnectionNumber, SeatId};
use crate::snapshot::Snapshot;
use rpcrdma_engine::{CloseReason, Connection, Decision, PropertyEvent, Refused, Values};
use rpcrdma_upper::Upper;
use rpcrdma_wire::private_data::PrivateData;
use std::time::Duration;

/// A connection and its upper layer: made by control, lent to an lcore.
///
/// One that is to be replayed (`Connection::reopen`) may hold memory of its lcore's pool after
/// [`Notice::Closed`], and goes back to that same lcore.
pub struct Session<U: Upper> {
    /// The state machines.
    pub connection: Connection,
    /// What stands above them.
    pub upper: U,
}

/// From control to an lcore.
pub(crate) enum Order<E, U: Upper> {
    /// A connection for a free seat.
    Adopt(Arrival<E, U>),
    /// To one connection. Dropped and counted when it is gone already.
    One(SeatId, SeatOrder<U>),
    /// To the lcore as a whole.
    All(LcoreOrder<U>),
}

/// A connection on its way to an lcore.
pub(crate) struct Arrival<E, U: Upper> {
    pub(crate) seat: SeatId,
    pub(crate) number: ConnectionNumber,
    pub(crate) endpoint: E,
    pub(crate) peer: Option<PrivateData>,
    pub(crate) session: Box<Session<U>>,
}

/// From control to one connection.
pub enum SeatOrder<U: Upper> {
    /// Both sides may send now. On the accepting side the first message may come before this
    /// order, and says the same: then the order changes nothing.
    Established {
        /// What the private data of who accepted said (RFC 8797), if there was any. On the
        /// accepting side the lcore has known it since the adoption.
        peer: Option<PrivateData>,
    },
    /// There will be no connection: the peer said no, or it took too long.
    Fail,
    /// The offer of version two was not answered in time (V2-09).
    NegotiationTimedOut,
    /// No new Calls; closes when those in flight are answered.
    Drain,
    /// Closes now.
    Close(CloseReason),
    /// Sends a REQPROP. Like the next two: counted and forgotten where the connection is not
    /// in a state for it.
    RequestProperties(Values),
    /// Changes our properties and sends an UPDPROP.
    UpdateProperties(Values),
    /// Answers the peer's REQPROP.
    Decide(Decision),
    /// To the upper layer.
    Upper(U::Order),
}

/// From control to the lcore as a whole.
pub(crate) enum LcoreOrder<U: Upper> {
    /// Drains every connection; later adoptions are declined.
    Drain,
    /// Closes every connection, waits at most that long for all to be over, and ends.
    Stop { within: Duration },
    /// Fills the snapshot and sends it back.
    Snapshot(Box<Snapshot<U>>),
}

/// From an lcore to control.
pub enum Notice<U: Upper> {
    /// The queue pair is the lcore's and its receives are posted: connect or accept may follow.
    Adopted {
        /// Its seat.
        seat: SeatId,
        /// Its name.
        number: ConnectionNumber,
    },
    /// The connection is over and its seat is free. Comes once for each adoption, without
    /// [`Notice::Adopted`] where it never got that far.
    Closed {
        /// Its former seat.
        seat: SeatId,
        /// Its name.
        number: ConnectionNumber,
        /// Why.
        ending: Ending,
        /// What was lent. Notices that the upper layer could not deliver in time are in it.
        session: Box<Session<U>>,
    },
    /// What the peer said of properties.
    Property {
        /// Whose peer.
        seat: SeatId,
        /// Its name.
        number: ConnectionNumber,
        /// What it said.
        event: PropertyEvent,
    },
    /// From the upper layer.
    Upper {
        /// Whose.
        seat: SeatId,
        /// Its name.
        number: ConnectionNumber,
        /// What it says.
        notice: U::Notice,
    },
    /// Every connection was told to drain, and none is left.
    Drained,
    /// What was asked for.
    Snapshot(Box<Snapshot<U>>),
}

/// How a connection came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The port would not take the queue pair.
    Refused(Refused),
    /// The lcore drains, or stops.
    Declined,
    /// It was closed.
    Closed(CloseReason),
}
