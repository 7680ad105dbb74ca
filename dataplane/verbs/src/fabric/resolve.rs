//! The first steps of a connection that is begun here: name, address, route.

use super::VerbsFabric;
use super::connections::Connection;
use super::devices::LINK_DOWN;
use super::listeners::parse;
use crate::cm::{Happening, Identifier, What};
use crate::error::{Error, Fault};
use rpcrdma_fabric::connect::{ConnectionId, Event};
use rpcrdma_fabric::names::Names;
use rpcrdma_fabric::stage::{Input, Stage};
use std::net::SocketAddr;

impl VerbsFabric {
    pub(super) fn begin(&mut self, address: &str) -> Result<ConnectionId, Error> {
        let to = match parse(address) {
            Err(_) if Names::is_name(address) => None,
            to => Some(to?),
        };
        let begun = |it: &&Connection| matches!(it.stage, Stage::Resolving | Stage::Routing);
        if self.connections.values().filter(begun).count() >= self.settings.begun_max {
            return Err(Error::Busy("too many connections are being begun"));
        }
        let connection = ConnectionId(self.number());
        let id = Identifier::new(&self.channel, connection.0)?;
        // Kernels that do not know it choose it themselves.
        let _ = id.set_acknowledge_timeout(self.settings.acknowledge_timeout);
        match to {
            Some(to) => self.find_address(&id, to)?,
            None => self.names.ask(connection, address, &self.bell)?,
        }
        let tries = self.settings.resolve_tries.saturating_sub(1);
        self.connections
            .insert(connection, Connection::begun(id, to, tries));
        Ok(connection)
    }

    fn find_address(&self, id: &Identifier, to: SocketAddr) -> Result<(), Error> {
        let from = self.source(to.is_ipv4())?;
        Ok(id.resolve_address(from, to, self.resolve_timeout())?)
    }

    /// Goes on with connections to hosts whose names were looked up.
    pub(super) fn hear_names(&mut self) {
        while let Some((id, found)) = self.names.heard() {
            let Some(connection) = self.connections.get_mut(&id) else {
                continue;
            };
            connection.to = found.as_ref().ok().copied();
            let begun = match (found, self.connections.get(&id).and_then(Connection::id)) {
                (Ok(to), Some(identifier)) => self
                    .find_address(identifier, to)
                    .map_err(|error| error.to_string()),
                (Err(why), _) => Err(why),
                (Ok(_), None) => continue,
            };
            if let Err(why) = begun {
                self.feed(id, Input::Lost, || format!("the name is not found: {why}"));
            }
        }
    }

    fn resolve_timeout(&self) -> i32 {
        i32::try_from(self.settings.resolve_timeout_ms).unwrap_or(i32::MAX)
    }

    pub(super) fn find_route(&mut self, id: ConnectionId) {
        let timeout = self.resolve_timeout();
        self.feed(id, Input::AddressFound, String::new);
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        if connection.stage != Stage::Routing {
            return;
        }
        let begun = connection.id().map(|id| id.resolve_route(timeout));
        if let Some(Err(fault)) = begun {
            self.feed(id, Input::Lost, || fault.to_string());
        }
    }

    pub(super) fn note_resolved(&mut self, id: ConnectionId) {
        let Some(context) = self.connections.get(&id).and_then(Connection::context) else {
            return;
        };
        if self.device_of(context).is_none() {
            let why = || "the way to it is by a device that is not used".to_owned();
            return self.feed(id, Input::Lost, why);
        }
        if self.connections.get(&id).is_some_and(|it| self.is_down(it)) {
            return self.feed(id, Input::Lost, || LINK_DOWN.to_owned());
        }
        self.feed(id, Input::Found, String::new);
        if self
            .connections
            .get(&id)
            .is_some_and(|it| it.stage == Stage::Resolved)
        {
            self.events.push_back(Event::Resolved { connection: id });
        }
    }

    /// An address or a route was not found: nobody may have answered in time.
    pub(super) fn try_again(&mut self, id: ConnectionId, happening: &Happening) {
        let (timeout, ipv4) = (self.resolve_timeout(), |to: SocketAddr| to.is_ipv4());
        let timed_out = happening.status.saturating_abs() == libc::ETIMEDOUT;
        let to = self.connections.get(&id).and_then(|it| it.to);
        let from = to.and_then(|to| self.source(ipv4(to)).ok().flatten());
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let again = timed_out && connection.tries > 0;
        connection.tries = connection.tries.saturating_sub(1);
        let begun = match (connection.id(), to) {
            (Some(id), Some(to)) if again && happening.what == What::AddressError => {
                id.resolve_address(from, to, timeout)
            }
            (Some(id), _) if again => id.resolve_route(timeout),
            _ => Err(Fault {
                call: "rdma_resolve_addr",
                errno: happening.status.saturating_abs(),
            }),
        };
        if begun.is_err() {
            self.feed(id, Input::Lost, || happening.explain());
        }
    }
}
