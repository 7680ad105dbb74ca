//! What is decided about the fabric before it is made.

use std::time::Duration;

/// Settings of the fabric, whatever the SCTP below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Sessions, and so connections, that one association of this side's own is used for. Peers
    /// may use as many as the association has streams.
    pub streams: u16,
    /// Octets of the longest chunk that is sent, the DDP-SSN counted, where the path would take
    /// more; at least 518 (RFC 5043 section 9).
    pub chunk_bytes: u16,
    /// Requests that may wait for an answer at once, on each association (RFC 5043 section 6.4).
    pub pending: u16,
    /// RDMA Reads outstanding at once on a connection, each way, at most; the peers agree on it
    /// (RFC 6581 section 9).
    pub read_depth: u16,
    /// Asks for sessions with the word of RFC 6581; a peer of RFC 5043 alone, which turns that away,
    /// is then asked without.
    pub enhanced: bool,
    /// Connections of this process's own that may be on their way at once.
    pub begun_max: usize,
    /// Requests of peers that may wait for an answer at once, on each port.
    pub requests_max: usize,
    /// How long an association without a session is kept.
    pub idle: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            streams: 32,
            chunk_bytes: u16::MAX,
            pending: 16,
            read_depth: 32,
            enhanced: true,
            begun_max: 1024,
            requests_max: 128,
            idle: Duration::from_secs(60),
        }
    }
}
