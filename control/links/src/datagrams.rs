//! Datagrams on links: those that come, those that go, and those that go back.

use crate::lease;
use crate::link::{IpOf, family_of};
use crate::links::{Ground, Links};
use crate::words;
use rpcrdma_fabric::datagram::AddressVector;
use rpcrdma_ipoib::node::Node;
use rpcrdma_ipoib::packet::{Packet, Udp, emit_udp};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Instant;
use tracing::debug;

/// Frames taken from one queue pair in a turn: the others, and the rest of control, come to theirs.
const FRAMES: usize = 64;
/// Datagrams that wait to be taken at most.
const DATAGRAMS: usize = 1024;
/// The hop limit of what is sent: to a link's own nodes.
const HOPS: u8 = 1;

/// A datagram that came on a link.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// The link, by its place in the configuration.
    pub link: usize,
    /// Its sender.
    pub from: SocketAddr,
    /// A group, or an address of this link.
    pub to: SocketAddr,
    /// What it carries.
    pub octets: Vec<u8>,
    pub(crate) half: usize,
    pub(crate) way: AddressVector,
}

/// Why a datagram was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unsent {
    /// The link has no IP of this family.
    NoFamily,
    /// It has no address yet.
    NoAddress,
    /// Longer than an IP packet can be.
    TooLong,
    /// The address is no group's, or the link is being closed.
    Refused,
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoFamily => "the link has no such IP",
            Self::NoAddress => "the link has no address yet",
            Self::TooLong => "the datagram is too long",
            Self::Refused => "the address is none that can be sent to",
        })
    }
}

impl Links {
    /// Takes the frames of one IP that came.
    pub(crate) fn take_frames(&mut self, link: usize, half: usize, now: Instant) {
        for _ in 0..FRAMES {
            let place = &mut self.links[link];
            let IpOf { id, host, .. } = &mut place.halves[half];
            let (from, udp, way) = match &mut self.ports[place.port] {
                Ground::Node(driver) => {
                    let Some(from) = driver.receive(*id) else {
                        break;
                    };
                    let way = driver.way_back(*id, &from);
                    (from, driver.frame_came(*id, &from, now), way)
                }
                Ground::Ethernet(ethernet) => {
                    let Some(from) = ethernet.receive() else {
                        break;
                    };
                    let q_key = ethernet.facts().q_key;
                    let way = AddressVector::reply(&from, q_key);
                    let udp = match Packet::parse(ethernet.frame()) {
                        Ok(Packet::Udp(udp)) => Some(udp),
                        Ok(_) => None,
                        Err(_) => {
                            host.counts.rejected += 1;
                            None
                        }
                    };
                    (from, udp, way)
                }
            };
            let datagram = udp.filter(|udp| host.takes(udp.to.ip(), &from));
            let datagram = datagram.map(|udp| Datagram {
                link,
                from: udp.from,
                to: udp.to,
                octets: udp.payload.to_vec(),
                half,
                way,
            });
            if let Some(datagram) = datagram {
                self.heard(datagram, now);
            }
        }
        self.work(self.links[link].port, now);
    }

    fn heard(&mut self, datagram: Datagram, now: Instant) {
        let place = &self.links[datagram.link];
        if place.dhcp.is_some() && lease::is_reply(&datagram) {
            self.heard_lease(&datagram, now);
        } else if self.datagrams.len() < DATAGRAMS {
            self.datagrams.push_back(datagram);
        } else {
            self.links[datagram.link].halves[datagram.half]
                .host
                .counts
                .lost += 1;
        }
    }

    /// Sends a datagram to a group, or to all nodes of the link (255.255.255.255), from a port of ours.
    ///
    /// # Errors
    ///
    /// [`Unsent`]; what is lost later is counted where it is lost.
    pub fn send(
        &mut self,
        link: usize,
        from_port: u16,
        to: SocketAddr,
        octets: &[u8],
        now: Instant,
    ) -> Result<(), Unsent> {
        let place = self.links.get(link).ok_or(Unsent::NoFamily)?;
        let family = family_of(to.ip());
        let half = place.halves.iter().position(|it| it.family == family);
        let half = half.ok_or(Unsent::NoFamily)?;
        let mut own = place.halves[half].host.addresses().iter();
        let own = own.next().ok_or(Unsent::NoAddress)?;
        let to_all = to.ip() == IpAddr::V4(Ipv4Addr::BROADCAST);
        if !to_all && !to.ip().is_multicast() {
            return Err(Unsent::Refused);
        }
        let udp = Udp {
            from: SocketAddr::new(*own, from_port),
            to,
            hop_limit: HOPS,
            payload: octets,
        };
        let mut frame = Vec::new();
        if !emit_udp(&mut frame, &udp) {
            return Err(Unsent::TooLong);
        }
        self.send_to(link, half, to.ip(), frame, now);
        Ok(())
    }

    /// Sends a datagram back to where one came from, from the port that it came to.
    ///
    /// # Errors
    ///
    /// As [`Links::send`].
    pub fn reply(&mut self, to: &Datagram, octets: &[u8]) -> Result<(), Unsent> {
        let place = self.links.get(to.link).ok_or(Unsent::NoFamily)?;
        let half = place.halves.get(to.half).ok_or(Unsent::NoFamily)?;
        let own = half.host.addresses();
        let asked = own.iter().find(|&&own| own == to.to.ip());
        let own = asked.or(own.first()).ok_or(Unsent::NoAddress)?;
        let udp = Udp {
            from: SocketAddr::new(*own, to.to.port()),
            to: to.from,
            hop_limit: HOPS,
            payload: octets,
        };
        let mut frame = Vec::new();
        if !emit_udp(&mut frame, &udp) {
            return Err(Unsent::TooLong);
        }
        let (link, half, way) = (to.link, to.half, to.way);
        self.send_frame(link, half, &way, &frame);
        Ok(())
    }

    /// Sends a frame to a host, or to a group by the rule of link section 9.
    pub(crate) fn send_to(
        &mut self,
        link: usize,
        half: usize,
        to: IpAddr,
        frame: Vec<u8>,
        now: Instant,
    ) {
        let place = &self.links[link];
        let id = place.halves[half].id;
        match &mut self.ports[place.port] {
            Ground::Node(driver) => {
                let send = |node: &mut Node, at| {
                    if let Err(why) = node.send(at, id, to, frame) {
                        debug!("a frame to {to} was not sent: {}", words::refusal(why));
                    }
                };
                driver.tell(send, now);
                self.work(self.links[link].port, now);
            }
            Ground::Ethernet(ethernet) => ethernet.send_group(to, frame, now),
        }
    }

    fn send_frame(&mut self, link: usize, half: usize, to: &AddressVector, frame: &[u8]) {
        let place = &self.links[link];
        match &mut self.ports[place.port] {
            Ground::Node(driver) => driver.send(place.halves[half].id, to, frame),
            Ground::Ethernet(ethernet) => ethernet.send(to, frame),
        }
    }
}
