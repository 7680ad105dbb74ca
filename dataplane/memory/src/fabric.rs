//! The memory fabric as a control thread sees it.

use crate::barrier;
use crate::datagram::{Node, Subnet};
use crate::desk::Hatch;
use crate::error::Error;
use crate::port::{self, MemoryPort};
use crate::queue_pair::Endpoint;
use crate::registry::{Control, Registry};
use crate::settings::Settings;
use crate::shared::Shared;
use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::connect::{
    ConnectionId, Device, Event, Fabric, ListenerId, PortId, PortWanted,
};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The one device there is.
pub(crate) const DEVICE: &str = "memory";

/// A fabric in this process. Clones are the same fabric, each with events of its own: those of
/// the listeners it made and the connections it began. Dropping a clone ends its listeners;
/// its connections go on, unwatched.
#[derive(Debug)]
pub struct MemoryFabric {
    registry: Arc<Mutex<Registry>>,
    control: Control,
    hatch: Arc<Hatch>,
    /// Losses that have been looked at.
    seen: u32,
    subnet: Arc<Mutex<Subnet>>,
    node: Node,
}

impl MemoryFabric {
    /// A fabric with nothing in it.
    #[must_use]
    pub fn new() -> MemoryFabric {
        barrier::prepare();
        MemoryFabric::of(Arc::default(), Arc::default())
    }

    fn of(registry: Arc<Mutex<Registry>>, subnet: Arc<Mutex<Subnet>>) -> MemoryFabric {
        let (control, hatch) = lock(&registry).add_control();
        let node = lock(&subnet).add_node(Arc::clone(&hatch));
        MemoryFabric {
            registry,
            control,
            hatch,
            seen: 0,
            subnet,
            node,
        }
    }

    /// Opens a port as [`Fabric::open_port`] does, with everything that can be set.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] when a setting is impossible, [`Error::System`] when memory or
    /// descriptors run out.
    pub fn open_port_with(
        &self,
        arena: Arc<Arena>,
        settings: &Settings,
    ) -> Result<(PortId, MemoryPort), Error> {
        if let Some(which) = settings.refusal() {
            return Err(Error::Setting(which));
        }
        let number = lock(&self.registry).next_port();
        let shared = Shared::new(number, arena, settings.windows, settings.queue_pairs);
        let shared = Arc::new(shared.map_err(Error::System)?);
        let port = MemoryPort::new(Arc::clone(&shared), Arc::clone(&self.registry), settings);
        let port = port.map_err(Error::System)?;
        Ok((lock(&self.registry).add_port(shared, settings), port))
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        lock(&self.registry)
    }

    pub(crate) fn subnet(&self) -> MutexGuard<'_, Subnet> {
        lock(&self.subnet)
    }

    pub(crate) fn shared_subnet(&self) -> &Arc<Mutex<Subnet>> {
        &self.subnet
    }

    pub(crate) fn node(&self) -> Node {
        self.node
    }
}

fn lock<T>(books: &Mutex<T>) -> MutexGuard<'_, T> {
    books.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for MemoryFabric {
    fn default() -> MemoryFabric {
        MemoryFabric::new()
    }
}

impl Clone for MemoryFabric {
    fn clone(&self) -> MemoryFabric {
        MemoryFabric::of(Arc::clone(&self.registry), Arc::clone(&self.subnet))
    }
}

impl Drop for MemoryFabric {
    fn drop(&mut self) {
        self.registry().forget_control(self.control);
        self.subnet().remove_node(self.node);
    }
}

impl Fabric for MemoryFabric {
    type Port = MemoryPort;
    type Error = Error;

    fn devices(&self) -> Vec<Device> {
        vec![Device {
            name: DEVICE.to_owned(),
            node: None,
            up: true,
            capabilities: port::at_best(),
        }]
    }

    fn open_port(
        &mut self,
        arena: Arc<Arena>,
        wanted: &PortWanted,
    ) -> Result<(PortId, MemoryPort), Error> {
        if let Some(name) = wanted.device.as_ref().filter(|name| *name != DEVICE) {
            return Err(Error::NoDevice(name.clone()));
        }
        self.open_port_with(arena, &Settings::wanted(wanted))
    }

    fn listen(&mut self, address: &str) -> Result<ListenerId, Error> {
        self.registry().listen(self.control, address)
    }

    fn address(&self, listener: ListenerId) -> Option<String> {
        self.registry().address(listener)
    }

    fn resolve(&mut self, address: &str) -> Result<ConnectionId, Error> {
        self.registry().resolve(self.control, address)
    }

    fn may_serve(&self, connection: ConnectionId, port: PortId) -> bool {
        self.registry().may_serve(connection, port)
    }

    fn take(&mut self, connection: ConnectionId, port: PortId) -> Result<Endpoint, Error> {
        self.registry().take(connection, port)
    }

    fn connect(&mut self, connection: ConnectionId, private_data: &[u8]) -> Result<(), Error> {
        self.registry().connect(connection, private_data)
    }

    fn accept(&mut self, connection: ConnectionId, private_data: &[u8]) -> Result<(), Error> {
        self.registry().accept(connection, private_data)
    }

    fn reject(&mut self, connection: ConnectionId, reason: &str) -> Result<(), Error> {
        self.registry().reject(connection, reason)
    }

    fn abandon(&mut self, connection: ConnectionId) {
        self.registry().abandon(connection);
    }

    fn poll(&mut self) -> Option<Event> {
        let event = self.registry().next_event(self.control);
        if event.is_some() {
            return event;
        }
        self.hatch.hush();
        let losses = self.hatch.losses();
        let mut registry = lock(&self.registry);
        if losses != self.seen {
            self.seen = losses;
            registry.notice_losses(self.control);
        }
        registry.next_event(self.control)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.hatch.descriptor()
    }
}
