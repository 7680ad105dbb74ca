//! Joining, creating, leaving.

use super::records::agrees;
use super::{SmallSa, SubnetPort};
use crate::gid::Gid;
use crate::group::Attributes;
use crate::join::JoinState;
use crate::mad::{Event, McLeft, McMember, McMemberTemplate, PacketLife, Rate, Selector, Status};
use crate::mgid;
use crate::mtu::Mtu;

/// What every join and leave names.
struct Named {
    mgid: Gid,
    state: JoinState,
}

impl SmallSa {
    fn named(&self, from: &SubnetPort, asked: &McMemberTemplate) -> Result<Named, Status> {
        let (Some(mgid), Some(port), Some(state)) = (asked.mgid, asked.port_gid, asked.join_state)
        else {
            return Err(Status::InsufficientComponents);
        };
        if port.prefix() != self.gid.prefix() {
            return Err(Status::InvalidGid);
        }
        // nobody joins for another here
        if port != from.gid || state.is_none() || !mgid.is_multicast() {
            return Err(Status::RequestInvalid);
        }
        Ok(Named { mgid, state })
    }

    /// Joins the requester to a group, which is created if that is asked for in full.
    pub(super) fn join(
        &mut self,
        from: &SubnetPort,
        asked: &McMemberTemplate,
    ) -> Result<McMember, Status> {
        let Named { mgid, state } = self.named(from, asked)?;
        if let Some(group) = self.groups.get(&mgid) {
            let attributes = group.attributes;
            let full = group.members.len() >= self.capacity.members;
            if !agrees(asked, &attributes)
                || attributes.mtu > from.mtu
                || !self.in_partition(from.gid, attributes.p_key)
            {
                return Err(Status::RequestInvalid);
            }
            if full && !group.members.contains_key(&from.gid) {
                return Err(Status::NoResources);
            }
        } else if let Some(attributes) = self.imagine(from, mgid) {
            self.make_group(mgid, attributes, false)?;
        } else {
            self.create(from, asked, mgid, state)?;
        }
        let group = self.groups.get_mut(&mgid).ok_or(Status::RequestInvalid)?;
        let first = group.members.is_empty();
        let member = group.members.entry(from.gid).or_default();
        *member = member.with(state);
        let granted = *member;
        let record = group.record(mgid, Some((from.gid, granted)));
        if first {
            self.report(Event::GroupCreated(mgid));
        }
        Ok(record)
    }

    fn create(
        &mut self,
        from: &SubnetPort,
        asked: &McMemberTemplate,
        mgid: Gid,
        state: JoinState,
    ) -> Result<(), Status> {
        if !state.has(JoinState::FULL) {
            return Err(Status::RequestInvalid);
        }
        let missing = Status::InsufficientComponents;
        let attributes = Attributes {
            mlid: crate::gid::Lid(0),
            q_key: asked.q_key.ok_or(missing)?,
            p_key: asked.p_key.ok_or(missing)?.full(),
            sl: asked.sl.ok_or(missing)?,
            flow_label: asked.flow_label.ok_or(missing)?,
            t_class: asked.t_class.ok_or(missing)?,
            mtu: realized(asked.mtu, from.mtu)?,
            rate: asked.rate.map_or(Rate::GBPS_10, |(_, rate)| rate),
            packet_life: PacketLife::from_code(18),
            hop_limit: asked.hop_limit.unwrap_or(0),
            scope: mgid::Scope::from_bits(mgid.0[1]),
        };
        if !self.in_partition(from.gid, attributes.p_key) {
            return Err(Status::RequestInvalid);
        }
        self.make_group(mgid, attributes, false)?;
        Ok(())
    }

    /// Takes what the requester has joined as from a group: exactly that.
    pub(super) fn leave(
        &mut self,
        from: &SubnetPort,
        asked: &McMemberTemplate,
    ) -> Result<McLeft, Status> {
        let Named { mgid, state } = self.named(from, asked)?;
        let group = self.groups.get_mut(&mgid).ok_or(Status::RequestInvalid)?;
        let member = group.members.get_mut(&from.gid);
        let member = member.ok_or(Status::RequestInvalid)?;
        if !member.has(state) {
            return Err(Status::RequestInvalid);
        }
        *member = member.without(state);
        let remains = *member;
        if remains.is_none() {
            group.members.remove(&from.gid);
        }
        self.end_if_empty(mgid);
        Ok(McLeft {
            mgid,
            port_gid: from.gid,
            remains,
        })
    }

    /// A port is out of every group.
    pub(super) fn drop_member(&mut self, port: Gid) {
        let of = |group: &super::GroupRecord| group.members.contains_key(&port);
        let its = self.groups.iter().filter(|(_, group)| of(group));
        let its: Vec<Gid> = its.map(|(mgid, _)| *mgid).collect();
        for mgid in its {
            if let Some(group) = self.groups.get_mut(&mgid) {
                group.members.remove(&port);
            }
            self.end_if_empty(mgid);
        }
    }

    /// A created group ends with its last full member, and with it every other membership; of a preconfigured one the end
    /// is only reported, with its last member.
    fn end_if_empty(&mut self, mgid: Gid) {
        let Some(group) = self.groups.get(&mgid) else {
            return;
        };
        if group.preconfigured {
            if group.members.is_empty() {
                self.report(Event::GroupDeleted(mgid));
            }
        } else if group.members.is_empty() || !(self.open || group.has_full_member()) {
            self.mlids.remove(&group.attributes.mlid);
            self.groups.remove(&mgid);
            self.report(Event::GroupDeleted(mgid));
        }
    }
}

/// The MTU that a new group gets, of what its creator asks for and has.
fn realized(asked: Option<(Selector, Mtu)>, port: Mtu) -> Result<Mtu, Status> {
    let all = [Mtu::M4096, Mtu::M2048, Mtu::M1024, Mtu::M512, Mtu::M256];
    let fits = |mtu: &Mtu| match asked {
        None | Some((Selector::Best, _)) => true,
        Some((Selector::Exactly, same)) => *mtu == same,
        Some((Selector::Greater, than)) => *mtu > than,
        Some((Selector::Less, than)) => *mtu < than,
    };
    let possible = all.into_iter().filter(|mtu| *mtu <= port);
    possible
        .filter(|mtu| fits(mtu))
        .max()
        .ok_or(Status::RequestInvalid)
}
