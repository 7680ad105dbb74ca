//! What links look like from outside: for `rpcrdmad status`, metrics and tests.

use crate::ethernet::Ethernet;
use crate::host::HostCounts;
use crate::link::Link;
use crate::links::{Ground, Links};
use rpcrdma_dhcp::phase::Phase;
use rpcrdma_fabric::datagram::Membership;
use rpcrdma_ipoib::join::JoinState;
use rpcrdma_ipoib::mgid::Family;
use rpcrdma_ipoib::node::Node;
use rpcrdma_ipoib::trouble::Operation;
use std::net::IpAddr;

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
    /// Where the DHCP client is, where there is one.
    pub dhcp: Option<Phase>,
    /// Memberships that the subnet administrator has granted to the port.
    pub memberships: u32,
    /// Groups that the port's queue pairs are attached to.
    pub attached_groups: u32,
    /// Failed operations on the port, by what was tried and why it failed; none that are zero.
    pub failures: Vec<(&'static str, &'static str, u64)>,
    /// Datagrams that were not sent, by reason; none that are zero.
    pub drops: Vec<(&'static str, u64)>,
    /// What came to the port and was not taken, by reason; none that are zero.
    pub ignored: Vec<(&'static str, u64)>,
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
    /// The largest IP packet, octets; 0 while it is not up.
    pub mtu: u16,
    /// What came.
    pub counts: HostCounts,
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

    /// Datagrams that were lost because nobody took earlier ones.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    fn report(&self, link: &Link) -> LinkReport {
        let mut report = LinkReport {
            name: link.plan.name.clone(),
            port: link
                .plan
                .device
                .as_ref()
                .map_or_else(|| "memory".to_owned(), ToString::to_string),
            p_key: link.plan.p_key,
            ips: Vec::new(),
            addresses: link.addresses().collect(),
            dhcp: link.dhcp.as_ref().map(|dhcp| dhcp.phase()),
            memberships: 0,
            attached_groups: 0,
            failures: Vec::new(),
            drops: Vec::new(),
            ignored: Vec::new(),
            groups: Vec::new(),
        };
        match &self.ports[link.port] {
            Ground::Node(driver) => {
                of_node(&mut report, link, driver.node());
                add(&mut report.drops, [("Unsent", driver.unsent())]);
            }
            Ground::Ethernet(ethernet) => of_ethernet(&mut report, link, ethernet),
        }
        report
    }
}

fn of_node(report: &mut LinkReport, link: &Link, node: &Node) {
    let status = node.status();
    report.memberships = status.memberships.0;
    report.attached_groups = status.attached_groups.0;
    for half in &link.halves {
        let Some(status) = node.link_status(half.id) else {
            continue;
        };
        report.ips.push(IpReport {
            version: version(half.family),
            state: crate::words::state(status.state),
            error: status.error.map(crate::words::refusal),
            mtu: status.attributes.map_or(0, |link| link.mtu.ip_octets()),
            counts: half.host.counts,
        });
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
    let drops = ledger.drops().iter().filter(|(_, count)| *count > 0);
    report.drops = drops.map(|(why, count)| (why.name(), count)).collect();
    let ignored = ledger.ignored_things().iter();
    let ignored = ignored.filter(|(_, count)| *count > 0);
    report.ignored = ignored.map(|(why, count)| (why.name(), count)).collect();
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
    add(
        &mut report.drops,
        [("NotJoined", counts.dropped), ("Unsent", counts.unsent)],
    );
    for (address, membership, joined) in ethernet.groups() {
        let name = match membership {
            Membership::Full => "FullMember",
            Membership::SendOnly => "SendOnlyFullMember",
        };
        report.memberships += u32::from(joined);
        report.groups.push(GroupReport {
            group: address.to_string(),
            mlid: 0,
            joined: if joined { name } else { "" }.to_owned(),
            attached: joined && membership == Membership::Full,
        });
    }
    let mtu = ethernet.facts().payload_bytes;
    let mtu = u16::try_from(mtu).unwrap_or(u16::MAX).saturating_sub(4);
    report.ips.extend(link.halves.iter().map(|half| IpReport {
        version: version(half.family),
        state: if half.up { "up" } else { "down" },
        error: half.error,
        mtu: if half.up { mtu } else { 0 },
        counts: half.host.counts,
    }));
}

/// Adds what is not zero.
fn add<const N: usize>(to: &mut Vec<(&'static str, u64)>, counts: [(&'static str, u64); N]) {
    to.extend(counts.into_iter().filter(|(_, count)| *count > 0));
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
