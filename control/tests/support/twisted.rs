//! The memory fabric with a twist: a fabric that forwards everything, but for what a test has
//! do something else.

use rpcrdma_fabric::Port;
use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::connect::{
    ConnectionId, Device, Event, Fabric, ListenerId, PortId, PortWanted,
};
use rpcrdma_memory::{Error, MemoryFabric, MemoryPort};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// What a test has do something else: as [`Fabric`]'s functions, with the memory fabric below.
/// Where nothing is said, that one does it.
pub(crate) trait Twist: Send {
    fn devices(&self, inner: &MemoryFabric) -> Vec<Device> {
        inner.devices()
    }

    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    fn open_port(
        &mut self,
        inner: &mut MemoryFabric,
        arena: Arc<Arena>,
        wanted: &PortWanted,
    ) -> Result<(PortId, MemoryPort), Error> {
        inner.open_port(arena, wanted)
    }

    fn resolve(&mut self, inner: &mut MemoryFabric, address: &str) -> Result<ConnectionId, Error> {
        inner.resolve(address)
    }

    fn may_serve(&self, inner: &MemoryFabric, connection: ConnectionId, port: PortId) -> bool {
        inner.may_serve(connection, port)
    }

    fn abandon(&mut self, inner: &mut MemoryFabric, connection: ConnectionId) {
        inner.abandon(connection);
    }

    fn poll(&mut self, inner: &mut MemoryFabric) -> Option<Event> {
        inner.poll()
    }
}

/// The fabric.
pub(crate) struct Twisted<T> {
    pub(crate) inner: MemoryFabric,
    twist: T,
}

impl<T> Twisted<T> {
    pub(crate) fn new(twist: T) -> Self {
        Self {
            inner: MemoryFabric::new(),
            twist,
        }
    }
}

impl<T: Twist> Fabric for Twisted<T> {
    type Port = MemoryPort;
    type Error = Error;

    fn devices(&self) -> Vec<Device> {
        self.twist.devices(&self.inner)
    }

    fn warnings(&self) -> Vec<String> {
        self.twist.warnings()
    }

    fn open_port(
        &mut self,
        arena: Arc<Arena>,
        wanted: &PortWanted,
    ) -> Result<(PortId, MemoryPort), Error> {
        self.twist.open_port(&mut self.inner, arena, wanted)
    }

    fn listen(&mut self, address: &str) -> Result<ListenerId, Error> {
        self.inner.listen(address)
    }

    fn address(&self, listener: ListenerId) -> Option<String> {
        self.inner.address(listener)
    }

    fn resolve(&mut self, address: &str) -> Result<ConnectionId, Error> {
        self.twist.resolve(&mut self.inner, address)
    }

    fn may_serve(&self, connection: ConnectionId, port: PortId) -> bool {
        self.twist.may_serve(&self.inner, connection, port)
    }

    fn take(
        &mut self,
        connection: ConnectionId,
        port: PortId,
    ) -> Result<<MemoryPort as Port>::Endpoint, Error> {
        self.inner.take(connection, port)
    }

    fn connect(&mut self, connection: ConnectionId, private_data: &[u8]) -> Result<(), Error> {
        self.inner.connect(connection, private_data)
    }

    fn accept(&mut self, connection: ConnectionId, private_data: &[u8]) -> Result<(), Error> {
        self.inner.accept(connection, private_data)
    }

    fn reject(&mut self, connection: ConnectionId, reason: &str) -> Result<(), Error> {
        self.inner.reject(connection, reason)
    }

    fn abandon(&mut self, connection: ConnectionId) {
        self.twist.abandon(&mut self.inner, connection);
    }

    fn poll(&mut self) -> Option<Event> {
        self.twist.poll(&mut self.inner)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }
}
