//! The link-layer address of 20 octets (RFC 4391 section 9.1.1, RFC 4755 section 3.1), and the link-local address of IPv6.

use super::Reject;
use crate::gid::{Gid, Guid};
use std::fmt;
use std::net::Ipv6Addr;

/// Octets of a hardware address.
pub const HARDWARE_BYTES: usize = 20;

/// The connected modes in which a peer can be reached, besides unreliable datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Modes(u8);

impl Modes {
    /// None: what is offered here.
    pub const NONE: Self = Self(0);
    /// Reliable connections.
    pub const RC: Self = Self(0x80);
    /// Unreliable connections.
    pub const UC: Self = Self(0x40);

    /// Of the flag octet, whose other bits are reserved and ignored.
    #[must_use]
    pub const fn of_flags(octet: u8) -> Self {
        Self(octet & (Self::RC.0 | Self::UC.0))
    }

    /// The flag octet.
    #[must_use]
    pub const fn flags(self) -> u8 {
        self.0
    }

    /// None.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// All of the other are in this.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.has(Self::RC), self.has(Self::UC)) {
            (false, false) => "UD",
            (true, false) => "UD+RC",
            (false, true) => "UD+UC",
            (true, true) => "UD+RC+UC",
        })
    }
}

/// Where an interface is: its port, and its queue pair for datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct HardwareAddress {
    /// In which connected modes it can be reached too.
    pub modes: Modes,
    /// The queue pair for datagrams, 24 bits.
    pub qpn: u32,
    /// The port.
    pub gid: Gid,
}

impl HardwareAddress {
    /// That of nobody: the target of a question.
    pub const ZERO: Self = Self::datagrams(0, Gid([0; 16]));
    const QPN_MAX: u32 = 0xFF_FFFF;

    /// That of an interface which speaks datagrams alone.
    #[must_use]
    pub const fn datagrams(qpn: u32, gid: Gid) -> Self {
        Self {
            modes: Modes::NONE,
            qpn: qpn & Self::QPN_MAX,
            gid,
        }
    }

    /// Of its octets, whatever they say.
    #[must_use]
    pub fn of_octets(octets: &[u8; HARDWARE_BYTES]) -> Self {
        let [flags, a, b, c, gid @ ..] = *octets;
        Self {
            modes: Modes::of_flags(flags),
            qpn: u32::from_be_bytes([0, a, b, c]),
            gid: Gid(gid),
        }
    }

    /// Its octets.
    #[must_use]
    pub fn octets(&self) -> [u8; HARDWARE_BYTES] {
        let [_, a, b, c] = self.qpn.to_be_bytes();
        let mut octets = [0; HARDWARE_BYTES];
        let (head, gid) = octets.split_at_mut(4);
        head.copy_from_slice(&[self.modes.flags(), a, b, c]);
        gid.copy_from_slice(&self.gid.0);
        octets
    }

    /// Datagrams can go there: it has a queue pair for them that is no special one (0 and 1 are of management, all ones is
    /// every multicast group), and its port is one.
    ///
    /// # Errors
    ///
    /// [`Reject::ConnectedOnly`] where the peer has connected modes in place of such a queue pair; [`Reject::HardwareQueue`],
    /// [`Reject::HardwareGid`].
    pub fn check(self) -> Result<Self, Reject> {
        if matches!(self.qpn, 0 | 1 | Self::QPN_MAX) {
            return Err(match self.modes.is_none() {
                true => Reject::HardwareQueue,
                false => Reject::ConnectedOnly,
            });
        }
        if self.gid.is_multicast() || self.gid.guid() == Guid(0) {
            return Err(Reject::HardwareGid);
        }
        Ok(self)
    }

    /// The same interface, whatever modes it offers by now.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (self.qpn, self.gid) == (other.qpn, other.gid)
    }
}

impl fmt::Display for HardwareAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:{:#08x}:{}", self.modes, self.qpn, self.gid)
    }
}

impl fmt::Debug for HardwareAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The link-local address of IPv6 that a port's GUID makes (RFC 4391 section 8). A GUID that is not yet in modified EUI-64
/// form has its "u" bit clear, and one that is has it set already: so it is set, and never cleared.
#[must_use]
pub const fn link_local(guid: Guid) -> Ipv6Addr {
    let identifier = guid.0 | 0x0200_0000_0000_0000;
    let prefix = 0xFE80_u128 << 112;
    Ipv6Addr::from_bits(prefix | identifier as u128)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(qpn: u32, flags: u8) -> HardwareAddress {
        HardwareAddress {
            modes: Modes::of_flags(flags),
            ..HardwareAddress::datagrams(qpn, Gid::of_port(0xFE80 << 48, Guid(5)))
        }
    }

    #[test]
    fn rfc_4755_section_3_1_flags_of_a_peer_with_datagrams_decide_nothing() {
        for flags in 0..=u8::MAX {
            assert!(port(0x48, flags).check().is_ok());
        }
    }

    #[test]
    fn rfc_4755_a_peer_that_requires_connected_mode_is_refused() {
        for flags in [0x80, 0x40, 0xC0] {
            assert_eq!(port(0, flags).check(), Err(Reject::ConnectedOnly));
        }
        assert_eq!(port(0, 0x3F).check(), Err(Reject::HardwareQueue));
    }

    #[test]
    fn special_queue_pairs_are_no_interfaces() {
        for qpn in [0, 1, 0xFF_FFFF] {
            assert_eq!(port(qpn, 0).check(), Err(Reject::HardwareQueue));
        }
    }

    #[test]
    fn groups_and_nobody_are_no_ports() {
        for gid in [Gid([0; 16]), Gid([0xFF; 16])] {
            let address = HardwareAddress::datagrams(0x48, gid);
            assert_eq!(address.check(), Err(Reject::HardwareGid));
        }
    }

    #[test]
    fn rfc_4391_section_8_the_u_bit_is_set() {
        let plain = link_local(Guid(0x0002_C903_0010_0005));
        assert_eq!(plain.to_string(), "fe80::202:c903:10:5");
        let modified = link_local(Guid(0x0202_C903_0010_0005));
        assert_eq!(modified, plain);
    }
}
