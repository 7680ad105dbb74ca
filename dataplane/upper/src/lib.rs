//! What stands above the engine: built-in programs, NFS bindings, the TCP gateways.
#![forbid(unsafe_code)]

use rpcrdma_engine::{CloseReason, Connection, Event, Io};
use std::time::Instant;

/// The upper layer of one connection, called by its lcore, dispatched statically.
///
/// Every method may post work through `conn` and `io` (submit, answer, finish, ...); an event
/// that such a step returns is handled by the upper layer itself before it returns.
pub trait Upper {
    /// The connection is established: Calls may be submitted and will arrive.
    fn established<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, now: Instant);

    /// Something of the engine's for the upper layer: any [`Event`] but `None`, `Property`,
    /// `Lost` and `Closed`.
    fn event<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, event: Event, now: Instant);

    /// Sockets of this upper layer may be readable or writable (edge-triggered), or room may
    /// have come free where there was none. Does a bounded amount of work; true: call again
    /// next turn, there is more.
    fn turn<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, now: Instant) -> bool;

    /// The connection is being torn down: abandon every Call held, stop using its memory.
    /// Called once, before the engine says `Closed`.
    fn lost<'m>(&mut self, conn: &mut Connection, io: &mut impl Io<'m>, reason: CloseReason);
}
