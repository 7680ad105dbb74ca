//! What a pair counts.

rpcrdma_listed::counters! {
    /// What a pair has counted since it was made. Datagrams, unless said otherwise.
    #[derive(Copy)]
    pub DatagramCounts {
        /// Handed to the fabric.
        sent,
        /// Their octets.
        sent_octets,
        /// Refused before that: see [`Unsent`](super::Unsent).
        unsent,
        /// Handed to the fabric, and come back as failed.
        send_failed,
        /// Handed to the owner.
        received,
        /// Their octets.
        received_octets,
        /// Sent by this pair, and given back to it by a group it is attached to.
        echoes,
        /// Lost because too many waited. From a device, whose own counters have those: 0.
        overrun,
        /// Refused for their Q_Key. From a device: 0.
        wrong_q_key,
        /// Refused for their P_Key. From a device: 0.
        wrong_p_key,
        /// Times that the pair was started again after an error. From the memory fabric: 0.
        restarts,
        /// Arrived in a form that cannot be: no room for the header, a failed receive.
        malformed,
    }
}
