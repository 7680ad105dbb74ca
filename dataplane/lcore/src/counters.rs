//! What an lcore counts about its own loop; what it counts about connections is the engine's
//! [`Counters`](rpcrdma_engine::Counters).

rpcrdma_listed::counters! {
    /// What the loop of one lcore did since its start.
    #[derive(Copy)]
    pub LoopCounters {
        /// Turns of the loop.
        turns,
        /// Turns that found nothing to do.
        idle_turns,
        /// Completions reaped.
        completions,
        /// Completions for connections that were gone already, dropped.
        stale_completions,
        /// Turns in which a whole burst was waiting.
        full_bursts,
        /// Orders of control's obeyed.
        orders,
        /// Orders of control's for connections that were gone already, dropped.
        stale_orders,
        /// Orders about properties that the connection was in no state for.
        orders_in_vain,
        /// Turns in which notices had to wait for room in control's ring.
        notices_deferred,
        /// Looks at the sockets.
        socket_looks,
        /// Edges of sockets found.
        socket_edges,
        /// Times an upper layer was called because of its sockets, its own wish or the clock.
        upper_turns,
        /// Times a connection queued for memory or windows.
        memory_waits,
        /// Times one that had queued was given another try.
        memory_retries,
        /// Connections adopted.
        adoptions,
        /// Connections that ended.
        closes,
        /// Adoptions that the port refused, or that came while draining.
        adoptions_declined,
        /// Times asleep.
        sleeps,
        /// Times woken by the port, a socket or control, and not by the clock.
        wakeups,
        /// Clock ticks: one a second, unless asleep over it.
        ticks,
    }
}

/// Adds one to a counter.
#[inline]
pub(crate) fn count(counter: &mut u64) {
    *counter = counter.wrapping_add(1);
}
