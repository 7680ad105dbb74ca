//! Groups, and the records that are made of them.

use super::{SmallSa, SubnetPort};
use crate::gid::{Gid, Lid};
use crate::group::Attributes;
use crate::join::JoinState;
use crate::mad::{McMember, McMemberTemplate, Selector, Status};
use crate::mgid;
use std::collections::BTreeMap;

/// A group with its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRecord {
    /// What it is like.
    pub attributes: Attributes,
    /// The administrator made it, and it stays without members.
    pub preconfigured: bool,
    /// The ports that are members, and as what.
    pub members: BTreeMap<Gid, JoinState>,
}

impl GroupRecord {
    /// Somebody keeps it alive.
    pub(super) fn has_full_member(&self) -> bool {
        self.members.values().any(|state| state.keeps_alive())
    }

    /// The record of one membership, or of the group alone.
    pub(super) fn record(&self, mgid: Gid, port: Option<(Gid, JoinState)>) -> McMember {
        let (port_gid, join_state) = port.unwrap_or_default();
        let Attributes {
            mlid,
            q_key,
            p_key,
            mtu,
            rate,
            packet_life,
            sl,
            t_class,
            flow_label,
            hop_limit,
            scope,
        } = self.attributes;
        McMember {
            mgid,
            port_gid,
            q_key,
            mlid,
            mtu,
            t_class,
            p_key,
            rate,
            packet_life,
            sl,
            flow_label,
            hop_limit,
            scope,
            join_state,
            proxy_join: false,
        }
    }
}

/// Whether a record's value is what a request compares it with.
fn selects<T: PartialOrd + Copy>(asked: Option<(Selector, T)>, value: T) -> bool {
    match asked {
        None | Some((Selector::Best, _)) => true,
        Some((Selector::Greater, than)) => value > than,
        Some((Selector::Less, than)) => value < than,
        Some((Selector::Exactly, same)) => value == same,
    }
}

/// Everything that a request names agrees with a group; which port and kind are meant is another matter.
pub(super) fn agrees(asked: &McMemberTemplate, group: &Attributes) -> bool {
    let same = |asked: Option<u32>, own: u32| asked.is_none_or(|asked| asked == own);
    let mbps = |rate: crate::mad::Rate| rate.mbps().unwrap_or(0);
    same(asked.q_key.map(|it| it.0), group.q_key.0)
        && same(
            asked.p_key.map(|it| it.partition().into()),
            group.p_key.partition().into(),
        )
        && same(asked.mlid.map(|it| it.0.into()), group.mlid.0.into())
        && same(asked.sl.map(u32::from), group.sl.into())
        && same(asked.t_class.map(u32::from), group.t_class.into())
        && same(asked.flow_label, group.flow_label)
        && same(
            asked.scope.map(|it| it.bits().into()),
            group.scope.bits().into(),
        )
        && selects(asked.mtu, group.mtu)
        && selects(
            asked.rate.map(|(by, rate)| (by, mbps(rate))),
            mbps(group.rate),
        )
}

impl SmallSa {
    /// The administrator makes a group; the MLID in its attributes is replaced by one of its own.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn preconfigure(&mut self, mgid: Gid, attributes: Attributes) -> Result<Lid, Status> {
        let mlid = self.make_group(mgid, attributes, true)?;
        Ok(mlid)
    }

    pub(super) fn make_group(
        &mut self,
        mgid: Gid,
        attributes: Attributes,
        preconfigured: bool,
    ) -> Result<Lid, Status> {
        let mlid = self.free_mlid().ok_or(Status::NoResources)?;
        self.mlids.insert(mlid);
        let group = GroupRecord {
            attributes: Attributes { mlid, ..attributes },
            preconfigured,
            members: BTreeMap::new(),
        };
        self.groups.insert(mgid, group);
        Ok(mlid)
    }

    /// The one after the last in use, or the first gap where there is none.
    fn free_mlid(&self) -> Option<Lid> {
        let all = 0xC000..0xC000 + self.capacity.groups.min(0x3FFE);
        let next = self.mlids.last().map_or(0xC000, |last| last.0 + 1);
        if all.contains(&next) {
            return Some(Lid(next));
        }
        all.map(Lid).find(|mlid| !self.mlids.contains(mlid))
    }

    /// The one record that a request is about: of a group, or of the requester's own membership. Others' memberships are
    /// not shown to who is not trusted.
    pub(super) fn record(
        &self,
        from: &SubnetPort,
        asked: &McMemberTemplate,
    ) -> Result<McMember, Status> {
        let mut records = self.records(from, asked).into_iter();
        match (records.next(), records.next()) {
            (None, _) => self.imagined(from, asked).ok_or(Status::NoRecords),
            (Some(record), None) => Ok(record),
            (Some(_), Some(_)) => Err(Status::TooManyRecords),
        }
    }

    /// The record of a group that nobody has made yet, where every group exists.
    fn imagined(&self, from: &SubnetPort, asked: &McMemberTemplate) -> Option<McMember> {
        let mgid = asked.mgid.filter(|_| asked.port_gid.is_none())?;
        let attributes = self.imagine(from, mgid)?;
        let group = GroupRecord {
            attributes,
            preconfigured: false,
            members: BTreeMap::new(),
        };
        Some(group.record(mgid, None))
    }

    /// What a missing group would be like, where every group exists: like its link's broadcast group.
    pub(super) fn imagine(&self, from: &SubnetPort, mgid: Gid) -> Option<Attributes> {
        let parts = mgid::parts(mgid).filter(|_| self.open)?;
        let link = mgid::broadcast(parts.family, parts.scope, parts.p_key);
        let attributes = self.groups.get(&link)?.attributes;
        self.in_partition(from.gid, attributes.p_key)
            .then_some(attributes)
    }

    /// All of them.
    pub(super) fn records(&self, from: &SubnetPort, asked: &McMemberTemplate) -> Vec<McMember> {
        let one = asked.mgid;
        let range = match one {
            Some(mgid) => self.groups.range(mgid..=mgid),
            None => self.groups.range(..),
        };
        let visible = range.filter(|(_, group)| {
            agrees(asked, &group.attributes) && self.in_partition(from.gid, group.attributes.p_key)
        });
        visible
            .filter_map(|(mgid, group)| match asked.port_gid {
                None => Some(group.record(*mgid, None)),
                Some(port) if port == from.gid => {
                    let joined = *group.members.get(&port)?;
                    let state = if self.trusting {
                        joined
                    } else {
                        JoinState::NONE
                    };
                    Some(group.record(*mgid, Some((port, state))))
                }
                Some(_) => None,
            })
            .collect()
    }
}
