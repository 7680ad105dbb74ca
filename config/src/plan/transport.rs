//! How endpoints speak.

use std::time::Duration;

/// The highest version of RPC-over-RDMA that an endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VersionMax {
    /// Version one alone (RFC 8166).
    One,
    /// Version two, and one with peers that know no other.
    Two,
}

/// `[transport]`, with an endpoint's own `transport` table laid over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transport {
    /// The highest version to speak.
    pub version_max: VersionMax,
    /// The longest message that a peer may Send, octets: RBSIZ in version two, the receive size
    /// of RFC 8797 in version one. At least 4096 with version two.
    pub inline_bytes: u32,
    /// Size of each posted receive, octets: what `inline_bytes` can be raised to while this runs,
    /// and what a peer can ask for (V2-21). At least `inline_bytes`.
    pub inline_bytes_max: u32,
    /// Calls in flight, forward: the most granted as responder, the most asked for as requester.
    pub credits: u16,
    /// How few of them a connection is given when there are more connections than the memory
    /// has receives for; at most `credits`.
    pub credits_min: u16,
    /// Backward Calls that are taken: the BRS property.
    pub backward: Backward,
    /// Calls in flight, backward (RFC 8167); zero with [`Backward::None`].
    pub backward_credits: u16,
    /// Offer and use Send With Invalidate.
    pub remote_invalidate: bool,
    /// How long a first message may stay without an answer (V2-09).
    pub negotiate_timeout: Duration,
    /// How long a peer is remembered to know version one alone (V2-09).
    pub version_memory: Duration,
    /// The reply room given to programs without a binding, octets.
    pub unbound_reply_bytes: u32,
    /// Version two's property messages.
    pub properties: Properties,
    /// What a peer's headers may ask for.
    pub limits: Limits,
    /// Replies kept for a retry after REPLY_RESOURCE (V2-20).
    pub kept_replies: KeptReplies,
}

/// Backward Calls that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backward {
    /// Not at all.
    None,
    /// Without chunks.
    Inline,
    /// In general.
    General,
}

/// `transport.properties`: version two's CONNPROP, REQPROP, RESPROP and UPDPROP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Off: procs 6 to 9 are answered INVAL_OPTION, and none is sent (V2-02).
    pub enabled: bool,
    /// UPDPROPs that a peer may send in a second (V2-13).
    pub updates_per_second: u16,
    /// Properties in one message.
    pub values_max: u32,
    /// Data of one property, octets.
    pub value_bytes_max: u32,
}

/// `transport.limits`: what a peer's headers may ask for. Beyond: ERR_CHUNK or BAD_XDR (V1-06).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Segments in the Read list.
    pub read_segments: u32,
    /// Chunks in the Write list.
    pub write_chunks: u32,
    /// Segments in one Write chunk or the Reply chunk.
    pub chunk_segments: u32,
    /// Octets of one Call, its chunks put in place.
    pub call_bytes: u32,
    /// Octets of one Reply, its chunks included.
    pub reply_bytes: u32,
}

/// `transport.kept_replies`: bounds, for each connection, on replies kept for a retry (V2-20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptReplies {
    /// Octets of them all; zero: none is kept. There are at most `credits` of them.
    pub bytes: u32,
    /// For how long.
    pub age: Duration,
}
