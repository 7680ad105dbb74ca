//! What control asks of the way to the subnet administrator, whatever is behind it.

use crate::{Facts, Fault};
use rpcrdma_ipoib::gid::{Gid, Lid};
use std::os::fd::AsFd;
use std::time::Duration;

/// The way of one port to its subnet administrator. [`AsFd`] is readable when [`take`](Subnet::take) has something.
pub trait Subnet: AsFd {
    /// Sends a MAD, now. Of the transaction id of a request only the low 32 bits are the caller's: the high ones are
    /// whose agent it is, and replies come back with zeros there.
    ///
    /// # Errors
    /// The MAD is not sent; [`Fault`] says why. A port that has [ended](Event::Ended) sends nothing any more.
    fn send(&mut self, class: Class, to: Target, mad: &[u8], reply: Reply) -> Result<(), Fault>;

    /// What has happened, oldest first; `None` when that was all. Silences the descriptor: to be called until it is `None`.
    fn take(&mut self) -> Option<Event>;

    /// Reads the facts of the port again, soon: [`Event::Facts`] follows, changed or not.
    fn ask_facts(&mut self);

    /// The facts as they were taken last.
    fn facts(&self) -> &Facts;

    /// What came and did not get here.
    fn counts(&self) -> SubnetCounts {
        SubnetCounts::default()
    }

    /// Whether reports of the SA come here. Not where another program of this host has asked for those of this port first:
    /// the kernel gives them to one only, and a link has to find out by asking then.
    fn hears_reports(&self) -> bool {
        true
    }
}

/// MADs that came to a port and were not handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubnetCounts {
    /// Control had not taken earlier ones.
    pub dropped: u64,
    /// Nobody here can have asked for them.
    pub strays: u64,
}

/// The management classes that are spoken (IBA 13.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Subnet administration, version 2: on queue pair 1.
    Administration,
    /// Subnet management by directed route: on queue pair 0.
    DirectedRoute,
}

impl Class {
    /// Its number in a MAD's header.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Class::Administration => 0x03,
            Class::DirectedRoute => 0x81,
        }
    }

    /// Its version.
    #[must_use]
    pub const fn version(self) -> u8 {
        match self {
            Class::Administration => 2,
            Class::DirectedRoute => 1,
        }
    }
}

/// Where a MAD goes: a port's queue pair of that class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its LID; 0xFFFF (permissive) for a directed route from here.
    pub lid: Lid,
    /// The service level to reach it, 0 to 15.
    pub sl: u8,
}

/// Whether an answer is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To a request, for so long: a real kernel drops replies that come later, and says [`Undelivered::NoReply`] then. It is no
    /// more than a hint: where a simulator stands in for the kernel nothing is said.
    Within(Duration),
    /// None: this is one itself.
    No,
}

/// Something that happened on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A MAD arrived: a reply, or a report that was subscribed to.
    Arrived(Arrived),
    /// A request that was sent has failed.
    Undelivered {
        /// The low 32 bits of its transaction id.
        transaction: u32,
        /// What happened to it.
        why: Undelivered,
    },
    /// The facts of the port were read: for the first time, after a change, or because they were asked for.
    Facts(Box<Facts>),
    /// The port is gone, and nothing more comes from it: to be opened again, when it is back.
    Ended(Fault),
}

/// A MAD that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Its class, as its header says.
    pub class: Class,
    /// Who sent it.
    pub source: Source,
    /// 256 octets, or more where the kernel put the segments of a longer message (RMPP) together: the first segment as it
    /// arrived, then the payload of the others.
    pub mad: Vec<u8>,
}

/// Who sent a MAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The sender's LID.
    pub lid: Lid,
    /// The service level it came by.
    pub sl: u8,
    /// The sender's queue pair.
    pub queue_pair: u32,
    /// The sender's GID, where it came with a global route header.
    pub gid: Option<Gid>,
}

impl Source {
    /// The way back.
    #[must_use]
    pub const fn target(self) -> Target {
        Target {
            lid: self.lid,
            sl: self.sl,
        }
    }
}

/// Why a request has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undelivered {
    /// No reply came in time, or there is no way to the target.
    NoReply,
    /// The kernel could not send it; its errno.
    NotSent(i32),
}
