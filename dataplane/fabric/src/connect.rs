//! How the control thread makes connections: ports, listeners, and the way of a connection.
//!
//! # The way of a connection
//!
//! Only when the peer's address is resolved is it known which device leads there, and a queue
//! pair must be on a port of that device. So, on the side that asks:
//!
//! ```text
//! resolve -> Resolved -> take(port) -> adopted by the lcore, receives posted -> connect -> Established
//!                                                                                       \> Rejected
//! ```
//!
//! and on the side that is asked:
//!
//! ```text
//! Request -> take(port) -> adopted by the lcore, receives posted -> accept -> Established
//!        \> reject
//! ```
//!
//! [`Fabric::may_serve`] says which ports a connection can be taken on. From `take` on the
//! connection ends by its endpoint: whoever holds it disconnects it, or drops it. Before, it is
//! ended by [`Fabric::abandon`] or [`Fabric::reject`].
//!
//! Steps out of this order are refused, and change nothing.

use crate::arena::{Arena, Hugepages};
use crate::{Capabilities, Port};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a wait for an event goes on without looking.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Octets of the arena of a port that is only asked.
const ASKED_BYTES: u64 = 2 << 20;

/// A port, as the control thread names it. Never used twice in a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortId(pub u32);

/// A connection from its first step to its end, as the control thread names it. Never used
/// twice in a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// A listener, as the control thread names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListenerId(pub u32);

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// A port of the memory fabric, by a name that says nothing outside this process.
    Memory(String),
    /// An IP address, and the port the connection comes from.
    Ip(SocketAddr),
}

impl Peer {
    /// The address, where there is one: an IPv4 address that came by an IPv6 listener as the
    /// IPv4 address it is.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Peer::Memory(_) => None,
            Peer::Ip(address) => Some(address.ip().to_canonical()),
        }
    }

    /// The name of the party, the same for all of its connections.
    #[must_use]
    pub fn party(&self) -> String {
        match (self.ip(), self) {
            (Some(ip), _) => ip.to_string(),
            (None, other) => other.to_string(),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Memory(name) => write!(f, "memory:{name}"),
            Peer::Ip(address) => write!(f, "{address}"),
        }
    }
}

/// A device that ports can be opened on, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name, unique in the fabric: `mlx5_0`.
    pub name: String,
    /// The NUMA node it sits at, where that is known.
    pub node: Option<u32>,
    /// One of its links is up, or it has none that could be down; where each lcore has one of its
    /// own, all of them.
    pub up: bool,
    /// What a port on it can do at best.
    pub capabilities: Capabilities,
}

/// What became of a device, or of the link of one of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceChange {
    /// The link is down.
    Down,
    /// The link is up again.
    Up,
    /// The device is gone: its ports serve nothing any more.
    Gone,
}

/// A port that is wanted. The fabric may give less of anything: what it gave is in
/// [`Port::capabilities`].
///
/// Where everything together is more than the device has, queue pairs give way first, and keep the
/// depths that were asked for: whoever asks has derived its credits from them. Only where not even
/// one queue pair fits is it made less deep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortWanted {
    /// The device, by name; `None`: whichever the fabric takes first.
    pub device: Option<String>,
    /// The processor that will poll the port; `None`: any.
    pub processor: Option<usize>,
    /// Queue pairs that can be there at once.
    pub queue_pairs: u32,
    /// Send-queue entries of one queue pair.
    pub send_depth: u32,
    /// Receive-queue entries of one queue pair.
    pub receive_depth: u32,
    /// Exposures of all queue pairs at once.
    pub windows: u32,
    /// Longest message, octets.
    pub message_bytes: u32,
}

/// Something that happened to connections or devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The address is found: answer with [`Fabric::take`] and, once the queue pair is adopted,
    /// [`Fabric::connect`]; or with [`Fabric::abandon`].
    Resolved {
        /// Which connection.
        connection: ConnectionId,
    },
    /// A peer asks for a connection: answer with [`Fabric::take`] then [`Fabric::accept`], or
    /// [`Fabric::reject`].
    Request {
        /// Where it came in.
        listener: ListenerId,
        /// The new connection.
        connection: ConnectionId,
        /// Who asks.
        peer: Peer,
        /// What the peer sent with the request (RFC 8797 may be in it, at any octet).
        private_data: Vec<u8>,
    },
    /// Both sides may send now.
    Established {
        /// Which connection.
        connection: ConnectionId,
        /// What the accepting side sent; empty on the accepting side itself.
        private_data: Vec<u8>,
    },
    /// The peer, or the fabric, said no: the address is not found, or nobody is there, or who
    /// is there does not want. The connection is over.
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
    /// A device has changed. Its connections that ended by it say so themselves.
    Device {
        /// Its name.
        name: String,
        /// Its ports that were opened here.
        ports: Vec<PortId>,
        /// What became of it.
        change: DeviceChange,
    },
}

/// A fabric as the control thread sees it. Never called by an lcore.
pub trait Fabric {
    /// What its lcores poll.
    type Port: Port<Endpoint: 'static> + Send + 'static;
    /// What can go wrong, for a person.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The devices that ports can be opened on, as of now. Plans are clamped to what they can
    /// do before a port is opened.
    fn devices(&self) -> Vec<Device>;

    /// What whoever runs this has to know of those devices: where they protect less than an
    /// operator would think. A sentence each, with the device's name.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Opens a port over an arena, which it registers as a whole.
    fn open_port(
        &mut self,
        arena: Arc<Arena>,
        wanted: &PortWanted,
    ) -> Result<(PortId, Self::Port), Self::Error>;

    /// Listens at an address in the fabric's own form, on all devices that it leads to, those
    /// that come later included.
    fn listen(&mut self, address: &str) -> Result<ListenerId, Self::Error>;

    /// Where a listener is to be reached, in the fabric's own form: what was asked for, with
    /// what the fabric chose of it filled in.
    fn address(&self, listener: ListenerId) -> Option<String>;

    /// Begins to look for the way to an address in the fabric's own form. Does not wait: there
    /// will be [`Event::Resolved`] or [`Event::Rejected`].
    fn resolve(&mut self, address: &str) -> Result<ConnectionId, Self::Error>;

    /// Whether a connection that is resolved or requested can be taken on this port.
    fn may_serve(&self, connection: ConnectionId, port: PortId) -> bool;

    /// Whether a connection cannot be taken on this port for want of room alone: it leads to its
    /// device, and the port has as many queue pairs as it can have at once.
    fn is_full(&self, _connection: ConnectionId, _port: PortId) -> bool {
        false
    }

    /// Makes the queue pair, on `port`, for a connection that is resolved or requested.
    fn take(
        &mut self,
        connection: ConnectionId,
        port: PortId,
    ) -> Result<<Self::Port as Port>::Endpoint, Self::Error>;

    /// Asks the peer for a connection that was resolved and taken.
    fn connect(&mut self, connection: ConnectionId, private_data: &[u8])
    -> Result<(), Self::Error>;

    /// Says yes to a request that was taken.
    fn accept(&mut self, connection: ConnectionId, private_data: &[u8]) -> Result<(), Self::Error>;

    /// Says no to a request, taken or not.
    fn reject(&mut self, connection: ConnectionId, reason: &str) -> Result<(), Self::Error>;

    /// Forgets a connection that was begun here and not taken yet: there will be no event of
    /// it. Others are left alone.
    fn abandon(&mut self, connection: ConnectionId);

    /// The next thing that happened, without waiting.
    fn poll(&mut self) -> Option<Event>;

    /// Readable when [`Fabric::poll`] has something to do. `None`: what happens here follows
    /// from what this process does, and whoever did it looks.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// The device that a connection goes by which is resolved or requested: one that a port on it may
/// serve. Each is asked by a port that is opened for the question; where there is one device
/// alone, that is the answer. `None`: no device may serve it.
///
/// # Errors
///
/// No device may serve it of those on which a port can be opened, and on one of them none can.
pub fn device_of<F: Fabric>(
    fabric: &mut F,
    connection: ConnectionId,
) -> Result<Option<String>, F::Error> {
    let mut names: Vec<String> = fabric.devices().into_iter().map(|it| it.name).collect();
    if names.len() == 1 {
        return Ok(names.pop());
    }
    let mut failed = Ok(None);
    for name in names {
        // Without memory for the question there is none for an answer to be of use.
        let Ok(arena) = Arena::map(ASKED_BYTES, Hugepages::Off) else {
            continue;
        };
        let wanted = PortWanted {
            device: Some(name),
            processor: None,
            queue_pairs: 1,
            send_depth: 16,
            receive_depth: 16,
            windows: 1,
            message_bytes: 4096,
        };
        match fabric.open_port(Arc::new(arena), &wanted) {
            Ok((id, _port)) if fabric.may_serve(connection, id) => return Ok(wanted.device),
            Ok(_) => {}
            // The first error is the one that is told.
            Err(error) => failed = failed.and(Err(error)),
        }
    }
    failed
}

/// Waits for the next thing that happens, until `deadline` at the latest: for callers that have
/// nothing else to do meanwhile.
pub fn next_event<F: Fabric>(fabric: &mut F, deadline: Instant) -> Option<Event> {
    loop {
        if let Some(event) = fabric.poll() {
            return Some(event);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        let patience = Timespec {
            tv_sec: 0,
            tv_nsec: left.min(LOOK_EVERY).subsec_nanos().into(),
        };
        let descriptor = fabric.descriptor();
        let mut watched = descriptor.map(|it| PollFd::from_borrowed_fd(it, PollFlags::IN));
        // Interrupted, or out of memory for once: the loop comes round all the same.
        let _ = poll(watched.as_mut_slice(), Some(&patience));
    }
}
