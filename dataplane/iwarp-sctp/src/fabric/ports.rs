//! Making ports, and hearing what they say.

use super::IwarpFabric;
use super::connections::Connection;
use crate::endpoint::Origin;
use crate::error::Error;
use crate::inbox::{self, Notice, Outlet, Word};
use crate::port::IwarpPort;
use crate::stack::Stack;
use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::connect::{ConnectionId, DeviceChange, Event, Peer, PortId, PortWanted};
use rpcrdma_fabric::stage::{Input, Stage};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Words that are read in one go.
const WORDS: usize = 256;

/// Where a port is moored: control's side of it.
#[derive(Debug)]
pub(super) struct Berth<L> {
    outlet: Outlet<L>,
    /// Queue pairs at once.
    most: u32,
    /// Queue pairs that are out.
    pairs: u32,
    /// SCTP endpoints that the port was given.
    sites: u32,
    /// Those of them that it associates from: number, and home.
    departures: Vec<(u32, IpAddr)>,
}

impl<L> Berth<L> {
    /// Gives the port another SCTP endpoint.
    fn add_site(&mut self, llp: L, listener: Option<rpcrdma_fabric::connect::ListenerId>) -> u32 {
        let number = self.sites;
        self.sites += 1;
        self.outlet.tell(Notice::Site {
            number,
            listener,
            llp,
        });
        number
    }
}

impl<S: Stack> IwarpFabric<S> {
    pub(super) fn make_port(
        &mut self,
        arena: Arc<Arena>,
        wanted: &PortWanted,
    ) -> Result<(PortId, IwarpPort<S::Llp>), Error> {
        if let Some(name) = wanted.device.as_ref().filter(|name| *name != crate::DEVICE) {
            return Err(Error::NoDevice(name.clone()));
        }
        // What a port that was dropped has left gives way first.
        self.hear();
        let requests = self.settings.requests_max;
        let bell = Arc::clone(&self.bell);
        let (inbox, words, outlet) =
            inbox::pair(wanted.queue_pairs, requests, bell).map_err(Error::System)?;
        let port = IwarpPort::new(arena, wanted, &self.settings, inbox, words);
        let port = port.map_err(Error::System)?;
        let mut berth = Berth {
            outlet,
            most: rpcrdma_fabric::Port::capabilities(&port).queue_pairs,
            pairs: 0,
            sites: 0,
            departures: Vec::new(),
        };
        for (&id, listener) in &mut self.listeners {
            let llp = listener.site(&mut self.stack)?;
            berth.add_site(llp, Some(id));
        }
        let id = PortId(self.small_number());
        self.ports.insert(id, berth);
        Ok((id, port))
    }

    /// A new listener is heard on every port there is.
    pub(super) fn add_listener_to_ports(
        &mut self,
        id: rpcrdma_fabric::connect::ListenerId,
    ) -> Result<(), Error> {
        let Some(listener) = self.listeners.get_mut(&id) else {
            return Ok(());
        };
        for berth in self.ports.values_mut() {
            let llp = listener.site(&mut self.stack)?;
            berth.add_site(llp, Some(id));
        }
        Ok(())
    }

    /// The site of a port from which a session with a peer can be asked for: there is but one
    /// association between two addresses, and it has so many streams. Where one has none left that
    /// can be used, it is one `beyond` that.
    pub(super) fn site_to(
        &mut self,
        port: PortId,
        to: SocketAddr,
        beyond: Option<u32>,
    ) -> Result<u32, Error> {
        let berth = self.ports.get_mut(&port).ok_or(Error::NoPort(port))?;
        let streams = usize::from(self.settings.streams);
        let used = |site: u32| {
            let ways = self
                .connections
                .values()
                .filter(|it| it.port() == Some(port));
            ways.filter(|it| it.way() == Some((site, to))).count()
        };
        let wanted = self.stack.home(to);
        let mut known = berth.departures.iter();
        let further = |site: u32| beyond.is_none_or(|spent| site > spent);
        let free =
            known.find(|&&(site, home)| home == wanted && further(site) && used(site) < streams);
        if let Some(&(site, _)) = free {
            return Ok(site);
        }
        let llp = self.stack.depart(to)?;
        let site = berth.add_site(llp, None);
        berth.departures.push((site, wanted));
        Ok(site)
    }

    /// Whether a port has room, and is there.
    pub(super) fn check_berth(&self, id: PortId) -> Result<(), Error> {
        let berth = self.ports.get(&id).ok_or(Error::NoPort(id))?;
        if berth.outlet.is_over() {
            Err(Error::NoPort(id))
        } else if berth.pairs >= berth.most {
            Err(Error::PortFull(id))
        } else {
            Ok(())
        }
    }

    pub(super) fn join_port(&mut self, id: PortId) {
        if let Some(berth) = self.ports.get_mut(&id) {
            berth.pairs += 1;
        }
    }

    pub(super) fn leave_port(&mut self, id: PortId) {
        if let Some(berth) = self.ports.get_mut(&id) {
            berth.pairs = berth.pairs.saturating_sub(1);
        }
    }

    pub(super) fn tell_port(&mut self, id: PortId, notice: Notice<S::Llp>) {
        if let Some(berth) = self.ports.get_mut(&id) {
            berth.outlet.tell(notice);
        }
    }

    /// What do ports and resolvers say, and which endpoints were given up?
    pub(super) fn hear(&mut self) {
        // Before looking: what is put down meanwhile rings again.
        self.bell.hush();
        let ports: Vec<PortId> = self.ports.keys().copied().collect();
        for port in ports {
            self.hear_port(port);
        }
        while let Some((connection, to)) = self.known.pop_front() {
            self.found(connection, to);
        }
        while let Some(answer) = self.names.heard() {
            self.heed_answer(answer);
        }
        for id in self.those(Connection::is_vacated) {
            self.feed(id, Input::Vacated, || {
                "the lcore has given it up".to_owned()
            });
        }
        self.bury_ports();
        self.watch_links();
    }

    /// Says so when the links of the stack have gone down, or are up again.
    fn watch_links(&mut self) {
        let up = self.stack.is_up();
        if std::mem::replace(&mut self.up, up) == up {
            return;
        }
        let change = match up {
            true => DeviceChange::Up,
            false => DeviceChange::Down,
        };
        self.events.push_back(Event::Device {
            name: crate::DEVICE.to_owned(),
            ports: self.ports.keys().copied().collect(),
            change,
        });
    }

    fn those(&self, which: impl Fn(&Connection) -> bool) -> Vec<ConnectionId> {
        let those = self.connections.iter().filter(|(_, it)| which(it));
        those.map(|(id, _)| *id).collect()
    }

    fn bury_ports(&mut self) {
        let over = |(id, berth): (&PortId, &Berth<S::Llp>)| {
            let gone = berth.outlet.is_over() && berth.pairs == 0;
            gone.then_some(*id)
        };
        let gone: Vec<PortId> = self.ports.iter().filter_map(over).collect();
        for port in gone {
            self.ports.remove(&port);
            // Requests on it that nobody took.
            for id in self.those(|it| it.is_of(port)) {
                self.feed(id, Input::Lost, || "its port is gone".to_owned());
            }
        }
    }

    fn hear_port(&mut self, port: PortId) {
        for _ in 0..WORDS {
            let Some(berth) = self.ports.get_mut(&port) else {
                return;
            };
            let Some(word) = berth.outlet.hear() else {
                return berth.outlet.push_on();
            };
            self.heed(port, word);
        }
        // There is more: the others get their turn first.
        self.bell.ring();
    }

    fn heed(&mut self, port: PortId, word: Word) {
        match word {
            Word::Requested {
                request,
                at,
                listener,
                peer,
                private_data,
            } => {
                let Some(listener) = listener else { return };
                let id = ConnectionId(self.number());
                let origin = Origin::Asked { request, at };
                self.connections
                    .insert(id, Connection::requested(origin, port));
                self.events.push_back(Event::Request {
                    listener,
                    connection: id,
                    peer: Peer::Ip(peer),
                    private_data: private_data.into(),
                });
            }
            Word::Withdrawn { request } => {
                for id in self.those(|it| it.is_request(port, request)) {
                    self.feed(id, Input::Lost, String::new);
                }
            }
            Word::Crowded {
                connection,
                private_data,
            } => self.ask_elsewhere(connection, private_data),
            Word::Established {
                connection,
                private_data,
            } => self.note_established(connection, private_data),
            Word::Ended { connection, why } => self.feed(connection, Input::Lost, || why),
        }
    }

    fn note_established(&mut self, connection: ConnectionId, private_data: Box<[u8]>) {
        let stage = |fabric: &Self| fabric.connections.get(&connection).map(|it| it.stage);
        let before = stage(self);
        self.feed(connection, Input::Established, String::new);
        if before != Some(Stage::Established) && stage(self) == Some(Stage::Established) {
            self.events.push_back(Event::Established {
                connection,
                private_data: private_data.into(),
            });
        }
    }
}
