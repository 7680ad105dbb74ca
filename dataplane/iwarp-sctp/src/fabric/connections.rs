//! The way of each connection.
//!
//! Everything that happens to one goes through [`IwarpFabric::feed`], the one place where its
//! stage changes. What does not fit the table is late or out of turn, and changes nothing.

use super::IwarpFabric;
use super::listeners::parse;
use crate::endpoint::{Endpoint, Origin, Seat};
use crate::error::Error;
use crate::inbox::Notice;
use crate::stack::Stack;
use rpcrdma_fabric::connect::{ConnectionId, Event, PortId};
use rpcrdma_fabric::names::{Answer, Names};
use rpcrdma_fabric::stage::{Input, Stage};
use std::net::SocketAddr;
use std::sync::Arc;

/// Longest private data, octets: what a session's first message takes (RFC 5043 section 5.2.3)
/// beside the word of RFC 6581.
const PRIVATE_DATA_MOST: usize = 508;

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stage: Stage,
    origin: Origin,
    /// Where it leads, for one that was begun here and whose host is known.
    to: Option<SocketAddr>,
    /// The port that has it, or must: requests come with theirs.
    port: Option<PortId>,
    /// The site it is asked for from.
    site: Option<u32>,
    /// From `take` on.
    seat: Option<Arc<Seat>>,
}

impl Connection {
    fn begun(to: Option<SocketAddr>) -> Connection {
        Connection {
            stage: Stage::Resolving,
            origin: Origin::Begun,
            to,
            port: None,
            site: None,
            seat: None,
        }
    }

    pub(super) fn requested(origin: Origin, port: PortId) -> Connection {
        Connection {
            stage: Stage::Requested,
            origin,
            to: None,
            port: Some(port),
            site: None,
            seat: None,
        }
    }

    pub(super) fn is_request(&self, port: PortId, number: u64) -> bool {
        let asked = matches!(self.origin, Origin::Asked { request, .. } if request == number);
        asked && self.port == Some(port)
    }

    /// The port of a queue pair that is out.
    pub(super) fn port(&self) -> Option<PortId> {
        self.port.filter(|_| self.stage.has_endpoint())
    }

    /// From which site it uses a stream to which peer.
    pub(super) fn way(&self) -> Option<(u32, SocketAddr)> {
        self.site.zip(self.to)
    }

    /// It is that port's, taken or not.
    pub(super) fn is_of(&self, port: PortId) -> bool {
        self.port == Some(port)
    }

    pub(super) fn is_vacated(&self) -> bool {
        self.seat.as_ref().is_some_and(|seat| seat.is_vacated())
    }
}

impl<S: Stack> IwarpFabric<S> {
    fn connection(&mut self, id: ConnectionId) -> Result<&mut Connection, Error> {
        self.connections.get_mut(&id).ok_or(Error::NoConnection(id))
    }

    /// What happens to a connection, and all that follows from it. `why` is for a person.
    pub(super) fn feed(&mut self, id: ConnectionId, input: Input, why: impl FnOnce() -> String) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let Some(step) = connection.stage.step(input) else {
            return;
        };
        let (origin, port) = (connection.origin, connection.port);
        if step.ends() {
            self.events.extend(step.parting(id, why));
            let unanswered = matches!(step.before, Stage::Requested | Stage::Taken);
            if let (true, Input::Vacated, Some(port)) = (unanswered, input, port) {
                self.refuse(port, origin, Box::default());
            }
        }
        if step.is_last() {
            self.connections.remove(&id);
            if let (true, Some(port)) = (step.before.has_endpoint(), port) {
                self.leave_port(port);
            }
        }
    }

    /// The upper layer does not want a request: it has said so, or has let go of what was to be
    /// its queue pair.
    fn refuse(&mut self, port: PortId, origin: Origin, private_data: Box<[u8]>) {
        if let Origin::Asked { request, at } = origin {
            let notice = Notice::Refuse {
                request,
                at,
                private_data,
            };
            self.tell_port(port, notice);
        }
    }

    pub(super) fn begin(&mut self, address: &str) -> Result<ConnectionId, Error> {
        let on_the_way = |it: &&Connection| it.stage != Stage::Established;
        let begun = self.connections.values().filter(on_the_way).count();
        if begun >= self.settings.begun_max {
            return Err(Error::Busy("too many connections are being made"));
        }
        let found = parse(address);
        if found.is_err() && !Names::is_name(address) {
            return Err(Error::Address(address.to_owned()));
        }
        let id = ConnectionId(self.number());
        match found {
            Ok(to) => {
                self.connections.insert(id, Connection::begun(Some(to)));
                // Told when it is asked for, like everything else.
                self.known.push_back((id, to));
                self.bell.ring();
            }
            Err(_) => {
                self.names.ask(id, address, &self.bell)?;
                self.connections.insert(id, Connection::begun(None));
            }
        }
        Ok(id)
    }

    /// It is known where a connection leads.
    pub(super) fn found(&mut self, connection: ConnectionId, to: SocketAddr) {
        let Some(begun) = self.connections.get_mut(&connection) else {
            return;
        };
        begun.to = Some(to);
        self.feed(connection, Input::Found, String::new);
        self.events.push_back(Event::Resolved { connection });
    }

    /// A host's address was looked up.
    pub(super) fn heed_answer(&mut self, (id, answer): Answer) {
        match answer {
            Ok(to) => self.found(id, to),
            Err(error) => self.feed(id, Input::Lost, || {
                format!("the name is not found: {error}")
            }),
        }
    }

    /// Whether a connection can be taken on a port, and why not.
    pub(super) fn check_seat(&self, id: ConnectionId, port: PortId) -> Result<(), Error> {
        let connection = self.connections.get(&id).ok_or(Error::NoConnection(id))?;
        if connection.stage.next(Input::Take).is_err() {
            return Err(Error::Order("take follows Resolved or a request, once"));
        }
        if connection.port.is_some_and(|its| its != port) {
            return Err(Error::OtherPort(port));
        }
        self.check_berth(port)
    }

    pub(super) fn seat(&mut self, id: ConnectionId, port: PortId) -> Result<Endpoint, Error> {
        self.check_seat(id, port)?;
        let bell = Arc::clone(&self.bell);
        let connection = self.connection(id)?;
        let (endpoint, seat) = Endpoint::new(id, connection.origin, bell);
        connection.seat = Some(seat);
        connection.port = Some(port);
        self.join_port(port);
        self.feed(id, Input::Take, String::new);
        Ok(endpoint)
    }

    /// Looks whether it is the time for a step.
    fn expect(
        &mut self,
        id: ConnectionId,
        input: Input,
        otherwise: &'static str,
    ) -> Result<&mut Connection, Error> {
        let connection = self.connection(id)?;
        if connection.stage.next(input).is_err() {
            return Err(Error::Order(otherwise));
        }
        Ok(connection)
    }

    pub(super) fn ask(&mut self, id: ConnectionId, private_data: &[u8]) -> Result<(), Error> {
        check(private_data)?;
        let connection = self.expect(id, Input::Connect, "connect follows take, once")?;
        let (Some(port), Some(to)) = (connection.port, connection.to) else {
            return Err(Error::NoConnection(id));
        };
        let site = self.site_to(port, to, None)?;
        self.ask_from(site, id, private_data.into());
        self.feed(id, Input::Connect, String::new);
        Ok(())
    }

    /// The site that a connection was to be asked for from has no stream for it.
    pub(super) fn ask_elsewhere(&mut self, id: ConnectionId, private_data: Box<[u8]>) {
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        let (Some(port), Some((spent, to))) = (connection.port, connection.way()) else {
            return;
        };
        // Where no other can be had, the peer may give a stream back after all.
        let site = self.site_to(port, to, Some(spent)).unwrap_or(spent);
        self.ask_from(site, id, private_data);
    }

    fn ask_from(&mut self, site: u32, id: ConnectionId, private_data: Box<[u8]>) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.site = Some(site);
        if let (Some(port), Some(to)) = (connection.port, connection.to) {
            let notice = Notice::Ask {
                connection: id,
                site,
                to,
                private_data,
            };
            self.tell_port(port, notice);
        }
    }

    pub(super) fn say_yes(&mut self, id: ConnectionId, private_data: &[u8]) -> Result<(), Error> {
        check(private_data)?;
        let connection = self.expect(id, Input::Accept, "accept follows take, once")?;
        let port = connection.port.ok_or(Error::NoConnection(id))?;
        self.tell_port(
            port,
            Notice::Accept {
                connection: id,
                private_data: private_data.into(),
            },
        );
        self.feed(id, Input::Accept, String::new);
        Ok(())
    }

    pub(super) fn say_no(&mut self, id: ConnectionId, reason: &str) -> Result<(), Error> {
        let connection = self.expect(id, Input::Reject, "reject answers a request")?;
        let (origin, port) = (connection.origin, connection.port);
        if let Some(port) = port {
            self.refuse(port, origin, to_peer(reason));
        }
        self.feed(id, Input::Reject, String::new);
        Ok(())
    }

    pub(super) fn forget(&mut self, id: ConnectionId) {
        self.feed(id, Input::Abandon, String::new);
        let of_it =
            |event: &Event| matches!(event, Event::Resolved { connection } if *connection == id);
        if !self.connections.contains_key(&id) {
            self.events.retain(|event| !of_it(event));
        }
    }
}

fn check(private_data: &[u8]) -> Result<(), Error> {
    let octets = private_data.len();
    if octets > PRIVATE_DATA_MOST {
        return Err(Error::PrivateData {
            octets,
            most: PRIVATE_DATA_MOST,
        });
    }
    Ok(())
}

/// A reason as private data: as much of it as fits.
fn to_peer(reason: &str) -> Box<[u8]> {
    let mut end = reason.len().min(PRIVATE_DATA_MOST);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason.as_bytes()[..end].into()
}
