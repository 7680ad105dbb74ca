//! What a device can do, and what a port gets of it.
//!
//! The plan of a port is clamped here, before anything is made; credits are derived from what
//! is left by whoever asked.

use crate::port::{MOST_ELEMENTS, MOST_INLINE, MOST_PAIRS};
use crate::settings::Expose;
use rpcrdma_fabric::Capabilities;
use rpcrdma_fabric::connect::PortWanted;

/// Least useful depth of a send and of a receive queue.
const SEND_LEAST: u32 = 8;
const RECEIVE_LEAST: u32 = 8;
/// Deepest queue of one queue pair: rings of this depth are made for it.
const DEPTH_MOST: u32 = 65_536;
/// Short-lived regions of one port at most: each costs the device a registration.
const REGIONS_MOST: u32 = 4096;
/// Longest single RDMA Read or Write, octets, whatever a device allows.
const TRANSFER_MOST: u32 = 1 << 30;

/// What a device can do: its own words, but for what is said to be by trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Queue pairs.
    pub queue_pairs: u32,
    /// Entries of a send or receive queue.
    pub depth: u32,
    /// Elements of a work request.
    pub gather: u32,
    /// Elements of an RDMA Read.
    pub gather_reads: u32,
    /// Entries of a completion queue.
    pub completions: u32,
    /// Longest message, octets: the least of the links'.
    pub message_bytes: u32,
    /// Octets that go inline in a Send, by trial.
    pub inline_bytes: u32,
    /// RDMA Reads of a peer's that a queue pair serves at once.
    pub reads_served: u32,
    /// RDMA Reads that a queue pair has outstanding.
    pub reads_issued: u32,
    /// Memory regions.
    pub regions: u32,
    /// Memory windows of type 2, bound by work requests; 0 where there are none.
    pub windows: u32,
    /// Send With Invalidate and local invalidation.
    pub invalidate: bool,
    /// Requests of so many octets or more have to be signalled, each of them:
    /// [`Limits::NONE_LAZY`] but on siw. What is unsignalled siw hands to TCP as pages, not octets, and then says of all before
    /// a completion that it is done; what is written to that memory afterwards is what the peer gets.
    pub lazy_bytes: u32,
    /// Completions of what is posted behind an RDMA Read come before the Read's, though order is
    /// promised: siw tells of a Send when it is sent, and of a Read when its octets have come.
    pub overtakes_reads: bool,
    /// The octets of an RDMA Read are written to memory as a peer's, which takes the right of
    /// remote write there: on iWARP, where the Read names the memory by its handle (RFC 5040 5.2),
    /// siw excepted, which asks for none. **A peer that is sent a Read has such a handle, of all
    /// memory of the lcore, for as long as the port is there.**
    pub writes_sinks: bool,
    /// The flags of a completion any of which says that its Send has invalidated a handle.
    pub invalidated_flags: u32,
    /// `ibv_wr_*` and `ibv_cq_ex` are used where the provider has them: false where they are known
    /// to be wrong.
    pub extended_calls: bool,
    /// Links.
    pub links: u8,
}

impl Limits {
    /// No request is sent from its memory after it is done.
    pub const NONE_LAZY: u32 = u32::MAX;

    /// Where a device of this name protects less than an operator would think.
    #[must_use]
    pub fn warning(&self, name: &str) -> Option<String> {
        self.writes_sinks.then(|| {
            format!(
                "device {name}: a peer that is sent an RDMA Read can write all memory of the lcore \
                 for as long as the lcore runs, as iWARP has it, whatever verbs.expose says: let in \
                 none but peers that are trusted"
            )
        })
    }

    /// How memory is exposed, where the device can do as the configuration says.
    pub(crate) fn means(&self, wanted: Expose) -> Result<Expose, &'static str> {
        match wanted {
            Expose::Auto if self.windows > 0 && self.invalidate => Ok(Expose::Window),
            Expose::Auto => Ok(Expose::Region),
            Expose::Window if self.windows == 0 => Err("it has no memory windows of type 2"),
            Expose::Window if !self.invalidate => Err("it cannot invalidate memory windows"),
            other => Ok(other),
        }
    }

    /// Exposures of one port at most.
    fn exposures(&self, means: Expose) -> u32 {
        match means {
            Expose::Window => self.windows,
            Expose::Auto | Expose::Region => self.regions.min(REGIONS_MOST),
            Expose::Arena => u32::MAX,
        }
    }

    /// What a port can do at best.
    pub(crate) fn at_best(&self, expose: Expose) -> Capabilities {
        let means = self.means(expose).unwrap_or(Expose::Region);
        Capabilities {
            queue_pairs: self.queue_pairs.min(MOST_PAIRS),
            gather: self.gather.min(count(MOST_ELEMENTS)),
            send_depth: self.depth.min(DEPTH_MOST),
            receive_depth: self.depth.min(DEPTH_MOST),
            transfer_bytes: self.message_bytes.min(TRANSFER_MOST),
            windows: self.exposures(means),
            send_invalidate: self.invalidate,
            // A plain region that is not of a fast registration can be taken away on siw alone,
            // which does not tell; elsewhere it ends the connection.
            receive_invalidate: self.invalidate && means == Expose::Window,
        }
    }
}

fn count(constant: usize) -> u32 {
    u32::try_from(constant).unwrap_or(u32::MAX)
}

/// What a port is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) means: Expose,
    pub(crate) queue_pairs: u32,
    /// As many of them as the completion queue has entries for, at once.
    pub(crate) at_once: u32,
    /// Of each queue pair.
    pub(crate) send_depth: u32,
    pub(crate) receive_depth: u32,
    pub(crate) gather: u32,
    pub(crate) inline_bytes: u32,
    /// Of the completion queue.
    pub(crate) completions: u32,
    pub(crate) windows: u32,
    pub(crate) transfer_bytes: u32,
    pub(crate) send_invalidate: bool,
    pub(crate) receive_invalidate: bool,
    pub(crate) lazy_bytes: u32,
    pub(crate) fenced: bool,
    pub(crate) writes_sinks: bool,
    pub(crate) extended_calls: bool,
}

/// Clamps what is wanted to what there is.
///
/// The completion queue must hold an entry for every request that is out, for a queue pair that
/// fails completes them all. Where a device's queue is too short for that (rxe: 32,767 entries),
/// fewer queue pairs can be taken at once than were wanted. The queue pairs themselves stay as deep:
/// credits were derived from their depth. Only where not even one fits does it get less.
pub(crate) fn plan(
    limits: &Limits,
    wanted: &PortWanted,
    expose: Expose,
) -> Result<Plan, &'static str> {
    let means = limits.means(expose)?;
    let best = limits.at_best(expose);
    let queue_pairs = wanted.queue_pairs.clamp(1, best.queue_pairs.max(1));
    // One entry more than is offered: see `RESERVED` of the port.
    let send = wanted
        .send_depth
        .saturating_add(1)
        .clamp(SEND_LEAST, best.send_depth.max(SEND_LEAST));
    let receive = wanted.receive_depth.clamp(1, best.receive_depth.max(1));
    let (send, receive) = shrink(send, receive, limits.completions);
    let all = u64::from(send + receive) * u64::from(queue_pairs);
    let completions = u32::try_from(all)
        .unwrap_or(u32::MAX)
        .min(limits.completions);
    if limits.depth < SEND_LEAST || limits.completions < send + receive {
        return Err("its queues are too short");
    }
    Ok(Plan {
        means,
        queue_pairs,
        at_once: queue_pairs.min(completions / (send + receive)),
        send_depth: send,
        receive_depth: receive,
        gather: best.gather,
        inline_bytes: limits.inline_bytes.min(count(MOST_INLINE)),
        completions,
        windows: wanted.windows.clamp(1, best.windows.max(1)),
        transfer_bytes: best.transfer_bytes,
        send_invalidate: best.send_invalidate,
        receive_invalidate: best.receive_invalidate,
        lazy_bytes: limits.lazy_bytes,
        fenced: limits.overtakes_reads,
        writes_sinks: limits.writes_sinks,
        extended_calls: limits.extended_calls,
    })
}

/// Depths that add up to `share` at most, in the same proportion; but never below the least.
fn shrink(send: u32, receive: u32, share: u32) -> (u32, u32) {
    let (wanted, share) = (u64::from(send) + u64::from(receive), u64::from(share));
    if wanted <= share {
        return (send, receive);
    }
    let part = |depth: u32, least: u32| {
        let part = u64::from(depth) * share / wanted;
        u32::try_from(part).unwrap_or(depth).max(least.min(depth))
    };
    (part(send, SEND_LEAST), part(receive, RECEIVE_LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Those of rxe in Linux 6.12, in the main.
    fn rxe() -> Limits {
        Limits {
            queue_pairs: 1_048_560,
            depth: 1_048_576,
            gather: 32,
            gather_reads: 32,
            completions: 32_767,
            message_bytes: 8 << 20,
            inline_bytes: 512,
            reads_served: 128,
            reads_issued: 128,
            regions: 524_287,
            windows: 524_287,
            invalidate: true,
            lazy_bytes: Limits::NONE_LAZY,
            overtakes_reads: false,
            writes_sinks: false,
            invalidated_flags: 4,
            extended_calls: false,
            links: 1,
        }
    }

    fn wanted() -> PortWanted {
        PortWanted {
            device: None,
            processor: None,
            queue_pairs: 64,
            send_depth: 128,
            receive_depth: 256,
            windows: 1000,
            message_bytes: 65_536,
        }
    }

    #[test]
    fn what_fits_is_given() {
        let plan = plan(&rxe(), &wanted(), Expose::Auto).expect("fits");
        assert_eq!((plan.send_depth, plan.receive_depth), (129, 256));
        assert_eq!(plan.completions, 64 * (129 + 256));
        assert_eq!((plan.windows, plan.gather), (1000, count(MOST_ELEMENTS)));
        assert_eq!(plan.means, Expose::Window);
        assert!(plan.send_invalidate && plan.receive_invalidate);
    }

    #[test]
    fn a_short_completion_queue_makes_few_queue_pairs_of_full_depth() {
        let many = PortWanted {
            queue_pairs: 1024,
            ..wanted()
        };
        let plan = plan(&rxe(), &many, Expose::Auto).expect("fits");
        assert_eq!((plan.send_depth, plan.receive_depth), (129, 256));
        assert_eq!(plan.completions, 32_767);
        assert_eq!((plan.queue_pairs, plan.at_once), (1024, 85), "and says so");
        // And where not one fits, it gets its share of what there is.
        let limits = Limits {
            completions: 77,
            ..rxe()
        };
        let plan = super::plan(&limits, &many, Expose::Auto).expect("fits");
        assert_eq!((plan.send_depth, plan.receive_depth), (25, 51));
        assert_eq!(plan.completions, 77);
    }

    #[test]
    fn a_device_without_windows_exposes_regions_or_is_refused() {
        let siw = Limits {
            windows: 0,
            gather: 6,
            ..rxe()
        };
        let plan = plan(&siw, &wanted(), Expose::Auto).expect("fits");
        assert_eq!((plan.means, plan.gather), (Expose::Region, 6));
        assert!(plan.send_invalidate, "for requesters that want it");
        assert!(!plan.receive_invalidate, "nobody would tell");
        assert!(super::plan(&siw, &wanted(), Expose::Window).is_err());
        let arena = super::plan(&siw, &wanted(), Expose::Arena).expect("asked for");
        assert!(!arena.receive_invalidate, "there is nothing to invalidate");
    }

    #[test]
    fn memory_that_reads_go_to_is_a_sink_where_the_device_says_so() {
        for writes_sinks in [false, true] {
            let limits = Limits {
                writes_sinks,
                ..rxe()
            };
            let plan = plan(&limits, &wanted(), Expose::Auto).expect("fits");
            assert_eq!(plan.writes_sinks, writes_sinks);
            let warning = limits.warning("iw0");
            let warned =
                warning.is_some_and(|it| it.starts_with("device iw0: a peer that is sent"));
            assert_eq!(warned, writes_sinks);
        }
    }

    proptest! {
        /// Nothing exceeds the device, and nothing is zero, whatever is wanted.
        #[test]
        fn plans_are_within_limits(
            queue_pairs in 0_u32..100_000,
            send_depth: u32,
            receive_depth: u32,
            windows: u32,
            completions in 16_u32..5_000_000,
        ) {
            let limits = Limits { completions, ..rxe() };
            let wanted = PortWanted { queue_pairs, send_depth, receive_depth, windows, ..wanted() };
            if let Ok(plan) = plan(&limits, &wanted, Expose::Auto) {
                prop_assert!(plan.completions <= completions);
                prop_assert!((SEND_LEAST..=DEPTH_MOST).contains(&plan.send_depth));
                prop_assert!((1..=DEPTH_MOST).contains(&plan.receive_depth));
                prop_assert!(plan.completions >= plan.send_depth + plan.receive_depth);
                prop_assert!((1..=limits.windows).contains(&plan.windows));
            }
        }
    }
}
