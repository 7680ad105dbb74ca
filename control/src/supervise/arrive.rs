//! Connections that arrive by RDMA: for fronts and services.

use super::cores::Endpoint;
use super::grants::Grant;
use super::seated::{Coming, NoSeat, Owner, roomiest};
use super::{Supervisor, setup};
use crate::listen::{DoorId, Listeners, Policy};
use anyhow::{Context, Result};
use rpcrdma_config::Plan;
use rpcrdma_config::allow::Peers;
use rpcrdma_engine::{Connection, Side};
use rpcrdma_fabric::connect::{ConnectionId, Fabric, ListenerId, Peer};
use rpcrdma_lcore::{ConnectionNumber, SeatOrder, Session};
use rpcrdma_upper::front::{Front, FrontSettings};
use rpcrdma_upper::program::Service;
use rpcrdma_upper::role::Role;
use rpcrdma_wire::private_data::PrivateData;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Instant;
use tracing::debug;

/// Where connections come in.
pub(super) struct Doors {
    rdma: HashMap<ListenerId, Owner>,
    /// TCP listeners, in the order of the plan's backs; gone once the doors are shut.
    pub(super) tcp: Option<Listeners>,
    /// The settings of each front.
    fronts: Vec<FrontSettings>,
}

impl Doors {
    /// Opens all doors of the plan.
    pub(super) fn open<F: Fabric>(plan: &Plan, fabric: &mut F) -> Result<Self> {
        let mut rdma = HashMap::new();
        let fronts = plan.fronts.iter().map(|front| &front.listen);
        let fronts = fronts.zip((0..).map(Owner::Front));
        let services = plan.services.iter().map(|service| &service.listen);
        let services = services.zip((0..).map(Owner::Service));
        for (address, owner) in fronts.chain(services) {
            let listener = fabric
                .listen(address)
                .with_context(|| format!("listening at {address} for RDMA"))?;
            rdma.insert(listener, owner);
        }
        let mut tcp = Listeners::new().context("no descriptors left")?;
        for back in &plan.backs {
            let policy = Policy {
                allow: back.allow.clone(),
                connections_max: plan.runtime.connections_max as usize * plan.runtime.lcores.len(),
                keepalive: back.keepalive,
            };
            tcp.open(back.listen, policy)
                .with_context(|| format!("back {}: listening at {}", back.name, back.listen))?;
        }
        Ok(Self {
            rdma,
            tcp: Some(tcp),
            fronts: plan.fronts.iter().map(setup::front).collect(),
        })
    }

    /// Clients that come from now on are judged by this plan.
    pub(super) fn judge_by(&mut self, plan: &Plan) {
        let Some(tcp) = &mut self.tcp else {
            return;
        };
        for (back, door) in plan.backs.iter().zip((0..).map(DoorId)) {
            tcp.allow(door, &back.allow);
        }
    }

    /// No connection is taken any more.
    pub(super) fn shut(&mut self) {
        self.tcp = None;
    }

    /// Where each back listens, by name.
    pub(super) fn back_addresses(&self, plan: &Plan) -> Vec<(String, SocketAddr)> {
        let Some(tcp) = &self.tcp else {
            return Vec::new();
        };
        let named = plan.backs.iter().zip((0..).map(DoorId));
        named
            .filter_map(|(back, door)| Some((back.name.clone(), tcp.address(door)?)))
            .collect()
    }

    fn is_shut(&self) -> bool {
        self.tcp.is_none()
    }
}

impl<F: Fabric> Supervisor<F> {
    /// A peer asks for a connection.
    pub(super) fn requested(
        &mut self,
        listener: ListenerId,
        connection: ConnectionId,
        peer: &Peer,
        private_data: &[u8],
    ) {
        if let Err(reason) = self.take_request(listener, connection, peer, private_data) {
            self.complaints
                .say(format_args!("connection request from {peer}: {reason}"));
            // Should the peer be gone meanwhile there is nobody to tell.
            let _ = self.fabric.reject(connection, reason);
        }
    }

    fn take_request(
        &mut self,
        listener: ListenerId,
        connection: ConnectionId,
        peer: &Peer,
        private_data: &[u8],
    ) -> Result<(), &'static str> {
        let owner = *self
            .doors
            .rdma
            .get(&listener)
            .ok_or("nobody listens here")?;
        if self.doors.is_shut() {
            return Err("the appliance is shutting down");
        }
        let (allow, transport) = match owner {
            Owner::Front(index) => {
                let front = &self.plan.fronts[index];
                (&front.allow, &front.transport)
            }
            Owner::Service(index) => {
                let service = &self.plan.services[index];
                (&service.allow, &service.transport)
            }
            Owner::Back(_) => return Err("nobody listens here"),
        };
        admit(allow, peer)?;
        let core = roomiest(&self.cores, &self.fabric, connection).map_err(NoSeat::reason)?;
        let transport = transport.clone();
        let endpoint = self
            .fabric
            .take(connection, self.cores[core].port)
            .map_err(|_| "the queue pair could not be made")?;
        let grant = self.grant(core, owner)?;
        let credits = grant.credits;
        let upper = match owner {
            Owner::Front(index) => {
                let settings = FrontSettings {
                    slots: credits,
                    ..self.doors.fronts[index].clone()
                };
                Role::Front(Box::new(Front::new(&settings)))
            }
            _ => Role::Service(Service::new(self.cores[core].source, credits)),
        };
        let engine = setup::engine(&transport, credits, Side::Server);
        let coming = Coming {
            core,
            connection,
            owner,
            grant,
            peer: peer.to_string(),
            party: peer.party(),
            is_known: peer.ip().is_some(),
            client: None,
            place: None,
            engine,
        };
        let mut engine = Connection::new(engine);
        engine.set_suspects(&self.remembered.take_suspects(&peer.party()));
        let session = Session {
            connection: engine,
            upper,
        };
        self.seat(coming, endpoint, PrivateData::find(private_data), session)
    }

    /// Hands a connection to its lcore.
    pub(super) fn seat(
        &mut self,
        coming: Coming,
        endpoint: Endpoint<F>,
        peer: Option<PrivateData>,
        session: Session<Role>,
    ) -> Result<(), &'static str> {
        let number = self.sessions.number();
        let line = &mut self.cores[coming.core].line;
        let adopted = line.adopt(number, endpoint, peer, Box::new(session));
        let Ok(seat) = adopted else {
            self.cores[coming.core].grants.give_back(coming.grant);
            return Err("the lcore is too busy for another connection");
        };
        self.sessions.insert(number, coming.seated(seat));
        Ok(())
    }

    /// Receives for a new connection.
    pub(super) fn grant(&mut self, core: usize, owner: Owner) -> Result<Grant, &'static str> {
        let cost = &self.plan.budget.endpoints[owner.place(&self.plan)];
        let transport = owner.transport(&self.plan);
        let grant = self.cores[core].grants.take(transport, cost);
        grant.ok_or("no seat is free on the lcore")
    }

    /// The receives of a connection are posted: the next step towards its peer.
    pub(super) fn adopted(&mut self, number: ConnectionNumber) {
        let Some(seated) = self.sessions.get(number) else {
            return;
        };
        let (owner, connection) = (seated.owner, seated.connection);
        let (core, seat) = (seated.core, seated.seat);
        let private_data = seated.private_data.emit();
        let asked = match owner {
            Owner::Back(_) => self.fabric.connect(connection, &private_data),
            Owner::Front(_) | Owner::Service(_) => self.fabric.accept(connection, &private_data),
        };
        if let Err(error) = asked {
            self.complaints
                .say(format_args!("connection {}: {error}", number.0));
            self.cores[core].tell(seat, SeatOrder::Fail);
        }
    }

    /// Both sides may send.
    pub(super) fn established(
        &mut self,
        connection: ConnectionId,
        private_data: &[u8],
        now: Instant,
    ) {
        let Some(owner) = self
            .sessions
            .by_connection(connection)
            .map(|seated| seated.owner)
        else {
            return;
        };
        let patience = owner.transport(&self.plan).negotiate_timeout;
        let Some(seated) = self.sessions.established(connection) else {
            return;
        };
        if matches!(owner, Owner::Back(_)) {
            seated.negotiate_by = Some(now + patience);
        }
        debug!("{:?} connection with {}: established", owner, seated.peer);
        let peer = PrivateData::find(private_data);
        let (core, seat) = (seated.core, seated.seat);
        self.cores[core].tell(seat, SeatOrder::Established { peer });
    }

    /// There will be no connection.
    pub(super) fn rejected(&mut self, connection: ConnectionId, reason: &str, now: Instant) {
        if self.lost_way(connection, reason, now) {
            return;
        }
        if let Some(seated) = self.sessions.by_connection(connection) {
            self.complaints.say(format_args!(
                "connection to {}: refused: {reason}",
                seated.peer
            ));
            let (core, seat) = (seated.core, seated.seat);
            let back = match seated.owner {
                Owner::Back(back) => Some((back, seated.party.clone())),
                Owner::Front(_) | Owner::Service(_) => None,
            };
            self.cores[core].tell(seat, SeatOrder::Fail);
            if let Some((back, party)) = back {
                self.found_in_vain(back, &party, now);
            }
        }
    }
}

/// Whether a peer may come in.
fn admit(allow: &Peers, peer: &Peer) -> Result<(), &'static str> {
    match peer.ip() {
        Some(ip) if allow.permits(ip) => Ok(()),
        Some(_) => Err("the allow list does not have this address"),
        None if allow.permits_memory() => Ok(()),
        None => Err("the allow list does not have the memory fabric"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_judged_by_what_they_are() {
        let (local, nobody) = (Peers::local(), Peers(Vec::new()));
        let memory = Peer::Memory("3".to_owned());
        let near = Peer::Ip("127.0.0.1:700".parse().unwrap());
        let mapped = Peer::Ip("[::ffff:127.0.0.1]:700".parse().unwrap());
        let far = Peer::Ip("192.0.2.1:700".parse().unwrap());
        for peer in [&memory, &near, &mapped] {
            assert_eq!(admit(&local, peer), Ok(()), "{peer}");
            assert!(admit(&nobody, peer).is_err(), "{peer}");
        }
        assert!(admit(&local, &far).is_err());
    }
}
