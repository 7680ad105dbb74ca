//! Maximum payload sizes (link section 6.1).

/// A maximum payload of an InfiniBand packet; the discriminant is its code on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Mtu {
    /// 256 octets.
    M256 = 1,
    /// 512 octets.
    M512 = 2,
    /// 1024 octets.
    M1024 = 3,
    /// 2048 octets.
    M2048 = 4,
    /// 4096 octets.
    M4096 = 5,
}

impl Mtu {
    /// Of a code on the wire; `None` for one that means nothing.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::M256),
            2 => Some(Self::M512),
            3 => Some(Self::M1024),
            4 => Some(Self::M2048),
            5 => Some(Self::M4096),
            _ => None,
        }
    }

    /// In octets.
    #[must_use]
    pub const fn octets(self) -> u16 {
        128 << (self as u16)
    }

    /// One of the two that an IPoIB link may have (link section 6.1).
    #[must_use]
    pub const fn fits_ip(self) -> bool {
        matches!(self, Self::M2048 | Self::M4096)
    }

    /// What is left for an IP datagram after the encapsulation header of RFC 4391 section 6, in octets.
    #[must_use]
    pub const fn ip_octets(self) -> u16 {
        self.octets() - 4
    }
}
