//! The service alone, for loads elsewhere.

use super::{Bed, PATIENCE, Seat};
use anyhow::Result;
use rpcrdma_fabric::connect::{ConnectionId, Event, Fabric, ListenerId, Peer};
use rpcrdma_lcore::SeatOrder;
use rpcrdma_wire::private_data::PrivateData;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long a turn waits for something to happen.
const TURN: Duration = Duration::from_millis(20);

impl<F: Fabric> Bed<F> {
    /// Where the service is.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Takes connections, in turn on each lcore, until `stopped` says so. `say` gets a line for
    /// each that comes or goes.
    ///
    /// # Errors
    ///
    /// An lcore takes no orders.
    pub fn serve(
        &mut self,
        mut stopped: impl FnMut() -> bool,
        mut say: impl FnMut(&str),
    ) -> Result<()> {
        let mut seats = HashMap::<ConnectionId, Seat>::new();
        let mut turn = 0;
        while !stopped() {
            let until = Instant::now() + TURN;
            while let Some(event) = rpcrdma_fabric::connect::next_event(&mut self.fabric, until) {
                self.served(event, &mut seats, &mut turn, &mut say)?;
            }
            self.take_notices();
            self.sessions.clear();
        }
        for lcore in 0..self.lines.len() {
            self.wait("an lcore", |bed| {
                bed.lines[lcore].stop(PATIENCE).then_some(())
            })?;
        }
        Ok(())
    }

    fn served(
        &mut self,
        event: Event,
        seats: &mut HashMap<ConnectionId, Seat>,
        turn: &mut usize,
        say: &mut impl FnMut(&str),
    ) -> Result<()> {
        match event {
            Event::Request {
                listener,
                connection,
                peer,
                private_data,
            } => {
                let asked = (listener, connection, &peer);
                let Some(seat) = self.admit(asked, &private_data, turn, say) else {
                    return Ok(());
                };
                say(&format!("{peer}: connection {}", connection.0));
                seats.insert(connection, seat);
            }
            Event::Established {
                connection,
                private_data,
            } => {
                if let Some(&seat) = seats.get(&connection) {
                    let peer = PrivateData::find(&private_data);
                    self.tell(seat, SeatOrder::Established { peer })?;
                }
            }
            Event::Disconnected { connection } | Event::Rejected { connection, .. } => {
                if seats.remove(&connection).is_some() {
                    say(&format!("connection {}: over", connection.0));
                }
            }
            Event::Device { name, change, .. } => say(&format!("device {name}: {change:?}")),
            Event::Resolved { .. } => {}
        }
        Ok(())
    }

    /// Takes a connection on the next lcore that can have it.
    fn admit(
        &mut self,
        (_, connection, peer): (ListenerId, ConnectionId, &Peer),
        private_data: &[u8],
        turn: &mut usize,
        say: &mut impl FnMut(&str),
    ) -> Option<Seat> {
        let lcores = self.ports.len();
        let in_turn = (0..lcores).map(|step| (*turn + step) % lcores);
        let able = |&lcore: &usize| self.fabric.may_serve(connection, self.ports[lcore]);
        let lcore = in_turn.into_iter().find(able).unwrap_or(*turn % lcores);
        *turn = lcore + 1;
        match self.answer(lcore, connection, private_data) {
            Ok(seat) => Some(seat),
            Err(error) => {
                say(&format!("{peer}: refused: {error:#}"));
                // Should the peer be gone meanwhile there is nobody to tell.
                let _ = self.fabric.reject(connection, "there is no room");
                None
            }
        }
    }
}
