//! A small subnet administrator: as much of one as links and groups need, answering as a real one was seen to.
//!
//! It serves the memory fabric, which has no subnet manager, and tests, which need one that forgets on command. It is no
//! model of the specification but of OpenSM 3.3.23's answers, error for error: what it grants and refuses is what a real
//! subnet does.
//!
//! - A join of a group that exists needs no more than MGID, PortGID and JoinState; kinds of membership add up in one record.
//! - What a join names besides must agree with the group (0x0200); a FullMember join of a missing group creates it, if Q_Key,
//!   P_Key, SL, FlowLabel and TClass are named (0x0600), and no other kind does (0x0200).
//! - An MTU below the broadcast group's is nothing to it: the client has to care.
//! - With its last full member a created group goes, and its other members with it; a preconfigured one stays.
//! - Reports of creation (66) and deletion (67) are also made of preconfigured groups, for the first and the last member.
//! - Groups of partitions that a port is not in do not exist for it.
//! - A port's own record is shown to it without its kinds of membership, unless [`SmallSa::tell_kinds`] says so.
//! - [`SmallSa::forget`] is a restart: memberships, subscriptions and created groups are gone, and nobody is told.
//!
//! Ports, groups and subscriptions are bounded by [`Capacity`]; what is beyond is refused as without resources.

mod joins;
mod partitions;
mod records;
mod subscriptions;

pub use partitions::Partition;
pub use records::GroupRecord;

use crate::gid::{Gid, Lid};
use crate::join::JoinState;
use crate::mad::{
    AttributeId, ClassPortInfo, Mad, McMember, McMemberTemplate, Method, PacketLife, Path,
    PathTemplate, Rate, Status, TABLE_BYTES, emit,
};
use crate::mtu::Mtu;
use crate::pkey::PKey;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How much a small SA holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Groups, and so LIDs of groups from 0xC000 on.
    pub groups: u16,
    /// Ports in one group.
    pub members: usize,
    /// Reports that wait to be fetched; those beyond are lost, as reports may be.
    pub reports: usize,
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            groups: 4096,
            members: 1024,
            reports: 4096,
        }
    }
}

/// A port that the subnet has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubnetPort {
    /// Its GID.
    pub gid: Gid,
    /// Its LID.
    pub lid: Lid,
    /// What its link can do.
    pub mtu: Mtu,
}

/// The administrator of one small subnet.
#[derive(Debug)]
pub struct SmallSa {
    lid: Lid,
    gid: Gid,
    capacity: Capacity,
    send_only_full: bool,
    trusting: bool,
    open: bool,
    partitions: Vec<Partition>,
    ports: BTreeMap<Lid, SubnetPort>,
    groups: BTreeMap<Gid, GroupRecord>,
    mlids: BTreeSet<Lid>,
    subscribers: BTreeSet<(Lid, u16)>,
    reports: VecDeque<(Lid, Vec<u8>)>,
    report_tid: u32,
}

impl SmallSa {
    /// One without ports, at this address.
    #[must_use]
    pub fn new(lid: Lid, gid: Gid, capacity: Capacity) -> Self {
        Self {
            lid,
            gid,
            capacity,
            send_only_full: false,
            trusting: false,
            open: false,
            partitions: Vec::new(),
            ports: BTreeMap::new(),
            groups: BTreeMap::new(),
            mlids: BTreeSet::new(),
            subscribers: BTreeSet::new(),
            reports: VecDeque::new(),
            report_tid: 0,
        }
    }

    /// Where it is.
    #[must_use]
    pub const fn lid(&self) -> Lid {
        self.lid
    }

    /// Says that it offers SendOnlyFullMember joins, or no longer.
    pub const fn offer_send_only_full(&mut self, offer: bool) {
        self.send_only_full = offer;
    }

    /// Tells ports as what they are members, or no longer: a real one tells that only to who shows its SM_Key.
    pub const fn tell_kinds(&mut self, trusting: bool) {
        self.trusting = trusting;
    }

    /// Has every group exist that is asked about, like the broadcast group of its link, or no longer. So it is on Ethernet,
    /// where nobody administers groups: a sender cannot know whether anybody listens, and sends.
    pub const fn open_every_group(&mut self, open: bool) {
        self.open = open;
    }

    /// A port comes into the subnet, or is another one at its LID.
    pub fn add_port(&mut self, port: SubnetPort) {
        self.ports.insert(port.lid, port);
    }

    /// A port is gone: out of every group, and with its subscriptions.
    pub fn remove_port(&mut self, lid: Lid) {
        if let Some(port) = self.ports.remove(&lid) {
            self.drop_member(port.gid);
        }
        self.subscribers
            .retain(|(subscriber, _)| *subscriber != lid);
    }

    /// Restarts: memberships, subscriptions and created groups are forgotten, and nobody is told.
    pub fn forget(&mut self) {
        for group in self.groups.values_mut() {
            group.members.clear();
        }
        let mlids = &mut self.mlids;
        self.groups.retain(|_, group| {
            if !group.preconfigured {
                mlids.remove(&group.attributes.mlid);
            }
            group.preconfigured
        });
        self.subscribers.clear();
        self.reports.clear();
    }

    /// Who is a member of what: every group, port and kind, by MGID.
    pub fn members(&self) -> impl Iterator<Item = (Gid, Gid, JoinState)> + '_ {
        self.groups.iter().flat_map(|(mgid, group)| {
            let members = group.members.iter();
            members.map(|(port, state)| (*mgid, *port, *state))
        })
    }

    /// A group, if there is one.
    #[must_use]
    pub fn group(&self, mgid: Gid) -> Option<&GroupRecord> {
        self.groups.get(&mgid)
    }

    /// How many groups there are.
    #[must_use]
    pub fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Answers a request that came from a LID; nothing to what is no request, or cannot be read.
    pub fn answer(&mut self, from: Lid, bytes: &[u8]) -> Option<Vec<u8>> {
        let mad = Mad::parse(bytes, TABLE_BYTES).ok()?;
        if mad.method.is_response() {
            return None;
        }
        let Some(port) = self.ports.get(&from).copied() else {
            return Some(refusal(&mad, Status::RequestInvalid));
        };
        Some(match (mad.attribute, mad.method) {
            (AttributeId::MC_MEMBER_RECORD, _) => self.answer_membership(&port, &mad),
            (AttributeId::INFORM_INFO, Method::Set) => self.answer_subscription(&port, &mad),
            (AttributeId::CLASS_PORT_INFO, Method::Get) => {
                let info = self.abilities();
                emit::reply(&mad, Status::Ok, Some(&info)).to_vec()
            }
            (AttributeId::PATH_RECORD, Method::Get) => self.answer_path(&port, &mad),
            _ => refusal(&mad, Status::BadAttribute),
        })
    }

    fn answer_membership(&mut self, port: &SubnetPort, mad: &Mad<'_>) -> Vec<u8> {
        let Ok(asked) = mad.template::<McMemberTemplate>() else {
            return refusal(mad, Status::RequestInvalid);
        };
        match mad.method {
            Method::Get => match self.record(port, &asked) {
                Ok(record) => emit::reply(mad, Status::Ok, Some(&record)).to_vec(),
                Err(status) => refusal(mad, status),
            },
            Method::GetTable => {
                let mut out = Vec::new();
                emit::reply_table(mad, &self.records(port, &asked), &mut out);
                out
            }
            Method::Set => match self.join(port, &asked) {
                Ok(record) => emit::reply(mad, Status::Ok, Some(&record)).to_vec(),
                Err(status) => refusal(mad, status),
            },
            Method::Delete => match self.leave(port, &asked) {
                Ok(left) => emit::reply(mad, Status::Ok, Some(&left)).to_vec(),
                Err(status) => refusal(mad, status),
            },
            _ => refusal(mad, Status::BadMethod),
        }
    }

    const fn abilities(&self) -> ClassPortInfo {
        let offered = if self.send_only_full {
            ClassPortInfo::SEND_ONLY_FULL_MEMBER
        } else {
            0
        };
        ClassPortInfo {
            capability_mask: ClassPortInfo::UD_MULTICAST,
            capability_mask_2: offered,
            response_time: 18,
        }
    }

    fn answer_path(&self, from: &SubnetPort, mad: &Mad<'_>) -> Vec<u8> {
        match mad.template::<PathTemplate>() {
            Ok(asked) => match self.path(from, &asked) {
                Ok(path) => emit::reply(mad, Status::Ok, Some(&path)).to_vec(),
                Err(status) => refusal(mad, status),
            },
            Err(_) => refusal(mad, Status::RequestInvalid),
        }
    }

    /// The path to a port: every port is next to every other.
    fn path(&self, from: &SubnetPort, asked: &PathTemplate) -> Result<Path, Status> {
        let dgid = asked.dgid.ok_or(Status::InsufficientComponents)?;
        let to = self.ports.values().find(|port| port.gid == dgid);
        let to = to.ok_or(Status::NoRecords)?;
        let p_key = asked.p_key.unwrap_or(PKey::DEFAULT);
        let both = self.in_partition(from.gid, p_key) && self.in_partition(to.gid, p_key);
        if !both {
            return Err(Status::NoRecords);
        }
        Ok(Path {
            dgid,
            sgid: from.gid,
            dlid: to.lid,
            slid: from.lid,
            flow_label: 0,
            hop_limit: 0,
            t_class: 0,
            reversible: true,
            p_key,
            sl: 0,
            mtu: from.mtu.min(to.mtu),
            rate: Rate::GBPS_10,
            packet_life: PacketLife::from_code(18),
        })
    }
}

fn refusal(mad: &Mad<'_>, status: Status) -> Vec<u8> {
    emit::reply::<McMember>(mad, status, None).to_vec()
}

#[cfg(test)]
mod tests;
