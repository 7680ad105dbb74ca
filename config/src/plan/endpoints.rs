//! Fronts, backs, services and the embedded server.

use super::{Fabric, Transport};
use crate::allow::{Networks, Peers};
use crate::link::Discover;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// `[[front]]`: peers arrive by RPC-over-RDMA, their calls go to TCP backends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// Unique among fronts, backs and services; a label in metrics and logs.
    pub name: String,
    /// Where it listens.
    pub fabric: Fabric,
    /// The address there, in the fabric's own form.
    pub listen: String,
    /// Peers that may connect.
    pub allow: Peers,
    /// At least one. No program belongs to two.
    pub backends: Vec<Backend>,
    /// How to speak to its peers.
    pub transport: Transport,
}

impl Front {
    /// The backend of an RPC program: the one that lists it, else the one for all others.
    /// `None`: the program is not served (PROG_UNAVAIL, RFC 5531 section 9).
    #[must_use]
    pub fn backend_of(&self, program: u32) -> Option<usize> {
        let listed = |backend: &Backend| match &backend.programs {
            Programs::Listed(numbers) => numbers.contains(&program),
            Programs::Others => false,
        };
        let others = |backend: &Backend| backend.programs == Programs::Others;
        let place = self.backends.iter().position(listed);
        place.or_else(|| self.backends.iter().position(others))
    }
}

/// `[[front.backend]]`: a TCP server behind a front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// The RPC programs that go there.
    pub programs: Programs,
    /// Where it is.
    pub address: BackendAddress,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// Idle time before the first keepalive probe; `None`: no keepalive.
    pub keepalive: Option<Duration>,
    /// Which source port the backend sees.
    pub source_port: SourcePort,
}

/// The RPC programs of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Programs {
    /// These numbers.
    Listed(Vec<u32>),
    /// All that no other backend of the front lists.
    Others,
}

/// Where a backend is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendAddress {
    /// A TCP address; the host is a name, to be resolved at each connection, or a number.
    Tcp {
        /// Without the brackets of IPv6.
        host: String,
        /// Not zero.
        port: u16,
    },
    /// The embedded server of this plan, wherever it came to listen.
    Export,
}

impl fmt::Display for BackendAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackendAddress::Tcp { host, port } => host_port(f, host, *port),
            BackendAddress::Export => f.write_str("export"),
        }
    }
}

/// Which source port a backend sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourcePort {
    /// Any; the same one again after a reconnection where it is free.
    Any,
    /// Below 1024, as servers with the `secure` export option want it (CAP_NET_BIND_SERVICE).
    Privileged,
}

/// `[[back]]`: TCP clients arrive, their calls go to an upstream by RPC-over-RDMA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Back {
    /// Unique among fronts, backs and services; a label in metrics and logs.
    pub name: String,
    /// The TCP listener. Port 0: chosen by the system.
    pub listen: SocketAddr,
    /// Clients that may connect.
    pub allow: Networks,
    /// Idle time before the first keepalive probe to a client; `None`: no keepalive.
    pub keepalive: Option<Duration>,
    /// The fabric that leads to the upstream.
    pub fabric: Fabric,
    /// Where that is.
    pub upstream: Upstream,
    /// How to speak to the upstream.
    pub transport: Transport,
}

/// Where the upstream of a back listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// In the memory fabric: the address of a front or a service of this plan.
    Memory(String),
    /// In a fabric with IP addresses; the host is a name, to be resolved at each connection, or
    /// a number.
    Host {
        /// Without the brackets of IPv6.
        host: String,
        /// Not zero.
        port: u16,
    },
    /// In a fabric with IP addresses: whoever answers.
    Discover(Discover),
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Upstream::Discover(discover) => discover.fmt(f),
            Upstream::Memory(name) => f.write_str(name),
            Upstream::Host { host, port } => host_port(f, host, *port),
        }
    }
}

fn host_port(f: &mut fmt::Formatter<'_>, host: &str, port: u16) -> fmt::Result {
    match host.contains(':') {
        true => write!(f, "[{host}]:{port}"),
        false => write!(f, "{host}:{port}"),
    }
}

/// `[[service]]`: a listener of the built-in benchmark program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Unique among fronts, backs and services; a label in metrics and logs.
    pub name: String,
    /// Where it listens.
    pub fabric: Fabric,
    /// The address there, in the fabric's own form.
    pub listen: String,
    /// Peers that may connect.
    pub allow: Peers,
    /// How to speak to its peers.
    pub transport: Transport,
}

/// `[export]`: the embedded NFSv3 server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// What it serves: an absolute path.
    pub directory: PathBuf,
    /// Where NFS and MOUNT are served, both on one port: a loopback address, for the server
    /// has no access control of its own. Port 0: chosen by the system.
    pub listen: SocketAddr,
    /// Refuse every change.
    pub read_only: bool,
}
