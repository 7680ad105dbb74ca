//! What a port's node tells: links that come up and go down, addresses that are free or somebody else's, troubles. Taken note of,
//! and said to the log.

use crate::driver::News;
use crate::link::IpOf;
use crate::links::{Ground, Links};
use crate::words;
use rpcrdma_config::link::Ipv4;
use rpcrdma_ipoib::address::Phase;
use rpcrdma_ipoib::link::LinkState;
use rpcrdma_ipoib::mgid::Family;
use rpcrdma_ipoib::node::{AddressNews, LinkId, Output};
use rpcrdma_ipoib::packet::link_local;
use rpcrdma_ipoib::trouble::{Failure, Refusal, Trouble};
use std::net::IpAddr;
use std::time::Instant;
use tracing::{debug, info, warn};

impl Links {
    pub(crate) fn take_news(&mut self, port: usize, news: News, now: Instant) {
        match news {
            News::Node(Output::Link { link, state, error }) => {
                self.link_is(port, link, state, error, now);
            }
            News::Node(Output::Address { link, ip, news }) => {
                self.address_is(port, link, ip, news, now);
            }
            // The link that is down for it says so.
            News::Node(Output::Trouble(Trouble::Failed(Failure {
                refusal: Some(Refusal::NoBroadcastGroup),
                ..
            }))) => {}
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
            News::OtherGuid => self.other_guid(port, now),
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
        let still = match news {
            AddressNews::Unused => true,
            AddressNews::Used | AddressNews::Contested { .. } => is(Phase::Used),
            AddressNews::Taken { .. } => is(Phase::Taken),
        };
        if !still {
            // By now another one is looked for, or this one anew.
            return;
        }
        let place = &mut self.links[link];
        let (name, by_lease) = (&place.plan.name, place.dhcp.is_some() && ip.is_ipv4());
        let half_of = &mut place.halves[half];
        match news {
            AddressNews::Unused => half_of.host.clear(),
            AddressNews::Used if by_lease => self.found_free(link, half, now),
            AddressNews::Used => {
                info!("link {name}: address {ip}");
                half_of.taken = false;
                half_of.host.add(ip);
            }
            // Another one can be had of the server, and of nobody the one that was configured (RFC 5227 section 2.4).
            AddressNews::Contested { .. } => {
                if let (true, IpAddr::V4(ip)) = (by_lease, ip) {
                    self.claimed(link, half, ip, now);
                }
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
        error: Option<Refusal>,
        now: Instant,
    ) {
        let Some((link, half)) = self.place_of(port, id) else {
            return;
        };
        let up = matches!(state, LinkState::Up | LinkState::Degraded);
        let place = &mut self.links[link];
        let name = &place.plan.name;
        let half_of = &mut place.halves[half];
        let (ip, is) = (words::ip(half_of.family), words::state(state));
        // What troubled a link that is up, or on its way, is over.
        match error.filter(|_| state == LinkState::Down) {
            None if up => info!("link {name}: {ip} is {is}"),
            None => debug!("link {name}: {ip} is {is}"),
            Some(why) if half_of.is_to_be_said(why) => {
                warn!("link {name}: {ip} is {is}: {}", words::refusal(why));
            }
            Some(why) => debug!("link {name}: {ip} is {is}: {}", words::refusal(why)),
        }
        if up {
            half_of.failed = None;
        }
        let was = std::mem::replace(&mut half_of.up, up);
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

    /// Addresses of IPv6 that are made of the port's GUID are other ones by now.
    fn other_guid(&mut self, port: usize, now: Instant) {
        let Ground::Node(driver) = &self.ports[port] else {
            return;
        };
        let address = Some(IpAddr::V6(link_local(driver.guid())));
        for link in 0..self.links.len() {
            let place = &self.links[link];
            let of_guid = |half: &IpOf| half.family == Family::V6 && half.up;
            let half = place.halves.iter().position(of_guid);
            if let Some(half) = half.filter(|_| place.port == port) {
                self.looks_for(link, half, address, now);
            }
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

    /// Where a port's link is among the configured ones.
    pub(crate) fn place_of(&self, port: usize, id: LinkId) -> Option<(usize, usize)> {
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

#[cfg(test)]
mod tests;
