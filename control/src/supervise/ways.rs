//! The way from a back to its upstream: name, addresses, device.
//!
//! It takes the network's time to find it, so the client waits here meanwhile, few of them at a
//! time. Nothing is reserved for it on any lcore before the way is known. One that leaves while it
//! waits is forgotten.

use super::Supervisor;
use crate::backend::{Resolver, Ticket};
use crate::listen::{Accepted, DoorId, Place};
use rpcrdma_config::plan::Upstream;
use rpcrdma_fabric::connect::{ConnectionId, Fabric};
use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

/// A TCP client of a back. Dropped, its connection is closed and its place free.
#[derive(Debug)]
pub(super) struct Client {
    /// The back, by its place in the plan.
    pub(super) back: usize,
    pub(super) stream: TcpStream,
    pub(super) address: SocketAddr,
    pub(super) place: Place,
}

impl Client {
    pub(super) fn of(accepted: Accepted) -> Self {
        let DoorId(back) = accepted.door;
        Self {
            back,
            stream: accepted.stream,
            address: accepted.client,
            place: accepted.place,
        }
    }

    /// It has closed its connection, with nothing said before.
    fn has_left(&self) -> bool {
        match self.stream.peek(&mut [0]) {
            Ok(octets) => octets == 0,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }
}

/// A client whose way is being looked for.
#[derive(Debug)]
struct Waiting {
    client: Client,
    /// The address that is being tried.
    address: String,
    /// Those that were not tried yet.
    addresses: VecDeque<String>,
}

/// All of them.
pub(super) struct Ways {
    resolver: Resolver,
    next: u32,
    /// Those that wait for the upstream's addresses.
    naming: HashMap<Ticket, Client>,
    /// Those that wait for the fabric to find one.
    resolving: HashMap<ConnectionId, Waiting>,
}

impl Ways {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            resolver: Resolver::start()?,
            next: 0,
            naming: HashMap::new(),
            resolving: HashMap::new(),
        })
    }

    /// How many clients wait.
    pub(super) fn count(&self) -> usize {
        self.naming.len() + self.resolving.len()
    }
}

impl AsFd for Ways {
    /// Readable when names were resolved.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.resolver.as_fd()
    }
}

impl<F: Fabric> Supervisor<F> {
    /// A client has come.
    pub(super) fn look_for_way(&mut self, client: Client, now: Instant) {
        let (host, port) = match &self.plan.backs[client.back].upstream {
            Upstream::Memory(name) => return self.try_all(client, [name.clone()], now),
            Upstream::Host { host, port } => (host, *port),
            Upstream::Discover(_) => {
                let discovery = self.discovery.as_mut();
                let found = discovery.map(|it| it.ways(client.back)).unwrap_or_default();
                if found.is_empty() {
                    return self.turn_away(&client, "nobody has answered in its group yet");
                }
                return self.try_all(client, found.iter().map(SocketAddr::to_string), now);
            }
        };
        if let Ok(ip) = host.parse::<IpAddr>() {
            let address = SocketAddr::new(ip, port).to_string();
            return self.try_all(client, [address], now);
        }
        let ways = &mut self.ways;
        ways.next = ways.next.wrapping_add(1);
        let ticket = Ticket(ways.next);
        if ways.resolver.ask(ticket, host, port) {
            ways.naming.insert(ticket, client);
        } else {
            self.turn_away(&client, "the resolver is stuck");
        }
    }

    /// Has the fabric look for the first of these addresses that there is a way to.
    fn try_all(
        &mut self,
        client: Client,
        addresses: impl IntoIterator<Item = String>,
        now: Instant,
    ) {
        let addresses = addresses.into_iter().collect();
        let waiting = Waiting {
            client,
            address: String::new(),
            addresses,
        };
        self.try_next(waiting, "its upstream's name has no address", now);
    }

    /// Has the fabric look for the next address. `reason` is why the last one did not do.
    fn try_next(&mut self, mut waiting: Waiting, reason: &str, now: Instant) {
        let Some(address) = waiting.addresses.pop_front() else {
            return self.turn_away(&waiting.client, reason);
        };
        waiting.address = address;
        match self.fabric.resolve(&waiting.address) {
            Ok(connection) => {
                self.ways.resolving.insert(connection, waiting);
            }
            Err(error) => {
                self.found_in_vain(waiting.client.back, &waiting.address, now);
                self.try_next(waiting, &error.to_string(), now);
            }
        }
    }

    fn turn_away(&mut self, client: &Client, reason: &str) {
        let (name, address) = (&self.plan.backs[client.back].name, client.address);
        self.complaints
            .say(format_args!("back {name}: client {address}: {reason}"));
    }

    /// The way is found.
    pub(super) fn resolved(&mut self, connection: ConnectionId, now: Instant) {
        let Some(Waiting {
            client,
            address: found,
            ..
        }) = self.ways.resolving.remove(&connection)
        else {
            return self.fabric.abandon(connection);
        };
        let (back, address) = (client.back, client.address);
        if let Err(reason) = self.seat_client(connection, client, found, now) {
            let name = &self.plan.backs[back].name;
            self.complaints
                .say(format_args!("back {name}: client {address}: {reason}"));
        }
    }

    /// There is no way for this connection; false when it was none that looked for one.
    pub(super) fn lost_way(
        &mut self,
        connection: ConnectionId,
        reason: &str,
        now: Instant,
    ) -> bool {
        let Some(waiting) = self.ways.resolving.remove(&connection) else {
            return false;
        };
        self.found_in_vain(waiting.client.back, &waiting.address, now);
        self.try_next(waiting, reason, now);
        true
    }

    /// Goes on with the clients whose upstream's name was resolved, and forgets those that left.
    pub(super) fn take_ways(&mut self, now: Instant) {
        while let Some((ticket, found)) = self.ways.resolver.take() {
            match (self.ways.naming.remove(&ticket), found) {
                // It left while it waited.
                (None, _) => {}
                (Some(client), Ok(found)) => {
                    self.try_all(client, found.iter().map(SocketAddr::to_string), now);
                }
                (Some(client), Err(error)) => {
                    let reason = format!("its upstream's name has no address: {error}");
                    self.turn_away(&client, &reason);
                }
            }
        }
        self.ways.naming.retain(|_, client| !client.has_left());
        let left = |waiting: &Waiting| waiting.client.has_left();
        let gone = self.ways.resolving.extract_if(|_, waiting| left(waiting));
        for (connection, _) in gone {
            self.fabric.abandon(connection);
        }
    }

    /// Forgets all who wait.
    pub(super) fn forget_ways(&mut self) {
        self.ways.naming.clear();
        for (connection, _) in self.ways.resolving.drain() {
            self.fabric.abandon(connection);
        }
    }
}
