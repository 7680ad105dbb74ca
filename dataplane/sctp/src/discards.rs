//! What comes and is no packet for an endpoint: a counter for each reason.

/// Why what came was not taken, by name: first of packets, then of the frames that ports of DPDK
/// receive. Frames for others are among them, of which every link has some.
pub const DISCARDS: [&str; 17] = [
    "packet-damaged",
    "frame-short",
    "frame-tagged",
    "frame-kind",
    "frame-not-ours",
    "frame-source",
    "frame-header",
    "frame-header-sum",
    "frame-fragment",
    "frame-protocol",
    "frame-datagram-sum",
    "frame-arp",
    "frame-icmp",
    "frame-long",
    "frame-damaged",
    "frame-no-port",
    "frame-overrun",
];

/// How often each was, in the order of [`DISCARDS`].
pub type Discards = [u64; DISCARDS.len()];

/// None of them.
pub(crate) const NONE: Discards = [0; DISCARDS.len()];
