//! What an SCTP endpoint is told once.

use std::time::Duration;

/// The SCTP port of an NFS service over RDMA (RFC 8267 section 5).
pub const NFS_RDMA_PORT: u16 = 20_049;

/// The UDP port of SCTP in UDP (RFC 6951 section 3).
pub const ENCAPSULATION_PORT: u16 = 9_899;

/// The adaptation code point of DDP (RFC 5043 section 5.1).
pub const ADAPTATION_DDP: u32 = 1;

/// How an endpoint behaves. Times are rounded to milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Associations at once; those of peers beyond are aborted.
    pub associations: u32,
    /// Streams each way of an association (RFC 5043 section 8: equal numbers).
    pub streams: u16,
    /// The adaptation indication of INIT and INIT-ACK; `None` leaves it out.
    pub indication: Option<u32>,
    /// The SCTP port that listens here and is asked for there, where packets go in UDP.
    pub sctp_port: u16,
    /// No packet is longer with all its headers, in octets, whatever the route allows.
    pub path_mtu: u32,
    /// Packets of one length leave in pieces that the kernel cuts up (`UDP_SEGMENT`), which on an
    /// Ethernet's MTU makes for twice the throughput. Off unless asked for: where a piece comes
    /// to a kernel uncut, as it does on one machine, between containers and to some virtual
    /// machines, and that kernel's own SCTP takes UDP, Linux (6.12, seen) panics. Peers that are
    /// [`Usrsctp`](crate::Usrsctp) too are safe.
    pub in_pieces: bool,
    /// Octets of an association's send buffer.
    pub send_bytes: u32,
    /// Octets a peer may have in flight to here: clamped to what the socket's buffer holds.
    pub receive_bytes: u32,
    /// Times that INIT is sent.
    pub attempts: u16,
    /// Timeouts of a chunk in a row before the peer is taken for dead.
    pub retransmissions: u16,
    /// Retransmission timeout before anything is measured.
    pub rto_initial: Duration,
    /// Least retransmission timeout: above the peer's delay of SACKs, and above what a loaded host
    /// keeps an lcore waiting for a processor. RFC 9260 has a second, for the open Internet; here
    /// it is what the last packet of a Call or Reply costs when it is lost, for no later one tells
    /// of the gap. At 40 ms instead of 100 ms round trips with 1 % to 5 % of packets lost take
    /// less than half as long, and no more is sent again without loss. Peers farther away are
    /// measured, and waited for accordingly.
    pub rto_min: Duration,
    /// Greatest retransmission timeout.
    pub rto_max: Duration,
    /// How long a SACK waits for data to go with: longer than a Reply is away on a fast network,
    /// and short beside `rto_min`.
    pub sack_delay: Duration,
    /// How often an idle peer is asked whether it lives.
    pub heartbeat: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            associations: 64,
            streams: 16,
            indication: Some(ADAPTATION_DDP),
            sctp_port: NFS_RDMA_PORT,
            path_mtu: 65_535,
            in_pieces: false,
            send_bytes: 2 << 20,
            receive_bytes: 2 << 20,
            attempts: 6,
            retransmissions: 10,
            rto_initial: Duration::from_millis(300),
            rto_min: Duration::from_millis(40),
            rto_max: Duration::from_secs(1),
            sack_delay: Duration::from_millis(5),
            heartbeat: Duration::from_secs(5),
        }
    }
}

/// Whole milliseconds, as far as 32 bits go.
pub(crate) fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else a peer that waits for data to send its SACK with is sent everything twice.
    #[test]
    fn sacks_come_well_before_what_they_are_for_is_sent_again() {
        let usual = Settings::default();
        assert!(usual.sack_delay * 4 <= usual.rto_min);
        assert!(usual.rto_min <= usual.rto_initial);
        assert!(usual.rto_initial <= usual.rto_max);
    }
}
