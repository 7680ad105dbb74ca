//! Which device the ports of a bed are on.
//!
//! A connection is taken on the device that its way goes by, and a port is on one device all its
//! life. So with several devices it is looked first for the way to the service; the device
//! whose port may serve that connection is the one.

use super::Bed;
use anyhow::{Result, bail};
use rpcrdma_fabric::connect::{Event, Fabric, device_of};
use std::net::SocketAddr;

/// The devices of a bed's ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Devices {
    /// The fabric takes one: there is no other.
    Any,
    /// All on this one.
    One(String),
    /// The service is reached by each of them: in turn.
    All(Vec<String>),
}

impl Devices {
    /// That of the port with this number.
    pub(super) fn of(&self, port: usize) -> Option<String> {
        match self {
            Devices::Any => None,
            Devices::One(name) => Some(name.clone()),
            Devices::All(names) => names.get(port % names.len().max(1)).cloned(),
        }
    }
}

impl<F: Fabric> Bed<F> {
    /// The devices by which the service is reached.
    pub(super) fn find_devices(&mut self) -> Result<Devices> {
        let names = self.fabric.devices().into_iter().map(|it| it.name);
        let names: Vec<String> = names.collect();
        if names.len() < 2 {
            return Ok(Devices::Any);
        }
        let everywhere = self.address.parse::<SocketAddr>();
        if everywhere.is_ok_and(|address| address.ip().is_unspecified()) {
            return Ok(Devices::All(names));
        }
        let connection = self.fabric.resolve(&self.address)?;
        self.await_event("the way to the service", |event| {
            (*event == Event::Resolved { connection }).then_some(())
        })?;
        let found = device_of(&mut self.fabric, connection);
        self.fabric.abandon(connection);
        match found? {
            Some(name) => Ok(Devices::One(name)),
            None => bail!("no port on {} may serve it", names.join(", ")),
        }
    }
}
