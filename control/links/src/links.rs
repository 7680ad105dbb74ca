//! All links of a configuration, and the datagrams on them.

use crate::clock::Clock;
use crate::driver::{Driver, News};
use crate::ethernet::Ethernet;
use crate::host::Heard;
use crate::link::{Dhcp, Link, family_of};
use crate::words;
use rand::rngs::StdRng;
use rpcrdma_config::link::Link as Plan;
use rpcrdma_dhcp::client::{Change, Outgoing};
use rpcrdma_dhcp::message::{CLIENT_PORT, SERVER_PORT};
use rpcrdma_fabric::datagram::{AddressVector, MULTICAST_QUEUE_PAIR};
use rpcrdma_ipoib::link::LinkState;
use rpcrdma_ipoib::mgid::Family;
use rpcrdma_ipoib::node::{LinkId, Node, Output};
use rpcrdma_ipoib::packet::{HardwareAddress, Udp, emit_udp};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::Instant;
use tracing::{debug, info, warn};

/// Frames taken from one queue pair in a turn: the others, and the rest of control, come to theirs.
const FRAMES: usize = 64;
/// Datagrams that wait to be taken at most.
const DATAGRAMS: usize = 1024;
/// The hop limit of what is sent: to a link's own nodes.
const HOPS: u8 = 1;

/// What a port of the configuration is run by.
pub(crate) enum Ground {
    Node(Box<Driver>),
    Ethernet(Box<Ethernet>),
}

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
    half: usize,
    way: AddressVector,
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

/// The links.
pub struct Links {
    pub(crate) clock: Clock,
    pub(crate) random: StdRng,
    pub(crate) ports: Vec<Ground>,
    pub(crate) links: Vec<Link>,
    pub(crate) datagrams: VecDeque<Datagram>,
    /// Datagrams that found the queue full.
    pub(crate) lost: u64,
    pub(crate) closing: bool,
}

impl Links {
    /// The links as configured, in their order.
    pub fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.links.iter().map(|link| &link.plan)
    }

    /// The addresses of a link that are in use.
    pub fn addresses(&self, link: usize) -> impl Iterator<Item = IpAddr> {
        self.links.get(link).into_iter().flat_map(Link::addresses)
    }

    /// The next datagram that came, other than DHCP's.
    pub fn take(&mut self) -> Option<Datagram> {
        self.datagrams.pop_front()
    }

    /// When [`Links::turn`] has something to do, whatever comes.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let ports = self.ports.iter().filter_map(|ground| match ground {
            Ground::Node(driver) => driver.deadline(),
            Ground::Ethernet(ethernet) => ethernet.deadline(),
        });
        let leases = self.links.iter().filter_map(|link| link.dhcp.as_ref());
        let leases = leases.filter_map(|dhcp| dhcp.client.due());
        ports.chain(leases).min()
    }

    /// Readable when [`Links::turn`] has something to do.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let mut all = Vec::new();
        for ground in &self.ports {
            match ground {
                Ground::Node(driver) => all.extend(driver.descriptors()),
                Ground::Ethernet(ethernet) => all.push(ethernet.descriptor()),
            }
        }
        all
    }

    /// Takes everything that came, and lets time pass.
    pub fn turn(&mut self, now: Instant) {
        for port in 0..self.ports.len() {
            self.turn_port(port, now);
        }
        for link in 0..self.links.len() {
            for half in 0..self.links[link].halves.len() {
                self.take_frames(link, half, now);
            }
            self.turn_lease(link, now);
        }
    }

    fn turn_port(&mut self, port: usize, now: Instant) {
        let mut news = Vec::new();
        match &mut self.ports[port] {
            Ground::Node(driver) => driver.turn(now, &mut |it| news.push(it)),
            Ground::Ethernet(ethernet) => ethernet.turn(now),
        }
        for it in news {
            self.take_news(port, it, now);
        }
    }

    fn take_news(&mut self, port: usize, news: News, now: Instant) {
        match news {
            News::Node(Output::Link { link, state, error }) => {
                let error = error.map(words::refusal);
                self.link_is(port, link, state, error, now);
            }
            News::Node(Output::Trouble(trouble)) => {
                warn!(
                    "port {}: {}",
                    self.port_name(port),
                    words::trouble(&trouble)
                );
            }
            News::Node(Output::Member { link, mgid, joined }) => {
                let what = if joined { "joined" } else { "no longer joined" };
                info!("link {}: group {mgid} {what}", self.name_of(port, link));
            }
            News::Node(_) => {}
            News::Ended(why) => warn!("port {}: {why}", self.port_name(port)),
        }
    }

    /// A link has another state.
    fn link_is(
        &mut self,
        port: usize,
        id: LinkId,
        state: LinkState,
        error: Option<&'static str>,
        now: Instant,
    ) {
        let Some((link, half)) = self.place_of(port, id) else {
            return;
        };
        let up = matches!(state, LinkState::Up | LinkState::Degraded);
        let hardware = self.hardware(port, id).filter(|_| up);
        let place = &mut self.links[link];
        let name = &place.plan.name;
        let family = place.halves[half].family;
        match error {
            None => info!("link {name}: {family:?}: {}", state.name().to_lowercase()),
            Some(why) => warn!(
                "link {name}: {family:?}: {}: {why}",
                state.name().to_lowercase()
            ),
        }
        let was = std::mem::replace(&mut place.halves[half].up, up);
        place.halves[half].error = error;
        place.halves[half].host.reach(hardware);
        if up && !was {
            self.came_up(link, half, now);
        } else if was && !up {
            self.went_down(link, half);
        }
    }

    fn came_up(&mut self, link: usize, half: usize, now: Instant) {
        let place = &mut self.links[link];
        if let (Some(hardware), Ground::Node(_)) =
            (place.halves[half].host.hardware(), &self.ports[place.port])
        {
            place.address(hardware.gid.guid(), now);
        }
        if place.halves[half].family == Family::V4
            && let Some(dhcp) = &mut place.dhcp
        {
            dhcp.client.up(now, &mut self.random);
        }
        self.announce(link, half, now);
    }

    fn went_down(&mut self, link: usize, half: usize) {
        let place = &mut self.links[link];
        if place.halves[half].family == Family::V4
            && let Some(dhcp) = &mut place.dhcp
        {
            let leased = dhcp.client.lease().map(|lease| lease.address.addr());
            dhcp.client.down();
            if let Some(address) = leased {
                place.halves[half].host.remove(IpAddr::V4(address));
            }
        }
    }

    /// Tells all nodes of the link where its addresses are.
    fn announce(&mut self, link: usize, half: usize, now: Instant) {
        let host = &self.links[link].halves[half].host;
        let frames = host.addresses().iter().filter_map(|&it| host.announce(it));
        for frame in frames.collect::<Vec<_>>() {
            self.broadcast(link, half, &frame, now);
        }
    }

    /// Takes the frames of one IP that came.
    fn take_frames(&mut self, link: usize, half: usize, now: Instant) {
        for _ in 0..FRAMES {
            let place = &mut self.links[link];
            let (port, id) = (place.port, place.halves[half].id);
            let ground = &mut self.ports[port];
            let Some(from) = (match ground {
                Ground::Node(driver) => driver.receive(id),
                Ground::Ethernet(ethernet) => ethernet.receive(),
            }) else {
                return;
            };
            let (frame, q_key) = match ground {
                Ground::Node(driver) => {
                    let q_key = driver.pair(id).map_or(0, |pair| pair.facts().q_key);
                    (driver.frame(), q_key)
                }
                Ground::Ethernet(ethernet) => (ethernet.frame(), ethernet.pair().facts().q_key),
            };
            let way = AddressVector::reply(&from, q_key);
            match place.halves[half].host.hear(frame, &from) {
                Heard::Datagram(udp) => {
                    let datagram = Datagram {
                        link,
                        from: udp.from,
                        to: udp.to,
                        octets: udp.payload.to_vec(),
                        half,
                        way,
                    };
                    self.heard(datagram, now);
                }
                Heard::Answer(frame) => self.send_frame(link, half, &way, &frame),
                Heard::AnswerAll(frame) => self.broadcast(link, half, &frame, now),
                Heard::Claimed(address) => self.claimed(link, half, address, now),
                Heard::Nothing => {}
            }
        }
    }

    fn heard(&mut self, datagram: Datagram, now: Instant) {
        let place = &mut self.links[datagram.link];
        if let Some(dhcp) = &mut place.dhcp
            && datagram.to.port() == CLIENT_PORT
            && datagram.from.port() == SERVER_PORT
        {
            let change = dhcp.client.heard(&datagram.octets, now, &mut self.random);
            if let Ok(change) = change {
                dhcp.server = Some(datagram.way);
                self.lease_changed(datagram.link, datagram.half, change, now);
            }
        } else if self.datagrams.len() < DATAGRAMS {
            self.datagrams.push_back(datagram);
        } else {
            self.lost += 1;
        }
    }

    /// Somebody else has an address of ours.
    fn claimed(&mut self, link: usize, half: usize, address: IpAddr, now: Instant) {
        let place = &mut self.links[link];
        let name = &place.plan.name;
        let Some(Dhcp { client, .. }) = &mut place.dhcp else {
            return warn!("link {name}: another node has {address} as well");
        };
        warn!("link {name}: another node has {address}, which the DHCP server gave");
        if let Some((decline, change)) = client.conflict(now, &mut self.random) {
            self.send_lease(link, half, &decline, now);
            self.lease_changed(link, half, Some(change), now);
        }
    }

    fn turn_lease(&mut self, link: usize, now: Instant) {
        let place = &mut self.links[link];
        let Some(half) = place
            .halves
            .iter()
            .position(|half| half.family == Family::V4)
        else {
            return;
        };
        let Some(dhcp) = &mut place.dhcp else {
            return;
        };
        let (message, change) = dhcp.client.turn(now, &mut self.random);
        if let Some(message) = message {
            self.send_lease(link, half, &message, now);
        }
        self.lease_changed(link, half, change, now);
    }

    fn lease_changed(&mut self, link: usize, half: usize, change: Option<Change>, now: Instant) {
        let place = &mut self.links[link];
        let name = &place.plan.name;
        let host = &mut place.halves[half].host;
        match change {
            None => {}
            Some(Change::Check(address)) => {
                if let Some(frame) = host.probe(address) {
                    self.broadcast(link, half, &frame, now);
                }
            }
            Some(Change::Use(lease)) => {
                let address = IpAddr::V4(lease.address.addr());
                if !host.addresses().contains(&address) {
                    info!(
                        "link {name}: address {} from {}",
                        lease.address, lease.server
                    );
                    host.add(address);
                    self.announce(link, half, now);
                }
            }
            Some(Change::Drop(why)) => {
                warn!("link {name}: no address any more: {why:?}");
                let v4: Vec<IpAddr> = host.addresses().to_vec();
                v4.into_iter().for_each(|address| host.remove(address));
            }
        }
    }

    fn send_lease(&mut self, link: usize, half: usize, message: &Outgoing, now: Instant) {
        let from = SocketAddr::new(IpAddr::V4(message.from), CLIENT_PORT);
        let to = SocketAddr::new(IpAddr::V4(message.to), SERVER_PORT);
        let mut frame = Vec::new();
        let udp = Udp {
            from,
            to,
            hop_limit: 64,
            payload: &message.octets,
        };
        // A message of DHCP is far shorter than a packet can be.
        if !emit_udp(&mut frame, &udp) {
            return;
        }
        let server = self.links[link].dhcp.as_ref().and_then(|dhcp| dhcp.server);
        match server.filter(|_| message.to != Ipv4Addr::BROADCAST) {
            Some(way) => self.send_frame(link, half, &way, &frame),
            None => self.send_to_group(link, half, IpAddr::V4(Ipv4Addr::BROADCAST), frame, now),
        }
    }

    /// Sends a datagram to a group, from a port of ours.
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
        if !to.ip().is_multicast() {
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
        self.send_to_group(link, half, to.ip(), frame, now);
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

    /// Sends a frame with an IP packet in it by the rule of link section 9.
    fn send_to_group(
        &mut self,
        link: usize,
        half: usize,
        group: IpAddr,
        frame: Vec<u8>,
        now: Instant,
    ) {
        let place = &self.links[link];
        let id = place.halves[half].id;
        match &mut self.ports[place.port] {
            Ground::Node(driver) => {
                let send = |node: &mut Node, at| {
                    if let Err(why) = node.send(at, id, group, frame) {
                        debug!(
                            "a datagram to {group} was not sent: {}",
                            words::refusal(why)
                        );
                    }
                };
                driver.tell(send, now);
                self.work(self.links[link].port, now);
            }
            Ground::Ethernet(ethernet) => ethernet.send_group(group, frame, now),
        }
    }

    /// Sends a frame, whatever is in it, to all nodes of the link.
    fn broadcast(&mut self, link: usize, half: usize, frame: &[u8], now: Instant) {
        let place = &self.links[link];
        let id = place.halves[half].id;
        // On Ethernet the operating system says whose its address is.
        if let Ground::Node(driver) = &mut self.ports[place.port] {
            if let Some(to) = broadcast_of(driver.node(), id) {
                driver.send(id, &to, frame);
            }
            self.work(place.port, now);
        }
    }

    fn send_frame(&mut self, link: usize, half: usize, to: &AddressVector, frame: &[u8]) {
        let place = &self.links[link];
        match &mut self.ports[place.port] {
            Ground::Node(driver) => driver.send(place.halves[half].id, to, frame),
            Ground::Ethernet(ethernet) => ethernet.send(to, frame),
        }
    }

    /// Does what a node wants done after it was told something.
    pub(crate) fn work(&mut self, port: usize, now: Instant) {
        let mut news = Vec::new();
        if let Ground::Node(driver) = &mut self.ports[port] {
            driver.work(now, &mut |it| news.push(it));
        }
        for it in news {
            self.take_news(port, it, now);
        }
    }

    /// Leaves every group, gives back every lease; [`Links::is_closed`] says when that is done.
    pub fn close(&mut self, now: Instant) {
        if std::mem::replace(&mut self.closing, true) {
            return;
        }
        for link in 0..self.links.len() {
            let place = &mut self.links[link];
            let half = place.halves.iter().position(|it| it.family == Family::V4);
            let release = place.dhcp.as_mut().and_then(|it| it.client.release(now));
            if let (Some(half), Some(release)) = (half, release) {
                self.send_lease(link, half, &release, now);
            }
        }
        for port in 0..self.ports.len() {
            match &mut self.ports[port] {
                Ground::Node(driver) => driver.tell(|node, at| node.close(at), now),
                Ground::Ethernet(ethernet) => ethernet.close(),
            }
            self.work(port, now);
        }
    }

    /// All was left, or there was no more time for it.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.ports.iter().all(|ground| match ground {
            Ground::Node(driver) => driver.node().is_closed(),
            Ground::Ethernet(_) => self.closing,
        })
    }

    /// Where a port's link is among the configured ones.
    fn place_of(&self, port: usize, id: LinkId) -> Option<(usize, usize)> {
        self.links.iter().enumerate().find_map(|(index, link)| {
            let mut halves = link.halves.iter();
            let half = halves.position(|half| link.port == port && half.id == id)?;
            Some((index, half))
        })
    }

    fn name_of(&self, port: usize, id: LinkId) -> &str {
        let place = self.place_of(port, id);
        place.map_or("?", |(link, _)| &self.links[link].plan.name)
    }

    fn port_name(&self, port: usize) -> String {
        let mut links = self.links.iter().filter(|link| link.port == port);
        let device = links.find_map(|link| link.plan.device.as_ref());
        device.map_or_else(|| "memory".to_owned(), ToString::to_string)
    }

    fn hardware(&self, port: usize, id: LinkId) -> Option<HardwareAddress> {
        let Ground::Node(driver) = &self.ports[port] else {
            return None;
        };
        let facts = driver.pair(id)?.facts();
        let gid = rpcrdma_ipoib::gid::Gid(facts.gid);
        Some(HardwareAddress::datagrams(facts.queue_pair, gid))
    }
}

/// The way to all nodes of a link that is up.
fn broadcast_of(node: &Node, id: LinkId) -> Option<AddressVector> {
    let status = node.link_status(id)?;
    let (mgid, group) = (status.broadcast?, status.attributes?);
    Some(AddressVector {
        lid: group.mlid.0,
        gid: Some(mgid.0),
        queue_pair: MULTICAST_QUEUE_PAIR,
        q_key: group.q_key.0,
        service_level: group.sl,
        traffic_class: group.t_class,
        flow_label: group.flow_label,
        hop_limit: group.hop_limit,
        rate: group.rate.code(),
    })
}
