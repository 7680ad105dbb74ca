//! What stands above the engine: the built-in program, the NFS bindings, the TCP gateways.
//!
//! It owns: the TCP sockets, the arena memory of the calls and replies that go through them,
//! and the knowledge of what may be placed directly. It promises: every call that is taken is
//! answered once or its connection ends, all memory goes back, payload is copied at most once
//! on its way and only in the first octets of a record ([`record::reader`] says how many). It
//! never makes a socket, sleeps, or allocates for a message.
//!
//! [`Upper`] is what an lcore sees; [`role::Role`] is one type for all of them. Start reading at
//! [`front`] and [`back`], which tell the life of a call; [`binding`] says what RFC 8267 allows.
#![forbid(unsafe_code)]

mod answers;
pub mod back;
pub mod binding;
pub mod counters;
mod flights;
pub mod front;
mod parts;
pub mod program;
pub mod record;
pub mod role;
pub mod xdr;

#[cfg(test)]
mod fake;

use rpcrdma_engine::{CloseReason, Connection, Event, Io};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// Where an upper layer has its sockets watched: its lcore's epoll instance.
pub trait Watch {
    /// Watches `socket`, edge-triggered, for reading and writing, until it is closed: each edge
    /// brings a call of [`Upper::turn`]. What it is ready for already counts as an edge.
    ///
    /// # Errors
    ///
    /// What `epoll_ctl` says: no memory, or too many watches of this user.
    fn watch(&mut self, socket: BorrowedFd<'_>) -> io::Result<()>;
}

/// The upper layer of one connection, called by its lcore, dispatched statically.
///
/// Every method may post work through `conn` and `io` (submit, answer, finish, ...); an event
/// that such a step returns is handled by the upper layer itself before it returns.
///
/// `now` is the lcore's clock: read every few turns, so it may be some microseconds old.
///
/// An [`Io::reserve`] that finds no memory puts the connection into its lcore's queue of those
/// that wait for some: [`Upper::turn`] is called, in order of arrival, once memory came back.
pub trait Upper {
    /// What the control thread tells an upper layer: here is your backend's socket, say.
    type Order: Send;
    /// What an upper layer tells the control thread: I need a backend, say.
    type Notice: Send;
    /// What upper layers of this kind count.
    type Counters: Default + Clone + Send;

    /// The connection is established: Calls may be submitted and will arrive. Sockets that the
    /// upper layer was made with are handed to `watch` here.
    fn established<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        watch: &mut impl Watch,
        now: Instant,
    );

    /// Something of the engine's for the upper layer: any [`Event`] but `None`, `Property`,
    /// `Lost` and `Closed`.
    fn event<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        event: Event,
        now: Instant,
    );

    /// An order from the control thread. It may come before [`Upper::established`], not after
    /// [`Upper::lost`].
    fn order<'m>(
        &mut self,
        conn: &mut Connection,
        io: &mut impl Io<'m>,
        watch: &mut impl Watch,
        order: Self::Order,
        now: Instant,
    );

    /// Sockets of this upper layer may be readable or writable (edge-triggered), or room may
    /// have come free where there was none, or it is a tick of the clock: about one a second,
    /// for deadlines. Does a bounded amount of work; true: call again next turn, there is more.
    /// Called only between [`Upper::established`] and [`Upper::lost`], and once right after the
    /// former.
    fn turn<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, now: Instant) -> bool;

    /// The connection is being torn down: abandon every Call held, stop using its memory.
    /// Called once, before the engine says `Closed`. The Calls that were submitted still end by
    /// their events.
    fn lost<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, reason: CloseReason);

    /// True when [`Upper::take_notice`] has something: asked after each of the calls above, so
    /// it costs a load and a compare.
    fn has_notice(&self) -> bool;

    /// The next notice for the control thread. Called only when there is room to deliver it,
    /// which may be later than it was made: so a bounded number waits here.
    fn take_notice(&mut self) -> Option<Self::Notice>;

    /// Moves what this one has counted since it was asked last into `sum`.
    fn count(&mut self, sum: &mut Self::Counters);
}
