//! What a node looks like from outside, for `status` and for tests; and its end.

use super::subscriptions::State;
use super::{LinkId, Node};
use crate::address;
use crate::gid::{Gid, Lid};
use crate::group::{self, Attributes};
use crate::join::JoinState;
use crate::link::{LinkState, Phase};
use crate::neighbour::Counts;
use crate::settings::LinkSpec;
use crate::time::Moment;
use crate::trouble::{Failure, Refusal, Resource};
use std::net::IpAddr;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// Its links, in the order in which they were added.
    pub links: Vec<LinkStatus>,
    /// Memberships that the SA has granted, and the limit.
    pub memberships: (u32, Option<u32>),
    /// Groups that queue pairs are attached to, and the device's limit.
    pub attached_groups: (u32, Option<u32>),
    /// Attachments of queue pairs, and the device's limit.
    pub attachments: (u32, Option<u32>),
    /// Both subscriptions to reports stand.
    pub subscribed: bool,
    /// Requests to the SA on their way, and waiting for their turn.
    pub requests: (usize, usize),
    /// Octets of datagrams that wait for groups.
    pub waiting_octets: usize,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkStatus {
    /// What was configured.
    pub spec: LinkSpec,
    /// In one word.
    pub state: LinkState,
    /// More exactly.
    pub phase: Phase,
    /// The broadcast group, once found.
    pub broadcast: Option<Gid>,
    /// Its attributes: the link's.
    pub attributes: Option<Attributes>,
    /// Why it is not up, or what last kept it from being so.
    pub error: Option<Refusal>,
    /// The last failure of any operation on it.
    pub failure: Option<Failure>,
    /// This node's address on it, and whether it is in use.
    pub address: Option<(IpAddr, address::Phase)>,
    /// Addresses that were joined.
    pub addresses: usize,
    /// Groups that were asked for and could not be joined.
    pub failing: u32,
}

/// A group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupStatus {
    /// On which link.
    pub link: LinkId,
    /// The group.
    pub mgid: Gid,
    /// Its LID, where it is known to exist.
    pub mlid: Option<Lid>,
    /// What goes on.
    pub phase: group::Phase,
    /// What the SA has granted.
    pub held: JoinState,
    /// What it may hold besides.
    pub doubt: JoinState,
    /// The queue pair is attached.
    pub attached: bool,
    /// Addresses that were joined and map to it.
    pub addresses: u16,
    /// Joined because a router joins all.
    pub routed: bool,
    /// Frames that wait for it.
    pub waiting: usize,
}

impl NodeStatus {
    /// What is used of each resource, and the limit.
    #[must_use]
    pub const fn resources(&self) -> [(Resource, (u32, Option<u32>)); 3] {
        [
            (Resource::Memberships, self.memberships),
            (Resource::AttachedGroups, self.attached_groups),
            (Resource::Attachments, self.attachments),
        ]
    }
}

impl Node {
    /// The node and its links.
    #[must_use]
    pub fn status(&self) -> NodeStatus {
        NodeStatus {
            links: self
                .link_ids()
                .filter_map(|id| self.link_status(id))
                .collect(),
            memberships: self.gauges.memberships.reading(),
            attached_groups: self.gauges.groups.reading(),
            attachments: self.gauges.attachments.reading(),
            subscribed: self.subscriptions.iter().all(|it| it.state == State::On),
            requests: (self.sa.outstanding(), self.sa.waiting()),
            waiting_octets: self.waiting_octets,
        }
    }

    /// A link; `None` where there is none of this number.
    #[must_use]
    pub fn link_status(&self, id: LinkId) -> Option<LinkStatus> {
        let link = self.link(id)?;
        Some(LinkStatus {
            spec: link.spec,
            state: link.state(),
            phase: link.phase,
            broadcast: link.broadcast,
            attributes: link.attributes,
            error: link.error,
            failure: link.failure,
            address: link.address.map(|it| (it.ip(), it.phase())),
            addresses: link.addresses.len(),
            failing: link.failing,
        })
    }

    /// What a link's neighbours have lost and not taken; `None` where there is none of this number.
    #[must_use]
    pub fn neighbour_counts(&self, id: LinkId) -> Option<Counts> {
        Some(self.link(id)?.neighbour_counts())
    }

    /// Every group that is known, joined or not, by link and MGID.
    pub fn groups(&self) -> impl Iterator<Item = GroupStatus> + '_ {
        self.groups.iter().map(|(key, group)| GroupStatus {
            link: key.link,
            mgid: key.mgid,
            mlid: group.knowledge.attributes().map(|known| known.mlid),
            phase: group.phase,
            held: group.held,
            doubt: group.doubt,
            attached: group.attached.is_some(),
            addresses: group.addresses,
            routed: group.routed,
            waiting: group.waiting.len(),
        })
    }

    /// The group of an address on a link, once the link's scope is known; `None` before, and of an address that is none.
    #[must_use]
    pub fn group_of(&self, id: LinkId, address: IpAddr) -> Option<Gid> {
        self.link(id)?.group_of(address).ok().flatten()
    }

    /// Ends a close when all is left, or time is up.
    pub(super) fn finish_close(&mut self, now: Moment) {
        let Some(deadline) = self.closing.filter(|_| !self.closed) else {
            return;
        };
        let left = |group: &group::Group| {
            group.phase.is_still()
                && group.held.is_none()
                && group.doubt.is_none()
                && group.attached.is_none()
        };
        let subscribed = self.subscriptions.iter().any(|it| it.state != State::Off);
        let done = self.groups.values().all(left) && !subscribed;
        // with nobody to tell, nothing is gained by waiting
        if !done && now < deadline && self.can_ask() {
            return;
        }
        for id in self.link_ids() {
            self.discard_queue(now, id);
        }
        self.closed = true;
        self.timers.clear();
        self.sa.forget(|_| true);
    }
}
