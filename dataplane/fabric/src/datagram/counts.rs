//! What a pair counts.

/// What a pair has counted since it was made. Datagrams, unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramCounts {
    /// Handed to the fabric.
    pub sent: u64,
    /// Their octets.
    pub sent_octets: u64,
    /// Refused before that: see [`Unsent`](super::Unsent).
    pub unsent: u64,
    /// Handed to the fabric, and come back as failed.
    pub send_failed: u64,
    /// Handed to the owner.
    pub received: u64,
    /// Their octets.
    pub received_octets: u64,
    /// Sent by this pair, and given back to it by a group it is attached to.
    pub echoes: u64,
    /// Lost because too many waited. From a device, whose own counters have those: 0.
    pub overrun: u64,
    /// Refused for their Q_Key. From a device: 0.
    pub wrong_q_key: u64,
    /// Refused for their P_Key. From a device: 0.
    pub wrong_p_key: u64,
    /// Times that the pair was started again after an error. From the memory fabric: 0.
    pub restarts: u64,
    /// Arrived in a form that cannot be: no room for the header, a failed receive.
    pub malformed: u64,
}
