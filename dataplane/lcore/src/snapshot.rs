//! What an lcore tells about itself on demand.

use crate::counters::LoopCounters;
use crate::refusals::Refusals;
use crate::seats::{ConnectionNumber, SeatId};
use rpcrdma_engine::phase::Phase;
use rpcrdma_engine::{Connection, Counters};
use rpcrdma_fabric::pool::Usage;
use rpcrdma_fabric::{PortCounts, PortRejects};
use rpcrdma_upper::Upper;
use rpcrdma_wire::{Reject, Version};

/// The state of one lcore. Made by control with room for as many rows as it wants to see, so
/// that the lcore needs no memory to fill it; may be used again.
///
/// Rows are gathered over several turns, a few in each: they are not of one instant.
pub struct Snapshot<U: Upper> {
    /// What the engine counted.
    pub counters: Counters,
    /// What the loop counted.
    pub turns: LoopCounters,
    /// What the port counted.
    pub port: PortCounts,
    /// What peers did wrong that the port found.
    pub port_rejects: PortRejects,
    /// What the upper layers counted, those of connections that are gone included.
    pub upper: U::Counters,
    /// The pool.
    pub memory: Usage,
    /// The last headers refused.
    pub refusals: Refusals,
    /// One for each connection, as far as there was room.
    pub connections: Vec<Row>,
    /// Connections without a row.
    pub left_out: usize,
}

/// The state of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name.
    pub number: ConnectionNumber,
    /// Its seat.
    pub seat: SeatId,
    /// Where it is in its life.
    pub phase: Phase,
    /// The version in force.
    pub version: Option<Version>,
    /// The longest message that the peer takes, octets.
    pub send_bytes: u32,
    /// The longest message that the peer was told it may send, octets.
    pub receive_bytes: u32,
    /// Calls of ours in flight, and how many the peer lets us make at a time.
    pub calls_out: Credits,
    /// Calls of the peer in flight, and how many it was told it may make at a time.
    pub calls_in: Credits,
    /// Why the last header was refused.
    pub last_refusal: Option<Reject>,
}

/// Credits of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credits {
    /// In use.
    pub used: u32,
    /// In all.
    pub granted: u32,
}

impl From<(u32, u32)> for Credits {
    fn from((used, granted): (u32, u32)) -> Credits {
        Credits { used, granted }
    }
}

impl<U: Upper> Snapshot<U> {
    /// An empty one with room for `rows` connections; none for the counters alone.
    #[must_use]
    pub fn with_room(rows: usize) -> Snapshot<U> {
        Snapshot {
            counters: Counters::default(),
            turns: LoopCounters::default(),
            port: PortCounts::default(),
            port_rejects: PortRejects::NONE,
            upper: U::Counters::default(),
            memory: Usage::default(),
            refusals: Refusals::new(),
            connections: Vec::with_capacity(rows),
            left_out: 0,
        }
    }

    /// Adds a row if there is room.
    pub(crate) fn add(&mut self, row: Row) {
        if self.connections.len() < self.connections.capacity() {
            self.connections.push(row);
        } else {
            self.left_out += 1;
        }
    }
}

impl Row {
    pub(crate) fn new(number: ConnectionNumber, seat: SeatId, connection: &Connection) -> Row {
        Row {
            number,
            seat,
            phase: connection.phase(),
            version: connection.version(),
            send_bytes: connection.send_bytes(),
            receive_bytes: connection.receive_bytes(),
            calls_out: connection.requester_credits().into(),
            calls_in: connection.responder_credits().into(),
            last_refusal: connection.last_refusal(),
        }
    }
}
