//! All links of a configuration: their turn, and their end.

use crate::clock::Clock;
use crate::datagrams::Datagram;
use crate::driver::Driver;
use crate::ethernet::Ethernet;
use crate::link::Link;
use rand::rngs::StdRng;
use rpcrdma_dhcp::client::Client;
use rpcrdma_ipoib::mgid::Family;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// A lease that is given back may have to find its server's address first.
const RELEASE: Duration = Duration::from_secs(1);

/// What a port of the configuration is run by.
pub(crate) enum Ground {
    Node(Box<Driver>),
    Ethernet(Box<Ethernet>),
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
}
