//! What the control threads share: ports, listeners, connections being made and standing.
//! Behind one mutex that no lcore takes while it works.

use crate::desk::{Desk, Hatch};
use crate::error::Error;
use crate::fifo::Fifo;
use crate::lane;
use crate::link::{Cause, Link};
use crate::queue_pair::{Endpoint, Parts};
use crate::shared::Shared;
use rpcrdma_fabric::connect::{ConnectionId, Event, ListenerId, Peer, PortId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Requests of one listener that wait for an answer.
const BACKLOG: usize = 128;
/// Longest private data, octets: what RDMA over TCP (MPA, RFC 5044 section 7.1) allows.
const PRIVATE_DATA: usize = 512;

/// A control thread, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Control(u64);

#[derive(Debug, Default)]
pub(crate) struct Registry {
    numbers: u64,
    ports: HashMap<u32, PortEntry>,
    /// Pairs of ports that have lanes.
    joined: HashSet<(u32, u32)>,
    listeners: HashMap<String, Listener>,
    connections: HashMap<ConnectionId, Connection>,
    controls: HashMap<Control, Desk>,
}

#[derive(Debug)]
struct PortEntry {
    shared: Arc<Shared>,
    ring_bytes: u32,
    send_depth: u32,
    receive_depth: u32,
}

#[derive(Clone, Copy, Debug)]
struct Listener {
    id: ListenerId,
    control: Control,
}

/// One side of a connection, as its control thread names it.
#[derive(Debug)]
struct Connection {
    control: Control,
    link: Arc<Link>,
    side: usize,
    stage: Stage,
    /// The address it leads to; empty for one that a peer asked for.
    address: String,
    /// The other side's name, once there is one.
    other: Option<ConnectionId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Begun here; its [`Event::Resolved`] is on the desk.
    Resolving,
    /// Begun here; that event was seen.
    Resolved,
    /// Begun here, and given a queue pair.
    Opened,
    /// Begun here; the listener has been asked.
    Asked,
    /// Asked for by a peer of this listener.
    Requested(ListenerId),
    /// Asked for by a peer, and given a queue pair.
    Taken,
    Established,
}

impl Registry {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(crate) fn add_control(&mut self) -> (Control, Arc<Hatch>) {
        let control = Control(self.number());
        let desk = Desk::default();
        let hatch = Arc::clone(&desk.hatch);
        self.controls.insert(control, desk);
        (control, hatch)
    }

    /// A control thread is gone: its listeners end, and what was asked of them is refused.
    pub(crate) fn forget_control(&mut self, control: Control) {
        self.controls.remove(&control);
        self.listeners
            .retain(|_, listener| listener.control != control);
        let requests: Vec<ConnectionId> = self
            .connections
            .iter()
            .filter(|(_, it)| it.control == control && matches!(it.stage, Stage::Requested(_)))
            .map(|(id, _)| *id)
            .collect();
        for id in requests {
            // It is there and requested, so this cannot fail.
            let _ = self.reject(id, "the listener is gone");
        }
        self.connections.retain(|_, it| it.control != control);
    }

    pub(crate) fn next_port(&mut self) -> u32 {
        // Ports are few; numbers beyond 2^32 would need as many openings.
        u32::try_from(self.number()).unwrap_or(u32::MAX)
    }

    pub(crate) fn add_port(&mut self, shared: Arc<Shared>, settings: &crate::Settings) -> PortId {
        let id = shared.id;
        let entry = PortEntry {
            shared,
            ring_bytes: settings.ring_bytes,
            send_depth: settings.send_depth,
            receive_depth: settings.receive_depth,
        };
        self.ports.insert(id, entry);
        PortId(id)
    }

    pub(crate) fn forget_port(&mut self, port: u32) {
        self.ports.remove(&port);
        self.joined.retain(|&(a, b)| a != port && b != port);
    }

    pub(crate) fn listen(&mut self, control: Control, address: &str) -> Result<ListenerId, Error> {
        if address.is_empty() {
            return Err(Error::Address(String::new()));
        }
        if self.listeners.contains_key(address) {
            return Err(Error::InUse(address.to_owned()));
        }
        let id = ListenerId(u32::try_from(self.number()).unwrap_or(u32::MAX));
        self.listeners
            .insert(address.to_owned(), Listener { id, control });
        Ok(id)
    }

    pub(crate) fn address(&self, id: ListenerId) -> Option<String> {
        let mut listeners = self.listeners.iter();
        let (address, _) = listeners.find(|(_, listener)| listener.id == id)?;
        Some(address.clone())
    }

    /// The queue pair of one side of a link.
    fn endpoint(&self, port: PortId, link: &Arc<Link>, side: usize) -> Result<Endpoint, Error> {
        let entry = self.ports.get(&port.0).ok_or(Error::NoPort(port))?;
        if link.sides[side]
            .port
            .set(Arc::clone(&entry.shared))
            .is_err()
        {
            return Err(Error::Order("the connection has a queue pair already"));
        }
        Ok(Endpoint::new(Parts {
            port: port.0,
            link: Arc::clone(link),
            side,
            receives: Fifo::new(entry.receive_depth),
            waiting: Fifo::new(entry.send_depth),
        }))
    }

    pub(crate) fn resolve(
        &mut self,
        control: Control,
        address: &str,
    ) -> Result<ConnectionId, Error> {
        if address.is_empty() {
            return Err(Error::Address(String::new()));
        }
        let link = Arc::new(Link::new(self.number()));
        self.watch(control, &link, 0);
        let id = ConnectionId(self.number());
        let connection = Connection {
            control,
            link,
            side: 0,
            stage: Stage::Resolving,
            address: address.to_owned(),
            other: None,
        };
        self.connections.insert(id, connection);
        // In this fabric any address can be asked; who is there shows when it is.
        self.tell(control, Event::Resolved { connection: id });
        Ok(id)
    }

    pub(crate) fn abandon(&mut self, id: ConnectionId) {
        let begun = |it: &Connection| matches!(it.stage, Stage::Resolving | Stage::Resolved);
        if self.connections.get(&id).is_some_and(begun) {
            self.connections.remove(&id);
        }
    }

    pub(crate) fn may_serve(&self, id: ConnectionId, port: PortId) -> bool {
        let waits = |it: &Connection| matches!(it.stage, Stage::Resolved | Stage::Requested(_));
        self.ports.contains_key(&port.0) && self.connections.get(&id).is_some_and(waits)
    }

    /// Lets a control thread know when this side of a link is lost.
    fn watch(&self, control: Control, link: &Link, side: usize) {
        if let Some(desk) = self.controls.get(&control) {
            let _ = link.sides[side].hatch.set(Arc::clone(&desk.hatch));
        }
    }

    fn connection(&mut self, id: ConnectionId) -> Result<&mut Connection, Error> {
        self.connections.get_mut(&id).ok_or(Error::NoConnection(id))
    }

    fn tell(&mut self, control: Control, event: Event) {
        if let Some(desk) = self.controls.get_mut(&control) {
            desk.tell(event);
        }
    }

    pub(crate) fn connect(&mut self, id: ConnectionId, private_data: &[u8]) -> Result<(), Error> {
        let private_data = checked(private_data)?;
        let connection = self.connection(id)?;
        connection.expect(Stage::Opened, "connect follows take, once")?;
        connection.expect_adopted()?;
        let (control, link) = (connection.control, Arc::clone(&connection.link));
        let address = connection.address.clone();
        let reason = match self.listeners.get(&address).copied() {
            None => format!("nobody listens at {address}"),
            Some(listener) if self.requests(listener.id) >= BACKLOG => {
                format!("too many requests wait at {address}")
            }
            Some(listener) => {
                self.connection(id)?.stage = Stage::Asked;
                self.request(id, listener, link, private_data);
                return Ok(());
            }
        };
        self.connections.remove(&id);
        sever(&link);
        self.tell(
            control,
            Event::Rejected {
                connection: id,
                reason,
            },
        );
        Ok(())
    }

    fn requests(&self, listener: ListenerId) -> usize {
        let waits = |it: &&Connection| it.stage == Stage::Requested(listener);
        self.connections.values().filter(waits).count()
    }

    fn request(&mut self, from: ConnectionId, to: Listener, link: Arc<Link>, data: Vec<u8>) {
        let id = ConnectionId(self.number());
        let port = link.sides[0].port.get().map_or(0, |port| port.id);
        self.watch(to.control, &link, 1);
        self.connections.insert(
            id,
            Connection {
                control: to.control,
                link,
                side: 1,
                stage: Stage::Requested(to.id),
                address: String::new(),
                other: Some(from),
            },
        );
        if let Some(asking) = self.connections.get_mut(&from) {
            asking.other = Some(id);
        }
        self.tell(
            to.control,
            Event::Request {
                listener: to.id,
                connection: id,
                peer: Peer::Memory(port.to_string()),
                private_data: data,
            },
        );
    }

    pub(crate) fn take(&mut self, id: ConnectionId, port: PortId) -> Result<Endpoint, Error> {
        let connection = self.connection(id)?;
        let taken = match connection.stage {
            Stage::Resolved => Stage::Opened,
            Stage::Requested(_) => Stage::Taken,
            _ => return Err(Error::Order("take follows Resolved or a request, once")),
        };
        let (link, side) = (Arc::clone(&connection.link), connection.side);
        let endpoint = self.endpoint(port, &link, side)?;
        self.connection(id)?.stage = taken;
        Ok(endpoint)
    }

    pub(crate) fn accept(&mut self, id: ConnectionId, private_data: &[u8]) -> Result<(), Error> {
        let private_data = checked(private_data)?;
        let connection = self.connection(id)?;
        connection.expect(Stage::Taken, "accept follows take, once")?;
        connection.expect_adopted()?;
        let (control, link, other) = (
            connection.control,
            Arc::clone(&connection.link),
            connection.other,
        );
        self.join(&link)?;
        if !link.establish() {
            self.connections.remove(&id);
            return Err(Error::Over(id));
        }
        self.connection(id)?.stage = Stage::Established;
        self.tell(
            control,
            Event::Established {
                connection: id,
                private_data: Vec::new(),
            },
        );
        if let Some(other) = other
            && let Some(asking) = self.connections.get_mut(&other)
        {
            asking.stage = Stage::Established;
            let control = asking.control;
            self.tell(
                control,
                Event::Established {
                    connection: other,
                    private_data,
                },
            );
        }
        Ok(())
    }

    /// Makes the rings between the two ports of a link, where there are none yet.
    fn join(&mut self, link: &Link) -> Result<(), Error> {
        let entry = |side: usize| {
            let id = link.sides[side].port.get().map_or(0, |port| port.id);
            self.ports.get(&id).ok_or(Error::NoPort(PortId(id)))
        };
        let (a, b) = (entry(0)?, entry(1)?);
        let pair = (a.shared.id.min(b.shared.id), a.shared.id.max(b.shared.id));
        if !self.joined.contains(&pair) {
            lane::join(&a.shared, a.ring_bytes, &b.shared, b.ring_bytes);
            self.joined.insert(pair);
        }
        Ok(())
    }

    pub(crate) fn reject(&mut self, id: ConnectionId, reason: &str) -> Result<(), Error> {
        let connection = self.connection(id)?;
        if !matches!(connection.stage, Stage::Requested(_) | Stage::Taken) {
            return Err(Error::Order("reject answers a request"));
        }
        let Some(connection) = self.connections.remove(&id) else {
            return Err(Error::NoConnection(id));
        };
        sever(&connection.link);
        let asking = connection
            .other
            .and_then(|other| self.connections.remove_entry(&other));
        if let Some((other, asking)) = asking {
            let reason = reason.to_owned();
            self.tell(
                asking.control,
                Event::Rejected {
                    connection: other,
                    reason,
                },
            );
        }
        Ok(())
    }

    /// Turns connections that were lost into events.
    pub(crate) fn notice_losses(&mut self, control: Control) {
        let mut events = Vec::new();
        self.connections.retain(|&id, it| {
            if it.control != control || !it.link.is_severed() {
                return true;
            }
            match it.stage {
                Stage::Established => events.push(Event::Disconnected { connection: id }),
                Stage::Asked => {
                    let reason = "the connection was lost before it stood".to_owned();
                    events.push(Event::Rejected {
                        connection: id,
                        reason,
                    });
                }
                Stage::Resolving
                | Stage::Resolved
                | Stage::Opened
                | Stage::Requested(_)
                | Stage::Taken => {}
            }
            false
        });
        // Connection numbers rise, so this is the order in which they were made.
        events.sort_by_key(|event| match event {
            Event::Disconnected { connection } | Event::Rejected { connection, .. } => connection.0,
            _ => 0,
        });
        events
            .into_iter()
            .for_each(|event| self.tell(control, event));
    }

    pub(crate) fn next_event(&mut self, control: Control) -> Option<Event> {
        loop {
            let event = self.controls.get_mut(&control)?.events.pop_front()?;
            let Event::Resolved { connection } = event else {
                return Some(event);
            };
            // Abandoned before it was seen: nothing is said of it.
            if let Some(resolved) = self.connections.get_mut(&connection) {
                resolved.stage = Stage::Resolved;
                return Some(event);
            }
        }
    }
}

impl Connection {
    fn expect(&self, stage: Stage, otherwise: &'static str) -> Result<(), Error> {
        if self.stage == stage {
            Ok(())
        } else {
            Err(Error::Order(otherwise))
        }
    }

    /// Messages can come as soon as the peer knows of us: the receives must be there.
    fn expect_adopted(&self) -> Result<(), Error> {
        match self.link.sides[self.side].address() {
            Some(_) => Ok(()),
            None => Err(Error::Order("an lcore adopts the queue pair first")),
        }
    }
}

fn sever(link: &Link) {
    if link.sever(Cause::Ended) {
        link.tell(0);
        link.tell(1);
    }
}

fn checked(private_data: &[u8]) -> Result<Vec<u8>, Error> {
    if private_data.len() > PRIVATE_DATA {
        return Err(Error::PrivateData(private_data.len()));
    }
    Ok(private_data.to_vec())
}
