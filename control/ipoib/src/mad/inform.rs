//! InformInfo: a subscription to events (IBA 13.4.8.3).

use super::{Attribute, AttributeId, Reject};
use crate::gid::Gid;
use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A subscription, or the end of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InformInfo {
    /// It begins, or it ends.
    pub subscribe: bool,
    /// Whose events: a port's, or zero where the identifiers that follow say it.
    pub gid: Gid,
    /// The first of the local identifiers whose events are meant; 0xFFFF for all of them.
    pub lid_begin: u16,
    /// The last one; of no meaning where the first is 0xFFFF.
    pub lid_end: u16,
    /// The event is one of the specification's, and not a vendor's.
    pub generic: bool,
    /// The kind of event; 0xFFFF for all.
    pub kind: u16,
    /// The number of the trap; 0xFFFF for all.
    pub trap: u16,
    /// The subscriber's queue pair, 24 bits: what a subscription that ends is found by.
    pub qpn: u32,
    /// How long an answer to a report may take: five bits, 4.096 us times two to its power.
    pub response_time: u8,
    /// Who the event is from, 24 bits: 0xFFFFFF for all.
    pub producer: u32,
}

impl InformInfo {
    /// All events of a trap's number, from anybody, to the queue pair of general services.
    #[must_use]
    pub const fn of_trap(trap: u16, subscribe: bool) -> Self {
        Self {
            subscribe,
            gid: Gid([0; 16]),
            lid_begin: 0xFFFF,
            lid_end: 0,
            generic: true,
            kind: 0xFFFF,
            trap,
            qpn: 1,
            response_time: 19,
            producer: 0xFF_FFFF,
        }
    }
}

/// The 36 octets of the attribute.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct InformOctets {
    gid: [u8; 16],
    lid_begin: U16,
    lid_end: U16,
    reserved: U16,
    generic: u8,
    subscribe: u8,
    kind: U16,
    trap: U16,
    /// 24 bits, 3 reserved, 5 bits.
    qpn_time: U32,
    /// 8 reserved, 24 bits.
    producer: U32,
}

const _: () = assert!(size_of::<InformOctets>() == 36);

impl Attribute for InformInfo {
    type Octets = InformOctets;
    const ID: AttributeId = AttributeId::INFORM_INFO;

    fn of(octets: &InformOctets) -> Result<Self, Reject> {
        let [.., time] = octets.qpn_time.to_bytes();
        Ok(Self {
            subscribe: octets.subscribe != 0,
            gid: Gid(octets.gid),
            lid_begin: octets.lid_begin.get(),
            lid_end: octets.lid_end.get(),
            generic: octets.generic != 0,
            kind: octets.kind.get(),
            trap: octets.trap.get(),
            qpn: octets.qpn_time.get() >> 8,
            response_time: time & 0x1F,
            producer: octets.producer.get() & 0xFF_FFFF,
        })
    }

    fn octets(&self) -> InformOctets {
        let time = u32::from(self.response_time & 0x1F);
        InformOctets {
            gid: self.gid.0,
            lid_begin: U16::new(self.lid_begin),
            lid_end: U16::new(self.lid_end),
            reserved: U16::ZERO,
            generic: self.generic.into(),
            subscribe: self.subscribe.into(),
            kind: U16::new(self.kind),
            trap: U16::new(self.trap),
            qpn_time: U32::new((self.qpn & 0xFF_FFFF) << 8 | time),
            producer: U32::new(self.producer & 0xFF_FFFF),
        }
    }
}
