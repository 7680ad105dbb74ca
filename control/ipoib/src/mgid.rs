//! IP multicast addresses as multicast GIDs (link sections 7 and 8).
//!
//! ```text
//! | 8  | 4    | 4     | 16        | 16    | 80       |
//! | FF | flgs | scope | signature | P_Key | group ID |
//! ```
//!
//! The flags are 0001: the group's address is not a permanently assigned one. The P_Key has its full-membership bit set. IPv4
//! puts 28 bits of its address into the group ID, IPv6 its last 80: two addresses of IPv6 may share a group.

use crate::gid::Gid;
use crate::pkey::PKey;
use std::net::{IpAddr, Ipv4Addr};

/// How far a group reaches: the four bits of IPv6 (RFC 4291 section 2.7), which MGIDs share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Scope(u8);

impl Scope {
    /// The subnet.
    pub const LINK_LOCAL: Self = Self(2);
    /// The scopes in which a link's broadcast group is looked for, narrowest first (link section 7).
    pub const SEARCHED: [Self; 4] = [Self::LINK_LOCAL, Self(5), Self(8), Self(14)];

    /// Of four bits.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0xF)
    }

    /// Its four bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// Which IP a group is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Family {
    /// IP version four: signature 0x401B.
    V4,
    /// IP version six: signature 0x601B.
    V6,
}

impl Family {
    /// The signature in its MGIDs, host order.
    #[must_use]
    pub const fn signature(self) -> u16 {
        match self {
            Self::V4 => 0x401B,
            Self::V6 => 0x601B,
        }
    }
}

/// What an MGID with one of the two signatures is made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Parts {
    /// The IP of the group.
    pub family: Family,
    /// How far it reaches.
    pub scope: Scope,
    /// The link's partition, full-membership bit as found.
    pub p_key: PKey,
    /// The last 80 bits, network order.
    pub group: [u8; 10],
}

/// The group that is every node of a link (link section 7): `FFFF:FFFF` for IPv4, `1` for IPv6.
#[must_use]
pub fn broadcast(family: Family, scope: Scope, p_key: PKey) -> Gid {
    let group = match family {
        Family::V4 => [0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF],
        Family::V6 => [0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    };
    assemble(family, scope, p_key, group)
}

/// The group of an IP multicast address on a link, whose scope it takes (link section 8); `None` for an address that is no
/// group's. 255.255.255.255 and FF0x::1 are the broadcast group.
#[must_use]
pub fn of_address(address: IpAddr, scope: Scope, p_key: PKey) -> Option<Gid> {
    match address {
        IpAddr::V4(Ipv4Addr::BROADCAST) => Some(broadcast(Family::V4, scope, p_key)),
        IpAddr::V4(v4) if v4.is_multicast() => {
            let [a, b, c, d] = v4.octets();
            let group = [0, 0, 0, 0, 0, 0, a & 0x0F, b, c, d];
            Some(assemble(Family::V4, scope, p_key, group))
        }
        IpAddr::V6(v6) if v6.is_multicast() => {
            let [.., a, b, c, d, e, f, g, h, i, j] = v6.octets();
            Some(assemble(
                Family::V6,
                scope,
                p_key,
                [a, b, c, d, e, f, g, h, i, j],
            ))
        }
        _ => None,
    }
}

/// What an MGID is made of, if it has a signature of IP: the test of a router (link section 10).
#[must_use]
pub fn parts(mgid: Gid) -> Option<Parts> {
    let [0xFF, flags_scope, s0, s1, p0, p1, group @ ..] = mgid.0 else {
        return None;
    };
    let family = match u16::from_be_bytes([s0, s1]) {
        0x401B => Family::V4,
        0x601B => Family::V6,
        _ => return None,
    };
    Some(Parts {
        family,
        scope: Scope::from_bits(flags_scope),
        p_key: PKey(u16::from_be_bytes([p0, p1])),
        group,
    })
}

/// The all-router group of a link: 224.0.0.2, FF02::2 (link section 8's example).
#[must_use]
pub fn all_routers(family: Family, scope: Scope, p_key: PKey) -> Gid {
    assemble(family, scope, p_key, [0, 0, 0, 0, 0, 0, 0, 0, 0, 2])
}

/// The IP address that a group of IPv4 is for: the mapping turned round. `None` for IPv6, whose first bits are lost.
#[must_use]
pub fn v4_address(parts: &Parts) -> Option<Ipv4Addr> {
    let [0, 0, 0, 0, 0, 0, a, b, c, d] = parts.group else {
        return None;
    };
    match (parts.family, a) {
        (Family::V4, 0xFF) => Some(Ipv4Addr::new(a, b, c, d)),
        (Family::V4, 0..=0x0F) => Some(Ipv4Addr::new(0xE0 | a, b, c, d)),
        _ => None,
    }
}

fn assemble(family: Family, scope: Scope, p_key: PKey, group: [u8; 10]) -> Gid {
    let [s0, s1] = family.signature().to_be_bytes();
    let [p0, p1] = p_key.full().0.to_be_bytes();
    let [a, b, c, d, e, f, g, h, i, j] = group;
    Gid([
        0xFF,
        0x10 | scope.bits(),
        s0,
        s1,
        p0,
        p1,
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        j,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(address: &str, p_key: u16) -> String {
        of_address(address.parse().unwrap(), Scope::LINK_LOCAL, PKey(p_key))
            .unwrap()
            .to_string()
    }

    #[test]
    fn section_8_examples() {
        assert_eq!(mapped("224.0.0.2", 0x8006), "ff12:401b:8006::2");
        assert_eq!(mapped("ff02::2", 0x8006), "ff12:601b:8006::2");
    }

    #[test]
    fn section_7_broadcast_groups() {
        let v4 = broadcast(Family::V4, Scope::LINK_LOCAL, PKey(6));
        assert_eq!(v4.to_string(), "ff12:401b:8006::ffff:ffff");
        let v6 = broadcast(Family::V6, Scope::LINK_LOCAL, PKey(6));
        assert_eq!(v6.to_string(), "ff12:601b:8006::1");
    }

    #[test]
    fn section_8_all_nodes_are_the_broadcast_group() {
        assert_eq!(
            mapped("255.255.255.255", 0xFFFF),
            "ff12:401b:ffff::ffff:ffff"
        );
        assert_eq!(mapped("ff0e::1", 0xFFFF), "ff12:601b:ffff::1");
    }

    #[test]
    fn section_8_keeps_28_bits_of_ipv4() {
        assert_eq!(mapped("239.255.1.2", 0xFFFF), "ff12:401b:ffff::fff:102");
    }

    #[test]
    fn no_group_of_an_address_of_one_host() {
        for address in ["10.0.0.1", "fe80::1"] {
            let address = address.parse().unwrap();
            assert_eq!(of_address(address, Scope::LINK_LOCAL, PKey::DEFAULT), None);
        }
    }

    #[test]
    fn parts_turn_the_mapping_round() {
        let p_key = PKey(0x8006);
        let address = "239.1.2.3".parse().unwrap();
        let mgid = of_address(address, Scope::from_bits(5), p_key).unwrap();
        let parts = parts(mgid).unwrap();
        assert_eq!((parts.p_key, parts.scope.bits()), (p_key, 5));
        assert_eq!(v4_address(&parts).map(IpAddr::V4), Some(address));
    }
}
