//! What upper layers count: plain numbers, one owner, no atomics.

rpcrdma_listed::counters! {
    /// What the upper layers of one lcore have seen, since its start.
    pub Counters {
        /// RPC records read whole from TCP.
        records_in,
        /// RPC records handed to TCP.
        records_out,
        /// Octets that were copied inside the process on their way between socket and arena, or
        /// to be echoed. Bounded for each record, however long it is.
        payload_copies,
        /// Replies that came reduced and were put together again.
        results_restored,
        /// Octets of the results in them, taken straight from where RDMA Write had put them.
        restored_bytes,
        /// Eligible items named in messages for the peer: what RDMA may place directly.
        items_named,
        /// Octets of those items.
        item_bytes,
        /// RPC errors made on the spot, by the built-in program or by a gateway.
        local_errors,
        /// Streams closed because of what came in: oversized records, records that stopped midway, or
        /// no RPC at all.
        refused_records,
        /// Calls whose xid was in flight already, dropped as retransmissions.
        duplicate_calls,
        /// Replies from a backend to no call in flight, skipped.
        unknown_replies,
        /// Replies longer than the room there was for them.
        long_replies,
        /// Backend connections made.
        backends_connected,
        /// Backends that could not be connected to.
        backends_unreachable,
        /// Backend connections lost with calls outstanding.
        backends_lost,
        /// Backend connections that ended while nothing was outstanding.
        backends_idled,
        /// TCP clients that left.
        clients_left,
        /// Calls given up because their TCP client had left.
        calls_cancelled,
        /// Calls sent again with more room for their results.
        calls_enlarged,
        /// Times a stream or call waited for memory.
        memory_waits,
    }
}

impl Counters {
    /// Moves these counts into `sum`.
    pub fn move_into(&mut self, sum: &mut Self) {
        sum.add(&std::mem::take(self));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_move_and_names_follow() {
        let mut counters = Counters {
            records_in: 3,
            memory_waits: 1,
            ..Counters::default()
        };
        let mut sum = Counters {
            records_in: 4,
            ..Counters::default()
        };
        counters.move_into(&mut sum);
        counters.move_into(&mut sum);
        assert_eq!((sum.records_in, sum.memory_waits), (7, 1));
        let named: Vec<_> = sum.named().collect();
        assert_eq!(
            named[0],
            ("records_in", "RPC records read whole from TCP.", 7)
        );
        assert_eq!(named.last().map(|named| named.2), Some(1));
    }
}
