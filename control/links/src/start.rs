//! Making links of their configuration.

use crate::clock::Clock;
use crate::driver::{Driver, Reopen};
use crate::ethernet::{Ethernet, Footing};
use crate::link::{IpOf, Link};
use crate::links::{Ground, Links};
use crate::memory::MemorySubnet;
use crate::pairs::{Pairs, QueuePairs};
use crate::words;
use rand::Rng;
use rpcrdma_config::link::{DevicePort, Ipv4, Link as Plan, Subnet};
use rpcrdma_fabric::datagram::GroupLimits;
use rpcrdma_ipoib::mgid::Family;
use rpcrdma_ipoib::mtu::Mtu;
use rpcrdma_ipoib::node::{LinkId, Node};
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_ipoib::qkey::QKey;
use rpcrdma_ipoib::settings::{Creation, Device, LinkSpec, Settings};
use rpcrdma_umad::{PortName, Umad};
use rpcrdma_verbs::{ManagedWanted, VerbsFabric};
use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// Why a link cannot even be begun.
#[derive(Debug)]
pub struct Refused {
    /// Its name.
    pub link: String,
    /// What is missing, and what to do.
    pub why: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {}: {}", self.link, self.why)
    }
}

impl std::error::Error for Refused {}

impl Links {
    /// Begins to bring up all links of a configuration. Opens devices, and does not wait for the network.
    ///
    /// # Errors
    ///
    /// The first link whose device, library or privilege is missing.
    pub fn start(plans: &[Plan], now: Instant) -> Result<Self, Refused> {
        let mut memory = MemorySubnet::new(partitions(plans));
        Self::start_in(&mut memory, plans, now)
    }

    /// The same, in a subnet of this process that the caller has a say in.
    ///
    /// # Errors
    ///
    /// As above.
    pub fn start_in(
        memory: &mut MemorySubnet,
        plans: &[Plan],
        now: Instant,
    ) -> Result<Self, Refused> {
        let mut links = Self {
            clock: Clock::starting(now),
            random: rand::make_rng(),
            ports: Vec::new(),
            links: Vec::new(),
            datagrams: VecDeque::new(),
            leave: None,
            left: false,
        };
        for plan in plans {
            let added = links.add(plan, plans, memory, now);
            added.map_err(|why| Refused {
                link: plan.name.clone(),
                why,
            })?;
        }
        Ok(links)
    }

    fn add(
        &mut self,
        plan: &Plan,
        plans: &[Plan],
        memory: &mut MemorySubnet,
        now: Instant,
    ) -> Result<(), String> {
        let port = match plan.subnet {
            Subnet::Ethernet => self.add_port(Ground::Ethernet(Box::new(ethernet(plan)?))),
            Subnet::Memory => {
                let (way, fabric) = memory.add_port().map_err(|it| it.to_string())?;
                let pairs: Box<dyn Pairs + Send> = Box::new(fabric);
                let device = limits(&*pairs, None, 1);
                let node = self.node(std::slice::from_ref(plan), device);
                // It never ends.
                let reopen = Box::new(|| Err("a port of this process".to_owned()));
                let way = Box::new(way);
                let pairs = QueuePairs::Of(pairs);
                let driver = Driver::new(node, self.clock, way, pairs, (None, 1), reopen);
                self.add_port(Ground::Node(Box::new(driver)))
            }
            Subnet::Infiniband => self.infiniband(plan, plans)?,
        };
        let mut link = Link::new(plan.clone(), port);
        for family in Link::families(plan) {
            let id = self.raise(port, plan, family, now)?;
            link.halves.push(IpOf::new(family, id));
        }
        if let (Subnet::Ethernet, Ipv4::Is(network), Some(half)) =
            (plan.subnet, plan.ipv4, link.halves.first_mut())
        {
            half.host.add(IpAddr::V4(network.addr()));
            half.up = true;
        }
        self.links.push(link);
        self.join(self.links.len() - 1, now)
    }

    fn add_port(&mut self, ground: Ground) -> usize {
        self.ports.push(ground);
        self.ports.len() - 1
    }

    /// The port of a device: all links on it share its node.
    fn infiniband(&mut self, plan: &Plan, plans: &[Plan]) -> Result<usize, String> {
        let wanted = plan.device.as_ref().ok_or("it has no device")?;
        let same = |link: &&Link| link.plan.device.as_ref() == Some(wanted);
        if let Some(link) = self.links.iter().find(same) {
            return Ok(link.port);
        }
        let DevicePort { device, port } = wanted;
        let name = PortName::new(device, *port).ok_or("there is no device of this name")?;
        let mut reopen: Reopen = Box::new(move || {
            let way = Umad::open(&name, rpcrdma_umad::Settings::default());
            Ok(Box::new(way.map_err(|absent| absent.to_string())?))
        });
        let way = reopen()?;
        let pairs = if plan.datagrams {
            QueuePairs::Of(Box::new(verbs()?))
        } else {
            QueuePairs::none(verbs().ok().map(|fabric| Box::new(fabric) as _))
        };
        let together = plans.iter().filter(|it| it.device.as_ref() == Some(wanted));
        let limited = pairs.made_by();
        let limited = limited.map(|pairs| limits(pairs, Some(device), *port));
        let together: Vec<_> = together.cloned().collect();
        let node = self.node(&together, limited.unwrap_or_default());
        let place = (Some(device.clone()), *port);
        let driver = Driver::new(node, self.clock, way, pairs, place, reopen);
        Ok(self.add_port(Ground::Node(Box::new(driver))))
    }

    /// The node of a port with these links: what is set for a whole port is what the most exacting of them wants.
    fn node(&mut self, plans: &[Plan], device: Device) -> Node {
        let mut settings = Settings {
            device,
            send_only_full: plans.iter().any(|plan| plan.send_only_full),
            ..Settings::default()
        };
        let least = |time: fn(&Plan) -> Duration| {
            let times = plans.iter().map(time).map(|it| it.as_millis());
            times.min().and_then(|ms| u64::try_from(ms).ok())
        };
        if let (Some(verify), Some(cache)) = (least(|it| it.verify), least(|it| it.cache)) {
            settings.timing.verify_ms = verify;
            settings.timing.cache_ms = cache;
        }
        Node::new(settings, self.random.next_u64())
    }

    fn raise(
        &mut self,
        port: usize,
        plan: &Plan,
        family: Family,
        now: Instant,
    ) -> Result<LinkId, String> {
        let Ground::Node(driver) = &mut self.ports[port] else {
            return Ok(LinkId(0));
        };
        let mut added = None;
        driver.tell(
            |node, at| added = Some(node.add_link(at, spec(plan, family))),
            now,
        );
        let id = added.transpose().map_err(words::refusal)?;
        self.work(port, now);
        id.ok_or_else(|| "it was not added".to_owned())
    }

    /// Joins the groups that it is configured with, for as long as it lives.
    fn join(&mut self, link: usize, now: Instant) -> Result<(), String> {
        let place = &self.links[link];
        let port = place.port;
        let groups: Vec<_> = place.plan.joined().collect();
        for group in groups {
            let Some(id) = self.links[link].half_of(group).map(|half| half.id) else {
                continue;
            };
            match &mut self.ports[port] {
                Ground::Node(driver) => {
                    let mut joined = Ok(());
                    driver.tell(|node, at| joined = node.join(at, id, group), now);
                    joined.map_err(|it| format!("group {group}: {}", words::refusal(it)))?;
                    self.work(port, now);
                }
                Ground::Ethernet(ethernet) => ethernet.join(group, now),
            }
        }
        Ok(())
    }
}

/// What a port's device has for groups: 0 is as little as a device says.
fn limits(pairs: &dyn Pairs, device: Option<&str>, number: u8) -> Device {
    let limits = pairs.link(device, number).map(|link| link.limits);
    let some = |of: fn(&GroupLimits) -> u32| limits.as_ref().map(of).filter(|&most| most > 0);
    Device {
        groups: some(|it| it.groups),
        attachments: some(|it| it.attachments),
    }
}

/// The partitions of the links of this process's own subnet.
fn partitions(plans: &[Plan]) -> Vec<PKey> {
    let memory = plans.iter().filter(|plan| plan.subnet == Subnet::Memory);
    let mut p_keys: Vec<_> = memory.map(|plan| PKey(plan.p_key)).collect();
    p_keys.sort_unstable();
    p_keys.dedup();
    p_keys
}

fn spec(plan: &Plan, family: Family) -> LinkSpec {
    let create = plan.administrator.map(|it| Creation {
        q_key: QKey(it.q_key),
        mtu: if it.mtu == 4096 {
            Mtu::M4096
        } else {
            Mtu::M2048
        },
        ..Creation::default()
    });
    LinkSpec {
        p_key: PKey(plan.p_key),
        family,
        create,
        router: plan.router,
    }
}

fn verbs() -> Result<VerbsFabric, String> {
    VerbsFabric::new(rpcrdma_verbs::Settings::default()).map_err(|error| error.to_string())
}

fn ethernet(plan: &Plan) -> Result<Ethernet, String> {
    let Ipv4::Is(network) = plan.ipv4 else {
        return Err("on Ethernet it needs the address of the interface as ipv4".to_owned());
    };
    let at = SocketAddr::new(IpAddr::V4(network.addr()), 0);
    let reopen = move || {
        let mut fabric = verbs()?;
        let pair = fabric.open_managed(&ManagedWanted::at(at));
        let pair = pair.map_err(|it| it.to_string())?;
        Ok(Footing::new(Box::new(pair), Box::new(fabric)))
    };
    Ethernet::new(&plan.name, Box::new(reopen))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpcrdma_config::{Machine, parse};

    #[test]
    fn section_11_what_the_device_can_hold_is_warned_of() {
        let machine = Machine {
            cores: vec![0],
            status_socket: "/run/s".into(),
        };
        let file =
            "[[link]]\nname = 'a'\nadministrator = true\n[[service]]\nname = 's'\nlisten = 's'\n";
        let plan = parse("", file, &machine).expect("a plan");
        let links = Links::start(&plan.links, Instant::now()).expect("links");
        let [Ground::Node(driver)] = &links.ports[..] else {
            panic!("one node");
        };
        let status = driver.node().status();
        // As the memory fabric's link says of itself.
        assert_eq!(status.attached_groups.1, Some(8192));
        assert_eq!(status.attachments.1, Some(65_536));
    }
}
