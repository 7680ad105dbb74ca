//! What an lcore counts about its connections: plain numbers, one owner.

rpcrdma_listed::counters! {
    /// Events of all connections of one lcore, since its start.
    pub Counters {
        /// Calls handed to the upper layer.
        calls_in,
        /// Replies sent.
        replies_out,
        /// Calls ended by an error message instead of a reply, or given up by the upper layer.
        calls_refused,
        /// Calls taken from the upper layer to be sent; each ends once: a reply, a failure, given up.
        calls_out,
        /// Replies handed to the upper layer.
        replies_in,
        /// Calls of ours that ended without a reply.
        calls_failed,
        /// Calls of ours that the upper layer gave up.
        calls_cancelled,
        /// Calls sent again after a reconnection.
        calls_replayed,
        /// RDMA Reads posted.
        reads,
        /// Octets of them.
        read_bytes,
        /// RDMA Writes posted.
        writes,
        /// Octets of them.
        write_bytes,
        /// Exposures made for the peer.
        exposures,
        /// Exposures ended by the peer's Send With Invalidate.
        remote_invalidations,
        /// Exposures ended by ourselves.
        local_invalidations,
        /// Replies sent by Send With Invalidate.
        sends_with_invalidate,
        /// Error messages sent.
        errors_out,
        /// Error messages received.
        errors_in,
        /// Replies, errors and control messages that matched nothing, dropped.
        strays,
        /// Calls whose xid was in flight already, dropped (V2-24).
        duplicate_calls,
        /// Calls dropped because the connection drains.
        drained_calls,
        /// Replies whose chunk lists are not those of their call, dropped (V1-05).
        bad_replies,
        /// Property messages received.
        properties_in,
        /// Property messages sent.
        properties_out,
        /// Property changes of the peer that were ignored: fixed ones, a second CONNPROP (V2-06).
        properties_ignored,
        /// Replies kept for a retry after REPLY_RESOURCE (V2-20).
        replies_kept,
        /// Retries answered from a kept reply.
        retries_answered,
        /// Connections that fell back to version one.
        fallbacks,
        /// Connections closed because of what the peer did.
        protocol_closes,
        /// Connections closed because work failed.
        work_closes,
        /// Times a call waited for memory.
        memory_waits,
    } with {
        /// Refused headers, by [`Reject::index`](rpcrdma_wire::Reject::index).
        rejects: RejectCounts,
    }
}

/// One count per reason to refuse a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectCounts([u64; RejectCounts::LEN]);

impl RejectCounts {
    /// How many there are.
    pub const LEN: usize = rpcrdma_wire::Reject::ALL.len();

    /// Adds one.
    pub fn add(&mut self, reject: rpcrdma_wire::Reject) {
        if let Some(count) = self.0.get_mut(reject.index()) {
            *count = count.wrapping_add(1);
        }
    }

    /// Each reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (rpcrdma_wire::Reject, u64)> + '_ {
        rpcrdma_wire::Reject::ALL
            .iter()
            .copied()
            .zip(self.0.iter().copied())
    }
}

impl Default for RejectCounts {
    fn default() -> Self {
        Self([0; Self::LEN])
    }
}
