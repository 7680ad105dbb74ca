//! Where peers are heard.
//!
//! A listener at an address of one device ends with the device. It is kept, and tried again each
//! time it is looked for devices, until it is heard there again. One at the wildcard address is
//! at all devices that come.

use super::VerbsFabric;
use super::connections::Connection;
use crate::cm::{Happening, Identifier, to_peer};
use crate::error::{Error, Fault};
use rpcrdma_fabric::connect::{ConnectionId, Event, ListenerId, Peer};
use rpcrdma_fabric::stage::Stage;
use std::net::{IpAddr, SocketAddr};

/// A listener.
#[derive(Debug)]
pub(crate) struct Listener {
    /// The address with its port filled in.
    address: SocketAddr,
    /// `None` while its device is gone.
    id: Option<Identifier>,
}

impl Listener {
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// An address in this fabric's form. An IPv4 address within IPv6 is taken as what it is.
pub(super) fn parse(address: &str) -> Result<SocketAddr, Error> {
    let parsed: SocketAddr = address
        .parse()
        .map_err(|_| Error::Address(address.to_owned()))?;
    Ok(match parsed.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, parsed.port()),
        IpAddr::V6(_) => parsed,
    })
}

impl VerbsFabric {
    pub(super) fn add_listener(&mut self, address: &str) -> Result<ListenerId, Error> {
        let wanted = parse(address)?;
        let number = ListenerId(self.small_number());
        let id = self.listen_at(number, wanted)?;
        let mut address = id.local().unwrap_or(wanted);
        if address.ip().is_unspecified() {
            // The manager may say it in the other family.
            address = SocketAddr::new(wanted.ip(), address.port());
        }
        let listener = Listener {
            address,
            id: Some(id),
        };
        self.listeners.insert(number, listener);
        Ok(number)
    }

    fn listen_at(&self, number: ListenerId, address: SocketAddr) -> Result<Identifier, Fault> {
        let id = Identifier::new(&self.channel, u64::from(number.0))?;
        id.reuse_address()?;
        id.bind(address)?;
        id.listen()?;
        Ok(id)
    }

    /// Its device is gone, or has another address now.
    pub(super) fn lose_listener(&mut self, number: ListenerId) {
        if let Some(listener) = self.listeners.get_mut(&number) {
            listener.id = None;
        }
    }

    /// Tries again what was lost.
    pub(super) fn listen_again(&mut self) {
        let lost = |(number, listener): (&ListenerId, &Listener)| {
            listener.id.is_none().then_some((*number, listener.address))
        };
        let lost: Vec<_> = self.listeners.iter().filter_map(lost).collect();
        for (number, address) in lost {
            let id = self.listen_at(number, address).ok();
            if let Some(listener) = self.listeners.get_mut(&number) {
                listener.id = id;
            }
        }
    }

    fn waiting(&self, listener: ListenerId) -> usize {
        let waits = |connection: &&Connection| {
            connection.listener == Some(listener) && connection.stage == Stage::Requested
        };
        self.connections.values().filter(waits).count()
    }

    /// A peer asks. Whoever asks too much, or on a device that is not served, is answered here.
    pub(super) fn take_request(&mut self, listener: ListenerId, happening: Happening) {
        let Some(id) = happening.id else {
            return;
        };
        let refusal = if self.waiting(listener) >= self.settings.requests_max {
            Some("too many requests wait")
        } else if id
            .context()
            .and_then(|context| self.device_of(context))
            .is_none()
        {
            Some("this device is not served")
        } else {
            None
        };
        let peer = id.peer();
        let (None, Some(peer)) = (refusal, peer) else {
            // Where it fails the peer has gone, and hears it from the end of the id.
            let _ = id.reject(&to_peer(refusal.unwrap_or("an address of no known family")));
            return;
        };
        let number = self.number();
        id.set_number(number);
        // Kernels that do not know it choose it themselves.
        let _ = id.set_acknowledge_timeout(self.settings.acknowledge_timeout);
        let connection = Connection::requested(id, listener, happening.offer);
        let connection_id = ConnectionId(number);
        self.connections.insert(connection_id, connection);
        self.events.push_back(Event::Request {
            listener,
            connection: connection_id,
            peer: Peer::Ip(peer),
            private_data: happening.private_data,
        });
    }

    /// There are listeners whose device is gone.
    pub(super) fn has_lost_listeners(&self) -> bool {
        self.listeners
            .values()
            .any(|listener| listener.id.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_one_form() {
        for (text, address) in [
            ("192.0.2.1:20049", "192.0.2.1:20049"),
            ("[::]:20049", "[::]:20049"),
            ("[::ffff:192.0.2.1]:1", "192.0.2.1:1"),
            ("[fe80::1%3]:1", "[fe80::1%3]:1"),
        ] {
            assert_eq!(parse(text).expect(text).to_string(), address);
        }
        for text in ["", "host:20049", "192.0.2.1", "192.0.2.1:99999"] {
            assert!(matches!(parse(text), Err(Error::Address(_))), "{text}");
        }
    }
}
