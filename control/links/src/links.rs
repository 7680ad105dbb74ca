//! All links of a configuration, and the datagrams on them.

use crate::clock::Clock;
use crate::driver::{Driver, News};
use crate::ethernet::Ethernet;
use crate::lease;
use crate::link::{IpOf, Link, family_of};
use crate::words;
use rand::rngs::StdRng;
use rpcrdma_config::link::{Ipv4, Link as Plan};
use rpcrdma_dhcp::client::Client;
use rpcrdma_fabric::datagram::AddressVector;
use rpcrdma_ipoib::address::Phase;
use rpcrdma_ipoib::link::LinkState;
use rpcrdma_ipoib::mgid::Family;
use rpcrdma_ipoib::node::{AddressNews, LinkId, Node, Output};
use rpcrdma_ipoib::packet::{Packet, Udp, emit_udp, link_local};
use rpcrdma_ipoib::trouble::Trouble;
use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};
use tracing::{debug, info, warn};

/// Frames taken from one queue pair in a turn: the others, and the rest of control, come to theirs.
const FRAMES: usize = 64;
/// Datagrams that wait to be taken at most.
const DATAGRAMS: usize = 1024;
/// A lease that is given back may have to find its server's address first.
const RELEASE: Duration = Duration::from_secs(1);
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
    pub(crate) half: usize,
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

/// The links.
pub struct Links {
    pub(crate) clock: Clock,
    pub(crate) random: StdRng,
    pub(crate) ports: Vec<Ground>,
    pub(crate) links: Vec<Link>,
    pub(crate) datagrams: VecDeque<Datagram>,
    /// Groups are left from then on.
    pub(crate) leave: Option<Instant>,
    pub(crate) left: bool,
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
        let leases = leases.filter_map(Client::due);
        let leave = self.leave.filter(|_| !self.left);
        ports.chain(leases).chain(leave).min()
    }

    /// Readable when [`Links::turn`] has something to do.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let mut all = Vec::new();
        for ground in &self.ports {
            match ground {
                Ground::Node(driver) => all.extend(driver.descriptors()),
                Ground::Ethernet(ethernet) => all.extend(ethernet.descriptors()),
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
        self.leave(now);
    }

    fn turn_port(&mut self, port: usize, now: Instant) {
        let mut news = Vec::new();
        match &mut self.ports[port] {
            Ground::Node(driver) => driver.turn(now, &mut |it| news.push(it)),
            Ground::Ethernet(ethernet) => {
                ethernet.turn(now);
                let trouble = ethernet.trouble();
                let on_it = self.links.iter_mut().filter(|link| link.port == port);
                on_it.for_each(|link| link.stands(trouble));
            }
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
            News::Node(Output::Address { link, ip, news }) => {
                self.address_is(port, link, ip, news, now);
            }
            News::Node(Output::Trouble(Trouble::Conflict { link, ip, .. })) => {
                self.conflict(port, link, ip, now);
            }
            News::Node(Output::Trouble(trouble)) => {
                let whose = match words::link_of(&trouble) {
                    Some(id) => format!("link {}", self.name_of(port, id)),
                    None => format!("port {}", self.port_name(port)),
                };
                warn!("{whose}: {}", words::trouble(&trouble));
            }
            News::Node(Output::Member { link, mgid, joined }) => {
                let what = if joined { "joined" } else { "no longer joined" };
                info!("link {}: group {mgid} {what}", self.name_of(port, link));
            }
            News::Node(_) => {}
            News::Ended(why) => warn!("port {}: gone: {why}", self.port_name(port)),
            News::Back => info!("port {}: there again", self.port_name(port)),
        }
    }

    /// Somebody else says that an address in use is its own.
    fn conflict(&mut self, port: usize, id: LinkId, ip: IpAddr, now: Instant) {
        match (self.place_of(port, id), ip) {
            (Some((link, half)), IpAddr::V4(v4)) if self.links[link].dhcp.is_some() => {
                self.claimed(link, half, v4, now);
            }
            _ => warn!(
                "link {}: another node has {ip} as well",
                self.name_of(port, id)
            ),
        }
    }

    /// An address was looked for, or is used no longer.
    fn address_is(&mut self, port: usize, id: LinkId, ip: IpAddr, news: AddressNews, now: Instant) {
        let (Some((link, half)), Ground::Node(driver)) =
            (self.place_of(port, id), &self.ports[port])
        else {
            return;
        };
        let known = driver.node().link_status(id).and_then(|link| link.address);
        let is = |phase| known == Some((ip, phase));
        let place = &mut self.links[link];
        let (name, by_lease) = (&place.plan.name, place.dhcp.is_some() && ip.is_ipv4());
        let half_of = &mut place.halves[half];
        match news {
            AddressNews::Unused => half_of.host.clear(),
            // By now another one is looked for, or this one anew.
            AddressNews::Used if !is(Phase::Used) => {}
            AddressNews::Taken { .. } if !is(Phase::Taken) => {}
            AddressNews::Used if by_lease => self.found_free(link, half, now),
            AddressNews::Used => {
                info!("link {name}: address {ip}");
                half_of.taken = false;
                half_of.host.add(ip);
            }
            AddressNews::Taken { by } => match ip {
                IpAddr::V4(ip) if by_lease => self.claimed(link, half, ip, now),
                // It is tried again for ever, and said once.
                _ if !std::mem::replace(&mut half_of.taken, true) => {
                    warn!("link {name}: {ip} is not used, since another node has it already: {by}");
                }
                _ => {}
            },
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
        let place = &mut self.links[link];
        let name = &place.plan.name;
        let family = place.halves[half].family;
        // Of a link that is up the reason is what troubled it last. A reason is said once, however often it is met.
        let why = error.filter(|_| !up);
        let ip = words::ip(family);
        match why {
            Some(why) if place.halves[half].said != Some(why) => {
                warn!("link {name}: {ip} is {}: {why}", words::state(state));
                place.halves[half].said = Some(why);
            }
            None if up => {
                info!("link {name}: {ip} is {}", words::state(state));
                place.halves[half].said = None;
            }
            _ => debug!("link {name}: {ip} is {}", words::state(state)),
        }
        let was = std::mem::replace(&mut place.halves[half].up, up);
        place.halves[half].error = error;
        if up && !was {
            self.came_up(link, half, now);
        } else if was && !up {
            self.went_down(link, half, now);
        }
    }

    fn came_up(&mut self, link: usize, half: usize, now: Instant) {
        let place = &mut self.links[link];
        let half_of = &place.halves[half];
        let Ground::Node(driver) = &self.ports[place.port] else {
            return;
        };
        let guid = driver.guid();
        match (half_of.family, place.plan.ipv4) {
            (Family::V4, Ipv4::Dhcp) => place.lease(guid, now).up(now, &mut self.random),
            (Family::V4, Ipv4::Is(network)) => {
                self.looks_for(link, half, Some(network.addr().into()), now);
            }
            (Family::V4, Ipv4::Off) => {}
            (Family::V6, _) => self.looks_for(link, half, Some(link_local(guid).into()), now),
        }
    }

    fn went_down(&mut self, link: usize, half: usize, now: Instant) {
        let place = &mut self.links[link];
        if place.halves[half].family == Family::V4
            && let Some(client) = &mut place.dhcp
        {
            let change = client.down();
            self.lease_changed(link, half, change, now);
            // Nor is one looked for any more.
            self.looks_for(link, half, None, now);
        }
    }

    /// Has the node look for an address, and use it if it is free; or none any more.
    pub(crate) fn looks_for(
        &mut self,
        link: usize,
        half: usize,
        address: Option<IpAddr>,
        now: Instant,
    ) {
        let place = &mut self.links[link];
        let (id, name) = (place.halves[half].id, &place.plan.name);
        if address.is_none() {
            place.halves[half].host.clear();
        }
        let Ground::Node(driver) = &mut self.ports[place.port] else {
            return;
        };
        let mut set = Ok(());
        driver.tell(|node, at| set = node.set_address(at, id, address), now);
        if let (Err(why), Some(address)) = (set, address) {
            warn!("link {name}: address {address}: {}", words::refusal(why));
        }
        self.work(self.links[link].port, now);
    }

    /// Takes the frames of one IP that came.
    fn take_frames(&mut self, link: usize, half: usize, now: Instant) {
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

    /// Gives back every lease, then leaves every group; [`Links::is_closed`] says when that is done.
    pub fn close(&mut self, now: Instant) {
        if self.leave.is_some() {
            return;
        }
        let mut released = false;
        for link in 0..self.links.len() {
            let place = &mut self.links[link];
            let half = place.halves.iter().position(|it| it.family == Family::V4);
            let release = place.dhcp.as_mut().and_then(|it| it.release(now));
            if let (Some(half), Some(release)) = (half, release) {
                released = true;
                self.send_lease(link, half, &release, now);
            }
        }
        let wait = if released { RELEASE } else { Duration::ZERO };
        self.leave = Some(now + wait);
        self.leave(now);
    }

    fn leave(&mut self, now: Instant) {
        if self.left || self.leave.is_none_or(|at| now < at) {
            return;
        }
        self.left = true;
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
            Ground::Ethernet(_) => self.left,
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
}
