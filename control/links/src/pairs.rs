//! Queue pairs of whatever fabric: the same for a link, so that one driver does for all.

use rpcrdma_fabric::connect::{Event, Fabric};
use rpcrdma_fabric::datagram::{
    AddressVector, DatagramFabric, Datagrams, Failure, FailureKind, Group, Link, LinkChange,
    LinkName, PairWanted,
};
use rpcrdma_ipoib::node;
use std::os::fd::BorrowedFd;
use tracing::info;

/// A fabric that makes UD queue pairs, and tells what becomes of its devices.
pub(crate) trait Pairs {
    /// Makes one.
    fn open(&mut self, wanted: &PairWanted) -> Result<Box<dyn Datagrams + Send>, Failure>;

    /// What is known of a port now; `None` where it cannot be read.
    fn link(&self, device: Option<&str>, number: u8) -> Option<Link>;

    /// What has changed of a link since, oldest first.
    fn change(&mut self) -> Option<(LinkName, LinkChange)>;

    /// Readable when something may have changed.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

impl<F: Fabric + DatagramFabric> Pairs for F {
    fn open(&mut self, wanted: &PairWanted) -> Result<Box<dyn Datagrams + Send>, Failure> {
        Ok(Box::new(self.open_pair(wanted)?))
    }

    fn link(&self, device: Option<&str>, number: u8) -> Option<Link> {
        DatagramFabric::link(self, device, number).ok()
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

/// Whether a port has queue pairs.
pub(crate) enum QueuePairs {
    /// It has, of this fabric.
    Of(Box<dyn Pairs + Send>),
    /// It has none: groups are joined, and nothing is sent or received. Verbs that are there all the same tell what becomes
    /// of the device: that its subnet manager asks for everything to be joined again comes by them alone.
    None {
        /// Those verbs.
        watched: Option<Box<dyn Pairs + Send>>,
    },
}

impl QueuePairs {
    /// None, on a device that may be watched.
    pub(crate) fn none(watched: Option<Box<dyn Pairs + Send>>) -> Self {
        if watched.is_none() {
            info!("no verbs here: that a subnet manager has restarted is found by asking alone");
        }
        Self::None { watched }
    }

    /// What makes them.
    pub(crate) fn made_by(&self) -> Option<&(dyn Pairs + Send)> {
        match self {
            Self::Of(pairs) => Some(&**pairs),
            Self::None { .. } => None,
        }
    }

    /// The same, to make one.
    pub(crate) fn maker(&mut self) -> Option<&mut (dyn Pairs + Send + 'static)> {
        match self {
            Self::Of(pairs) => Some(&mut **pairs),
            Self::None { .. } => None,
        }
    }

    /// What has changed of a link of the device since.
    pub(crate) fn change(&mut self) -> Option<(LinkName, LinkChange)> {
        match self {
            Self::Of(pairs) => pairs.change(),
            Self::None { watched } => watched.as_mut()?.change(),
        }
    }

    /// Readable when something may have.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Of(pairs) => pairs.descriptor(),
            Self::None { watched } => watched.as_ref()?.descriptor(),
        }
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
