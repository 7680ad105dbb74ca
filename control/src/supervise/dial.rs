//! TCP clients of backs, and the RDMA connection each of them gets.

use super::seated::{Coming, Owner, roomiest};
use super::{Supervisor, policy, setup};
use crate::listen::{Accepted, DoorId};
use rpcrdma_engine::{Connection, Decision, PropertyEvent, Side};
use rpcrdma_fabric::connect::Fabric;
use rpcrdma_lcore::{ConnectionNumber, SeatOrder, Session};
use rpcrdma_upper::back::Back;
use rpcrdma_upper::role::Role;
use rpcrdma_wire::Version;
use std::time::Instant;
use tracing::debug;

/// RDMA connections of backs in the making. The clients of others wait in the listen queue: a
/// crowd that comes at once fills neither an lcore's ring nor the upstream's backlog.
const DIALING: usize = 32;

impl Supervisor {
    /// Accepts clients that wait, as many as connections can be made for at a time.
    pub(super) fn take_clients(&mut self, now: Instant) {
        while self.may_dial()
            && let Some(accepted) = self.doors.tcp.as_mut().and_then(|doors| doors.accept(now))
        {
            let (DoorId(back), client) = (accepted.door, accepted.client);
            if let Err(reason) = self.dial(accepted, now) {
                let name = &self.plan.backs[back].name;
                self.complaints
                    .say(format_args!("back {name}: client {client}: {reason}"));
            }
        }
    }

    /// A client that comes now can get its connection.
    pub(super) fn may_dial(&self) -> bool {
        self.has_room() && self.sessions.dialing() < DIALING
    }

    /// Makes the RDMA connection of one client; dropping the stream on the way closes it.
    fn dial(&mut self, accepted: Accepted, now: Instant) -> Result<(), &'static str> {
        let Accepted {
            door: DoorId(index),
            stream,
            client,
            place,
        } = accepted;
        let back = &self.plan.backs[index];
        let core = roomiest(&self.cores).ok_or("no seat is free on any lcore")?;
        let opened = self.fabric.open(self.cores[core].port);
        let (connection, endpoint) = opened.map_err(|_| "no queue pair is free")?;
        let mut engine = setup::engine(&back.transport, Side::Client);
        if self.remembered.is_version_one(&back.upstream, now) {
            engine.version_max = Version::One;
        }
        let session = Session {
            connection: Connection::new(engine),
            upper: Role::Back(Box::new(Back::new(stream, &setup::back(back)))),
        };
        let coming = Coming {
            core,
            connection,
            owner: Owner::Back(index),
            peer: back.upstream.clone(),
            client: Some(client.to_string()),
            place: Some(place),
        };
        debug!("back {}: client {client}", back.name);
        self.seat(coming, endpoint, None, session)
    }

    /// Offers of version two that were not answered in time (V2-09). One that was is past
    /// offering, and its engine knows better.
    pub(super) fn give_up_negotiations(&mut self, now: Instant) {
        for (core, seat) in self.sessions.overdue(now) {
            self.cores[core].tell(seat, SeatOrder::NegotiationTimedOut);
        }
    }

    /// What to say to a peer that wants other properties of us.
    pub(super) fn decision(
        &mut self,
        number: ConnectionNumber,
        event: PropertyEvent,
    ) -> Option<Decision> {
        let owner = self.sessions.get(number)?.owner;
        let transport = self.transport_of(owner);
        debug!("connection {}: properties: {event:?}", number.0);
        match event {
            PropertyEvent::Requested(wanted) => {
                let own = setup::engine(transport, Side::Server);
                let able = policy::Able {
                    receive_bytes: own.receive_bytes,
                    backward: own.backward,
                };
                Some(policy::decide(able, wanted))
            }
            PropertyEvent::Announced(_)
            | PropertyEvent::None
            | PropertyEvent::Responded(_)
            | PropertyEvent::Updated(_) => None,
        }
    }
}
