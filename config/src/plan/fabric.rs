//! The fabrics, and how their devices are used.

use std::fmt;
use std::time::Duration;

/// A fabric that this build has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fabric {
    /// Between endpoints of this process.
    Memory,
    /// RDMA devices, by rdma-core.
    Verbs,
    /// RDMA in software: RDMAP and DDP on SCTP.
    IwarpSctp,
}

impl Fabric {
    /// The fabrics of this build.
    pub const ALL: &'static [Fabric] = &[Fabric::Memory, Fabric::Verbs, Fabric::IwarpSctp];

    /// The name the configuration knows it by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fabric::Memory => "memory",
            Fabric::Verbs => "verbs",
            Fabric::IwarpSctp => "iwarp-sctp",
        }
    }

    /// Whether its memory is pinned by the kernel, and so counted against RLIMIT_MEMLOCK.
    #[must_use]
    pub fn locks_memory(self) -> bool {
        match self {
            Fabric::Memory | Fabric::IwarpSctp => false,
            Fabric::Verbs => true,
        }
    }
}

impl fmt::Display for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// `[verbs]`: how RDMA devices are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verbs {
    /// Which devices.
    pub devices: Devices,
    /// The entry of a port's GID table to use; `None`: by rule, RoCE version two and the family
    /// of the address.
    pub gid_index: Option<u8>,
    /// How memory is shown to a peer.
    pub expose: Expose,
    /// RDMA Reads in flight on a connection, each way.
    pub read_depth: u8,
    /// Times the device sends again what is not acknowledged.
    pub retry_count: u8,
    /// Times it sends again what found no receive; 7: for ever.
    pub rnr_retry: u8,
    /// How long a peer without a receive has us wait, as the code of IBTA 9.7.5.2.8.
    pub min_rnr_timer: u8,
    /// How long finding an address, and the way to it, may take, each.
    pub resolve_timeout: Duration,
}

/// `[iwarp_sctp]`: how RDMA is done in software.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IwarpSctp {
    /// How packets travel.
    pub packets: Packets,
    /// The SCTP port within UDP, at both ends.
    pub sctp_port: u16,
    /// Streams of an association, each way.
    pub streams: u16,
    /// Longest chunk that is sent, octets, where the path would take a longer one.
    pub chunk_bytes: u16,
    /// Longest IP packet that is sent, octets, where the route would take a longer one.
    pub path_mtu: u16,
    /// RDMA Reads in flight on a connection, each way.
    pub read_depth: u8,
}

/// How SCTP's packets travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    /// In UDP, by libusrsctp.
    Udp,
    /// Natively, by the kernel's SCTP.
    Native,
    /// In UDP, by libusrsctp, through ports of DPDK.
    Dpdk,
}

/// RDMA devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Devices {
    /// All that are there.
    All,
    /// These, by the names rdma-core gives them.
    Named(Vec<String>),
}

/// How memory is shown to a peer for one Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expose {
    /// By memory windows where the device has them, else by a region.
    Auto,
    /// By a memory window of type two, bound on the connection's own queue pair.
    Window,
    /// By a region, registered for the Call and taken away after it.
    Region,
    /// By the one region of the whole arena, whose handle the peer then has for good.
    Arena,
}
