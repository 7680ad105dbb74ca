//! Making the connections of a bed.

use super::{Bed, Endpoint, Place, Seat};
use crate::ends::End;
use crate::load::{Load, figures};
use anyhow::{Context, Result, bail};
use rpcrdma_engine::{Connection, Side};
use rpcrdma_fabric::connect::{ConnectionId, Event, Fabric};
use rpcrdma_lcore::{ConnectionNumber, SeatOrder, Session};
use rpcrdma_upper::program::Service;
use rpcrdma_wire::private_data::PrivateData;

impl<F: Fabric> Bed<F> {
    /// Makes as many connections as are wanted, and waits until each has had an answer.
    pub(super) fn connect_all(&mut self) -> Result<()> {
        if matches!(self.place, Place::Serving(_)) {
            return Ok(());
        }
        for _ in 0..self.wanted.connections {
            self.connect_one()
                .with_context(|| format!("connecting the load to {}", self.address))?;
        }
        let wanted = self.wanted.connections;
        self.wait("the first answer on every connection", |bed| {
            (bed.running == wanted).then_some(())
        })
    }

    fn connect_one(&mut self) -> Result<()> {
        let (client, seat) = self.ask()?;
        self.loads.push(seat);
        let mut awaited = vec![(client, seat)];
        if matches!(self.place, Place::Here(_)) {
            let asked = self.await_event("the connection request", |event| match event {
                Event::Request {
                    connection,
                    private_data,
                    ..
                } => Some((*connection, private_data.clone())),
                _ => None,
            })?;
            let last = self.ports.len() - 1;
            awaited.push((asked.0, self.answer(last, asked.0, &asked.1)?));
        }
        while !awaited.is_empty() {
            let (which, data) = self.await_event("the connection", |event| match event {
                Event::Established {
                    connection,
                    private_data,
                } => Some((*connection, private_data.clone())),
                _ => None,
            })?;
            let Some(place) = awaited.iter().position(|&(id, _)| id == which) else {
                continue;
            };
            let (_, seat) = awaited.swap_remove(place);
            let peer = PrivateData::find(&data);
            self.tell(seat, SeatOrder::Established { peer })?;
        }
        Ok(())
    }

    /// Begins a connection to the service, from the first lcore.
    fn ask(&mut self) -> Result<(ConnectionId, Seat)> {
        let connection = self.fabric.resolve(&self.address)?;
        self.await_event("the way to the service", |event| {
            (*event == Event::Resolved { connection }).then_some(())
        })?;
        let endpoint = self.fabric.take(connection, self.ports[0])?;
        let load = Load::new(
            self.wanted.workload,
            self.wanted.depth,
            self.source_bytes()?,
            figures(self.wanted.connections),
        );
        let end = End::Load(Box::new(load));
        let seat = self.adopt(0, connection, endpoint, None, Side::Client, end)?;
        let private = self.setup(Side::Client).private_data().emit();
        self.fabric.connect(connection, &private)?;
        Ok((connection, seat))
    }

    /// Accepts a connection, for the service on an lcore.
    pub(super) fn answer(
        &mut self,
        lcore: usize,
        connection: ConnectionId,
        private_data: &[u8],
    ) -> Result<Seat> {
        let endpoint = self.fabric.take(connection, self.ports[lcore])?;
        let end = End::Service(Service::new(self.sources[lcore], self.wanted.depth));
        let peer = PrivateData::find(private_data);
        let seat = self.adopt(lcore, connection, endpoint, peer, Side::Server, end)?;
        let private = self.setup(Side::Server).private_data().emit();
        self.fabric.accept(connection, &private)?;
        Ok(seat)
    }

    /// Waits for what `pick` takes of the events; a refusal is an error.
    pub(super) fn await_event<T>(
        &mut self,
        what: &str,
        mut pick: impl FnMut(&Event) -> Option<T>,
    ) -> Result<T> {
        self.wait(what, |bed| {
            let event = bed.fabric.poll()?;
            if let Some(found) = pick(&event) {
                return Some(Ok(found));
            }
            match event {
                Event::Rejected { reason, .. } => Some(Err(anyhow::anyhow!(reason))),
                _ => None,
            }
        })?
    }

    fn adopt(
        &mut self,
        lcore: usize,
        connection: ConnectionId,
        endpoint: Endpoint<F>,
        peer: Option<PrivateData>,
        side: Side,
        upper: End,
    ) -> Result<Seat> {
        let number = ConnectionNumber(connection.0);
        let session = Box::new(Session {
            connection: Connection::new(self.setup(side)),
            upper,
        });
        if self.lines[lcore]
            .adopt(number, endpoint, peer, session)
            .is_err()
        {
            bail!("the lcore has no seat for another connection");
        }
        let seat = self.wait("a seat", |bed| bed.adopted.remove(&number))?;
        Ok(Seat { lcore, seat })
    }

    pub(super) fn tell(&mut self, seat: Seat, order: SeatOrder<End>) -> Result<()> {
        let mut order = Some(order);
        self.wait("room for an order", |bed| {
            match bed.lines[seat.lcore].tell(seat.seat, order.take()?) {
                Ok(()) => Some(()),
                Err(back) => {
                    order = Some(back);
                    None
                }
            }
        })
    }
}
