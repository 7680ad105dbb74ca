//! Who may connect.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A block of IP addresses: CIDR notation, `192.0.2.0/24` or `2001:db8::/32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// Why a text is no [`Network`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotNetwork {
    /// What stands before the slash is no address.
    Address,
    /// What stands behind it is no number, or more than the address has bits.
    Prefix {
        /// The most it can be.
        max: u8,
    },
    /// Address bits are set beyond the prefix.
    HostBits {
        /// The block that was probably meant.
        meant: Network,
    },
}

impl Network {
    /// 127.0.0.0/8.
    pub const LOOPBACK_V4: Network =
        Network { address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), prefix: 8 };
    /// ::1/128.
    pub const LOOPBACK_V6: Network =
        Network { address: IpAddr::V6(Ipv6Addr::LOCALHOST), prefix: 128 };

    /// Reads CIDR notation; a bare address is a block of one.
    pub(crate) fn parse(text: &str) -> Result<Network, NotNetwork> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NotNetwork::Address)?;
        let max = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => max,
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                let number: u8 = digits.parse().map_err(|_| NotNetwork::Prefix { max })?;
                Some(number).filter(|&n| n <= max).ok_or(NotNetwork::Prefix { max })?
            }
            Some(_) => return Err(NotNetwork::Prefix { max }),
        };
        let meant = Network { address: mask(address, prefix), prefix };
        if meant.address == address { Ok(meant) } else { Err(NotNetwork::HostBits { meant }) }
    }

    /// Whether an address lies in the block. An IPv4 address that arrived on an IPv6 socket
    /// (`::ffff:192.0.2.1`) counts as the IPv4 address it is.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && mask(address, self.prefix) == self.address
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// The first `prefix` bits of an address, the rest zero.
fn mask(address: IpAddr, prefix: u8) -> IpAddr {
    let prefix = u32::from(prefix);
    match address {
        IpAddr::V4(v4) => {
            let keep = u32::MAX.checked_shl(32u32.saturating_sub(prefix)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & keep))
        }
        IpAddr::V6(v6) => {
            let keep = u128::MAX.checked_shl(128u32.saturating_sub(prefix)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & keep))
        }
    }
}

/// The TCP clients that may connect to a back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks(pub Vec<Network>);

impl Networks {
    /// Loopback alone: the default.
    #[must_use]
    pub fn loopback() -> Networks {
        Networks(vec![Network::LOOPBACK_V4, Network::LOOPBACK_V6])
    }

    /// Whether a client at this address may connect.
    #[must_use]
    pub fn permits(&self, client: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(client))
    }
}

impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, &self.0)
    }
}

/// One entry of a front's or a service's `allow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `"memory"`: every endpoint of this process.
    Memory,
    /// Peers of fabrics that go by IP addresses.
    Network(Network),
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Memory => f.write_str("memory"),
            Peer::Network(network) => network.fmt(f),
        }
    }
}

/// The RDMA peers that may connect to a front or a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peers(pub Vec<Peer>);

impl Peers {
    /// Loopback and the memory fabric alone: the default.
    #[must_use]
    pub fn local() -> Peers {
        let loopback = [Network::LOOPBACK_V4, Network::LOOPBACK_V6].map(Peer::Network);
        Peers([&[Peer::Memory], &loopback[..]].concat())
    }

    /// Whether endpoints of this process may connect by the memory fabric.
    #[must_use]
    pub fn permits_memory(&self) -> bool {
        self.0.contains(&Peer::Memory)
    }

    /// Whether a peer at this address may connect by another fabric.
    #[must_use]
    pub fn permits(&self, peer: IpAddr) -> bool {
        let hit = |entry: &Peer| matches!(entry, Peer::Network(block) if block.contains(peer));
        self.0.iter().any(hit)
    }
}

impl fmt::Display for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, &self.0)
    }
}

/// Entries with commas between them, or the word for none.
fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, entries: &[T]) -> fmt::Result {
    if entries.is_empty() {
        return f.write_str("nobody");
    }
    for (index, entry) in entries.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(f, "{comma}{entry}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_block_holds_its_addresses_and_no_others() {
        for (block, inside, outside) in [
            ("192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"),
            ("::/0", "fe80::1", "10.0.0.1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::ffff:11.1.2.3"),
        ] {
            let block = Network::parse(block).unwrap();
            assert!(block.contains(ip(inside)), "{block} {inside}");
            assert!(!block.contains(ip(outside)), "{block} {outside}");
        }
    }

    #[test]
    fn what_is_no_block_is_refused_by_kind() {
        assert_eq!(Network::parse("192.0.2/24"), Err(NotNetwork::Address));
        assert_eq!(Network::parse("host/24"), Err(NotNetwork::Address));
        for prefix in ["192.0.2.0/33", "192.0.2.0/", "192.0.2.0/+8", "192.0.2.0/999"] {
            assert_eq!(Network::parse(prefix), Err(NotNetwork::Prefix { max: 32 }), "{prefix}");
        }
        assert_eq!(Network::parse("::/129"), Err(NotNetwork::Prefix { max: 128 }));
        let meant = Network::parse("192.0.2.0/24").unwrap();
        assert_eq!(Network::parse("192.0.2.1/24"), Err(NotNetwork::HostBits { meant }));
    }

    #[test]
    fn the_defaults_are_local_alone() {
        assert!(Networks::loopback().permits(ip("127.255.0.1")));
        assert!(Networks::loopback().permits(ip("::1")));
        assert!(!Networks::loopback().permits(ip("192.0.2.1")));
        assert!(Peers::local().permits_memory());
        assert!(!Peers::local().permits(ip("10.0.0.1")));
        assert!(!Peers(vec![]).permits_memory());
    }
}
