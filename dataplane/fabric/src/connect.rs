//! How the control thread makes connections: listen, connect, accept, reject.
//!
//! Order on both sides: the queue pair is made here, adopted by an lcore, which posts its
//! receives; then `connect` or `accept`; then [`Event::Established`] and the first Send.

use crate::Port;

/// A port, as the control thread names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortId(pub u32);

/// A connection from its first step to its end, as the control thread names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId(pub u64);

/// A listener, as the control thread names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId(pub u32);

/// Something that happened to connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A peer asks for a connection: answer with [`Fabric::take`] then [`Fabric::accept`], or
    /// [`Fabric::reject`].
    Request {
        /// Where it came in.
        listener: ListenerId,
        /// The new connection.
        connection: ConnectionId,
        /// Who asks, in the fabric's own form of address.
        peer: String,
        /// What the peer sent with the request (RFC 8797 may be in it).
        private_data: Vec<u8>,
    },
    /// Both sides may send now.
    Established {
        /// Which connection.
        connection: ConnectionId,
        /// What the accepting side sent; empty on the accepting side itself.
        private_data: Vec<u8>,
    },
    /// The peer, or the fabric, said no. The connection is over.
    Rejected {
        /// Which connection.
        connection: ConnectionId,
        /// Why, for a person.
        reason: String,
    },
    /// An established connection is gone.
    Disconnected {
        /// Which connection.
        connection: ConnectionId,
    },
}

/// A fabric as the control thread sees it. Never called by an lcore.
pub trait Fabric {
    /// What its lcores poll.
    type Port: Port + Send;
    /// What can go wrong, for a person.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Listens at an address in the fabric's own form.
    fn listen(&mut self, address: &str) -> Result<ListenerId, Self::Error>;

    /// Makes a queue pair on `port` for a connection to come.
    fn open(
        &mut self,
        port: PortId,
    ) -> Result<(ConnectionId, <Self::Port as Port>::Endpoint), Self::Error>;

    /// Asks the listener at `address` for a connection.
    fn connect(
        &mut self,
        connection: ConnectionId,
        address: &str,
        private_data: &[u8],
    ) -> Result<(), Self::Error>;

    /// Makes the queue pair, on `port`, for a connection that a peer asked for.
    fn take(
        &mut self,
        connection: ConnectionId,
        port: PortId,
    ) -> Result<<Self::Port as Port>::Endpoint, Self::Error>;

    /// Says yes to a request that was taken.
    fn accept(&mut self, connection: ConnectionId, private_data: &[u8]) -> Result<(), Self::Error>;

    /// Says no to a request, taken or not.
    fn reject(&mut self, connection: ConnectionId, reason: &str) -> Result<(), Self::Error>;

    /// The next thing that happened, without waiting.
    fn poll(&mut self) -> Option<Event>;
}
