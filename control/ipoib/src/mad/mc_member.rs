//! MCMemberRecord: a group, and a port's membership in it (IBA 15.2.5.17).

use super::units::six;
use super::{Attribute, AttributeId, PacketLife, Rate, Reject, Selector, Template};
use crate::gid::{Gid, Lid};
use crate::join::JoinState;
use crate::mgid::Scope;
use crate::mtu::Mtu;
use crate::pkey::PKey;
use crate::qkey::QKey;
use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A record as the SA answers it: complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct McMember {
    /// The group.
    pub mgid: Gid,
    /// The port that is a member; zero where the SA does not tell, or means the group alone.
    pub port_gid: Gid,
    /// The group's queue key.
    pub q_key: QKey,
    /// The group's local identifier.
    pub mlid: Lid,
    /// The group's MTU.
    pub mtu: Mtu,
    /// Traffic class of its packets' global route header.
    pub t_class: u8,
    /// The group's partition.
    pub p_key: PKey,
    /// The group's rate.
    pub rate: Rate,
    /// How long a packet of it may be on its way.
    pub packet_life: PacketLife,
    /// Service level, four bits.
    pub sl: u8,
    /// Flow label of the global route header, 20 bits.
    pub flow_label: u32,
    /// Hop limit of the global route header.
    pub hop_limit: u8,
    /// The scope, as its MGID says it too.
    pub scope: Scope,
    /// As what the port is a member.
    pub join_state: JoinState,
    /// Another port may join for this one.
    pub proxy_join: bool,
}

/// What the SA answers to a leave that succeeded. None of the group's own fields is there; where it failed, the request's
/// own come back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct McLeft {
    /// The group.
    pub mgid: Gid,
    /// The port that left.
    pub port_gid: Gid,
    /// As what it is still a member: all that was joined before and not left now.
    pub remains: JoinState,
}

/// What a request says of a membership: components that are absent are not in its mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(missing_docs, reason = "the fields are those of a record")]
pub struct McMemberTemplate {
    pub mgid: Option<Gid>,
    pub port_gid: Option<Gid>,
    pub q_key: Option<QKey>,
    pub mlid: Option<Lid>,
    pub mtu: Option<(Selector, Mtu)>,
    pub t_class: Option<u8>,
    pub p_key: Option<PKey>,
    pub rate: Option<(Selector, Rate)>,
    pub packet_life: Option<(Selector, PacketLife)>,
    pub sl: Option<u8>,
    pub flow_label: Option<u32>,
    pub hop_limit: Option<u8>,
    pub scope: Option<Scope>,
    pub join_state: Option<JoinState>,
    pub proxy_join: Option<bool>,
}

/// The 52 octets of the record.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct McMemberOctets {
    mgid: [u8; 16],
    port_gid: [u8; 16],
    q_key: U32,
    mlid: U16,
    mtu: u8,
    t_class: u8,
    p_key: U16,
    rate: u8,
    packet_life: u8,
    /// 4, 20 and 8 bits.
    sl_flow_hop: U32,
    /// 4 and 4 bits.
    scope_state: u8,
    /// The first bit.
    proxy_join: u8,
    reserved: [u8; 2],
}

const _: () = assert!(size_of::<McMemberOctets>() == 52);

/// Bits of the component mask.
mod bit {
    pub(super) const MGID: u64 = 1;
    pub(super) const PORT_GID: u64 = 1 << 1;
    pub(super) const Q_KEY: u64 = 1 << 2;
    pub(super) const MLID: u64 = 1 << 3;
    pub(super) const MTU: [u64; 2] = [1 << 4, 1 << 5];
    pub(super) const T_CLASS: u64 = 1 << 6;
    pub(super) const P_KEY: u64 = 1 << 7;
    pub(super) const RATE: [u64; 2] = [1 << 8, 1 << 9];
    pub(super) const PACKET_LIFE: [u64; 2] = [1 << 10, 1 << 11];
    pub(super) const SL: u64 = 1 << 12;
    pub(super) const FLOW_LABEL: u64 = 1 << 13;
    pub(super) const HOP_LIMIT: u64 = 1 << 14;
    pub(super) const SCOPE: u64 = 1 << 15;
    pub(super) const JOIN_STATE: u64 = 1 << 16;
    pub(super) const PROXY_JOIN: u64 = 1 << 17;
}

impl McMemberOctets {
    const fn sl(&self) -> u8 {
        let [octet, ..] = self.sl_flow_hop.to_bytes();
        octet >> 4
    }

    const fn flow_label(&self) -> u32 {
        (self.sl_flow_hop.get() >> 8) & 0xF_FFFF
    }

    const fn hop_limit(&self) -> u8 {
        let [.., octet] = self.sl_flow_hop.to_bytes();
        octet
    }

    fn mtu(&self) -> Result<Mtu, Reject> {
        Mtu::from_code(six(self.mtu)).ok_or(Reject::Mtu)
    }
}

impl McMember {
    /// All that it says, as a request: what a member's own record is compared with, or set to.
    #[must_use]
    pub fn template(&self) -> McMemberTemplate {
        let exactly = Selector::Exactly;
        McMemberTemplate {
            mgid: Some(self.mgid),
            port_gid: Some(self.port_gid),
            q_key: Some(self.q_key),
            mlid: Some(self.mlid),
            mtu: Some((exactly, self.mtu)),
            t_class: Some(self.t_class),
            p_key: Some(self.p_key),
            rate: Some((exactly, self.rate)),
            packet_life: Some((exactly, self.packet_life)),
            sl: Some(self.sl),
            flow_label: Some(self.flow_label),
            hop_limit: Some(self.hop_limit),
            scope: Some(self.scope),
            join_state: Some(self.join_state),
            proxy_join: Some(self.proxy_join),
        }
    }
}

impl Attribute for McMember {
    type Octets = McMemberOctets;
    const ID: AttributeId = AttributeId::MC_MEMBER_RECORD;

    fn of(octets: &McMemberOctets) -> Result<Self, Reject> {
        Ok(Self {
            mgid: Gid(octets.mgid),
            port_gid: Gid(octets.port_gid),
            q_key: QKey(octets.q_key.get()),
            mlid: Lid(octets.mlid.get()),
            mtu: octets.mtu()?,
            t_class: octets.t_class,
            p_key: PKey(octets.p_key.get()),
            rate: Rate::from_code(octets.rate),
            packet_life: PacketLife::from_code(octets.packet_life),
            sl: octets.sl(),
            flow_label: octets.flow_label(),
            hop_limit: octets.hop_limit(),
            scope: Scope::from_bits(octets.scope_state >> 4),
            join_state: JoinState::from_bits(octets.scope_state),
            proxy_join: octets.proxy_join & 0x80 != 0,
        })
    }

    fn octets(&self) -> McMemberOctets {
        let (octets, _) = self.template().octets();
        octets
    }
}

impl Attribute for McLeft {
    type Octets = McMemberOctets;
    const ID: AttributeId = AttributeId::MC_MEMBER_RECORD;

    fn of(octets: &McMemberOctets) -> Result<Self, Reject> {
        Ok(Self {
            mgid: Gid(octets.mgid),
            port_gid: Gid(octets.port_gid),
            remains: JoinState::from_bits(octets.scope_state),
        })
    }

    fn octets(&self) -> McMemberOctets {
        McMemberOctets {
            mgid: self.mgid.0,
            port_gid: self.port_gid.0,
            scope_state: self.remains.bits(),
            ..McMemberOctets::new_zeroed()
        }
    }
}

impl Template for McMemberTemplate {
    type Octets = McMemberOctets;
    const ID: AttributeId = AttributeId::MC_MEMBER_RECORD;

    fn of(octets: &McMemberOctets, mask: u64) -> Result<Self, Reject> {
        let named = |bit: u64| mask & bit != 0;
        let selected = |bits, octet| super::units::selected(mask, bits, octet);
        let mtu = match selected(bit::MTU, octets.mtu)? {
            Some(selector) => Some((selector, octets.mtu()?)),
            None => None,
        };
        let rate = Rate::from_code(octets.rate);
        let packet_life = PacketLife::from_code(octets.packet_life);
        Ok(Self {
            mgid: named(bit::MGID).then_some(Gid(octets.mgid)),
            port_gid: named(bit::PORT_GID).then_some(Gid(octets.port_gid)),
            q_key: named(bit::Q_KEY).then(|| QKey(octets.q_key.get())),
            mlid: named(bit::MLID).then(|| Lid(octets.mlid.get())),
            mtu,
            t_class: named(bit::T_CLASS).then_some(octets.t_class),
            p_key: named(bit::P_KEY).then(|| PKey(octets.p_key.get())),
            rate: selected(bit::RATE, octets.rate)?.map(|selector| (selector, rate)),
            packet_life: selected(bit::PACKET_LIFE, octets.packet_life)?
                .map(|selector| (selector, packet_life)),
            sl: named(bit::SL).then(|| octets.sl()),
            flow_label: named(bit::FLOW_LABEL).then(|| octets.flow_label()),
            hop_limit: named(bit::HOP_LIMIT).then(|| octets.hop_limit()),
            scope: named(bit::SCOPE).then(|| Scope::from_bits(octets.scope_state >> 4)),
            join_state: named(bit::JOIN_STATE).then(|| JoinState::from_bits(octets.scope_state)),
            proxy_join: named(bit::PROXY_JOIN).then_some(octets.proxy_join & 0x80 != 0),
        })
    }

    fn octets(&self) -> (McMemberOctets, u64) {
        let sl = u32::from(self.sl.unwrap_or(0) & 0xF) << 28;
        let flow = (self.flow_label.unwrap_or(0) & 0xF_FFFF) << 8;
        let hop = u32::from(self.hop_limit.unwrap_or(0));
        let scope = self.scope.map_or(0, Scope::bits) << 4;
        let octets = McMemberOctets {
            mgid: self.mgid.unwrap_or_default().0,
            port_gid: self.port_gid.unwrap_or_default().0,
            q_key: U32::new(self.q_key.unwrap_or_default().0),
            mlid: U16::new(self.mlid.unwrap_or_default().0),
            mtu: self.mtu.map_or(0, |(by, mtu)| by.octet(mtu as u8)),
            t_class: self.t_class.unwrap_or(0),
            p_key: U16::new(self.p_key.map_or(0, |p_key| p_key.0)),
            rate: self.rate.map_or(0, |(by, rate)| by.octet(rate.code())),
            packet_life: self
                .packet_life
                .map_or(0, |(by, life)| by.octet(life.code())),
            sl_flow_hop: U32::new(sl | flow | hop),
            scope_state: scope | self.join_state.unwrap_or_default().bits(),
            proxy_join: u8::from(self.proxy_join.unwrap_or(false)) << 7,
            reserved: [0; 2],
        };
        (octets, self.mask())
    }
}

impl McMemberTemplate {
    /// The component mask: a bit of every component that is there.
    fn mask(&self) -> u64 {
        let pair = |[selector, value]: [u64; 2]| selector | value;
        [
            (self.mgid.is_some(), bit::MGID),
            (self.port_gid.is_some(), bit::PORT_GID),
            (self.q_key.is_some(), bit::Q_KEY),
            (self.mlid.is_some(), bit::MLID),
            (self.mtu.is_some(), pair(bit::MTU)),
            (self.t_class.is_some(), bit::T_CLASS),
            (self.p_key.is_some(), bit::P_KEY),
            (self.rate.is_some(), pair(bit::RATE)),
            (self.packet_life.is_some(), pair(bit::PACKET_LIFE)),
            (self.sl.is_some(), bit::SL),
            (self.flow_label.is_some(), bit::FLOW_LABEL),
            (self.hop_limit.is_some(), bit::HOP_LIMIT),
            (self.scope.is_some(), bit::SCOPE),
            (self.join_state.is_some(), bit::JOIN_STATE),
            (self.proxy_join.is_some(), bit::PROXY_JOIN),
        ]
        .into_iter()
        .filter(|(there, _)| *there)
        .fold(0, |mask, (_, bit)| mask | bit)
    }
}
