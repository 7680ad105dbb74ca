//! PathRecord: the way to another port (IBA 15.2.5.16).

use super::units::{selected, six};
use super::{Attribute, AttributeId, PacketLife, Rate, Reject, Selector, Template};
use crate::gid::{Gid, Lid};
use crate::mtu::Mtu;
use crate::pkey::PKey;
use zerocopy::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A path as the SA answers it. Its service identifier, quality of service and preference are not looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// The port at its end.
    pub dgid: Gid,
    /// The port at its beginning.
    pub sgid: Gid,
    /// The destination's local identifier: where packets go.
    pub dlid: Lid,
    /// The source's.
    pub slid: Lid,
    /// Flow label of the global route header, 20 bits.
    pub flow_label: u32,
    /// Hop limit of the global route header: more than one where the path leaves the subnet.
    pub hop_limit: u8,
    /// Traffic class of the global route header.
    pub t_class: u8,
    /// It is the way back too.
    pub reversible: bool,
    /// The partition.
    pub p_key: PKey,
    /// Service level, four bits.
    pub sl: u8,
    /// The largest payload.
    pub mtu: Mtu,
    /// The slowest link on the way.
    pub rate: Rate,
    /// How long a packet may be on its way.
    pub packet_life: PacketLife,
}

/// What a request says of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathTemplate {
    /// The port at its end.
    pub dgid: Option<Gid>,
    /// The port at its beginning.
    pub sgid: Option<Gid>,
    /// The destination's local identifier.
    pub dlid: Option<Lid>,
    /// The source's.
    pub slid: Option<Lid>,
    /// It is to be the way back too.
    pub reversible: Option<bool>,
    /// How many paths are wanted at most, seven bits; a table is not answered without it.
    pub numb_path: Option<u8>,
    /// The partition.
    pub p_key: Option<PKey>,
    /// Service level, four bits.
    pub sl: Option<u8>,
    /// The largest payload.
    pub mtu: Option<(Selector, Mtu)>,
    /// The slowest link on the way.
    pub rate: Option<(Selector, Rate)>,
}

/// The 64 octets of the record.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct PathOctets {
    service: U64,
    dgid: [u8; 16],
    sgid: [u8; 16],
    dlid: U16,
    slid: U16,
    /// 1 bit of raw traffic, 3 reserved, 20 and 8 bits.
    raw_flow_hop: U32,
    t_class: u8,
    /// 1 and 7 bits.
    reversible_numb_path: u8,
    p_key: U16,
    /// 12 and 4 bits.
    qos_sl: U16,
    mtu: u8,
    rate: u8,
    packet_life: u8,
    preference: u8,
    reserved: [u8; 6],
}

const _: () = assert!(size_of::<PathOctets>() == 64);

/// Bits of the component mask.
mod bit {
    pub(super) const DGID: u64 = 1 << 2;
    pub(super) const SGID: u64 = 1 << 3;
    pub(super) const DLID: u64 = 1 << 4;
    pub(super) const SLID: u64 = 1 << 5;
    pub(super) const REVERSIBLE: u64 = 1 << 11;
    pub(super) const NUMB_PATH: u64 = 1 << 12;
    pub(super) const P_KEY: u64 = 1 << 13;
    pub(super) const SL: u64 = 1 << 15;
    pub(super) const MTU: [u64; 2] = [1 << 16, 1 << 17];
    pub(super) const RATE: [u64; 2] = [1 << 18, 1 << 19];
}

impl PathOctets {
    const fn sl(&self) -> u8 {
        let [_, octet] = self.qos_sl.to_bytes();
        octet & 0xF
    }

    const fn is_reversible(&self) -> bool {
        self.reversible_numb_path & 0x80 != 0
    }

    fn mtu(&self) -> Result<Mtu, Reject> {
        Mtu::from_code(six(self.mtu)).ok_or(Reject::Mtu)
    }
}

impl Attribute for Path {
    type Octets = PathOctets;
    const ID: AttributeId = AttributeId::PATH_RECORD;

    fn of(octets: &PathOctets) -> Result<Self, Reject> {
        let [_, .., hop_limit] = octets.raw_flow_hop.to_bytes();
        Ok(Self {
            dgid: Gid(octets.dgid),
            sgid: Gid(octets.sgid),
            dlid: Lid(octets.dlid.get()),
            slid: Lid(octets.slid.get()),
            flow_label: (octets.raw_flow_hop.get() >> 8) & 0xF_FFFF,
            hop_limit,
            t_class: octets.t_class,
            reversible: octets.is_reversible(),
            p_key: PKey(octets.p_key.get()),
            sl: octets.sl(),
            mtu: octets.mtu()?,
            rate: Rate::from_code(octets.rate),
            packet_life: PacketLife::from_code(octets.packet_life),
        })
    }

    fn octets(&self) -> PathOctets {
        let exactly = Selector::Exactly;
        PathOctets {
            dgid: self.dgid.0,
            sgid: self.sgid.0,
            dlid: U16::new(self.dlid.0),
            slid: U16::new(self.slid.0),
            raw_flow_hop: U32::new((self.flow_label & 0xF_FFFF) << 8 | u32::from(self.hop_limit)),
            t_class: self.t_class,
            reversible_numb_path: u8::from(self.reversible) << 7,
            p_key: U16::new(self.p_key.0),
            qos_sl: U16::new((self.sl & 0xF).into()),
            mtu: exactly.octet(self.mtu as u8),
            rate: exactly.octet(self.rate.code()),
            packet_life: exactly.octet(self.packet_life.code()),
            ..PathOctets::new_zeroed()
        }
    }
}

impl Template for PathTemplate {
    type Octets = PathOctets;
    const ID: AttributeId = AttributeId::PATH_RECORD;

    fn of(octets: &PathOctets, mask: u64) -> Result<Self, Reject> {
        let named = |bit: u64| mask & bit != 0;
        let mtu = match selected(mask, bit::MTU, octets.mtu)? {
            Some(selector) => Some((selector, octets.mtu()?)),
            None => None,
        };
        let rate = Rate::from_code(octets.rate);
        Ok(Self {
            dgid: named(bit::DGID).then_some(Gid(octets.dgid)),
            sgid: named(bit::SGID).then_some(Gid(octets.sgid)),
            dlid: named(bit::DLID).then(|| Lid(octets.dlid.get())),
            slid: named(bit::SLID).then(|| Lid(octets.slid.get())),
            reversible: named(bit::REVERSIBLE).then(|| octets.is_reversible()),
            numb_path: named(bit::NUMB_PATH).then_some(octets.reversible_numb_path & 0x7F),
            p_key: named(bit::P_KEY).then(|| PKey(octets.p_key.get())),
            sl: named(bit::SL).then(|| octets.sl()),
            mtu,
            rate: selected(mask, bit::RATE, octets.rate)?.map(|selector| (selector, rate)),
        })
    }

    fn octets(&self) -> (PathOctets, u64) {
        let reversible = u8::from(self.reversible.unwrap_or(false)) << 7;
        let octets = PathOctets {
            dgid: self.dgid.unwrap_or_default().0,
            sgid: self.sgid.unwrap_or_default().0,
            dlid: U16::new(self.dlid.unwrap_or_default().0),
            slid: U16::new(self.slid.unwrap_or_default().0),
            reversible_numb_path: reversible | (self.numb_path.unwrap_or(0) & 0x7F),
            p_key: U16::new(self.p_key.map_or(0, |p_key| p_key.0)),
            qos_sl: U16::new((self.sl.unwrap_or(0) & 0xF).into()),
            mtu: self.mtu.map_or(0, |(by, mtu)| by.octet(mtu as u8)),
            rate: self.rate.map_or(0, |(by, rate)| by.octet(rate.code())),
            ..PathOctets::new_zeroed()
        };
        (octets, self.mask())
    }
}

impl PathTemplate {
    /// The component mask: a bit of every component that is there.
    fn mask(&self) -> u64 {
        let pair = |[selector, value]: [u64; 2]| selector | value;
        [
            (self.dgid.is_some(), bit::DGID),
            (self.sgid.is_some(), bit::SGID),
            (self.dlid.is_some(), bit::DLID),
            (self.slid.is_some(), bit::SLID),
            (self.reversible.is_some(), bit::REVERSIBLE),
            (self.numb_path.is_some(), bit::NUMB_PATH),
            (self.p_key.is_some(), bit::P_KEY),
            (self.sl.is_some(), bit::SL),
            (self.mtu.is_some(), pair(bit::MTU)),
            (self.rate.is_some(), pair(bit::RATE)),
        ]
        .into_iter()
        .filter(|(there, _)| *there)
        .fold(0, |mask, (_, bit)| mask | bit)
    }
}
