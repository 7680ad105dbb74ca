//! Links and a clock that jumps.

use rpcrdma_config::link::{Ipv4, Link};
use rpcrdma_config::{Machine, parse};
use rpcrdma_links::{Links, MemorySubnet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How far the clock jumps between two turns.
pub(crate) const STEP: Duration = Duration::from_millis(10);

/// The links of a file.
pub(crate) fn plans(text: &str) -> Vec<Link> {
    let machine = Machine {
        cores: vec![0],
        status_socket: PathBuf::from("/run/s"),
    };
    parse("", text, &machine)
        .unwrap_or_else(|error| panic!("{error}"))
        .links
}

/// Links on one partition, the first of which is its administrator, with IPv4 addresses or `dhcp`. A file would be refused where
/// two have the same address, or where DHCP is asked for on a subnet on which nobody else is: here the test is.
pub(crate) fn addressed(addresses: &[&str]) -> Vec<Link> {
    let mut text = String::from("[[service]]\nname = 's'\nlisten = 's'\n");
    for number in 0..addresses.len() {
        let administrator = number == 0;
        text += &format!(
            "[[link]]\nname = 'l{number}'\nadministrator = {administrator}\nipv6 = false\nipv4 = '10.9.0.{}/24'\n",
            number + 1
        );
    }
    let mut links = plans(&text);
    for (link, address) in links.iter_mut().zip(addresses) {
        link.ipv4 = match *address {
            "dhcp" => Ipv4::Dhcp,
            address => Ipv4::Is(address.parse().expect("an address and its prefix")),
        };
    }
    links
}

/// A link uses an address.
pub(crate) fn has(links: &Links, at: usize, address: Ipv4Addr) -> bool {
    links.addresses(at).any(|it| it == IpAddr::V4(address))
}

/// Links and a clock that jumps from one thing to do to the next.
pub(crate) struct Bench {
    pub(crate) links: Links,
    pub(crate) now: Instant,
}

impl Bench {
    pub(crate) fn of(plans: &[Link]) -> Self {
        let now = Instant::now();
        Self {
            links: Links::start(plans, now).unwrap(),
            now,
        }
    }

    /// In a subnet that others may be in, too.
    pub(crate) fn start_in(subnet: &mut MemorySubnet, plans: &[Link]) -> Self {
        let now = Instant::now();
        Self {
            links: Links::start_in(subnet, plans, now).unwrap(),
            now,
        }
    }

    /// Turns until something holds; gives up after a simulated minute.
    pub(crate) fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Links) -> bool) {
        let end = self.now + Duration::from_secs(60);
        while self.now < end {
            self.links.turn(self.now);
            if holds(&mut self.links) {
                return;
            }
            self.now += STEP;
        }
        panic!("not within a minute: {what}");
    }

    /// Turns for a while, looking after each turn.
    pub(crate) fn pass(&mut self, time: Duration, mut look: impl FnMut(&mut Links)) {
        let end = self.now + time;
        while self.now < end {
            self.links.turn(self.now);
            look(&mut self.links);
            self.now += STEP;
        }
    }
}
