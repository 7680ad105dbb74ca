//! Partition keys (link section 6, IBA 10.9.1).

use std::fmt;

/// A partition key, host order: 15 bits of partition, and the top bit for full membership.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PKey(pub u16);

impl PKey {
    /// The partition that every port is in, with full membership.
    pub const DEFAULT: Self = Self(0xFFFF);

    /// Full members talk to each other and to limited ones: what an IPoIB link needs (link section 6).
    #[must_use]
    pub const fn is_full(self) -> bool {
        self.0 & 0x8000 != 0
    }

    /// The same partition with full membership: the form that goes into an MGID.
    #[must_use]
    pub const fn full(self) -> Self {
        Self(self.0 | 0x8000)
    }

    /// The partition alone; 0 names none.
    #[must_use]
    pub const fn partition(self) -> u16 {
        self.0 & 0x7FFF
    }
}

impl fmt::Display for PKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

impl fmt::Debug for PKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
