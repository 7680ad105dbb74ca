//! What a port counts about its device and its peers, besides what its user counts of each
//! completion.

rpcrdma_listed::counters! {
    /// What became of the work of one port since it was opened. Zero where the fabric does not
    /// count it.
    #[derive(Copy)]
    pub PortCounts {
        /// Completions that named a queue pair that is no more, dropped.
        stale,
        /// Requests that the peer's device refused access for.
        remote_access,
        /// Messages that the peer did not take.
        remote_invalid,
        /// Requests or messages longer than their memory.
        local_length,
        /// Requests refused for memory or a window of our own.
        local_protection,
        /// Messages that met no receive for too long.
        not_ready,
        /// Requests that the transport gave up.
        transport,
        /// Chunks of SCTP that came.
        chunks_in,
        /// Chunks of SCTP that were sent.
        chunks_out,
        /// Chunks of SCTP that came for a session that was over, not looked at.
        chunks_dropped,
        /// Associations of SCTP that came up, those that were refused then included.
        associations,
        /// Sessions that a peer's upper layer rejected.
        sessions_rejected,
        /// Sessions that a peer answered with Terminate: it has no room.
        sessions_turned_away,
        /// Sessions that a peer's RDMAP Terminate ended.
        sessions_terminated,
        /// Sessions that ended with their association.
        sessions_lost,
        /// Frames that came to a port of DPDK, those for others included.
        frames_in,
        /// Octets of frames that came to a port of DPDK.
        frame_bytes_in,
        /// Frames that a port of DPDK has sent.
        frames_out,
        /// Octets of frames that a port of DPDK has sent.
        frame_bytes_out,
        /// Frames that were lost because their lcore did not take them in time.
        frames_missed,
        /// Frames that were lost because no buffer was left for them.
        frames_no_buffer,
        /// Frames that came damaged.
        frames_damaged,
        /// Frames that a port of DPDK could not send.
        frames_unsent,
        /// Frames that were dropped because too many waited for the port, or no buffer was left.
        frames_crowded,
        /// Packets that were dropped because no way to their destination is known.
        packets_no_way,
        /// Packets that were dropped because their neighbour did not answer in time, or too many waited.
        packets_unanswered,
        /// Requests that were sent for the address of a neighbour.
        neighbour_requests,
        /// Requests of neighbours that were answered: ARP, neighbour discovery, echo.
        neighbour_answers,
    }
}

/// What peers did that a fabric's own protocols do not allow, below RPC-over-RDMA: a counter for
/// each thing that there is. What there is and what it is called is the fabric's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRejects {
    names: &'static [&'static str],
    counts: [u64; PortRejects::MOST],
}

impl PortRejects {
    /// Most counters of one fabric.
    pub const MOST: usize = 64;

    /// Of a fabric whose devices see to it, and do not say.
    pub const NONE: PortRejects = PortRejects::new(&[]);

    /// Counters of these names, all zero. There are [`PortRejects::MOST`] at most: in a constant,
    /// more do not compile.
    #[must_use]
    pub const fn new(names: &'static [&'static str]) -> PortRejects {
        assert!(names.len() <= PortRejects::MOST, "too many counters");
        PortRejects {
            names,
            counts: [0; PortRejects::MOST],
        }
    }

    /// Adds to a counter, by its name's place.
    #[inline]
    pub fn add(&mut self, place: usize, more: u64) {
        debug_assert!(place < self.names.len(), "{place}: no such counter");
        if let Some(count) = self.counts.get_mut(place) {
            *count = count.wrapping_add(more);
        }
    }

    /// Every counter with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.names.iter().copied().zip(self.counts)
    }
}

impl Default for PortRejects {
    fn default() -> PortRejects {
        PortRejects::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_fields() {
        let counts = PortCounts {
            stale: 1,
            neighbour_answers: 7,
            ..PortCounts::default()
        };
        let named: Vec<_> = counts.named().collect();
        assert_eq!((named[0].0, named[0].2), ("stale", 1));
        assert_eq!(
            named.last().map(|it| (it.0, it.2)),
            Some(("neighbour_answers", 7))
        );
        assert!(named.iter().all(|(_, help, _)| help.ends_with('.')));
    }

    #[test]
    fn rejects_are_counted_by_name() {
        const EMPTY: PortRejects = PortRejects::new(&["short", "long"]);
        let mut rejects = EMPTY;
        rejects.add(1, 2);
        rejects.add(1, 1);
        let named: Vec<_> = rejects.iter().collect();
        assert_eq!(named, [("short", 0), ("long", 3)]);
        assert_eq!(PortRejects::default().iter().count(), 0);
    }
}
