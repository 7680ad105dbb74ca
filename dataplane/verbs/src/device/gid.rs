//! Which of its GIDs a device speaks from.
//!
//! On Ethernet each address of the interface stands in the table twice, for RoCE version 1 and
//! version 2; on InfiniBand there is one that the subnet manager made. The rule: version 2 before
//! version 1, the family of the peer's address before the other, an address that can be routed
//! before one of the link, and then the first. An index in the configuration overrides it.

use std::net::{IpAddr, Ipv6Addr};

/// What a GID is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GidKind {
    /// RoCE version 1: not routed.
    RoceV1,
    /// InfiniBand.
    InfiniBand,
    /// RoCE version 2: in UDP.
    RoceV2,
}

/// An entry of a link's GID table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gid {
    /// Its place in the table.
    pub index: u32,
    /// What it is of.
    pub kind: GidKind,
    /// Its octets, as on the wire.
    pub octets: [u8; 16],
}

impl Gid {
    /// The IP address it stands for, where it does.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        let of_ip = self.kind != GidKind::InfiniBand;
        of_ip.then(|| Ipv6Addr::from(self.octets).to_canonical())
    }

    fn is_of_link(&self) -> bool {
        matches!(self.ip(), Some(IpAddr::V6(ip)) if ip.is_unicast_link_local())
    }
}

/// The entry to speak from to a peer with an address of this family.
pub(crate) fn choose(gids: &[Gid], ipv4: bool, index: Option<u32>) -> Option<Gid> {
    if index.is_some() {
        return gids.iter().find(|gid| Some(gid.index) == index).copied();
    }
    let rank = |gid: &Gid| {
        let family = gid.ip().is_none_or(|ip| ip.is_ipv4() == ipv4);
        (gid.kind, family, !gid.is_of_link())
    };
    // The first of the best: `max_by_key` gives the last.
    gids.iter().rev().max_by_key(|gid| rank(gid)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gid(index: u32, kind: GidKind, ip: &str) -> Gid {
        let ip: IpAddr = ip.parse().expect("an address");
        let octets = match ip {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        };
        Gid {
            index,
            kind,
            octets,
        }
    }

    fn table() -> Vec<Gid> {
        vec![
            gid(0, GidKind::RoceV1, "fe80::1"),
            gid(1, GidKind::RoceV2, "fe80::1"),
            gid(2, GidKind::RoceV1, "192.0.2.1"),
            gid(3, GidKind::RoceV2, "192.0.2.1"),
            gid(4, GidKind::RoceV2, "192.0.2.2"),
            gid(5, GidKind::RoceV2, "2001:db8::1"),
        ]
    }

    #[test]
    fn version_2_of_the_family_that_can_be_routed() {
        let index = |ipv4| choose(&table(), ipv4, None).map(|gid| gid.index);
        assert_eq!(index(true), Some(3));
        assert_eq!(index(false), Some(5));
    }

    #[test]
    fn what_there_is_when_the_best_is_not() {
        let only: Vec<Gid> = table().into_iter().take(3).collect();
        assert_eq!(choose(&only, true, None).map(|gid| gid.index), Some(1));
        let fabric = [gid(0, GidKind::InfiniBand, "fe80::2:c903:1")];
        assert_eq!(choose(&fabric, true, None).map(|gid| gid.index), Some(0));
        assert_eq!(choose(&[], true, None), None);
    }

    #[test]
    fn the_configuration_overrides() {
        let chosen = choose(&table(), true, Some(2)).expect("there is one");
        assert_eq!(chosen.ip(), "192.0.2.1".parse().ok());
        assert_eq!(choose(&table(), true, Some(9)), None, "no other instead");
    }
}
