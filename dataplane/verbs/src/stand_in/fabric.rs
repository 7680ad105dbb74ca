//! A fabric of ports on a device that is not there: control's half, as short as it can be.
//!
//! Addresses are names. Every port is on the one device, and all of it is for one thread: ports
//! may be made elsewhere, as the trait says, but are polled where the fabric is.

use super::{StandIn, calls};
use crate::endpoint::Endpoint;
use crate::expose::{Means, Windows};
use crate::inbox::{self, Notice, Outlet, Word};
use crate::port::{
    Books, Limits, MOST_ELEMENTS, Parts, Poller, Raw, Registered, VerbsPort, invalidating_flags,
};
use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::bell::Bell;
use rpcrdma_fabric::connect::{
    ConnectionId, Device, Event, Fabric, ListenerId, Peer, PortId, PortWanted,
};
use rpcrdma_fabric::{Capabilities, Port};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Octets that go inline.
const INLINE_BYTES: u32 = 256;
/// Octets that wait in a queue pair's outbox at most.
const OUTBOX_BYTES: u32 = 16 << 10;

/// Why the stand-in did not do it.
#[derive(Debug)]
pub struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal(error.to_string())
    }
}

fn refused<T>(why: &str) -> Result<T, Refusal> {
    Err(Refusal(why.to_owned()))
}

/// One end of a connection.
#[derive(Debug, Default)]
struct End {
    /// Where it is to go, until it has gone.
    address: Option<String>,
    /// The other end, once there is one.
    peer: Option<ConnectionId>,
    /// Its port and its queue pair, once taken.
    taken: Option<(PortId, u32)>,
    established: bool,
}

/// The fabric.
pub struct StandInFabric {
    device: StandIn,
    bell: Arc<Bell>,
    outlets: Vec<Outlet>,
    depths: Vec<(u32, u32)>,
    listeners: Vec<String>,
    ends: HashMap<ConnectionId, End>,
    begun: u64,
    events: VecDeque<Event>,
}

impl StandInFabric {
    /// A fabric without ports.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn new() -> io::Result<StandInFabric> {
        Ok(StandInFabric {
            device: StandIn::new(),
            bell: Arc::new(Bell::new()?),
            outlets: Vec::new(),
            depths: Vec::new(),
            listeners: Vec::new(),
            ends: HashMap::new(),
            begun: 0,
            events: VecDeque::new(),
        })
    }

    /// Windows that are bound now.
    #[must_use]
    pub fn bound(&self) -> usize {
        self.device.bound()
    }

    fn begin(&mut self, end: End) -> ConnectionId {
        self.begun += 1;
        let connection = ConnectionId(self.begun);
        self.ends.insert(connection, end);
        connection
    }

    fn end(&mut self, connection: ConnectionId) -> Result<&mut End, Refusal> {
        let end = self.ends.get_mut(&connection);
        end.ok_or_else(|| Refusal("no such connection".to_owned()))
    }

    /// What a port says.
    fn heed(&mut self, port: usize, word: Word) {
        match word {
            Word::Broken(connection) => {
                let end = self.ends.get_mut(&connection);
                let Some(peer) = end.and_then(|end| end.peer) else {
                    return;
                };
                let Some(other) = self.ends.get(&peer) else {
                    return;
                };
                if let Some((port, _)) = other.taken
                    && let Some(outlet) = self.outlets.get_mut(port.0 as usize)
                {
                    outlet.tell(Notice::Lost(peer));
                }
            }
            Word::Window(_) => {
                let window = self.device.window();
                if let Some(outlet) = self.outlets.get_mut(port) {
                    outlet.tell(Notice::Window(window));
                }
            }
            Word::Over(endpoint) => {
                let connection = endpoint.connection();
                if let Some(end) = self.ends.remove(&connection)
                    && end.established
                {
                    self.events.push_back(Event::Disconnected { connection });
                }
            }
        }
    }
}

fn registered(arena: Arc<Arena>) -> Registered {
    Registered {
        address: arena.tract().start.as_ptr().expose_provenance() as u64,
        arena,
        lkey: 1,
    }
}

impl Fabric for StandInFabric {
    type Port = VerbsPort;
    type Error = Refusal;

    fn devices(&self) -> Vec<Device> {
        vec![Device {
            name: "stand-in".to_owned(),
            node: None,
            up: true,
            capabilities: Capabilities {
                queue_pairs: 1024,
                gather: 16,
                send_depth: 1024,
                receive_depth: 1024,
                transfer_bytes: 1 << 30,
                windows: 1 << 16,
                send_invalidate: true,
                receive_invalidate: true,
            },
        }]
    }

    fn open_port(
        &mut self,
        arena: Arc<Arena>,
        wanted: &PortWanted,
    ) -> Result<(PortId, VerbsPort), Refusal> {
        let (inbox, outlet) = inbox::pair(
            wanted.queue_pairs,
            wanted.windows,
            Arc::clone(&self.bell),
            None,
        )?;
        let outbox = u64::from(wanted.queue_pairs) * u64::from(OUTBOX_BYTES);
        let windows = (0..wanted.windows).map(|_| self.device.window()).collect();
        let queue = self.device.queue();
        let parts = Parts {
            poller: Poller::on_stand_in(queue, invalidating_flags(false), calls()),
            arena: registered(arena),
            outbox: registered(Arc::new(Arena::map(outbox, Hugepages::Off)?)),
            limits: Limits {
                queue_pairs: wanted.queue_pairs,
                send_depth: wanted.send_depth,
                receive_depth: wanted.receive_depth,
                gather: u32::try_from(MOST_ELEMENTS).unwrap_or(u32::MAX),
                transfer_bytes: 1 << 30,
                outbox_bytes: OUTBOX_BYTES,
                windows: wanted.windows,
                send_invalidate: true,
                receive_invalidate: true,
                lazy_bytes: crate::device::Limits::NONE_LAZY,
                fenced: false,
            },
            means: Means::Windows(Windows::new(windows, Raw(std::ptr::null_mut()))),
        };
        let port = VerbsPort::new(parts, inbox, calls(), self.bell.as_fd())?;
        let id = PortId(u32::try_from(self.outlets.len()).unwrap_or(u32::MAX));
        self.outlets.push(outlet);
        self.depths.push((wanted.send_depth, wanted.receive_depth));
        Ok((id, port))
    }

    fn listen(&mut self, address: &str) -> Result<ListenerId, Refusal> {
        if self.listeners.iter().any(|name| name == address) {
            return refused("somebody listens there");
        }
        self.listeners.push(address.to_owned());
        let number = u32::try_from(self.listeners.len()).unwrap_or(u32::MAX);
        Ok(ListenerId(number - 1))
    }

    fn address(&self, listener: ListenerId) -> Option<String> {
        self.listeners.get(listener.0 as usize).cloned()
    }

    fn resolve(&mut self, address: &str) -> Result<ConnectionId, Refusal> {
        let connection = self.begin(End {
            address: Some(address.to_owned()),
            ..End::default()
        });
        self.events.push_back(Event::Resolved { connection });
        Ok(connection)
    }

    fn may_serve(&self, connection: ConnectionId, port: PortId) -> bool {
        self.ends.contains_key(&connection) && self.outlets.get(port.0 as usize).is_some()
    }

    fn take(
        &mut self,
        connection: ConnectionId,
        port: PortId,
    ) -> Result<<VerbsPort as Port>::Endpoint, Refusal> {
        let Some(&(send_depth, receive_depth)) = self.depths.get(port.0 as usize) else {
            return refused("no such port");
        };
        let (number, rail) = self.device.pair(port.0 as usize);
        let end = self.end(connection)?;
        end.taken = Some((port, number));
        // One entry more than is offered: that which is kept for the end.
        let books = Books::new(send_depth + 1, receive_depth);
        Ok(Endpoint::stand_in(connection, rail, books, INLINE_BYTES))
    }

    fn connect(&mut self, connection: ConnectionId, private_data: &[u8]) -> Result<(), Refusal> {
        let address = self.end(connection)?.address.take();
        let listens = |name: &String| Some(name) == address.as_ref();
        let Some(listener) = self.listeners.iter().position(listens) else {
            let reason = "nobody listens there".to_owned();
            self.events
                .push_back(Event::Rejected { connection, reason });
            return Ok(());
        };
        let asked = self.begin(End {
            peer: Some(connection),
            ..End::default()
        });
        self.end(connection)?.peer = Some(asked);
        self.events.push_back(Event::Request {
            listener: ListenerId(u32::try_from(listener).unwrap_or(u32::MAX)),
            connection: asked,
            peer: Peer::Memory("stand-in".to_owned()),
            private_data: private_data.to_vec(),
        });
        Ok(())
    }

    fn accept(&mut self, connection: ConnectionId, private_data: &[u8]) -> Result<(), Refusal> {
        let end = self.end(connection)?;
        let (Some(asking), Some((_, one))) = (end.peer, end.taken) else {
            return refused("not taken");
        };
        let Some((_, other)) = self.end(asking)?.taken else {
            return refused("gone");
        };
        self.device.connect(one, other);
        for (connection, private_data) in
            [(connection, Vec::new()), (asking, private_data.to_vec())]
        {
            self.end(connection)?.established = true;
            self.events.push_back(Event::Established {
                connection,
                private_data,
            });
        }
        Ok(())
    }

    fn reject(&mut self, connection: ConnectionId, reason: &str) -> Result<(), Refusal> {
        let Some(asking) = self.end(connection)?.peer else {
            return refused("nobody asked");
        };
        self.ends.remove(&connection);
        self.events.push_back(Event::Rejected {
            connection: asking,
            reason: reason.to_owned(),
        });
        Ok(())
    }

    fn abandon(&mut self, connection: ConnectionId) {
        self.ends.remove(&connection);
    }

    fn poll(&mut self) -> Option<Event> {
        for port in 0..self.outlets.len() {
            while let Some(word) = self.outlets.get_mut(port).and_then(Outlet::hear) {
                self.heed(port, word);
            }
            if let Some(outlet) = self.outlets.get_mut(port) {
                outlet.push_on();
            }
        }
        self.events.pop_front()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
