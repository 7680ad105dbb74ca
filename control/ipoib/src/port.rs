//! What the subnet manager has made of a port, as its owner last read it.

use crate::gid::{Gid, Lid};
use crate::mtu::Mtu;
use crate::pkey::PKey;

/// A port as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFacts {
    /// The subnet's prefix and the port's GUID.
    pub gid: Gid,
    /// The port's own address in the subnet.
    pub lid: Lid,
    /// Where the subnet manager is.
    pub sm_lid: Lid,
    /// The service level to reach it by.
    pub sm_sl: u8,
    /// The port's state is Active: packets pass.
    pub active: bool,
    /// The largest payload that the port can do.
    pub mtu: Mtu,
    /// The P_Key table in the order of its indices, empty entries included.
    pub p_keys: Vec<PKey>,
}

/// How a port stands to a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Full member, by the P_Key at this index of the table.
    Full(u16),
    /// Limited member only.
    Limited,
    /// Not in it.
    Outside,
}

impl PortFacts {
    /// Packets pass, and the subnet manager's address is known.
    #[must_use]
    pub const fn can_ask(&self) -> bool {
        self.active && self.sm_lid.0 != 0 && self.lid.0 != 0
    }

    /// How the port stands to a partition; the full membership counts where the table has both.
    #[must_use]
    pub fn standing(&self, p_key: PKey) -> Standing {
        let same = |other: &PKey| other.partition() == p_key.partition();
        let full = |other: &PKey| same(other) && other.is_full();
        match self.p_keys.iter().position(full) {
            Some(index) => u16::try_from(index).map_or(Standing::Outside, Standing::Full),
            None if self.p_keys.iter().any(same) => Standing::Limited,
            None => Standing::Outside,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_membership_counts_wherever_it_stands() {
        let port = PortFacts {
            gid: Gid::default(),
            lid: Lid(1),
            sm_lid: Lid(2),
            sm_sl: 0,
            active: true,
            mtu: Mtu::M2048,
            p_keys: [0x7FFF, 0, 0x0006, 0x8006, 0x0009].map(PKey).to_vec(),
        };
        assert_eq!(port.standing(PKey(0x8006)), Standing::Full(3));
        assert_eq!(port.standing(PKey(0x8009)), Standing::Limited);
        assert_eq!(port.standing(PKey(0x800A)), Standing::Outside);
    }
}
