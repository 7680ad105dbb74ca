//! What can go wrong when connections are made.

use rpcrdma_fabric::connect::{ConnectionId, PortId};

/// Why the control thread did not get what it asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A setting is impossible.
    Setting(&'static str),
    /// The system has no memory or no descriptors.
    System(std::io::Error),
    /// Somebody listens at this address already.
    InUse(String),
    /// Not an address: any text that is not empty is one.
    Address(String),
    /// No such device: there is one, called `memory`.
    NoDevice(String),
    /// No such port, or its lcore is gone.
    NoPort(PortId),
    /// No such connection; it may have been lost.
    NoConnection(ConnectionId),
    /// The peer has gone meanwhile.
    Over(ConnectionId),
    /// Calls came in the wrong order.
    Order(&'static str),
    /// More private data than a connection can carry, octets.
    PrivateData(usize),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Setting(which) => write!(f, "memory fabric: {which}"),
            Error::System(_) => {
                write!(f, "memory fabric: the system refuses memory or descriptors")
            }
            Error::InUse(address) => write!(f, "memory fabric: {address} is in use"),
            Error::Address(address) => write!(f, "memory fabric: {address:?} is not an address"),
            Error::NoDevice(name) => write!(f, "memory fabric: no device {name:?}"),
            Error::NoPort(port) => write!(f, "memory fabric: no port {}", port.0),
            Error::NoConnection(id) => write!(f, "memory fabric: no connection {}", id.0),
            Error::Over(id) => write!(f, "memory fabric: the peer of connection {} has gone", id.0),
            Error::Order(what) => write!(f, "memory fabric: {what}"),
            Error::PrivateData(len) => write!(
                f,
                "memory fabric: {len} octets of private data, 512 at most"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::System(error) => Some(error),
            _ => None,
        }
    }
}
