//! What can go wrong when connections are made, by who is to blame.

use rdma_core_sys::Absent;
use rpcrdma_fabric::connect::{ConnectionId, PortId};
use rpcrdma_fabric::names::Unasked;
use std::fmt;
use std::io;

/// A call of rdma-core or the kernel that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its name.
    pub call: &'static str,
    /// What errno was.
    pub errno: i32,
}

impl Fault {
    /// A call that failed just now, in this thread, and said why in errno.
    #[cold]
    pub(crate) fn last(call: &'static str) -> Fault {
        let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
        Fault { call, errno }
    }

    /// What a call of verbs returned: errno itself, or -1 and errno is in its place.
    pub(crate) fn check(call: &'static str, returned: i32) -> Result<(), Fault> {
        match returned {
            0 => Ok(()),
            -1 => Err(Fault::last(call)),
            errno => Err(Fault {
                call,
                errno: errno.abs(),
            }),
        }
    }
}

impl Fault {
    /// It is the peer, or the way there, that does not want.
    pub(crate) fn is_of_peer(&self) -> bool {
        matches!(
            self.errno,
            libc::ECONNREFUSED
                | libc::ECONNRESET
                | libc::ECONNABORTED
                | libc::ETIMEDOUT
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = io::Error::from_raw_os_error(self.errno);
        write!(f, "{}: {error}", self.call)?;
        let pins = self.call == "ibv_reg_mr";
        if pins && [libc::ENOMEM, libc::EAGAIN, libc::EPERM].contains(&self.errno) {
            f.write_str(": memory of devices is locked, see LimitMEMLOCK= and ulimit -l")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

/// Why the control thread did not get what it asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no RDMA here.
    Absent(Absent),
    /// No device of this name.
    NoDevice(String),
    /// A device cannot do what a port needs.
    Unfit {
        /// Its name.
        device: String,
        /// What it lacks.
        lacks: &'static str,
    },
    /// rdma-core or the kernel refused.
    Fault(Fault),
    /// The system has no memory or no descriptors.
    System(io::Error),
    /// Not an address of this fabric's form, `192.0.2.1:20049` or `[2001:db8::1]:20049`.
    Address(String),
    /// No such port, or it is gone.
    NoPort(PortId),
    /// The port has as many queue pairs as it was opened for, or its completion queue has no
    /// room for more.
    PortFull(PortId),
    /// The connection leads to another device than the port's.
    OtherDevice(PortId),
    /// The link that the connection goes by is down.
    LinkDown,
    /// No such connection; it may have been lost.
    NoConnection(ConnectionId),
    /// Calls came in the wrong order.
    Order(&'static str),
    /// More private data than a connection can carry, octets.
    PrivateData {
        /// As many were given.
        octets: usize,
        /// As many it takes.
        most: usize,
    },
    /// More connections are being begun than is sensible.
    Busy(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Absent(absent) => absent.fmt(f),
            Error::NoDevice(name) => write!(f, "no RDMA device {name:?}"),
            Error::Unfit { device, lacks } => write!(f, "RDMA device {device}: {lacks}"),
            Error::Fault(fault) => fault.fmt(f),
            Error::System(_) => f.write_str("the system refuses memory or descriptors"),
            Error::Address(address) => {
                write!(
                    f,
                    "{address:?} is not an address and port, as 192.0.2.1:20049"
                )
            }
            Error::NoPort(port) => write!(f, "no port {}", port.0),
            Error::PortFull(port) => write!(f, "port {} has no room for a queue pair", port.0),
            Error::OtherDevice(port) => {
                write!(
                    f,
                    "port {} is on another device than the connection",
                    port.0
                )
            }
            Error::LinkDown => f.write_str("the link is down"),
            Error::NoConnection(id) => write!(f, "no connection {}", id.0),
            Error::Order(what) => f.write_str(what),
            Error::PrivateData { octets, most } => {
                write!(f, "{octets} octets of private data, {most} at most")
            }
            Error::Busy(what) => f.write_str(what),
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

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error::Fault(fault)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_read_from_either_convention() {
        assert_eq!(Fault::check("call", 0), Ok(()));
        let fault = Fault::check("ibv_modify_qp", libc::EINVAL).expect_err("failed");
        assert_eq!(
            fault.to_string(),
            "ibv_modify_qp: Invalid argument (os error 22)"
        );
    }
}
