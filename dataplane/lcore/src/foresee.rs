//! Fetching ahead what the next messages need of their seats and engines.
//!
//! With many connections each message is for one that was not looked at for as long as all the
//! others had their turn, and finds nothing of it in the caches. One look at a time, a seat is asked
//! for, then the engine that the seat has the address of, then what the engine has the addresses
//! of: see [`Port::foresee`] for why not at once. The port says whose messages come next, and does the
//! same for its own part.

use crate::seats::{SeatId, Seats};
use crate::turn::Lcore;
use rpcrdma_engine::Connection;
use rpcrdma_fabric::{Port, Token, fetch};
use rpcrdma_upper::Upper;

/// Connections that stay in the caches without this: with fewer it is only in the way.
const FEW: usize = 64;
/// Cache lines of a seat.
const SEAT_LINES: usize = 2;

impl<P: Port, U: Upper> Lcore<P, U> {
    /// Between two messages: takes one step for each of those that come next.
    #[inline(never)]
    pub(crate) fn foresee(&self) {
        let [next, second, third] = self.bench.port.foresee();
        if let Some(token) = third {
            self.seats.fetch_seat(token);
        }
        if let Some(connection) = second.and_then(|token| self.seats.engine_of(token)) {
            fetch::lines(connection, Connection::MESSAGE_LINES);
        }
        if let Some(connection) = next.and_then(|token| self.seats.engine_of(token)) {
            connection.foresee(fetch::line_at);
        }
    }
}

impl<U: Upper> Seats<U> {
    /// There are too many connections for the caches to keep.
    #[inline]
    pub(crate) fn are_many(&self) -> bool {
        self.taken() > FEW
    }

    /// Asks for the seat that a token names.
    #[inline(always)]
    fn fetch_seat(&self, token: Token) {
        if let Some(seat) = self.at_place(SeatId::from_raw(token.0)) {
            fetch::lines(seat, SEAT_LINES);
        }
    }

    /// The engine on the seat that a token names: the token may be stale, and this another's.
    #[inline(always)]
    fn engine_of(&self, token: Token) -> Option<&Connection> {
        let seat = self.at_place(SeatId::from_raw(token.0))?;
        Some(&seat.occupant()?.session.connection)
    }
}
