//! Failures of multicast operations by kind (link section 11), and what is left of the device's multicast resources.
//!
//! Link section 11: "Implementations should log error messages upon any failure from an IB multicast operation", most of all
//! upon those that no foreground operation waits for: a router whose join of a new group fails drops that group's packets
//! in silence. So every failure becomes a [`Trouble`] with the operation, the cause and the group, and one more in a
//! counter of that operation and cause; nothing fails without. What a broken subnet can make happen often is told at a
//! bounded rate and counted always. What any host can make happen has a rate of its own, so that none silences failures.

use crate::gid::Gid;
use crate::node::LinkId;
use crate::packet::HardwareAddress;
use crate::settings::Limits;
use crate::time::{Bucket, Moment};
use rpcrdma_listed::{Tally, listed};
use std::net::IpAddr;

listed! {
    /// What was tried.
    pub Operation {
        /// To find a group's record.
        Query,
        /// To create a group.
        Create,
        /// To join a group as a receiver: FullMember, or NonMember.
        Join,
        /// To join a group as a sender alone.
        SendOnlyJoin,
        /// To leave a group.
        Leave,
        /// To look up one's own record.
        Verify,
        /// To open a link's queue pair.
        Open,
        /// To attach the queue pair to a group.
        Attach,
        /// To detach it.
        Detach,
        /// To subscribe to reports of groups created and deleted.
        Subscribe,
        /// To end that.
        Unsubscribe,
        /// To obtain the list of all groups (link section 10 A).
        List,
        /// To ask what the SA can do.
        Capabilities,
        /// To find the path to a neighbour.
        Path,
    }
}

listed! {
    /// Why it failed.
    pub Cause {
        /// The SA did not answer, however often it was asked.
        Silent,
        /// The SA was busy, however often it was asked.
        Busy,
        /// The SA, or a switch, has no resources left.
        NoResources,
        /// The SA refused: the request was not valid for it.
        Denied,
        /// The SA has no such record.
        NoRecord,
        /// What the SA answered lacks what it must have, or contradicts the request.
        Malformed,
        /// The device or the operating system refused.
        Device,
        /// A rule forbids it: see the refusal.
        Rule,
        /// A limit of our own.
        Limit,
    }
}

listed! {
    /// What a rule forbids.
    pub Refusal {
        /// Link section 6: the P_Key configured is one of limited membership.
        LimitedKey,
        /// Link section 6: the port is only a limited member of the partition.
        LimitedMember,
        /// Link section 5: the port is not in the partition.
        OutsidePartition,
        /// The port is not active.
        PortInactive,
        /// Link section 7: there is no broadcast group, and this node is not to create one.
        NoBroadcastGroup,
        /// Link section 6.1: the broadcast group's MTU is neither 2048 nor 4096.
        MtuUnfit,
        /// Link section 7: the broadcast group's MTU is greater than the port's.
        MtuBeyondPort,
        /// Link section 9: the group's MTU is smaller than the link's.
        GroupMtuSmaller,
        /// The group's MTU is greater than the port's.
        GroupMtuBeyondPort,
        /// Link section 6.2: the group's Q_Key is not the link's.
        QKeyDiffers,
        /// The group's record is of another partition.
        PKeyDiffers,
        /// The address is no group's.
        NotMulticast,
        /// The address is a group's, where a host's is needed.
        Multicast,
        /// The address is of the other IP.
        OtherFamily,
        /// RFC 5227 section 2.1.1, RFC 4862 section 5.4: another node has the address that is to be this one's.
        AddressTaken,
        /// No link of this number.
        UnknownLink,
        /// There are as many links as there can be, or one of this partition and IP.
        LinksFull,
        /// As many groups as there can be are joined.
        GroupsFull,
        /// As many groups as a router may join are joined.
        RoutedFull,
        /// The node is closing.
        Closing,
    }
}

listed! {
    /// Why a datagram to be sent was not.
    pub Drop {
        /// Nobody listens: no group, and no routers (link section 9).
        NoListener,
        /// The link is not up.
        LinkDown,
        /// As many as may wait for the group wait.
        WaitingFull,
        /// The group was not joined in time.
        WaitedTooLong,
        /// The group could not be joined.
        NotJoined,
        /// Longer than the link's MTU.
        TooLong,
        /// There is no way to the host, or none was found in time: the neighbours' own counters say why.
        NoNeighbour,
        /// No group of it could be remembered: the table is full of joined ones.
        GroupsFull,
    }
}

listed! {
    /// Why something that came was not taken.
    pub Ignored {
        /// A MAD that cannot be parsed.
        BrokenMad,
        /// A MAD from elsewhere than the subnet manager.
        Stranger,
        /// A MAD of a kind that this node does not take.
        OtherMad,
        /// A frame that cannot be parsed, or is of a kind that is not spoken here: counters of its own say why.
        BrokenFrame,
        /// A frame for a link that is not up, or has no address in use and takes none from others.
        EarlyFrame,
        /// An answer to nothing asked: late, or a duplicate.
        LateAnswer,
        /// An answer about another group or port than the one asked about.
        OtherRecord,
        /// A report of something not subscribed to.
        OtherReport,
        /// A report beyond the rate: not answered, so that the SA says it again later.
        ReportStorm,
        /// Word from the device about a group that nothing was asked of.
        StaleWord,
    }
}

/// A failure, or a warning, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// An operation failed.
    Failed(Failure),
    /// Much of a resource is used: warned of before it is exhausted.
    Scarce {
        /// Of what.
        resource: Resource,
        /// In use.
        used: u32,
        /// There is.
        limit: u32,
    },
    /// Link section 6.2: the link's Q_Key is not a controlled one, so that software without privileges can forge its datagrams.
    OpenQKey {
        /// On which link.
        link: LinkId,
    },
    /// The SA has forgotten this port: everything is joined again.
    Forgotten {
        /// Of which group it was noticed, where it was of one.
        mgid: Option<Gid>,
    },
    /// Another host of a link says that this node's address is its own.
    Conflict {
        /// On which link.
        link: LinkId,
        /// The address.
        ip: IpAddr,
        /// Who says so.
        hardware: HardwareAddress,
    },
    /// More reports than the rate allows: what they said is looked up in one go.
    Storm,
    /// Troubles that were counted and not told, because there were too many.
    Untold {
        /// So many.
        count: u64,
    },
}

/// An operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What was tried.
    pub operation: Operation,
    /// Why it failed.
    pub cause: Cause,
    /// The rule, where [`Cause::Rule`] or [`Cause::Limit`] says that there is one.
    pub refusal: Option<Refusal>,
    /// The SA's status (host order) where it answered, `errno` where the device refused; otherwise 0.
    pub code: i32,
    /// On which link.
    pub link: Option<LinkId>,
    /// Of which group.
    pub mgid: Option<Gid>,
    /// Nobody waits for it: silence would hide it (link section 11).
    pub background: bool,
}

listed! {
    /// What multicast uses up.
    pub Resource {
        /// Groups that this port is a member of, each of which needs an entry in every switch on its way.
        Memberships,
        /// Groups that queue pairs are attached to.
        AttachedGroups,
        /// Attachments of queue pairs.
        Attachments,
    }
}

/// Failures and drops, counted, and what of them is told.
#[derive(Debug)]
pub struct Ledger {
    failures: Vec<Tally<Cause>>,
    refusals: Tally<Refusal>,
    drops: Tally<Drop>,
    ignored: Tally<Ignored>,
    told: Bucket,
    conflicts: Bucket,
    untold: u64,
}

impl Ledger {
    /// Nothing counted.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self {
            failures: vec![Tally::default(); Operation::ALL.len()],
            refusals: Tally::default(),
            drops: Tally::default(),
            ignored: Tally::default(),
            told: Bucket::new(limits.told),
            conflicts: Bucket::new(limits.conflicts),
            untold: 0,
        }
    }

    /// Counts a failure; the troubles to tell of it, at most two.
    pub fn failed(
        &mut self,
        now: Moment,
        failure: Failure,
    ) -> impl Iterator<Item = Trouble> + use<> {
        if let Some(causes) = self.failures.get_mut(failure.operation as usize) {
            causes.add(failure.cause);
        }
        if let Some(refusal) = failure.refusal {
            self.refusals.add(refusal);
        }
        self.tell(now, Trouble::Failed(failure))
    }

    /// What of a trouble goes to the log now: it, and before it how many did not.
    pub fn tell(&mut self, now: Moment, trouble: Trouble) -> impl Iterator<Item = Trouble> + use<> {
        let bucket = match trouble {
            Trouble::Conflict { .. } => &mut self.conflicts,
            _ => &mut self.told,
        };
        let told = bucket.take(now);
        let count = if told {
            std::mem::take(&mut self.untold)
        } else {
            0
        };
        if !told {
            self.untold += 1;
        }
        let untold = (count > 0).then_some(Trouble::Untold { count });
        untold.into_iter().chain(told.then_some(trouble))
    }

    /// A command that was refused at once: its caller knows, so it is counted alone.
    pub fn refused(&mut self, refusal: Refusal) -> Refusal {
        self.refusals.add(refusal);
        refusal
    }

    /// Datagrams that were not sent.
    pub fn dropped(&mut self, why: Drop, count: u64) {
        self.drops.add_many(why, count);
    }

    /// Something that came and was not taken.
    pub fn ignored(&mut self, why: Ignored) {
        self.ignored.add(why);
    }

    /// Failures of one operation by cause.
    #[must_use]
    pub fn failures(&self, operation: Operation) -> &Tally<Cause> {
        // `new` makes one tally for each operation
        &self.failures[operation as usize]
    }

    /// Refusals by rule.
    #[must_use]
    pub fn refusals(&self) -> &Tally<Refusal> {
        &self.refusals
    }

    /// Datagrams not sent, by reason.
    #[must_use]
    pub fn drops(&self) -> &Tally<Drop> {
        &self.drops
    }

    /// What was not taken, by reason.
    #[must_use]
    pub fn ignored_things(&self) -> &Tally<Ignored> {
        &self.ignored
    }
}

/// A running total against a limit, with a warning before it is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    resource: Resource,
    used: u32,
    limit: Option<u32>,
    warned: bool,
}

impl Gauge {
    /// Nothing in use.
    #[must_use]
    pub const fn new(resource: Resource, limit: Option<u32>) -> Self {
        Self {
            resource,
            used: 0,
            limit,
            warned: false,
        }
    }

    /// In use, and the limit.
    #[must_use]
    pub const fn reading(&self) -> (u32, Option<u32>) {
        (self.used, self.limit)
    }

    /// One more in use; a warning the first time that it is four fifths of the limit.
    pub fn take(&mut self) -> Option<Trouble> {
        self.used = self.used.saturating_add(1);
        let limit = self.limit?;
        let scarce = u64::from(self.used) * 5 >= u64::from(limit) * 4;
        if !scarce || self.warned {
            return None;
        }
        self.warned = true;
        Some(Trouble::Scarce {
            resource: self.resource,
            used: self.used,
            limit,
        })
    }

    /// One less in use. Below two thirds of the limit the next warning is armed: no warning twice for a value that wavers.
    pub fn give(&mut self) {
        self.used = self.used.saturating_sub(1);
        let limit = u64::from(self.limit.unwrap_or(0));
        if u64::from(self.used) * 3 < limit * 2 {
            self.warned = false;
        }
    }
}
