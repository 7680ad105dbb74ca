//! Unreliable datagrams, to one queue pair or to a multicast group: for the control thread alone.
//!
//! No lcore has part in this: a datagram here is a join's answer, a query, an announcement. So it
//! is copied, it may allocate, and its trait may be used by `dyn`. What is bounded is what others
//! decide: how many datagrams wait, how long one is, how many groups there are.
//!
//! # The parts
//!
//! - [`Datagrams`] is one UD queue pair: it is in one partition and has one Q_Key, both for good.
//! - [`DatagramFabric`] makes them, knows the facts of a [`Link`], and tells what
//!   [changed](LinkChange) of it.
//! - [`Memberships`] is for links without a subnet administrator (RoCE), where the fabric's own
//!   connection manager joins groups. On InfiniBand a membership is the business of whoever speaks
//!   with the administrator, and [`Datagrams::attach`] is what is left to do here (IBA 10.5).
//!
//! # Who owns what
//!
//! A pair owns its queue, its memory, its attachments and its memberships: dropping it gives them
//! all back, in the right order. Octets to be sent are copied before [`Datagrams::send`] returns;
//! octets received are copied into the caller's. A pair whose device is gone stays usable, in that
//! every call of it fails with [`FailureKind::Gone`] and nothing arrives any more; drop it.
//!
//! # What does not come back
//!
//! Datagrams are lost without a word: by the network, by a receiver whose queue is full, by a wrong
//! P_Key or Q_Key (IBA 9.2.4, 10.2.4). What this side can know of it is in [`DatagramCounts`].
//!
//! Numbers are in host order, GIDs in network order, lengths in octets.

mod address;
mod counts;
mod failure;
mod link;

pub use address::{AddressVector, Arrival, GidOctets, Group, MULTICAST_QUEUE_PAIR, is_multicast};
pub use counts::DatagramCounts;
pub use failure::{Failure, FailureKind, Unsent};
pub use link::{GroupLimits, Link, LinkChange, LinkName, p_keys_match};

use std::net::IpAddr;
use std::os::fd::BorrowedFd;

/// A UD queue pair that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairWanted {
    /// The device, by name; `None`: the first.
    pub device: Option<String>,
    /// The device's link, from 1: a port, in the words of InfiniBand.
    pub link: u8,
    /// The partition: all 16 bits must be in the link's P_Key table.
    pub p_key: u16,
    /// The Q_Key that arriving datagrams must have. One with its top bit set is controlled: it
    /// needs the privilege of `CAP_NET_RAW` on Linux.
    pub q_key: u32,
    /// The index of the GID to send from; `None`: the fabric's choice.
    pub gid_index: Option<u32>,
    /// Datagrams that may wait to be received; more are lost.
    pub receives: u32,
    /// Datagrams that may be on their way out at once; more are refused as [`Unsent::Busy`].
    pub sends: u32,
}

impl Default for PairWanted {
    /// In the default partition of the first device's first link, with Q_Key 0.
    fn default() -> PairWanted {
        PairWanted {
            device: None,
            link: 1,
            p_key: 0xFFFF,
            q_key: 0,
            gid_index: None,
            receives: 256,
            sends: 64,
        }
    }
}

/// What a pair is, from the moment it is made to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairFacts {
    /// The device's name.
    pub device: String,
    /// The device's link, from 1.
    pub link: u8,
    /// Its number, 24 bits: where datagrams for it alone are sent.
    pub queue_pair: u32,
    /// The partition.
    pub p_key: u16,
    /// Its Q_Key.
    pub q_key: u32,
    /// The GID it sends from.
    pub gid: GidOctets,
    /// Longest datagram, octets, without any header of the network.
    pub payload_bytes: u32,
}

/// One UD queue pair.
pub trait Datagrams {
    /// What it is.
    fn facts(&self) -> &PairFacts;

    /// Has datagrams to a group delivered here. On InfiniBand the subnet delivers them to this port
    /// only once it has joined. Attaching again to what is attached does nothing.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Exhausted`] where the device has no room for another attachment,
    /// [`FailureKind::Invalid`] for what is no group, and what the system says.
    fn attach(&mut self, group: Group) -> Result<(), Failure>;

    /// Ends that. What has arrived already still comes.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Invalid`] where it is not attached, and what the system says; it is not
    /// attached afterwards as far as this side can tell.
    fn detach(&mut self, group: Group) -> Result<(), Failure>;

    /// The groups it is attached to.
    fn attached(&self) -> usize;

    /// Sends one datagram. Returns when its octets are copied: that it has left, let alone arrived,
    /// is not said. It may wait here for the way to its receiver to be found; so whoever sends
    /// watches [`Datagrams::descriptor`] too, and then calls [`Datagrams::receive`], by which all
    /// goes on that has to.
    ///
    /// # Errors
    ///
    /// See [`Unsent`]: nothing was sent.
    fn send(&mut self, octets: &[u8], to: &AddressVector) -> Result<(), Unsent>;

    /// The next datagram, without waiting: `into` is cleared and gets its octets. After `None`
    /// [`Datagrams::descriptor`] becomes readable with the next one. Datagrams of this very pair,
    /// which groups it is attached to give back, are left out, and counted.
    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Arrival>;

    /// Readable when [`Datagrams::receive`] has something, or may have.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// It will never send or receive again: its device is gone, or it could not be started anew.
    /// [`Datagrams::descriptor`] is not readable any more once [`Datagrams::receive`] was called.
    fn is_gone(&self) -> bool;

    /// What it has counted so far.
    fn counts(&self) -> DatagramCounts;
}

/// A fabric that has datagrams.
pub trait DatagramFabric {
    /// Its UD queue pairs.
    type Pair: Datagrams + Send + 'static;

    /// What is known of a link now; `device` as in [`PairWanted::device`].
    ///
    /// # Errors
    ///
    /// [`FailureKind::Absent`] where there is none of this name and number, and what the system
    /// says.
    fn link(&self, device: Option<&str>, number: u8) -> Result<Link, Failure>;

    /// Makes a queue pair.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Absent`], [`FailureKind::NoPartition`] where the P_Key is not in the link's
    /// table, [`FailureKind::Forbidden`] for a controlled Q_Key without privilege,
    /// [`FailureKind::Exhausted`], [`FailureKind::Unsupported`] where the device has no datagrams
    /// (iWARP), and what the system says.
    fn open_pair(&mut self, wanted: &PairWanted) -> Result<Self::Pair, Failure>;

    /// What has changed of a link since, oldest first. The same change of a link is told once,
    /// however often it happened before it was asked for: so what waits here is bounded.
    ///
    /// To be asked after [`Fabric::poll`](crate::connect::Fabric::poll), which finds it out and
    /// whose descriptor becomes readable with it.
    fn link_change(&mut self) -> Option<(LinkName, LinkChange)>;
}

/// How a group is joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Membership {
    /// To send and receive: FullMember.
    Full,
    /// To send alone: SendOnlyFullMember. The queue pair is not attached.
    SendOnly,
}

/// What became of a membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Joined, and attached where it receives: this is how to send to the group.
    Joined(AddressVector),
    /// Not joined, or no more: the reason. It may be joined again.
    Failed(Failure),
}

/// Memberships that the fabric's own connection manager makes and ends.
pub trait Memberships: Datagrams {
    /// Begins to join the group of an IP multicast address. Does not wait: there will be one
    /// [`Standing`] of it, and another if it fails later.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Invalid`] for an address that is no group's, of the other family, or joined
    /// or being joined already; [`FailureKind::Exhausted`] beyond the most there may be;
    /// [`FailureKind::Unsupported`] where the system knows no send-only memberships.
    fn join(&mut self, group: IpAddr, membership: Membership) -> Result<(), Failure>;

    /// Leaves a group, joined or being joined: nothing is said of it any more.
    ///
    /// # Errors
    ///
    /// [`FailureKind::Invalid`] where it is neither, and what the system says; it is neither
    /// afterwards.
    fn leave(&mut self, group: IpAddr) -> Result<(), Failure>;

    /// What became of a membership since, oldest first, without waiting. Then
    /// [`Datagrams::descriptor`] becomes readable with the next.
    fn standing(&mut self) -> Option<(IpAddr, Standing)>;

    /// Groups that are joined or being joined.
    fn memberships(&self) -> usize;
}
