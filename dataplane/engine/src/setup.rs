//! What a connection is told when it is made, and what it knows of its peer.

use rpcrdma_wire::private_data::PrivateData;
use rpcrdma_wire::property::BackwardRequests;
use rpcrdma_wire::{Limits, Version};

/// Which end made the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It connected: its forward direction is as a requester.
    Client,
    /// It was connected to: its forward direction is as a responder.
    Server,
}

/// How one connection is to behave. Fixed for its life.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Which end this is.
    pub side: Side,
    /// The highest version to offer or accept.
    pub version_max: Version,
    /// Client: most Calls in flight. Server: the grant, so most Calls accepted at a time.
    pub credits: u16,
    /// The same for the backward direction; zero where there is none.
    pub backward_credits: u16,
    /// Octets of each posted receive, 1024 at least; the largest RBSIZ that can be announced.
    pub receive_bytes: u32,
    /// The RBSIZ to announce at first: 1024 to `receive_bytes`.
    pub announced_bytes: u32,
    /// Limits on what the peer's headers may hold.
    pub limits: Limits,
    /// Speak of transport properties (version two 5.3).
    pub properties: bool,
    /// Backward Calls accepted (RDMA2_PROPID_BRS).
    pub backward: BackwardRequests,
    /// Invalidate and let invalidate remotely; only where the fabric can.
    pub remote_invalidate: bool,
    /// Longest segment to offer to the peer, octets.
    pub segment_bytes: u32,
    /// Send unanswered Calls again on a new connection.
    pub replay: bool,
    /// UPDPROPs accepted between two ticks; beyond it the connection is closed (V2-13).
    pub updates_per_tick: u16,
    /// How long a reply is kept for a retry after REPLY_RESOURCE (V2-20).
    pub kept_ticks: u32,
    /// Octets of all replies kept.
    pub kept_bytes: u32,
}

impl Setup {
    /// Sensible values for one side: 32 credits, 4 KiB messages, version two.
    #[must_use]
    pub fn new(side: Side) -> Self {
        Self {
            side,
            version_max: Version::Two,
            credits: 32,
            backward_credits: 2,
            receive_bytes: 4096,
            announced_bytes: 4096,
            limits: Limits::default(),
            properties: true,
            backward: BackwardRequests::Inline,
            remote_invalidate: true,
            segment_bytes: 1 << 30,
            replay: false,
            updates_per_tick: 16,
            kept_ticks: 8,
            kept_bytes: 8 << 20,
        }
    }

    /// Receives to post: one for each RPC in flight either way, and two for control messages.
    #[must_use]
    pub fn receives(&self) -> u16 {
        self.credits
            .saturating_add(self.backward_credits)
            .saturating_add(2)
    }

    /// The RFC 8797 message to send along with a connection request or its acceptance.
    #[must_use]
    pub fn private_data(&self) -> PrivateData {
        PrivateData {
            send_bytes: self.announced_bytes,
            receive_bytes: self.announced_bytes,
            remote_invalidate: self.remote_invalidate,
        }
    }

    /// The receive size that private data can say: a multiple of 1024 octets, 256 KiB at most.
    pub(crate) fn private_bytes(&self) -> u32 {
        (self.announced_bytes & !(FIRST_BYTES - 1)).clamp(FIRST_BYTES, 256 << 10)
    }

    /// Calls this side makes at a time.
    pub(crate) fn requester_credits(&self) -> u16 {
        match self.side {
            Side::Client => self.credits,
            Side::Server => self.backward_credits,
        }
    }

    /// Calls this side serves at a time.
    pub(crate) fn responder_credits(&self) -> u16 {
        match self.side {
            Side::Client => self.backward_credits,
            Side::Server => self.credits,
        }
    }
}

/// The inline threshold of version one without private data (RFC 8166 3.3.3), and of the first
/// message of a connection that offers version two (V2-04).
pub(crate) const FIRST_BYTES: u32 = 1024;
/// The inline threshold of version two until a property says otherwise.
pub(crate) const VERSION_TWO_BYTES: u32 = 4096;

/// What is known of the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// The longest message that may be sent to it, octets.
    pub(crate) receive_bytes: u32,
    /// What it said in private data, version one's business only.
    pub(crate) private: Option<PrivateData>,
    /// Backward Calls it accepts.
    pub(crate) backward: BackwardRequests,
    /// It announced its properties.
    pub(crate) announced: bool,
}

impl Peer {
    pub(crate) fn unknown() -> Self {
        Self {
            receive_bytes: FIRST_BYTES,
            private: None,
            backward: BackwardRequests::Inline,
            announced: false,
        }
    }

    /// The longest message to send in `version`, before properties.
    pub(crate) fn default_bytes(&self, version: Version) -> u32 {
        match (version, self.private) {
            (Version::Two, _) => VERSION_TWO_BYTES,
            (Version::One, Some(private)) => private.receive_bytes.max(FIRST_BYTES),
            (Version::One, None) => FIRST_BYTES,
        }
    }
}
