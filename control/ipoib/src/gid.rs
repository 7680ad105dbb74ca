//! Addresses of ports: GID, GUID and LID (IBA 4.1).

use std::fmt;
use std::net::Ipv6Addr;

/// A global identifier of 128 bits, in network order: of a port, or of a multicast group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// A port's GID: the subnet's prefix and the port's GUID.
    #[must_use]
    pub const fn of_port(prefix: u64, guid: Guid) -> Self {
        Self((((prefix as u128) << 64) | guid.0 as u128).to_be_bytes())
    }

    /// The first 64 bits.
    #[must_use]
    pub const fn prefix(self) -> u64 {
        (u128::from_be_bytes(self.0) >> 64) as u64
    }

    /// The last 64 bits, where this is a port's.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the last 64 bits are asked for"
    )]
    pub const fn guid(self) -> Guid {
        Guid(u128::from_be_bytes(self.0) as u64)
    }

    /// Of a multicast group: the first octet is FF.
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        self.0[0] == 0xFF
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self.0).fmt(f)
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A globally unique identifier of 64 bits (EUI-64), host order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Guid(pub u64);

/// A local identifier within a subnet, host order: 0x0001 to 0xBFFF of ports, 0xC000 to 0xFFFE of multicast groups.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Lid(pub u16);

impl Lid {
    /// In the range of multicast groups (link section 4 says 0xC0000: a slip).
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        matches!(self.0, 0xC000..=0xFFFE)
    }
}
