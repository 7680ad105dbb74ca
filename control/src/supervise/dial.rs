//! TCP clients of backs, and the RDMA connection each of them gets.

use super::seated::{Coming, NoSeat, Owner, Seated, roomiest};
use super::ways::Client;
use super::{Supervisor, setup};
use rpcrdma_config::plan::Upstream;
use rpcrdma_engine::{CloseReason, Connection, Side};
use rpcrdma_fabric::connect::{ConnectionId, Fabric};
use rpcrdma_lcore::{Ending, SeatOrder, Session};
use rpcrdma_upper::back::Back;
use rpcrdma_upper::role::Role;
use rpcrdma_wire::Version;
use std::time::Instant;
use tracing::debug;

/// RDMA connections of backs in the making. The clients of others wait in the listen queue: a
/// crowd that comes at once fills neither an lcore's ring nor the upstream's backlog.
const DIALING: usize = 32;

impl<F: Fabric> Supervisor<F> {
    /// Accepts clients that wait, as many as connections can be made for at a time.
    pub(super) fn take_clients(&mut self, now: Instant) {
        while self.may_dial()
            && let Some(accepted) = self.doors.tcp.as_mut().and_then(|doors| doors.accept(now))
        {
            self.look_for_way(Client::of(accepted), now);
        }
    }

    /// A client that comes now can get its connection.
    pub(super) fn may_dial(&self) -> bool {
        self.has_room() && self.sessions.dialing() + self.ways.count() < DIALING
    }

    /// The way to the upstream is known: a seat, and the queue pair there. Dropping the stream
    /// closes it.
    pub(super) fn seat_client(
        &mut self,
        connection: ConnectionId,
        client: Client,
        found: String,
        now: Instant,
    ) -> Result<(), &'static str> {
        let owner = Owner::Back(client.back);
        let taken = roomiest(&self.cores, &self.fabric, connection).map_err(NoSeat::reason);
        let taken = taken.and_then(|core| {
            let endpoint = self.fabric.take(connection, self.cores[core].port);
            Ok((core, endpoint.map_err(|_| "no queue pair is free")?))
        });
        let (core, endpoint) = taken.inspect_err(|_| self.fabric.abandon(connection))?;
        let grant = self.grant(core, owner)?;
        let back = &self.plan.backs[client.back];
        // A name may have several addresses, which are one party; those that answer are not.
        let upstream = match &back.upstream {
            Upstream::Discover(_) => found,
            named => named.to_string(),
        };
        let mut engine = setup::engine(&back.transport, grant.credits, Side::Client);
        if self.remembered.is_version_one(&upstream, now) {
            engine.version_max = Version::One;
        }
        let session = Session {
            connection: Connection::new(engine),
            upper: Role::Back(Box::new(Back::new(
                client.stream,
                &setup::back(back, grant.credits),
            ))),
        };
        let coming = Coming {
            core,
            connection,
            owner,
            grant,
            peer: upstream.clone(),
            party: upstream,
            is_known: true,
            client: Some(client.address.to_string()),
            place: Some(client.place),
            engine,
        };
        debug!("back {}: client {}", back.name, client.address);
        self.seat(coming, endpoint, None, session)
    }

    /// Offers of version two that were not answered in time (V2-09). One that was is past
    /// offering, and its engine knows better.
    pub(super) fn give_up_negotiations(&mut self, now: Instant) {
        for (core, seat) in self.sessions.overdue(now) {
            self.cores[core].tell(seat, SeatOrder::NegotiationTimedOut);
        }
    }

    /// What the end of a back's connection says of the version that its upstream speaks (V2-09).
    pub(super) fn learn_version(
        &mut self,
        seated: &Seated,
        ending: Ending,
        connection: &Connection,
        now: Instant,
    ) {
        let Owner::Back(index) = seated.owner else {
            return;
        };
        let (back, party) = (&self.plan.backs[index], &seated.party);
        if connection.version() == Some(Version::Two) {
            self.remembered.version_two(party, now);
        }
        if !connection.broke_while_offering() {
            return;
        }
        let most = back.transport.version_memory;
        let (what, time) = match ending {
            Ending::Closed(CloseReason::Version) if seated.gave_up => {
                let time = self.remembered.silence(party, now, most);
                ("did not answer version two in time", time)
            }
            Ending::Closed(CloseReason::Peer | CloseReason::Work(_)) => {
                self.remembered.version_one(party, now, most);
                ("ended the connection that offered version two", most)
            }
            // Our own doing, or an answer.
            _ => return,
        };
        self.complaints.say(format_args!(
            "back {}: {} {what}; speaking version one to it for {} s",
            back.name,
            back.upstream,
            time.as_secs()
        ));
    }
}
