//! Who may connect.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// 127.0.0.0/8 and ::1/128.
const LOOPBACK: [IpNet; 2] = [
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128)),
];

/// Bits of `::ffff:0:0/96`, which stand before an IPv4 address in its IPv6 form.
const MAPPED_PREFIX: u8 = 96;

/// Why a text is no block of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotBlock {
    /// What stands before the slash, or all of it where there is none, is no address.
    Address {
        /// There is one.
        slash: bool,
    },
    /// What stands behind it is no number, or more than the address has bits.
    Prefix {
        /// The most it can be.
        max: u8,
    },
    /// An IPv4 address in its IPv6 form. Those are compared as IPv4: the block would hold nobody.
    Mapped {
        /// The block that was meant.
        meant: IpNet,
    },
    /// Address bits are set beyond the prefix.
    HostBits {
        /// The block that was probably meant.
        meant: IpNet,
    },
}

/// Reads CIDR notation; a bare address is a block of one.
pub(crate) fn block(text: &str) -> Result<IpNet, NotBlock> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| NotBlock::Address {
        slash: prefix.is_some(),
    })?;
    let one = IpNet::from(address);
    let Some(prefix) = prefix else {
        return not_mapped(one);
    };
    let max = one.max_prefix_len();
    let digits = prefix.bytes().all(|b| b.is_ascii_digit());
    let prefix = prefix
        .parse::<u8>()
        .ok()
        .filter(|_| digits)
        .ok_or(NotBlock::Prefix { max })?;
    let block = IpNet::new(address, prefix).map_err(|_| NotBlock::Prefix { max })?;
    let meant = block.trunc();
    if meant == block {
        not_mapped(block)
    } else {
        Err(NotBlock::HostBits { meant })
    }
}

/// Refuses blocks of IPv4 addresses in their IPv6 form (`::ffff:192.0.2.0/120`). Larger ones, as
/// `::/0`, are of IPv6 addresses.
fn not_mapped(block: IpNet) -> Result<IpNet, NotBlock> {
    let IpAddr::V4(address) = block.addr().to_canonical() else {
        return Ok(block);
    };
    let prefix = match block {
        IpNet::V4(_) => return Ok(block),
        IpNet::V6(block) => block.prefix_len().checked_sub(MAPPED_PREFIX),
    };
    match prefix.map(|prefix| IpNet::new(address.into(), prefix)) {
        Some(Ok(meant)) => Err(NotBlock::Mapped { meant }),
        _ => Ok(block),
    }
}

/// Whether an address lies in a block. An IPv4 address that arrived on an IPv6 socket
/// (`::ffff:192.0.2.1`) counts as the IPv4 address it is.
fn holds(block: &IpNet, address: IpAddr) -> bool {
    block.contains(&address.to_canonical())
}

/// The TCP clients that may connect to a back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks(pub Vec<IpNet>);

impl Networks {
    /// Loopback alone: the default.
    #[must_use]
    pub fn loopback() -> Networks {
        Networks(LOOPBACK.to_vec())
    }

    /// Whether a client at this address may connect.
    #[must_use]
    pub fn permits(&self, client: IpAddr) -> bool {
        self.0.iter().any(|block| holds(block, client))
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
    Network(IpNet),
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
        let [v4, v6] = LOOPBACK.map(Peer::Network);
        Peers(vec![Peer::Memory, v4, v6])
    }

    /// Whether endpoints of this process may connect by the memory fabric.
    #[must_use]
    pub fn permits_memory(&self) -> bool {
        self.0.contains(&Peer::Memory)
    }

    /// Whether a peer at this address may connect by another fabric.
    #[must_use]
    pub fn permits(&self, peer: IpAddr) -> bool {
        let hit = |entry: &Peer| matches!(entry, Peer::Network(block) if holds(block, peer));
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
            let block = super::block(block).unwrap();
            assert!(holds(&block, ip(inside)), "{block} {inside}");
            assert!(!holds(&block, ip(outside)), "{block} {outside}");
        }
    }

    #[test]
    fn what_is_no_block_is_refused_by_kind() {
        for (text, slash) in [
            ("192.0.2/24", true),
            ("host/24", true),
            ("host", false),
            ("fe80::1%lo", false),
        ] {
            assert_eq!(block(text), Err(NotBlock::Address { slash }), "{text}");
        }
        for prefix in [
            "192.0.2.0/33",
            "192.0.2.0/",
            "192.0.2.0/+8",
            "192.0.2.0/999",
        ] {
            assert_eq!(block(prefix), Err(NotBlock::Prefix { max: 32 }), "{prefix}");
        }
        assert_eq!(block("::/129"), Err(NotBlock::Prefix { max: 128 }));
        for (mapped, meant) in [
            ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
            ("::ffff:c000:207", "192.0.2.7/32"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
        ] {
            let meant = meant.parse().unwrap();
            assert_eq!(block(mapped), Err(NotBlock::Mapped { meant }), "{mapped}");
        }
        let meant = block("192.0.2.0/24").unwrap();
        assert_eq!(block("192.0.2.1/24"), Err(NotBlock::HostBits { meant }));
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
