//! ClassPortInfo: what the SA can do (IBA 13.4.8.1, 15.2.2).

use super::{Attribute, AttributeId, Reject};
use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The SA's abilities. Where it wants to be asked, and where its traps are to go, is not looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassPortInfo {
    /// The first 16 abilities.
    pub capability_mask: u16,
    /// 27 more.
    pub capability_mask_2: u32,
    /// How long an answer may take: five bits, 4.096 us times two to its power.
    pub response_time: u8,
}

impl ClassPortInfo {
    /// In `capability_mask`: it has multicast groups.
    pub const UD_MULTICAST: u16 = 1 << 9;
    /// In `capability_mask_2`: ports may join as SendOnlyFullMember.
    pub const SEND_ONLY_FULL_MEMBER: u32 = 1 << 12;

    /// It has multicast groups.
    #[must_use]
    pub const fn has_multicast(&self) -> bool {
        self.capability_mask & Self::UD_MULTICAST != 0
    }

    /// Ports may join as SendOnlyFullMember.
    #[must_use]
    pub const fn has_send_only_full_member(&self) -> bool {
        self.capability_mask_2 & Self::SEND_ONLY_FULL_MEMBER != 0
    }
}

/// The 72 octets of the attribute.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ClassPortInfoOctets {
    base_version: u8,
    class_version: u8,
    capability_mask: U16,
    /// 27 and 5 bits.
    capability_mask_2_time: U32,
    /// Redirection and traps: addresses of 32 octets each.
    addresses: [[u8; 32]; 2],
}

const _: () = assert!(size_of::<ClassPortInfoOctets>() == 72);

impl Attribute for ClassPortInfo {
    type Octets = ClassPortInfoOctets;
    const ID: AttributeId = AttributeId::CLASS_PORT_INFO;

    fn of(octets: &ClassPortInfoOctets) -> Result<Self, Reject> {
        let [.., time] = octets.capability_mask_2_time.to_bytes();
        Ok(Self {
            capability_mask: octets.capability_mask.get(),
            capability_mask_2: octets.capability_mask_2_time.get() >> 5,
            response_time: time & 0x1F,
        })
    }

    fn octets(&self) -> ClassPortInfoOctets {
        let time = u32::from(self.response_time & 0x1F);
        ClassPortInfoOctets {
            base_version: 1,
            class_version: 2,
            capability_mask: U16::new(self.capability_mask),
            capability_mask_2_time: U32::new(self.capability_mask_2 << 5 | time),
            addresses: [[0; 32]; 2],
        }
    }
}
