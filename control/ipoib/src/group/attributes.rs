//! What a group is like, by its record, and whether it may be joined.

use crate::gid::{Gid, Lid};
use crate::mad::{McMember, McMemberTemplate, PacketLife, Rate, Selector};
use crate::mgid::Scope;
use crate::mtu::Mtu;
use crate::pkey::PKey;
use crate::qkey::QKey;
use crate::settings::Creation;
use crate::trouble::Refusal;

/// A group's attributes, the MGID apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its LID, in the range of multicast ones.
    pub mlid: Lid,
    /// The queue key of those who send to it.
    pub q_key: QKey,
    /// Its partition.
    pub p_key: PKey,
    /// The largest payload.
    pub mtu: Mtu,
    /// The rate of its slowest member.
    pub rate: Rate,
    /// How long its packets live.
    pub packet_life: PacketLife,
    /// Service level.
    pub sl: u8,
    /// Traffic class.
    pub t_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
    /// How far it reaches.
    pub scope: Scope,
}

impl Attributes {
    /// Of a record; `None` of one whose MLID is no group's.
    #[must_use]
    pub fn of_record(record: &McMember) -> Option<Self> {
        record.mlid.is_multicast().then_some(Self {
            mlid: record.mlid,
            q_key: record.q_key,
            p_key: record.p_key,
            mtu: record.mtu,
            rate: record.rate,
            packet_life: record.packet_life,
            sl: record.sl,
            t_class: record.t_class,
            flow_label: record.flow_label,
            hop_limit: record.hop_limit,
            scope: record.scope,
        })
    }

    /// Whether a link of this broadcast group can be used by a port with `port_mtu` (link sections 6.1 and 7).
    ///
    /// # Errors
    /// The rule against it.
    pub fn fit_link(&self, p_key: PKey, port_mtu: Mtu) -> Result<(), Refusal> {
        if self.p_key.partition() != p_key.partition() {
            return Err(Refusal::PKeyDiffers);
        }
        if !self.mtu.fits_ip() {
            return Err(Refusal::MtuUnfit);
        }
        if self.mtu > port_mtu {
            return Err(Refusal::MtuBeyondPort);
        }
        Ok(())
    }

    /// Whether a group may be joined on the link of a broadcast group: one Q_Key for all queue pairs (link section 6.2), the
    /// link's MTU at least (link section 9; the SA does not enforce it), and no more than the port has.
    ///
    /// # Errors
    /// The rule against it.
    pub fn fit_group(&self, link: &Self, port_mtu: Mtu) -> Result<(), Refusal> {
        if self.p_key.partition() != link.p_key.partition() {
            return Err(Refusal::PKeyDiffers);
        }
        if self.q_key != link.q_key {
            return Err(Refusal::QKeyDiffers);
        }
        if self.mtu < link.mtu {
            return Err(Refusal::GroupMtuSmaller);
        }
        if self.mtu > port_mtu {
            return Err(Refusal::GroupMtuBeyondPort);
        }
        Ok(())
    }

    /// What creates a group like this one: all that the SA must be told (link section 4), and the MTU and rate exactly.
    #[must_use]
    pub fn creating(&self, mgid: Gid, port_gid: Gid) -> McMemberTemplate {
        McMemberTemplate {
            q_key: Some(self.q_key),
            p_key: Some(self.p_key.full()),
            mtu: Some((Selector::Exactly, self.mtu)),
            rate: Some((Selector::Exactly, self.rate)),
            sl: Some(self.sl),
            t_class: Some(self.t_class),
            flow_label: Some(self.flow_label),
            hop_limit: Some(self.hop_limit),
            scope: Some(self.scope),
            ..naming(mgid, port_gid)
        }
    }

    /// The attributes that an administrator's broadcast group is created with; it has no MLID yet.
    #[must_use]
    pub fn of_creation(creation: &Creation, p_key: PKey) -> Self {
        Self {
            mlid: Lid(0),
            q_key: creation.q_key,
            p_key: p_key.full(),
            mtu: creation.mtu,
            rate: Rate::from_code(creation.rate),
            packet_life: PacketLife::from_code(0),
            sl: creation.sl,
            t_class: creation.t_class,
            flow_label: creation.flow_label,
            hop_limit: creation.hop_limit,
            scope: creation.scope,
        }
    }
}

/// A port's membership in a group, without a word about its kind.
#[must_use]
pub fn naming(mgid: Gid, port_gid: Gid) -> McMemberTemplate {
    McMemberTemplate {
        mgid: Some(mgid),
        port_gid: Some(port_gid),
        ..McMemberTemplate::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> Attributes {
        Attributes::of_creation(&Creation::default(), PKey::DEFAULT)
    }

    #[test]
    fn section_6_1_mtu_of_a_link() {
        let with = |mtu| Attributes { mtu, ..link() };
        let fit = |mtu, port| with(mtu).fit_link(PKey::DEFAULT, port);
        assert_eq!(fit(Mtu::M2048, Mtu::M2048), Ok(()));
        assert_eq!(fit(Mtu::M4096, Mtu::M4096), Ok(()));
        assert_eq!(fit(Mtu::M4096, Mtu::M2048), Err(Refusal::MtuBeyondPort));
        for unfit in [Mtu::M256, Mtu::M512, Mtu::M1024] {
            assert_eq!(fit(unfit, Mtu::M4096), Err(Refusal::MtuUnfit));
        }
        let other = link().fit_link(PKey(0x8006), Mtu::M4096);
        assert_eq!(other, Err(Refusal::PKeyDiffers));
    }

    #[test]
    fn section_9_a_group_of_a_link() {
        let fit = |group: Attributes| group.fit_group(&link(), Mtu::M2048);
        assert_eq!(fit(link()), Ok(()));
        let q_key = QKey(1);
        assert_eq!(
            fit(Attributes { q_key, ..link() }),
            Err(Refusal::QKeyDiffers)
        );
        let mtu = Mtu::M1024;
        assert_eq!(
            fit(Attributes { mtu, ..link() }),
            Err(Refusal::GroupMtuSmaller)
        );
        let mtu = Mtu::M4096;
        assert_eq!(
            fit(Attributes { mtu, ..link() }),
            Err(Refusal::GroupMtuBeyondPort)
        );
        let p_key = PKey(0x8006);
        assert_eq!(
            fit(Attributes { p_key, ..link() }),
            Err(Refusal::PKeyDiffers)
        );
    }
}
