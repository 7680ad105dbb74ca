//! A queue pair whose groups the connection manager joins.
//!
//! It has an event channel of its own. The manager attaches the queue pair when it reports a group
//! as joined for receiving, and detaches it when the group is left; so nothing of that is done
//! here. What failed has to be left all the same: the manager keeps its memory of it until then.

use super::core::Core;
use super::kind::failure;
use crate::cm::{Channel, GroupNews, What};
use rdma_core_sys as rdma;
use rpcrdma_fabric::datagram::{
    AddressVector, Arrival, DatagramCounts, Datagrams, Failure, FailureKind, Group, Membership,
    Memberships, PairFacts, Standing, Unsent,
};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Groups of one pair.
const MEMBERSHIPS_MOST: usize = 4096;

/// What the connection manager takes a datagram address for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortSpace {
    /// UDP's: groups of their own, on RoCE and InfiniBand, with Q_Key 0x01234567.
    #[default]
    Udp,
    /// Of an IP over InfiniBand interface: the very groups and Q_Key that its IP uses (RFC 4391).
    IpOverInfiniBand,
}

impl PortSpace {
    pub(super) fn raw(self) -> rdma::rdma_port_space {
        match self {
            PortSpace::Udp => rdma::RDMA_PS_UDP,
            PortSpace::IpOverInfiniBand => rdma::RDMA_PS_IPOIB,
        }
    }
}

/// A managed queue pair that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagedWanted {
    /// The address of the interface; its port is not used.
    pub address: SocketAddr,
    /// What it is taken for.
    pub space: PortSpace,
    /// As [`PairWanted::receives`](rpcrdma_fabric::datagram::PairWanted::receives).
    pub receives: u32,
    /// As [`PairWanted::sends`](rpcrdma_fabric::datagram::PairWanted::sends).
    pub sends: u32,
}

impl ManagedWanted {
    /// At this address, with as deep queues as by default.
    #[must_use]
    pub fn at(address: SocketAddr) -> ManagedWanted {
        ManagedWanted {
            address,
            space: PortSpace::default(),
            receives: 256,
            sends: 64,
        }
    }
}

/// A membership.
#[derive(Debug)]
struct Member {
    number: usize,
    membership: Membership,
    joined: bool,
}

/// A UD queue pair on an address. [`Memberships`] attach and detach it; so do
/// [`Datagrams::attach`] and its opposite not: they are refused as [`FailureKind::Unsupported`].
#[derive(Debug)]
pub struct ManagedDatagrams {
    core: Core,
    members: HashMap<IpAddr, Member>,
    numbers: usize,
    at: SocketAddr,
    channel: Arc<Channel>,
}

impl ManagedDatagrams {
    pub(super) fn new(
        core: Core,
        channel: Arc<Channel>,
        at: SocketAddr,
    ) -> Result<ManagedDatagrams, Failure> {
        core.watch(channel.as_fd()).map_err(failure)?;
        Ok(ManagedDatagrams {
            core,
            members: HashMap::new(),
            numbers: 0,
            at,
            channel,
        })
    }

    /// A group's address as the manager wants it: of the interface, where it is one of the link.
    fn of_group(&self, group: IpAddr) -> SocketAddr {
        let mut address = SocketAddr::new(group, 0);
        if let (SocketAddr::V6(address), SocketAddr::V6(at)) = (&mut address, self.at) {
            address.set_scope_id(at.scope_id());
        }
        address
    }

    fn end(&self, group: IpAddr) -> Result<(), Failure> {
        let id = self.core.pair.id();
        let left = id.map(|id| id.leave(self.of_group(group)));
        left.unwrap_or(Ok(())).map_err(failure)
    }

    /// What the manager says of a group, if it is one that is still wanted.
    fn heed(&mut self, what: What, status: i32, news: &GroupNews) -> Option<(IpAddr, Standing)> {
        let is_it = |(_, member): &(&IpAddr, &mut Member)| member.number == news.number;
        let (group, member) = self.members.iter_mut().find(is_it)?;
        let group = *group;
        if what == What::GroupJoined && status == 0 {
            member.joined = true;
            return Some((group, Standing::Joined(news.to)));
        }
        self.members.remove(&group);
        // It says why already.
        let _ = self.end(group);
        let error = std::io::Error::from_raw_os_error(status.saturating_abs());
        let why = format!("{group} is not joined: {error}");
        Some((group, Standing::Failed(FailureKind::NotJoined.because(why))))
    }

    fn check(&self, group: IpAddr) -> Result<(), Failure> {
        if !is_group(group) {
            return Err(FailureKind::Invalid.because(format!("{group} is no group's address")));
        }
        if group.is_ipv4() != self.at.is_ipv4() {
            let why = format!("{group} is of another family than {}", self.at.ip());
            return Err(FailureKind::Invalid.because(why));
        }
        if self.members.contains_key(&group) {
            return Err(FailureKind::Invalid.because(format!("{group} is joined already")));
        }
        if self.members.len() >= MEMBERSHIPS_MOST {
            return Err(FailureKind::Exhausted.because("too many groups are joined"));
        }
        Ok(())
    }
}

fn is_group(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_multicast() || address == Ipv4Addr::BROADCAST,
        IpAddr::V6(address) => Ipv6Addr::is_multicast(&address),
    }
}

impl Memberships for ManagedDatagrams {
    fn join(&mut self, group: IpAddr, membership: Membership) -> Result<(), Failure> {
        if self.core.is_gone() {
            return Err(FailureKind::Gone.because("the device is gone"));
        }
        self.check(group)?;
        self.numbers += 1;
        let number = self.numbers;
        let send_only = membership == Membership::SendOnly;
        if let Some(id) = self.core.pair.id() {
            let address = self.of_group(group);
            id.join(address, send_only, number).map_err(failure)?;
        }
        let member = Member {
            number,
            membership,
            joined: false,
        };
        self.members.insert(group, member);
        Ok(())
    }

    fn leave(&mut self, group: IpAddr) -> Result<(), Failure> {
        if self.members.remove(&group).is_none() {
            return Err(FailureKind::Invalid.because(format!("{group} is not joined")));
        }
        self.end(group)
    }

    fn standing(&mut self) -> Option<(IpAddr, Standing)> {
        while let Some(happening) = self.channel.next() {
            if matches!(happening.what, What::DeviceRemoval) {
                self.core.device().note_gone();
                continue;
            }
            let Some(news) = happening.group else {
                continue;
            };
            let standing = self.heed(happening.what, happening.status, &news);
            if standing.is_some() {
                return standing;
            }
        }
        None
    }

    fn memberships(&self) -> usize {
        self.members.len()
    }
}

impl Datagrams for ManagedDatagrams {
    fn facts(&self) -> &PairFacts {
        &self.core.facts
    }

    fn attach(&mut self, _: Group) -> Result<(), Failure> {
        Err(FailureKind::Unsupported.because("joined by the connection manager, not attached"))
    }

    fn detach(&mut self, _: Group) -> Result<(), Failure> {
        Err(FailureKind::Unsupported.because("left by the connection manager, not detached"))
    }

    fn attached(&self) -> usize {
        let receiving = |member: &&Member| member.joined && member.membership == Membership::Full;
        self.members.values().filter(receiving).count()
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

impl Drop for ManagedDatagrams {
    /// The kernel destroys no queue pair that is attached, and the manager forgets no group that
    /// was not left.
    fn drop(&mut self) {
        for group in self.members.keys() {
            // Of a device that is gone there is nothing to leave.
            let _ = self.end(*group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_addresses_of_multicast() {
        for (text, expected) in [
            ("239.1.2.3", true),
            ("255.255.255.255", true),
            ("192.0.2.1", false),
            ("ff02::1", true),
            ("fe80::1", false),
        ] {
            assert_eq!(is_group(text.parse().expect(text)), expected, "{text}");
        }
    }
}
