//! What can go wrong when connections are made, for a person.

use rpcrdma_fabric::connect::{ConnectionId, PortId};
use rpcrdma_fabric::names::Unasked;
use std::fmt;
use std::io;

/// Why something could not be done.
#[derive(Debug)]
pub enum Error {
    /// SCTP cannot be had, or has no room.
    Sctp(rpcrdma_sctp::Error),
    /// The operating system refused something.
    System(io::Error),
    /// No device of this name: there is one, and its name is `iwarp-sctp`.
    NoDevice(String),
    /// Not an IP address and port, nor a host and port.
    Address(String),
    /// There is no such connection, or no more.
    NoConnection(ConnectionId),
    /// There is no such port, or no more.
    NoPort(PortId),
    /// The port has as many queue pairs as it can have.
    PortFull(PortId),
    /// The association that the request came on is another port's.
    OtherPort(PortId),
    /// Steps out of order; what the order is.
    Order(&'static str),
    /// Too much of something is under way already.
    Busy(&'static str),
    /// More private data than a session's first message takes.
    PrivateData {
        /// Octets there were.
        octets: usize,
        /// Octets it takes.
        most: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Sctp(error) => error.fmt(f),
            Error::System(error) => error.fmt(f),
            Error::NoDevice(name) => write!(f, "no device {name}: there is {}", crate::DEVICE),
            Error::Address(text) => {
                write!(f, "{text:?}: neither an IP address nor a host with a port")
            }
            Error::NoConnection(id) => write!(f, "connection {}: there is none", id.0),
            Error::NoPort(id) => write!(f, "port {}: there is none", id.0),
            Error::PortFull(id) => write!(f, "port {}: it has no queue pair left", id.0),
            Error::OtherPort(id) => write!(f, "port {}: the peer's association is not on it", id.0),
            Error::Order(order) => f.write_str(order),
            Error::Busy(what) => f.write_str(what),
            Error::PrivateData { octets, most } => {
                write!(f, "{octets} octets of private data; at most {most}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Sctp(error) => error.source(),
            Error::System(error) => error.source(),
            _ => None,
        }
    }
}

impl From<rpcrdma_sctp::Error> for Error {
    fn from(error: rpcrdma_sctp::Error) -> Error {
        Error::Sctp(error)
    }
}

impl From<Unasked> for Error {
    fn from(unasked: Unasked) -> Error {
        match unasked {
            Unasked::TooMany => Error::Busy(Unasked::TOO_MANY),
            Unasked::System(error) => Error::System(error),
        }
    }
}
