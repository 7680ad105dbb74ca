//! What a node wants done, and told.

use super::AddressNews;
use crate::gid::{Gid, Lid};
use crate::link::LinkState;
use crate::mgid::Family;
use crate::mtu::Mtu;
use crate::packet::HardwareAddress;
use crate::pkey::PKey;
use crate::qkey::QKey;
use crate::trouble::{Refusal, Trouble};
use std::net::IpAddr;

/// A link of a node, by the order in which links were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u8);

/// The queue pair number that stands for all of a multicast group (IBA 10.5.2.1).
pub const MULTICAST_QPN: u32 = 0x00FF_FFFF;

/// Something for the owner of a node to do. Done in the order in which it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a management datagram to the SA, whose queue pair is 1. Its loss is the node's own affair.
    Mad {
        /// The subnet manager's LID.
        to: Lid,
        /// Service level.
        sl: u8,
        /// 256 octets.
        bytes: Vec<u8>,
    },
    /// Make the link's UD queue pair; answered by [`Node::queue_opened`](super::Node::queue_opened).
    Open(Opening),
    /// Destroy the link's queue pair, with whatever it is attached to. No answer.
    Close {
        /// Whose.
        link: LinkId,
    },
    /// Attach the link's queue pair to a group; answered by [`Node::attached`](super::Node::attached).
    Attach(Attachment),
    /// Detach it; answered by [`Node::detached`](super::Node::detached).
    Detach(Attachment),
    /// Send a frame: the encapsulation header of RFC 4391 section 6 and what it carries.
    Frame {
        /// From which link's queue pair.
        link: LinkId,
        /// To where.
        to: AddressVector,
        /// Header and payload.
        bytes: Vec<u8>,
    },
    /// A link has another state.
    Link {
        /// Which.
        link: LinkId,
        /// The new state.
        state: LinkState,
        /// Why it is not up, where it is not; otherwise what last troubled it.
        error: Option<Refusal>,
    },
    /// A group that was asked for is joined, with the queue pair attached to it, or is so no longer. Its address is that of
    /// [`Node::group_of`](super::Node::group_of); two addresses of IPv6 may share a group.
    Member {
        /// On which link.
        link: LinkId,
        /// The group.
        mgid: Gid,
        /// Joined.
        joined: bool,
    },
    /// Something became of an address that was set.
    Address {
        /// On which link.
        link: LinkId,
        /// The address.
        ip: IpAddr,
        /// What.
        news: AddressNews,
    },
    /// Something for the log.
    Trouble(Trouble),
}

/// A queue pair to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Whose.
    pub link: LinkId,
    /// The link's IP.
    pub family: Family,
    /// The partition.
    pub p_key: PKey,
    /// Its index in the port's table.
    pub p_key_index: u16,
    /// The queue key. A controlled one needs CAP_NET_RAW on Linux.
    pub q_key: QKey,
    /// The largest payload.
    pub mtu: Mtu,
}

/// A queue pair's attachment to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attachment {
    /// Whose queue pair.
    pub link: LinkId,
    /// The group.
    pub mgid: Gid,
    /// Its LID.
    pub mlid: Lid,
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressVector {
    /// A port's LID or a group's.
    pub lid: Lid,
    /// A port's GID or a group's: that of the global route header, which every multicast packet has.
    pub gid: Gid,
    /// The queue pair; [`MULTICAST_QPN`] for a group.
    pub qpn: u32,
    /// The queue key.
    pub q_key: QKey,
    /// Service level.
    pub sl: u8,
    /// Traffic class.
    pub t_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
    /// IBA's code of the static rate.
    pub rate: u8,
}

/// Where a frame came from, as the completion tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The port's LID.
    pub lid: Lid,
    /// The port's GID, where the packet had a global route header.
    pub gid: Option<Gid>,
    /// The group that it was sent to, where it was one.
    pub group: Option<Gid>,
    /// The queue pair.
    pub qpn: u32,
}

impl Origin {
    /// Who sent it, by its headers alone: the queue pair tells this node's own from that of another program at the same port.
    #[must_use]
    pub fn sender(&self) -> Option<HardwareAddress> {
        let gid = self.gid?;
        Some(HardwareAddress::datagrams(self.qpn, gid))
    }
}
