//! The fabric as a control thread sees it.
//!
//! One object, used by one thread. It makes SCTP endpoints and hands them to ports, and counts
//! what is out; associations and sessions are the ports', which say what happens to them.
//! Everything comes in behind one bell that ports and endpoints ring.
//!
//! - `connections.rs`: the way of each connection, by the table of [`rpcrdma_fabric::stage`]
//! - `ports.rs`: making a port, and what it says
//! - `listeners.rs`: where peers are heard

mod connections;
mod listeners;
mod ports;

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::port::{IwarpPort, at_best};
use crate::settings::Settings;
use crate::stack::Stack;
use connections::Connection;
use listeners::Listener;
use ports::Berth;
use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::bell::Bell;
use rpcrdma_fabric::connect::{
    ConnectionId, Device, Event, Fabric, ListenerId, PortId, PortWanted,
};
use rpcrdma_fabric::names::Names;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// The fabric of hosts without RDMA devices, on the SCTP of a [`Stack`].
///
/// Dropping it ends what is being made. Connections that stand go on, unwatched, until their ports
/// are dropped; requests of peers are turned away.
pub struct IwarpFabric<S: Stack> {
    stack: S,
    settings: Settings,
    /// The links of the stack are up, as was last told.
    up: bool,
    /// What happened and was not asked for yet.
    events: VecDeque<Event>,
    connections: BTreeMap<ConnectionId, Connection>,
    listeners: BTreeMap<ListenerId, Listener<S::Llp>>,
    ports: BTreeMap<PortId, Berth<S::Llp>>,
    names: Names,
    /// Connections that were begun to an address.
    known: VecDeque<(ConnectionId, SocketAddr)>,
    /// Numbers of everything, given once.
    numbers: u64,
    bell: Arc<Bell>,
}

impl<S: Stack> IwarpFabric<S> {
    /// The fabric on this SCTP.
    ///
    /// # Errors
    ///
    /// [`Error::System`]: no descriptor is left.
    pub fn new(mut stack: S, settings: Settings) -> Result<IwarpFabric<S>, Error> {
        Ok(IwarpFabric {
            up: stack.is_up(),
            stack,
            settings,
            events: VecDeque::new(),
            connections: BTreeMap::new(),
            listeners: BTreeMap::new(),
            ports: BTreeMap::new(),
            names: Names::new(),
            known: VecDeque::new(),
            numbers: 0,
            bell: Arc::new(Bell::new().map_err(Error::System)?),
        })
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// A number for what is counted in 32 bits: ports and listeners are few.
    fn small_number(&mut self) -> u32 {
        u32::try_from(self.number()).unwrap_or(u32::MAX)
    }
}

impl<S: Stack> fmt::Debug for IwarpFabric<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IwarpFabric")
            .field("ports", &self.ports.len())
            .field("listeners", &self.listeners.len())
            .field("connections", &self.connections.len())
            .finish_non_exhaustive()
    }
}

impl<S: Stack> Fabric for IwarpFabric<S> {
    type Port = IwarpPort<S::Llp>;
    type Error = Error;

    fn devices(&self) -> Vec<Device> {
        vec![Device {
            name: crate::DEVICE.to_owned(),
            node: None,
            up: self.up,
            capabilities: at_best(),
        }]
    }

    fn open_port(
        &mut self,
        arena: Arc<Arena>,
        wanted: &PortWanted,
    ) -> Result<(PortId, IwarpPort<S::Llp>), Error> {
        self.make_port(arena, wanted)
    }

    fn listen(&mut self, address: &str) -> Result<ListenerId, Error> {
        self.add_listener(address)
    }

    fn address(&self, listener: ListenerId) -> Option<String> {
        Some(self.listeners.get(&listener)?.address().to_string())
    }

    fn resolve(&mut self, address: &str) -> Result<ConnectionId, Error> {
        self.begin(address)
    }

    fn may_serve(&self, connection: ConnectionId, port: PortId) -> bool {
        self.check_seat(connection, port).is_ok()
    }

    fn is_full(&self, connection: ConnectionId, port: PortId) -> bool {
        matches!(self.check_seat(connection, port), Err(Error::PortFull(_)))
    }

    fn take(&mut self, connection: ConnectionId, port: PortId) -> Result<Endpoint, Error> {
        self.seat(connection, port)
    }

    fn connect(&mut self, connection: ConnectionId, private_data: &[u8]) -> Result<(), Error> {
        self.ask(connection, private_data)
    }

    fn accept(&mut self, connection: ConnectionId, private_data: &[u8]) -> Result<(), Error> {
        self.say_yes(connection, private_data)
    }

    fn reject(&mut self, connection: ConnectionId, reason: &str) -> Result<(), Error> {
        self.say_no(connection, reason)
    }

    fn abandon(&mut self, connection: ConnectionId) {
        self.forget(connection);
    }

    fn poll(&mut self) -> Option<Event> {
        if self.events.is_empty() {
            self.hear();
        }
        self.events.pop_front()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bell.as_fd())
    }
}
