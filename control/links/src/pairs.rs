//! Queue pairs of whatever fabric: the same for a link, so that one driver does for all.

use rpcrdma_fabric::connect::{Event, Fabric};
use rpcrdma_fabric::datagram::{
    AddressVector, DatagramFabric, Datagrams, Failure, FailureKind, Group, GroupLimits, LinkChange,
    LinkName, PairWanted,
};
use rpcrdma_ipoib::node;
use std::os::fd::BorrowedFd;

/// A fabric that makes UD queue pairs, and tells what becomes of its devices.
pub(crate) trait Pairs {
    /// Makes one.
    fn open(&mut self, wanted: &PairWanted) -> Result<Box<dyn Datagrams + Send>, Failure>;

    /// How much of multicast a port's device has; `None` where it does not say.
    fn limits(&self, device: Option<&str>, number: u8) -> Option<GroupLimits>;

    /// What has changed of a link since, oldest first.
    fn change(&mut self) -> Option<(LinkName, LinkChange)>;

    /// Readable when something may have changed.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

impl<F: Fabric + DatagramFabric> Pairs for F {
    fn open(&mut self, wanted: &PairWanted) -> Result<Box<dyn Datagrams + Send>, Failure> {
        Ok(Box::new(self.open_pair(wanted)?))
    }

    fn limits(&self, device: Option<&str>, number: u8) -> Option<GroupLimits> {
        self.link(device, number).ok().map(|link| link.limits)
    }

    fn change(&mut self) -> Option<(LinkName, LinkChange)> {
        // No connection is made in this fabric: its other events concern nobody.
        while let Some(event) = self.poll() {
            if let Event::Resolved { connection } | Event::Request { connection, .. } = event {
                self.abandon(connection);
            }
        }
        self.link_change()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Fabric::descriptor(self)
    }
}

/// Where a node wants a frame to go, in the words of the fabric.
pub(crate) fn address_vector(to: &node::AddressVector) -> AddressVector {
    AddressVector {
        lid: to.lid.0,
        gid: Some(to.gid.0),
        queue_pair: to.qpn,
        q_key: to.q_key.0,
        service_level: to.sl,
        traffic_class: to.t_class,
        flow_label: to.flow_label,
        hop_limit: to.hop_limit,
        rate: to.rate,
    }
}

/// The group that a node wants its queue pair attached to.
pub(crate) fn group(of: &node::Attachment) -> Group {
    Group {
        mgid: of.mgid.0,
        mlid: of.mlid.0,
    }
}

/// The `errno` that stands for a failure: what nodes keep of it. Its text is for the log.
pub(crate) const fn errno(failure: &Failure) -> i32 {
    match failure.kind {
        FailureKind::Forbidden => 1,                           // EPERM
        FailureKind::Refused => 5,                             // EIO
        FailureKind::Exhausted => 12,                          // ENOMEM
        FailureKind::Absent | FailureKind::Gone => 19,         // ENODEV
        FailureKind::NoPartition | FailureKind::Invalid => 22, // EINVAL
        FailureKind::Unsupported => 95,                        // EOPNOTSUPP
        FailureKind::NotJoined => 107,                         // ENOTCONN
    }
}
