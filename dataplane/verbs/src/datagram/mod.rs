//! Unreliable datagrams on devices: UD queue pairs, for the control thread.
//!
//! - [`VerbsDatagrams`] is a queue pair in a partition of InfiniBand, or on Ethernet. Whoever has
//!   it joins groups by the subnet administrator, and attaches it.
//! - [`ManagedDatagrams`] is one on an address of an interface, whose groups the connection manager
//!   joins (`rdma_join_multicast_ex`): the way on RoCE, where the manager speaks IGMP instead.
//!
//! Both are a [`core`](mod@core), which owns everything and is the only one to post and poll. It
//! never waits, not even for the hardware address of a receiver ([`resolver`]).

mod core;
mod header;
mod kind;
mod layout;
mod managed;
mod open;
mod pair;
mod queue;
mod resolver;
mod way;

pub use managed::{ManagedDatagrams, ManagedWanted, PortSpace};

use self::core::Core;
use self::kind::failure;
use rpcrdma_fabric::datagram::{
    AddressVector, Arrival, DatagramCounts, Datagrams, Failure, FailureKind, Group, PairFacts,
    Unsent, is_multicast,
};
use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;

/// A UD queue pair of a device. Attached to groups by its owner, who has joined them.
#[derive(Debug)]
pub struct VerbsDatagrams {
    core: Core,
    attached: BTreeSet<Group>,
}

impl Datagrams for VerbsDatagrams {
    fn facts(&self) -> &PairFacts {
        &self.core.facts
    }

    fn attach(&mut self, group: Group) -> Result<(), Failure> {
        if !is_multicast(group.mgid) {
            return Err(FailureKind::Invalid.because("not the GID of a group"));
        }
        if self.attached.contains(&group) {
            return Ok(());
        }
        self.core.pair.attach(group).map_err(failure)?;
        self.attached.insert(group);
        Ok(())
    }

    fn detach(&mut self, group: Group) -> Result<(), Failure> {
        if !self.attached.remove(&group) {
            return Err(FailureKind::Invalid.because("not attached to this group"));
        }
        self.core.pair.detach(group).map_err(failure)
    }

    fn attached(&self) -> usize {
        self.attached.len()
    }

    fn send(&mut self, octets: &[u8], to: &AddressVector) -> Result<(), Unsent> {
        self.core.send(octets, to)
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Arrival> {
        self.core.receive(into)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.core.descriptor()
    }

    fn is_gone(&self) -> bool {
        self.core.is_gone()
    }

    fn counts(&self) -> DatagramCounts {
        self.core.counts
    }
}

impl Drop for VerbsDatagrams {
    /// The kernel destroys no queue pair that is attached.
    fn drop(&mut self) {
        for group in &self.attached {
            // Of a device that is gone there is nothing to detach.
            let _ = self.core.pair.detach(*group);
        }
    }
}
