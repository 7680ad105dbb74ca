//! Notice: an event that a report tells of (IBA 13.4.8.2, 14.2.5.1).

use super::{Attribute, AttributeId, Reject};
use crate::gid::{Gid, Lid};
use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// What happened, where it is one of the four that matter to a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Trap 64: a port came into service.
    PortInService(Gid),
    /// Trap 65: a port went out of service.
    PortOutOfService(Gid),
    /// Trap 66: a group was created, or a preconfigured one got its first member.
    GroupCreated(Gid),
    /// Trap 67: a group was deleted, or a preconfigured one lost its last member: no proof that it is gone.
    GroupDeleted(Gid),
}

impl Event {
    /// Its trap's number.
    #[must_use]
    pub const fn trap(self) -> u16 {
        match self {
            Self::PortInService(_) => 64,
            Self::PortOutOfService(_) => 65,
            Self::GroupCreated(_) => 66,
            Self::GroupDeleted(_) => 67,
        }
    }

    /// The port or the group it is about.
    #[must_use]
    pub const fn gid(self) -> Gid {
        match self {
            Self::PortInService(gid)
            | Self::PortOutOfService(gid)
            | Self::GroupCreated(gid)
            | Self::GroupDeleted(gid) => gid,
        }
    }
}

/// A notice as it was reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// The event is one of the specification's, and not a vendor's.
    pub generic: bool,
    /// The kind of event, seven bits: 3 is subnet management.
    pub kind: u8,
    /// Who it is from, 24 bits: 4 is a class manager.
    pub producer: u32,
    /// The number of the trap.
    pub trap: u16,
    /// Who reported it.
    pub issuer_lid: Lid,
    /// The port or the group it is about, where the trap is one of 64 to 67.
    pub gid: Gid,
    /// Who reported it.
    pub issuer_gid: Gid,
}

impl Notice {
    /// The notice with which a subnet manager tells of an event.
    #[must_use]
    pub const fn of_event(event: Event, issuer_lid: Lid, issuer_gid: Gid) -> Self {
        Self {
            generic: true,
            kind: 3,
            producer: 4,
            trap: event.trap(),
            issuer_lid,
            gid: event.gid(),
            issuer_gid,
        }
    }

    /// What happened; `None` of an event that does not matter to a link.
    #[must_use]
    pub const fn event(&self) -> Option<Event> {
        match (self.generic, self.trap) {
            (true, 64) => Some(Event::PortInService(self.gid)),
            (true, 65) => Some(Event::PortOutOfService(self.gid)),
            (true, 66) => Some(Event::GroupCreated(self.gid)),
            (true, 67) => Some(Event::GroupDeleted(self.gid)),
            _ => None,
        }
    }
}

/// The 80 octets of the attribute, its details as traps 64 to 67 have them.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct NoticeOctets {
    /// 1, 7 and 24 bits.
    generic_kind_producer: U32,
    trap: U16,
    issuer_lid: U16,
    /// 1 and 15 bits, of no meaning in a report.
    toggle_count: U16,
    reserved: [u8; 6],
    gid: [u8; 16],
    reserved_2: [u8; 32],
    issuer_gid: [u8; 16],
}

const _: () = assert!(size_of::<NoticeOctets>() == 80);

impl Attribute for Notice {
    type Octets = NoticeOctets;
    const ID: AttributeId = AttributeId::NOTICE;

    fn of(octets: &NoticeOctets) -> Result<Self, Reject> {
        let [first, ..] = octets.generic_kind_producer.to_bytes();
        Ok(Self {
            generic: first & 0x80 != 0,
            kind: first & 0x7F,
            producer: octets.generic_kind_producer.get() & 0xFF_FFFF,
            trap: octets.trap.get(),
            issuer_lid: Lid(octets.issuer_lid.get()),
            gid: Gid(octets.gid),
            issuer_gid: Gid(octets.issuer_gid),
        })
    }

    fn octets(&self) -> NoticeOctets {
        let generic = u32::from(self.generic) << 31;
        let kind = u32::from(self.kind & 0x7F) << 24;
        NoticeOctets {
            generic_kind_producer: U32::new(generic | kind | (self.producer & 0xFF_FFFF)),
            trap: U16::new(self.trap),
            issuer_lid: U16::new(self.issuer_lid.0),
            gid: self.gid.0,
            issuer_gid: self.issuer_gid.0,
            ..NoticeOctets::new_zeroed()
        }
    }
}
