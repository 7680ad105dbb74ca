//! The memory fabric as a control thread sees it.

use crate::barrier;
use crate::error::Error;
use crate::link::Losses;
use crate::port::MemoryPort;
use crate::queue_pair::Endpoint;
use crate::registry::{Control, Registry};
use crate::settings::Settings;
use crate::shared::Shared;
use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::connect::{ConnectionId, Event, Fabric, ListenerId, PortId};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A fabric in this process. Clones are the same fabric, each with events of its own: those of
/// the listeners it made and the connections it opened. Dropping a clone ends its listeners;
/// its connections go on, unwatched.
#[derive(Debug)]
pub struct MemoryFabric {
    registry: Arc<Mutex<Registry>>,
    control: Control,
    losses: Arc<Losses>,
    /// Losses that have been looked at.
    seen: u32,
}

impl MemoryFabric {
    /// A fabric with nothing in it.
    #[must_use]
    pub fn new() -> MemoryFabric {
        barrier::prepare();
        MemoryFabric::of(Arc::default())
    }

    fn of(registry: Arc<Mutex<Registry>>) -> MemoryFabric {
        let (control, losses) = lock(&registry).add_control();
        MemoryFabric {
            registry,
            control,
            losses,
            seen: 0,
        }
    }

    /// Opens a port over an arena, which it registers as a whole.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] when a setting is impossible, [`Error::System`] when memory or
    /// descriptors run out.
    pub fn open_port(
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
}

fn lock(registry: &Mutex<Registry>) -> MutexGuard<'_, Registry> {
    registry.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for MemoryFabric {
    fn default() -> MemoryFabric {
        MemoryFabric::new()
    }
}

impl Clone for MemoryFabric {
    fn clone(&self) -> MemoryFabric {
        MemoryFabric::of(Arc::clone(&self.registry))
    }
}

impl Drop for MemoryFabric {
    fn drop(&mut self) {
        self.registry().forget_control(self.control);
    }
}

impl Fabric for MemoryFabric {
    type Port = MemoryPort;
    type Error = Error;

    fn listen(&mut self, address: &str) -> Result<ListenerId, Error> {
        self.registry().listen(self.control, address)
    }

    fn open(&mut self, port: PortId) -> Result<(ConnectionId, Endpoint), Error> {
        self.registry().open(self.control, port)
    }

    fn connect(
        &mut self,
        connection: ConnectionId,
        address: &str,
        private_data: &[u8],
    ) -> Result<(), Error> {
        self.registry().connect(connection, address, private_data)
    }

    fn take(&mut self, connection: ConnectionId, port: PortId) -> Result<Endpoint, Error> {
        self.registry().take(connection, port)
    }

    fn accept(&mut self, connection: ConnectionId, private_data: &[u8]) -> Result<(), Error> {
        self.registry().accept(connection, private_data)
    }

    fn reject(&mut self, connection: ConnectionId, reason: &str) -> Result<(), Error> {
        self.registry().reject(connection, reason)
    }

    fn poll(&mut self) -> Option<Event> {
        let losses = self.losses.0.load(Ordering::Acquire);
        if losses != self.seen {
            self.seen = losses;
            self.registry().notice_losses(self.control);
        }
        self.registry().next_event(self.control)
    }
}
