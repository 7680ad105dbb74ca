//! Links and discovery as the plan has them: plain values.

use crate::allow::Networks;
use ipnet::Ipv4Net;
use rpcrdma_unicast::is_reachable;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// `[[link]]`: an IPoIB link that is brought up, with the multicast groups on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Unique among links; a label in metrics and logs.
    pub name: String,
    /// What kind of subnet it is on, and so who keeps its groups.
    pub subnet: Subnet,
    /// The device and its port; `None` in [`Subnet::Memory`].
    pub device: Option<DevicePort>,
    /// The partition, full-membership bit set.
    pub p_key: u16,
    /// Its IPv4 address.
    pub ipv4: Ipv4,
    /// It has IPv6, with the link-local address of the port's GUID.
    pub ipv6: bool,
    /// This node creates the broadcast group where there is none.
    pub administrator: Option<Administrator>,
    /// This node is an IP multicast router: it has all groups of the link.
    pub router: bool,
    /// It sends to groups as SendOnlyFullMember where the subnet administrator offers that.
    pub send_only_full: bool,
    /// Groups joined as FullMember.
    pub groups: Vec<IpAddr>,
    /// Queries for services that are answered on it.
    pub answer: Answer,
    /// It has queue pairs; else its groups are joined, and nothing is sent or received.
    pub datagrams: bool,
    /// How often its own memberships are looked up.
    pub verify: Duration,
    /// How long what is known of another group is good.
    pub cache: Duration,
}

/// What kind of subnet a link is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subnet {
    /// In this process, with a small subnet administrator of its own.
    Memory,
    /// InfiniBand: the subnet administrator is asked, by libibumad.
    Infiniband,
    /// Ethernet (RoCE): there is none, and groups are joined by rdma_cm.
    Ethernet,
}

impl Subnet {
    /// The addresses of its links are those of the operating system's interfaces: a fabric can listen there.
    #[must_use]
    pub const fn is_of_the_system(self) -> bool {
        matches!(self, Self::Ethernet)
    }

    /// Why who asks on such a link is not told of a listener; `None`: it is.
    #[must_use]
    pub fn why_untold(self, listen: SocketAddr) -> Option<&'static str> {
        match listen.ip() {
            _ if listen.port() == 0 => Some("its port is not known beforehand"),
            ip if ip.is_unspecified() && self.is_of_the_system() => None,
            ip if ip.is_unspecified() => Some("the link's own address is none of an interface"),
            _ if is_reachable(listen) => None,
            _ => Some("it means nothing elsewhere"),
        }
    }
}

/// A device and its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevicePort {
    /// As `ibstat -l` has it.
    pub device: String,
    /// From 1.
    pub port: u8,
}

impl fmt::Display for DevicePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.device, self.port)
    }
}

/// The IPv4 address of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ipv4 {
    /// It has no IPv4.
    Off,
    /// This one.
    Is(Ipv4Net),
    /// One that a DHCP server gives.
    Dhcp,
}

/// The broadcast group that an administrator creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Administrator {
    /// 2048 or 4096, octets.
    pub mtu: u16,
    /// The queue key of all queue pairs of the link.
    pub q_key: u32,
}

/// Queries that are answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// On these groups; none: none is.
    pub groups: Vec<IpAddr>,
    /// At most so many in a second; 0: no limit.
    pub per_second: u32,
    /// From these sources; `None`: from all.
    pub allow: Option<Networks>,
}

/// An upstream that is found by asking a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discover {
    /// The link to ask on.
    pub link: String,
    /// The group.
    pub group: IpAddr,
    /// The RPC program that is wanted.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// How often the group is asked while somebody is known.
    pub period: Duration,
    /// Answers count from these sources; `None`: from all.
    pub allow: Option<Networks>,
}

impl fmt::Display for Discover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, program, .. } = self;
        write!(
            f,
            "who answers for program {program} in group {group} on link {}",
            self.link
        )
    }
}

impl Link {
    /// All groups that it joins as FullMember, each once.
    pub fn joined(&self) -> impl Iterator<Item = IpAddr> {
        let others = self.answer.groups.iter();
        let others = others.filter(|group| !self.groups.contains(group));
        self.groups.iter().chain(others).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_are_told_where_they_are_the_links() {
        let why = |listen: &str, subnet: Subnet| subnet.why_untold(listen.parse().unwrap());
        for listen in ["0.0.0.0:20049", "[::]:20049"] {
            assert_eq!(why(listen, Subnet::Ethernet), None, "{listen}");
            assert!(why(listen, Subnet::Infiniband).is_some(), "{listen}");
        }
        assert_eq!(why("10.1.0.5:20049", Subnet::Memory), None);
        for listen in ["0.0.0.0:0", "10.1.0.5:0", "127.0.0.1:20049"] {
            assert!(why(listen, Subnet::Ethernet).is_some(), "{listen}");
        }
    }
}
