//! One link: a partition with an IP, from nothing to usable (link sections 5 to 7).
//!
//! **The way up.** The port is active and a full member of the partition; the broadcast group is looked up, at link-local
//! scope first and then wider; its attributes fit, or it is created where this node is the administrator; this port joins
//! it as FullMember before anything else; the queue pair is made with its Q_Key and attached. Then the link takes part in
//! IP with the group's MTU, Q_Key, SL, TClass, FlowLabel, HopLimit and rate.
//!
//! **Who does what.** This file knows the way and the reasons against it; the broadcast group's own membership is a
//! [`Group`](crate::group::Group) like any other. [`node`](crate::node) carries events from one to the other.
//!
//! **Failures.** Every refusal is kept as the link's error. What only news of the port can change leaves it down; anything
//! else is tried again after a pause. A link whose broadcast group's membership is in doubt stays usable: multicast that may
//! or may not arrive is what UDP is used to, and the doubt is usually resolved within milliseconds.

mod phase;

pub use phase::{Event, Phase};

use crate::address::{self, Address, Conflicts};
use crate::gid::Gid;
use crate::group::Attributes;
use crate::mgid::{self, Scope};
use crate::neighbour::{Counts, Neighbours};
use crate::node::Opening;
use crate::port::{PortFacts, Standing};
use crate::settings::LinkSpec;
use crate::time::Moment;
use crate::trouble::{Failure, Refusal};
use rpcrdma_listed::{Illegal, listed};
use std::collections::BTreeSet;
use std::net::IpAddr;

listed! {
    /// What a link's state is called in `status`.
    pub LinkState {
        /// Not usable, and nothing is being done about it.
        Down,
        /// On its way up.
        Joining,
        /// Usable.
        Up,
        /// Usable in part: a membership is in doubt, the SA is silent, a group that was asked for cannot be joined, or this
        /// node's address is somebody else's.
        Degraded,
    }
}

/// A link's queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePair {
    /// There is none.
    None,
    /// It is being made.
    Opening(Opening),
    /// It is there, with this number.
    Open(Opening, u32),
}

/// One link.
#[derive(Debug)]
pub struct Link {
    /// What was configured.
    pub spec: LinkSpec,
    /// Where it is.
    pub phase: Phase,
    /// Scopes that were searched in vain for the broadcast group.
    pub searched: usize,
    /// The broadcast group, once found.
    pub broadcast: Option<Gid>,
    /// Its attributes: the link's.
    pub attributes: Option<Attributes>,
    /// The queue pair.
    pub queue: QueuePair,
    /// Why it is not up, or what last kept it from being so.
    pub error: Option<Refusal>,
    /// The last failure of any operation on it.
    pub failure: Option<Failure>,
    /// Failed attempts in a row.
    pub failures: u8,
    /// The next attempt.
    pub retry: Moment,
    /// The moment for which the node has a timer.
    pub timer: Option<Moment>,
    /// This node's own address on it.
    pub address: Option<Address>,
    /// How often in a row somebody else had it.
    pub conflicts: Conflicts,
    /// The neighbours, while the link has a queue pair and an address in use.
    pub neighbours: Option<Neighbours>,
    /// What was counted while there were none, and by those of before.
    pub before: Counts,
    /// The addresses that were joined.
    pub addresses: BTreeSet<IpAddr>,
    /// Groups that were asked for and could not be joined.
    pub failing: u32,
    /// The state that was told last.
    pub told: LinkState,
}

impl Link {
    /// One that is down.
    #[must_use]
    pub fn new(spec: LinkSpec) -> Self {
        Self {
            spec,
            phase: Phase::Down,
            searched: 0,
            broadcast: None,
            attributes: None,
            queue: QueuePair::None,
            error: Some(Refusal::PortInactive),
            failure: None,
            failures: 0,
            retry: Moment(0),
            timer: None,
            address: None,
            conflicts: Conflicts::default(),
            neighbours: None,
            before: Counts::default(),
            addresses: BTreeSet::new(),
            failing: 0,
            told: LinkState::Down,
        }
    }

    /// Moves it.
    ///
    /// # Errors
    /// The step is none.
    pub fn on(&mut self, event: Event) -> Result<(), Illegal> {
        self.phase = self.phase.next(event)?;
        Ok(())
    }

    /// Datagrams can be sent and received: its groups are joined, and its IP is not disabled (RFC 4862 section 5.4.5).
    #[must_use]
    pub const fn is_usable(&self) -> bool {
        self.phase.is_usable() && !self.is_disabled()
    }

    /// Somebody else has the address without which it has no IP.
    const fn is_disabled(&self) -> bool {
        matches!(&self.address, Some(address) if address.disables_ip())
    }

    /// Somebody else had its address when that was last looked for.
    const fn is_disputed(&self) -> bool {
        match &self.address {
            Some(address) => {
                !self.conflicts.is_none() && !matches!(address.phase(), address::Phase::Used)
            }
            None => false,
        }
    }

    /// Its address can be looked for, and used: its broadcast group is joined, and its queue pair attached to that.
    #[must_use]
    pub const fn can_look(&self) -> bool {
        self.phase.is_usable() && self.has_queue()
    }

    /// Its address is not somebody else's any more.
    pub fn forgive(&mut self) {
        self.error = self.error.filter(|it| *it != Refusal::AddressTaken);
    }

    /// Has no neighbours any more: its address or its queue pair is another one.
    pub fn forget_neighbours(&mut self) {
        self.before = self.neighbour_counts();
        self.neighbours = None;
    }

    /// What neighbours have lost and not taken so far.
    #[must_use]
    pub fn neighbour_counts(&self) -> Counts {
        let mut counts = self.before.clone();
        if let Some(neighbours) = &self.neighbours {
            counts.add(neighbours.counts());
        }
        counts
    }

    /// The index of its P_Key in the port's table, where the link can be up at all.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn permitted(&self, port: Option<&PortFacts>) -> Result<u16, Refusal> {
        if !self.spec.p_key.is_full() {
            return Err(Refusal::LimitedKey);
        }
        let active = port.filter(|port| port.can_ask());
        let port = active.ok_or(Refusal::PortInactive)?;
        match port.standing(self.spec.p_key) {
            Standing::Full(index) => Ok(index),
            Standing::Limited => Err(Refusal::LimitedMember),
            Standing::Outside => Err(Refusal::OutsidePartition),
        }
    }

    /// The broadcast group of the scope that is searched now; `None` when all were.
    #[must_use]
    pub fn sought(&self) -> Option<Gid> {
        let scope = *Scope::SEARCHED.get(self.searched)?;
        Some(mgid::broadcast(self.spec.family, scope, self.spec.p_key))
    }

    /// The scope of its groups: that of the broadcast group (link section 8).
    #[must_use]
    pub fn scope(&self) -> Option<Scope> {
        Some(mgid::parts(self.broadcast?)?.scope)
    }

    /// The group of an address, once the link's scope is known.
    ///
    /// # Errors
    /// The address is no group's, or of the other IP.
    pub fn group_of(&self, address: IpAddr) -> Result<Option<Gid>, Refusal> {
        let v4 = self.spec.family == mgid::Family::V4;
        if address.is_ipv4() != v4 {
            return Err(Refusal::OtherFamily);
        }
        let any = mgid::of_address(address, Scope::LINK_LOCAL, self.spec.p_key);
        let _ = any.ok_or(Refusal::NotMulticast)?;
        let of = |scope| mgid::of_address(address, scope, self.spec.p_key);
        Ok(self.scope().and_then(of))
    }

    /// The group of all routers on it, once the scope is known.
    #[must_use]
    pub fn all_routers(&self) -> Option<Gid> {
        let of = |scope| mgid::all_routers(self.spec.family, scope, self.spec.p_key);
        self.scope().map(of)
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> LinkState {
        if self.is_disabled() {
            return LinkState::Down;
        }
        match self.phase {
            Phase::Down | Phase::Resting => LinkState::Down,
            Phase::Seeking | Phase::Joining | Phase::Opening | Phase::Attaching => {
                LinkState::Joining
            }
            Phase::Up if self.failing == 0 && !self.is_disputed() => LinkState::Up,
            Phase::Up | Phase::Degraded => LinkState::Degraded,
        }
    }

    /// The queue pair that its attributes call for.
    #[must_use]
    pub fn opening(&self, link: crate::node::LinkId, p_key_index: u16) -> Option<Opening> {
        let attributes = self.attributes?;
        Some(Opening {
            link,
            family: self.spec.family,
            p_key: self.spec.p_key,
            p_key_index,
            q_key: attributes.q_key,
            mtu: attributes.mtu,
        })
    }

    /// The queue pair is there.
    #[must_use]
    pub const fn has_queue(&self) -> bool {
        matches!(self.queue, QueuePair::Open(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gid::Lid;
    use crate::mgid::Family;
    use crate::mtu::Mtu;
    use crate::pkey::PKey;

    fn link(p_key: u16) -> Link {
        Link::new(LinkSpec {
            p_key: PKey(p_key),
            family: Family::V4,
            create: None,
            router: false,
        })
    }

    fn port() -> PortFacts {
        PortFacts {
            gid: Gid::default(),
            lid: Lid(4),
            sm_lid: Lid(1),
            sm_sl: 0,
            active: true,
            mtu: Mtu::M2048,
            p_keys: [0xFFFF, 0x8006, 0x0009].map(PKey).to_vec(),
        }
    }

    #[test]
    fn section_6_a_limited_key_is_refused() {
        let refused = link(0x0006).permitted(Some(&port()));
        assert_eq!(refused, Err(Refusal::LimitedKey));
    }

    #[test]
    fn section_5_the_ports_table_is_consulted() {
        assert_eq!(link(0x8006).permitted(Some(&port())), Ok(1));
        let limited = link(0x8009).permitted(Some(&port()));
        assert_eq!(limited, Err(Refusal::LimitedMember));
        let outside = link(0x800A).permitted(Some(&port()));
        assert_eq!(outside, Err(Refusal::OutsidePartition));
    }

    #[test]
    fn a_port_without_subnet_manager_is_not_active() {
        let cut = [
            PortFacts {
                active: false,
                ..port()
            },
            PortFacts {
                sm_lid: Lid(0),
                ..port()
            },
            PortFacts {
                lid: Lid(0),
                ..port()
            },
        ];
        for port in cut {
            let refused = link(0x8006).permitted(Some(&port));
            assert_eq!(refused, Err(Refusal::PortInactive));
        }
        assert_eq!(link(0x8006).permitted(None), Err(Refusal::PortInactive));
    }

    #[test]
    fn section_7_the_narrowest_scope_comes_first() {
        let mut link = link(0x8006);
        let mut sought = Vec::new();
        while let Some(mgid) = link.sought() {
            sought.push(mgid.to_string());
            link.searched += 1;
        }
        let expected =
            ["ff12", "ff15", "ff18", "ff1e"].map(|at| format!("{at}:401b:8006::ffff:ffff"));
        assert_eq!(sought, expected);
    }

    #[test]
    fn section_8_the_scope_is_that_of_the_broadcast_group() {
        let mut link = link(0x8006);
        let address = "224.0.0.2".parse().unwrap();
        assert_eq!(link.group_of(address), Ok(None));
        link.searched = 1;
        link.broadcast = link.sought();
        let mgid = link.group_of(address).unwrap().unwrap();
        assert_eq!(mgid.to_string(), "ff15:401b:8006::2");
        assert_eq!(link.all_routers(), Some(mgid));
        let one = link.group_of("10.0.0.1".parse().unwrap());
        assert_eq!(one, Err(Refusal::NotMulticast));
        let other = link.group_of("ff02::2".parse().unwrap());
        assert_eq!(other, Err(Refusal::OtherFamily));
    }
}
