//! The lease of a link: what its DHCP client says is done, and what comes for it is told it.

use crate::datagrams::Datagram;
use crate::links::{Ground, Links};
use crate::words;
use rpcrdma_dhcp::client::{Change, Outgoing};
use rpcrdma_dhcp::lease::Lease;
use rpcrdma_dhcp::message::{CLIENT_PORT, SERVER_PORT};
use rpcrdma_ipoib::address::Phase;
use rpcrdma_ipoib::mgid::Family;
use rpcrdma_ipoib::packet::{Udp, emit_udp};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;
use tracing::{info, warn};

/// It goes from a server's port to a client's.
pub(crate) fn is_reply(datagram: &Datagram) -> bool {
    (datagram.from.port(), datagram.to.port()) == (SERVER_PORT, CLIENT_PORT)
}

impl Links {
    pub(crate) fn heard_lease(&mut self, datagram: &Datagram, now: Instant) {
        let client = self.links[datagram.link].dhcp.as_mut();
        let heard = client.map(|it| it.heard(&datagram.octets, now, &mut self.random));
        // What does not count is counted there.
        if let Some(Ok(change)) = heard {
            self.lease_changed(datagram.link, datagram.half, change, now);
        }
    }

    /// Somebody else has an address that the DHCP server gave, as was found before its use or while it was used.
    pub(crate) fn claimed(&mut self, link: usize, half: usize, address: Ipv4Addr, now: Instant) {
        let place = &mut self.links[link];
        let client = place.dhcp.as_mut();
        let declined = client.and_then(|client| client.conflict(now, &mut self.random));
        if let Some((decline, change)) = declined {
            warn!(
                "link {}: another node has {address} already",
                place.plan.name
            );
            self.send_lease(link, half, &decline, now);
            self.lease_changed(link, half, Some(change), now);
        }
    }

    /// Nobody else has the address that the DHCP server gave. Where the lease is in use already, the address was looked for
    /// anew, since the port's GID is another one.
    pub(crate) fn found_free(&mut self, link: usize, half: usize, now: Instant) {
        let Some(client) = &mut self.links[link].dhcp else {
            return;
        };
        let in_use = client.lease().copied().map(Change::Use);
        let change = in_use.or_else(|| client.free(now, &mut self.random));
        self.lease_changed(link, half, change, now);
    }

    pub(crate) fn turn_lease(&mut self, link: usize, now: Instant) {
        let place = &mut self.links[link];
        let half = place.halves.iter().position(|it| it.family == Family::V4);
        let (Some(half), Some(client)) = (half, &mut place.dhcp) else {
            return;
        };
        let (message, change) = client.turn(now, &mut self.random);
        if let Some(message) = message {
            self.send_lease(link, half, &message, now);
        }
        self.lease_changed(link, half, change, now);
    }

    pub(crate) fn lease_changed(
        &mut self,
        link: usize,
        half: usize,
        change: Option<Change>,
        now: Instant,
    ) {
        let place = &mut self.links[link];
        let name = &place.plan.name;
        match change {
            None => {}
            Some(Change::Check(address)) => {
                // Looked for anew, whatever is known of it.
                self.looks_for(link, half, None, now);
                self.looks_for(link, half, Some(IpAddr::V4(address)), now);
            }
            Some(Change::Use(lease)) => self.uses(link, half, &lease),
            Some(Change::Drop(why)) => {
                warn!("link {name}: no address any more: {}", words::dropped(why));
                self.looks_for(link, half, None, now);
            }
        }
    }

    /// Uses the address of a lease, once it is known to be free: a server may prolong a lease while its address is looked for
    /// anew.
    fn uses(&mut self, link: usize, half: usize, lease: &Lease) {
        let place = &mut self.links[link];
        let (name, half) = (&place.plan.name, &mut place.halves[half]);
        let Ground::Node(driver) = &self.ports[place.port] else {
            return;
        };
        let address = IpAddr::V4(lease.address.addr());
        let known = driver.node().link_status(half.id);
        let is_free = known.and_then(|it| it.address) == Some((address, Phase::Used));
        if is_free && !half.host.addresses().contains(&address) {
            info!(
                "link {name}: address {} from {}",
                lease.address, lease.server
            );
            half.host.add(address);
        }
    }

    pub(crate) fn send_lease(
        &mut self,
        link: usize,
        half: usize,
        message: &Outgoing,
        now: Instant,
    ) {
        let udp = Udp {
            from: SocketAddr::new(IpAddr::V4(message.from), CLIENT_PORT),
            to: SocketAddr::new(IpAddr::V4(message.to), SERVER_PORT),
            hop_limit: 64,
            payload: &message.octets,
        };
        let mut frame = Vec::new();
        // A message of DHCP is far shorter than a packet can be.
        if emit_udp(&mut frame, &udp) {
            self.send_to(link, half, IpAddr::V4(message.to), frame, now);
        }
    }
}
