//! What links look like from outside: for `rpcrdmad status`, metrics and tests.

use crate::driver::Driver;
use crate::ethernet::{Ethernet, GROUPS};
use crate::host::HostCounts;
use crate::link::{IpOf, Link};
use crate::links::{Ground, Links};
use crate::words;
use rpcrdma_dhcp::client::Client;
use rpcrdma_dhcp::phase::Phase;
use rpcrdma_fabric::datagram::{DatagramCounts, Membership};
use rpcrdma_ipoib::join::JoinState;
use rpcrdma_ipoib::mgid::Family;
use rpcrdma_ipoib::trouble::{Ignored, Operation, Resource};
use std::fmt::Debug;
use std::net::IpAddr;

/// Counters by name, as the source has it: `NoListener`, or `wrong_q_key`. None that are zero.
pub type Counted = Vec<(String, u64)>;

/// A link.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// As configured.
    pub name: String,
    /// The device and its port, or `memory`.
    pub port: String,
    /// Its partition.
    pub p_key: u16,
    /// Each IP of it.
    pub ips: Vec<IpReport>,
    /// Addresses in use.
    pub addresses: Vec<IpAddr>,
    /// Its DHCP client, where there is one.
    pub dhcp: Option<DhcpReport>,
    /// What multicast uses up of the port.
    pub resources: Vec<ResourceReport>,
    /// Failed operations on the port, by what was tried and why it failed; none that are zero.
    pub failures: Vec<(&'static str, &'static str, u64)>,
    /// Datagrams that were not sent, by reason.
    pub drops: Counted,
    /// What came to the port and was not taken, by reason.
    pub ignored: Counted,
    /// The groups that are known.
    pub groups: Vec<GroupReport>,
}

/// One IP of a link.
#[derive(Clone, Debug)]
pub struct IpReport {
    /// 4 or 6.
    pub version: u8,
    /// `down`, `joining`, `up` or `degraded`.
    pub state: &'static str,
    /// Why it is not up, or what last troubled it.
    pub error: Option<&'static str>,
    /// Its address, and where that is on its way into use: `Waiting`, `Probing`, `Used` or `Taken`. `None` while it has none,
    /// and on Ethernet, where addresses are the operating system's.
    pub address: Option<(IpAddr, &'static str)>,
    /// The largest IP packet, octets; 0 while it is not up.
    pub mtu: u16,
    /// What came and went by its queue pair ([`DatagramCounts`](rpcrdma_fabric::datagram::DatagramCounts)), and whom what came
    /// was for ([`HostCounts`](crate::HostCounts)).
    pub frames: Counted,
    /// Frames to neighbours that were not sent, by reason.
    pub neighbours_lost: Counted,
    /// What neighbours said and was not taken, by reason.
    pub neighbours_unheard: Counted,
}

/// A DHCP client.
#[derive(Clone, Debug)]
pub struct DhcpReport {
    /// Where it is.
    pub phase: Phase,
    /// Its messages, and the replies that did not count by reason.
    pub counts: Counted,
}

/// What multicast uses up.
#[derive(Clone, Copy, Debug)]
pub struct ResourceReport {
    /// `Memberships`, `AttachedGroups` or `Attachments`.
    pub name: &'static str,
    /// In use.
    pub used: u32,
    /// There is, as far as the device or a limit of our own says.
    pub limit: Option<u32>,
}

/// A group.
#[derive(Clone, Debug)]
pub struct GroupReport {
    /// Its MGID; on Ethernet its address.
    pub group: String,
    /// Its LID, 0 where there is none.
    pub mlid: u16,
    /// As what it is joined: `FullMember`, `NonMember`, ... or empty.
    pub joined: String,
    /// What is sent to it comes here.
    pub attached: bool,
}

impl LinkReport {
    /// All of its IPs are.
    #[must_use]
    pub fn is_up(&self) -> bool {
        let up = |ip: &IpReport| matches!(ip.state, "up" | "degraded");
        !self.ips.is_empty() && self.ips.iter().all(up)
    }

    /// Why its IPs are not.
    pub fn errors(&self) -> impl Iterator<Item = &'static str> {
        self.ips.iter().filter_map(|ip| ip.error)
    }
}

impl Links {
    /// Each link, in the order of the configuration.
    #[must_use]
    pub fn status(&self) -> Vec<LinkReport> {
        self.links.iter().map(|link| self.report(link)).collect()
    }

    fn report(&self, link: &Link) -> LinkReport {
        let port = link.plan.device.as_ref();
        let mut report = LinkReport {
            name: link.plan.name.clone(),
            port: port.map_or_else(|| "memory".to_owned(), ToString::to_string),
            p_key: link.plan.p_key,
            ips: Vec::new(),
            addresses: link.addresses().collect(),
            dhcp: link.dhcp.as_ref().map(dhcp),
            resources: Vec::new(),
            failures: Vec::new(),
            drops: Vec::new(),
            ignored: Vec::new(),
            groups: Vec::new(),
        };
        match &self.ports[link.port] {
            Ground::Node(driver) => of_node(&mut report, link, driver),
            Ground::Ethernet(ethernet) => of_ethernet(&mut report, link, ethernet),
        }
        report
    }
}

fn of_node(report: &mut LinkReport, link: &Link, driver: &Driver) {
    let node = driver.node();
    report.resources = node.status().resources().map(resource).into();
    for half in &link.halves {
        report.ips.extend(ip_of_node(half, driver));
        let groups = node.groups().filter(|group| group.link == half.id);
        report.groups.extend(groups.map(|group| GroupReport {
            group: group.mgid.to_string(),
            mlid: group.mlid.map_or(0, |lid| lid.0),
            joined: joined(group.held),
            attached: group.attached,
        }));
    }
    let ledger = node.ledger();
    for &operation in Operation::ALL {
        let of = ledger.failures(operation);
        let some = of.iter().filter(|(_, count)| *count > 0);
        let named = some.map(|(cause, count)| (operation.name(), cause.name(), count));
        report.failures.extend(named);
    }
    report.drops = by_kind(ledger.drops().iter());
    report.drops.extend(named([("Unsent", driver.unsent())]));
    // Broken frames have counters of their own.
    let ignored = ledger.ignored_things().iter();
    let ignored = ignored.filter(|(why, _)| *why != Ignored::BrokenFrame);
    report.ignored = by_kind(ignored);
    let frames = by_kind(node.frames_refused().iter());
    report.ignored.extend(prefixed("Frame", frames));
    let counts = driver.subnet_counts();
    report.ignored.extend(named([
        ("DroppedMad", counts.dropped),
        ("StrayMad", counts.strays),
    ]));
}

fn ip_of_node(half: &IpOf, driver: &Driver) -> Option<IpReport> {
    let status = driver.node().link_status(half.id)?;
    let counts = driver.node().neighbour_counts(half.id)?;
    Some(IpReport {
        version: version(half.family),
        state: words::state(status.state),
        error: status.error.map(words::refusal),
        address: status.address.map(|(ip, phase)| (ip, phase.name())),
        mtu: status.attributes.map_or(0, |link| link.mtu.ip_octets()),
        frames: frames(half, &driver.pair_counts(half.id)),
        neighbours_lost: by_kind(counts.lost.iter()),
        neighbours_unheard: by_kind(counts.unheard.iter()),
    })
}

fn of_ethernet(report: &mut LinkReport, link: &Link, ethernet: &Ethernet) {
    let counts = ethernet.counts();
    for (operation, count) in [
        ("Join", counts.failed_joins),
        ("Leave", counts.failed_leaves),
    ] {
        if count > 0 {
            report.failures.push((operation, "Device", count));
        }
    }
    report.drops = named([("NotJoined", counts.dropped), ("Unsent", counts.unsent)]);
    let mut memberships = 0;
    for (address, membership, joined) in ethernet.groups() {
        let name = match membership {
            Membership::Full => "FullMember",
            Membership::SendOnly => "SendOnlyFullMember",
        };
        memberships += u32::from(joined);
        report.groups.push(GroupReport {
            group: address.to_string(),
            mlid: 0,
            joined: if joined { name } else { "" }.to_owned(),
            attached: joined && membership == Membership::Full,
        });
    }
    let limit = u32::try_from(GROUPS).ok();
    report
        .resources
        .push(resource((Resource::Memberships, (memberships, limit))));
    let mtu = ethernet.facts().payload_bytes;
    let mtu = u16::try_from(mtu).unwrap_or(u16::MAX).saturating_sub(4);
    report.ips.extend(link.halves.iter().map(|half| IpReport {
        version: version(half.family),
        state: if half.up { "up" } else { "down" },
        error: half.error,
        address: None,
        mtu: if half.up { mtu } else { 0 },
        frames: frames(half, &ethernet.pair_counts()),
        neighbours_lost: Counted::new(),
        neighbours_unheard: Counted::new(),
    }));
}

/// What came and went by queue pairs.
fn frames(half: &IpOf, pairs: &DatagramCounts) -> Counted {
    let HostCounts {
        datagrams,
        others,
        rejected,
        lost,
    } = half.host.counts;
    let host = [
        ("datagrams", datagrams),
        ("others", others),
        ("rejected", rejected),
        ("lost", lost),
    ];
    named(
        pairs
            .named()
            .map(|(name, _, count)| (name, count))
            .chain(host),
    )
}

fn dhcp(client: &Client) -> DhcpReport {
    let counts = client.counts();
    let mut all = named([
        ("Sent", counts.sent),
        ("Heard", counts.heard),
        ("Conflicts", counts.conflicts),
    ]);
    all.extend(by_kind(counts.rejected.iter()));
    DhcpReport {
        phase: client.phase(),
        counts: all,
    }
}

fn resource((resource, (used, limit)): (Resource, (u32, Option<u32>))) -> ResourceReport {
    ResourceReport {
        name: resource.name(),
        used,
        limit,
    }
}

/// Counters by their names.
fn named<'a>(counts: impl IntoIterator<Item = (&'a str, u64)>) -> Counted {
    let some = counts.into_iter().filter(|(_, count)| *count > 0);
    some.map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Counters by the names of their kinds.
fn by_kind<K: Debug>(counts: impl Iterator<Item = (K, u64)>) -> Counted {
    let some = counts.filter(|(_, count)| *count > 0);
    some.map(|(kind, count)| (format!("{kind:?}"), count))
        .collect()
}

fn prefixed(prefix: &str, counts: Counted) -> impl Iterator<Item = (String, u64)> {
    let counts = counts.into_iter();
    counts.map(move |(name, count)| (format!("{prefix}{name}"), count))
}

const fn version(family: Family) -> u8 {
    match family {
        Family::V4 => 4,
        Family::V6 => 6,
    }
}

fn joined(held: JoinState) -> String {
    let kinds = [
        (JoinState::FULL, "FullMember"),
        (JoinState::NON, "NonMember"),
        (JoinState::SEND_ONLY_NON, "SendOnlyNonMember"),
        (JoinState::SEND_ONLY_FULL, "SendOnlyFullMember"),
    ];
    let held = kinds.into_iter().filter(|(kind, _)| held.has(*kind));
    held.map(|(_, name)| name).collect::<Vec<_>>().join("+")
}
