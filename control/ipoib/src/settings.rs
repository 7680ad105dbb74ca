//! What the operator chooses: times, limits, links.

use crate::mgid::{Family, Scope};
use crate::mtu::Mtu;
use crate::pkey::PKey;
use crate::qkey::QKey;
use crate::time::Pace;

/// Everything about a node but its links.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Settings {
    /// How long things take and last.
    pub timing: Timing,
    /// How much there may be of anything.
    pub limits: Limits,
    /// What the device can hold of multicast.
    pub device: Device,
    /// Senders join as SendOnlyFullMember where the SA says that it offers that; otherwise, and always without this, as
    /// SendOnlyNonMember.
    pub send_only_full: bool,
}

/// Times, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The first wait for an answer of the SA; each further try waits twice as long, with jitter.
    pub reply_ms: u64,
    /// The longest wait for one answer, and the longest pause between two attempts at a failing operation.
    pub pause_ms: u64,
    /// How often a request is sent before the SA counts as silent.
    pub tries: u8,
    /// One's own record of each membership is looked up this often: the SA may have forgotten it without a word.
    pub verify_ms: u64,
    /// What is known of a group that is not joined is good for this long.
    pub cache_ms: u64,
    /// A send-only membership ends after so long without a datagram.
    pub idle_ms: u64,
    /// A datagram waits at most this long for its group to be joined.
    pub wait_ms: u64,
    /// The SA is asked so long after a leave whether it holds; longer than a request can be on its way.
    pub linger_ms: u64,
    /// [`Node::close`](crate::node::Node::close) takes at most this long.
    pub close_ms: u64,
    /// An address is looked for during this time before it is used; that of IPv6 with one question (RFC 4862 section 5.1:
    /// RetransTimer, 1 s).
    pub check_ms: u64,
    /// Questions for an address of IPv4 in this time (RFC 5227 section 1.1: `PROBE_NUM`, 3).
    pub probes: u8,
    /// An address of this node's that somebody else has is looked for again after this time, and twice that, and so on up to
    /// [`RATE_LIMIT_INTERVAL_MS`](crate::address::RATE_LIMIT_INTERVAL_MS).
    pub again_ms: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            reply_ms: 500,
            pause_ms: 8_000,
            tries: 4,
            verify_ms: 30_000,
            cache_ms: 60_000,
            idle_ms: 120_000,
            wait_ms: 3_000,
            linger_ms: 10_000,
            close_ms: 5_000,
            check_ms: 1_000,
            probes: 3,
            again_ms: 10_000,
        }
    }
}

/// Bounds on what peers and callers can make a node hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests to the SA on their way at a time.
    pub outstanding: usize,
    /// Groups known, joined or not, of all links.
    pub groups: usize,
    /// Of them, those joined because a router joins all (link section 10).
    pub routed: usize,
    /// Datagrams that wait for one group.
    pub waiting: usize,
    /// Octets that wait for one group.
    pub waiting_octets: usize,
    /// Octets that wait for all groups together.
    pub all_waiting_octets: usize,
    /// Reports (traps) taken up; those beyond are counted and make one look at everything.
    pub reports: Pace,
    /// Failures told to the log; those beyond are counted.
    pub told: Pace,
    /// Hosts that claim an address of this node's, told to the log likewise: they do not use up what failures have.
    pub conflicts: Pace,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            outstanding: 8,
            groups: 4096,
            routed: 2048,
            waiting: 16,
            waiting_octets: 64 << 10,
            all_waiting_octets: 4 << 20,
            reports: Pace {
                per_second: 100,
                burst: 200,
            },
            told: Pace {
                per_second: 5,
                burst: 50,
            },
            conflicts: Pace {
                per_second: 1,
                burst: 10,
            },
        }
    }
}

/// What a device can hold of multicast; `None` where it does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Device {
    /// Multicast groups that queue pairs of the device can be attached to.
    pub groups: Option<u32>,
    /// Attachments of queue pairs to groups altogether.
    pub attachments: Option<u32>,
}

/// A link to bring up: one partition, one IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// The partition, full-membership bit set (link section 6).
    pub p_key: PKey,
    /// Version of IP: it decides the signature of the link's MGIDs.
    pub family: Family,
    /// This node is the administrator: where the broadcast group is missing it creates it thus (link section 7).
    pub create: Option<Creation>,
    /// This node is an IP multicast router (link section 10).
    pub router: bool,
}

/// The attributes of a broadcast group that an administrator creates (link sections 6 and 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Creation {
    /// Link-local unless the link spans several subnets.
    pub scope: Scope,
    /// The queue key of every queue pair of the link; a controlled one is advised.
    pub q_key: QKey,
    /// 2048 or 4096 octets.
    pub mtu: Mtu,
    /// IBA's code of the static rate, 6 bits.
    pub rate: u8,
    /// Service level, 4 bits.
    pub sl: u8,
    /// Traffic class.
    pub t_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
}

impl Default for Creation {
    fn default() -> Self {
        Self {
            scope: Scope::LINK_LOCAL,
            q_key: QKey(0x8000_0B1B),
            mtu: Mtu::M2048,
            rate: 3,
            sl: 0,
            t_class: 0,
            flow_label: 0,
            hop_limit: 0,
        }
    }
}
