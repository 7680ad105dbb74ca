//! The fabric as a control thread sees it.
//!
//! One object, used by one thread. Everything it is told comes from descriptors that are read
//! without waiting, behind one that the control thread polls: the connection manager's channel,
//! each device's own events, and the bell that ports ring. What came is turned into
//! [`Event`]s here, and into what the ports must know.
//!
//! - `connections.rs`: the way of each connection, by the table of [`rpcrdma_fabric::stage`]
//! - `resolve.rs`: its first steps, where it is begun here
//! - `listeners.rs`: where peers are heard
//! - `ports.rs`: making a port, and what it says
//! - `devices.rs`: devices that come, go, and lose their links
//! - `changes.rs`: what of their links whoever has datagrams wants to know
//! - `look.rs`: reading it all

mod assemble;
mod changes;
mod connections;
mod devices;
mod listeners;
mod look;
mod ports;
mod resolve;

use crate::cm::Channel;
use crate::device::{Leases, Met};
use crate::error::Error;
use crate::expose::Registrar;
use crate::settings::Settings;
use crate::{Endpoint, VerbsPort};
use connections::Connection;
pub(crate) use devices::Known;
use listeners::Listener;
use ports::Berth;
use rdma_core_sys::{Absent, Library};
use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::bell::Bell;
use rpcrdma_fabric::connect::{
    ConnectionId, Device, Event, Fabric, ListenerId, PortId, PortWanted,
};
use rpcrdma_fabric::datagram::{LinkChange, LinkName};
use rpcrdma_fabric::names::Names;
use rustix::event::epoll;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

/// The fabric of this machine's RDMA devices.
///
/// Dropping it ends listeners and what is being made. Connections that stand go on, unwatched,
/// until their ports are dropped.
pub struct VerbsFabric {
    settings: Settings,
    /// What happened and was not asked for yet.
    events: VecDeque<Event>,
    connections: HashMap<ConnectionId, Connection>,
    listeners: HashMap<ListenerId, Listener>,
    ports: HashMap<PortId, Berth>,
    devices: Vec<Known>,
    names: Names,
    /// Started with the first port that exposes by regions.
    registrar: Option<Registrar>,
    /// Numbers of everything, given once.
    numbers: u64,
    /// When it was last looked which devices are there, and which of them need no more looking at.
    looked: Instant,
    met: Met,
    /// Changes of links that were not asked for yet, each once.
    link_changes: VecDeque<(LinkName, LinkChange)>,
    bell: Arc<Bell>,
    epoll: OwnedFd,
    channel: Arc<Channel>,
    /// Of the devices above: end after all that was made of them by this thread.
    leases: Leases,
    library: &'static Library,
}

impl VerbsFabric {
    /// The fabric of the devices that `settings` allows.
    ///
    /// # Errors
    ///
    /// [`Error::Absent`] where there is no RDMA, [`Error::NoDevice`] where the settings name a
    /// device that is not there, [`Error::Fault`] or [`Error::System`] where something is refused.
    pub fn new(settings: Settings) -> Result<VerbsFabric, Error> {
        let library = Library::load().map_err(Error::Absent)?;
        let channel = Channel::open(library)?;
        let bell = Arc::new(Bell::new().map_err(Error::System)?);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| Error::System(error.into()))?;
        let mut fabric = VerbsFabric {
            settings,
            events: VecDeque::new(),
            connections: HashMap::new(),
            listeners: HashMap::new(),
            ports: HashMap::new(),
            devices: Vec::new(),
            names: Names::new(),
            registrar: None,
            numbers: 0,
            looked: Instant::now(),
            met: Met::default(),
            link_changes: VecDeque::new(),
            bell,
            epoll,
            channel,
            leases: Leases::default(),
            library,
        };
        fabric.watch(fabric.bell.as_fd(), look::BELL)?;
        fabric.watch(fabric.channel.as_fd(), look::CHANNEL)?;
        let found = fabric.find_devices();
        fabric.note_met();
        if let Some(name) = fabric.missing() {
            return Err(found.err().unwrap_or(Error::NoDevice(name)));
        }
        if fabric.devices.is_empty() {
            return Err(found.err().unwrap_or(Error::Absent(Absent::NoDevice)));
        }
        Ok(fabric)
    }

    /// A device that the settings name and that is not there.
    fn missing(&self) -> Option<String> {
        let there = |name: &&String| {
            self.devices
                .iter()
                .any(|known| known.device.name() == *name)
        };
        self.settings
            .devices
            .iter()
            .find(|name| !there(name))
            .cloned()
    }

    pub(crate) fn library(&self) -> &'static Library {
        self.library
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

impl Drop for VerbsFabric {
    fn drop(&mut self) {
        let used = |known: &Known| Arc::strong_count(&known.device) > 1;
        if self.devices.iter().any(used) {
            // Ports are left, whose objects are in contexts of these leases: they never end.
            std::mem::forget(std::mem::take(&mut self.leases));
        }
    }
}

impl fmt::Debug for VerbsFabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerbsFabric")
            .field("devices", &self.devices)
            .field("ports", &self.ports.len())
            .field("listeners", &self.listeners)
            .field("connections", &self.connections.len())
            .finish_non_exhaustive()
    }
}

impl Fabric for VerbsFabric {
    type Port = VerbsPort;
    type Error = Error;

    fn devices(&self) -> Vec<Device> {
        self.list_devices()
    }

    fn warnings(&self) -> Vec<String> {
        let there = self.devices.iter().filter(|known| !known.gone);
        let warning = |known: &Known| known.limits.warning(known.device.name());
        there.filter_map(warning).collect()
    }

    fn open_port(
        &mut self,
        arena: Arc<Arena>,
        wanted: &PortWanted,
    ) -> Result<(PortId, VerbsPort), Error> {
        self.make_port(&arena, wanted)
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
            self.look();
        }
        self.events.pop_front()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.as_fd())
    }
}
