//! What the memory of an lcore is for, so that nobody waits for memory of somebody who waits for
//! him.
//!
//! # Why one pool does not do
//!
//! *Receives* are small and stay as long as their connection. Scattered between the long spans
//! of Calls they would leave no place for a long one, however much is free in all.
//!
//! *Calls made* keep their memory until the other end has answered. Where that end is on this
//! lcore too, or on one whose connections wait for this one, and all memory is with Calls made,
//! none is left to serve them with, and none ever comes back.
//!
//! *Calls served* take memory twice: for the assembled Call, then for its Reply. If all memory
//! is with assembled Calls, none of them can go on.
//!
//! # What is done
//!
//! Each kind has a [`Claim`]. Most memory is shared by all; the rest is set aside in three parts:
//! the receives of every connection there may be, one longest assembled Call, and one longest
//! Reply. A Reply that got the last has all it needs, so it is sent, and gives it back. Then an
//! assembled Call that waits for a Reply's memory goes on, and then the next Call is assembled.
//! So every Call that is served is answered in the end, and every Call made gets its memory, as
//! soon as those before it were answered.
//!
//! For this each claim has a queue of its own for those that wait: nobody stands behind one who
//! waits for something else.

use rpcrdma_engine::Side;
use rpcrdma_fabric::Span;
use rpcrdma_fabric::pool::{Pool, Usage};

/// What memory is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// To post receives. Nobody waits for it: the connection is refused.
    Receives,
    /// For the Reply of a Call that is being served.
    Reply,
    /// To assemble a Call that has arrived.
    Call,
    /// For a Call to be made: its octets, its results, its Reply.
    Made,
}

impl Claim {
    /// Those that wait for memory, in the order in which they are tried again: who is nearest
    /// to giving memory back comes first.
    pub(crate) const WAITING: [Claim; 3] = [Claim::Reply, Claim::Call, Claim::Made];

    /// Its place among those that wait; a connection that waits for receives ends instead.
    #[inline]
    pub(crate) fn place(self) -> usize {
        match self {
            Claim::Reply => 0,
            Claim::Call => 1,
            Claim::Made | Claim::Receives => 2,
        }
    }
}

/// What the two layers of a connection want memory for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claims {
    pub(crate) engine: Claim,
    pub(crate) upper: Claim,
}

impl Claims {
    /// Those of a connection of which this is our side.
    pub(crate) fn of(side: Side) -> Claims {
        let (engine, upper) = match side {
            Side::Server => (Claim::Call, Claim::Reply),
            Side::Client => (Claim::Made, Claim::Made),
        };
        Claims { engine, upper }
    }
}

/// A set of claims that found too little.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unmet(u8);

impl Unmet {
    #[inline]
    pub(crate) fn add(&mut self, claim: Claim) {
        self.0 |= 1 << claim.place();
    }

    #[inline]
    pub(crate) fn has(self, claim: Claim) -> bool {
        self.0 & 1 << claim.place() != 0
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What is set aside of an lcore's memory, octets. Nothing by default: everything is shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// For the receives of all connections.
    pub receives: u64,
    /// For one longest assembled Call: a power of two that holds it.
    pub call: u64,
    /// For one longest Reply: a power of two that holds it and a little more.
    pub reply: u64,
}

/// The memory of an lcore, by what it is for.
#[derive(Debug)]
pub struct Regions {
    receives: Pool,
    call: Pool,
    reply: Pool,
    shared: Pool,
    /// Where the regions after the first begin in the arena.
    starts: [u64; 3],
    in_use_bytes: u64,
    peak_bytes: u64,
}

impl Regions {
    /// Divides the first `bytes` octets of an arena. What is set aside ends where they end.
    #[must_use]
    pub fn new(bytes: u64, shares: Shares) -> Regions {
        let call = shares.receives.min(bytes);
        let reply = call.saturating_add(shares.call).min(bytes);
        let shared = reply.saturating_add(shares.reply).min(bytes);
        Regions {
            receives: Pool::new(0, call),
            call: Pool::new(call, reply - call),
            reply: Pool::new(reply, shared - reply),
            shared: Pool::new(shared, bytes - shared),
            starts: [call, reply, shared],
            in_use_bytes: 0,
            peak_bytes: 0,
        }
    }

    /// The memory that is shared by all, for what is taken out of it for good.
    pub fn shared(&mut self) -> &mut Pool {
        &mut self.shared
    }

    /// Takes `len` octets. `None` when there are none so long that the claim may have.
    #[inline]
    pub(crate) fn reserve(&mut self, claim: Claim, len: u32) -> Option<Span> {
        let span = match claim {
            Claim::Receives => self
                .receives
                .reserve(len)
                .or_else(|| self.shared.reserve(len)),
            Claim::Reply => self.shared.reserve(len).or_else(|| self.reply.reserve(len)),
            Claim::Call => self.shared.reserve(len).or_else(|| self.call.reserve(len)),
            Claim::Made => self.shared.reserve(len),
        }?;
        self.in_use_bytes = self.sum(|usage| usage.in_use_bytes);
        self.peak_bytes = self.peak_bytes.max(self.in_use_bytes);
        Some(span)
    }

    /// Gives back a span as [`Regions::reserve`] returned it.
    #[inline]
    pub(crate) fn release(&mut self, span: Span) {
        let [call, reply, shared] = self.starts;
        let pool = match span.offset {
            at if at >= shared => &mut self.shared,
            at if at >= reply => &mut self.reply,
            at if at >= call => &mut self.call,
            _ => &mut self.receives,
        };
        pool.release(span);
        self.in_use_bytes = self.sum(|usage| usage.in_use_bytes);
    }

    /// Octets given out now.
    #[inline]
    pub(crate) fn in_use_bytes(&self) -> u64 {
        self.in_use_bytes
    }

    /// What is given out of all of it.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let in_use_bytes = self.sum(|usage| usage.in_use_bytes);
        Usage {
            in_use_bytes,
            peak_bytes: self.peak_bytes.max(in_use_bytes),
            ceiling_bytes: self.sum(|usage| usage.ceiling_bytes),
            refusals: self.sum(|usage| usage.refusals),
            foreign_releases: self.sum(|usage| usage.foreign_releases),
        }
    }

    #[inline]
    fn sum(&self, of: impl Fn(Usage) -> u64) -> u64 {
        let pools = [&self.receives, &self.call, &self.reply, &self.shared];
        pools.into_iter().map(|pool| of(pool.usage())).sum()
    }
}

/// Everything is shared.
impl From<Pool> for Regions {
    fn from(shared: Pool) -> Regions {
        let in_use_bytes = shared.usage().in_use_bytes;
        Regions {
            receives: Pool::new(0, 0),
            call: Pool::new(0, 0),
            reply: Pool::new(0, 0),
            shared,
            starts: [0; 3],
            in_use_bytes,
            peak_bytes: in_use_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const SHARES: Shares = Shares {
        receives: 64 * KIB,
        call: 16 * KIB,
        reply: 16 * KIB,
    };

    fn regions() -> Regions {
        Regions::new(128 * KIB, SHARES)
    }

    /// Takes spans of 16 KiB until there are none.
    fn take_all(regions: &mut Regions, claim: Claim) -> Vec<Span> {
        std::iter::from_fn(|| regions.reserve(claim, 16 << 10)).collect()
    }

    #[test]
    fn calls_made_leave_what_serving_needs() {
        let mut regions = regions();
        assert_eq!(take_all(&mut regions, Claim::Made).len(), 2);
        assert_eq!(take_all(&mut regions, Claim::Call).len(), 1);
        assert_eq!(take_all(&mut regions, Claim::Reply).len(), 1);
        assert_eq!(take_all(&mut regions, Claim::Receives).len(), 4);
        let usage = regions.usage();
        assert_eq!(usage.in_use_bytes, usage.ceiling_bytes);
        assert_eq!(usage.ceiling_bytes, 128 * KIB);
    }

    #[test]
    fn what_is_shared_goes_before_what_is_set_aside() {
        let mut regions = regions();
        let calls = take_all(&mut regions, Claim::Call);
        assert_eq!(calls.len(), 3, "two shared, and its own");
        assert_eq!(take_all(&mut regions, Claim::Made), []);
        assert_eq!(take_all(&mut regions, Claim::Reply).len(), 1);
        // Its own place is the last to be taken, and no use to anybody else.
        regions.release(calls[2]);
        assert_eq!(take_all(&mut regions, Claim::Made), []);
        regions.release(calls[0]);
        assert_eq!(take_all(&mut regions, Claim::Made), [calls[0]]);
    }

    #[test]
    fn receives_do_not_scatter_over_what_is_shared() {
        let mut regions = regions();
        let long = regions.reserve(Claim::Made, 32 << 10).expect("all of it");
        for _ in 0..16 {
            let receive = regions.reserve(Claim::Receives, 4096).expect("set aside");
            assert!(receive.offset < SHARES.receives);
        }
        assert_eq!(regions.reserve(Claim::Receives, 4096), None);
        regions.release(long);
        assert_eq!(regions.reserve(Claim::Made, 32 << 10), Some(long));
        regions.release(long);
        // More of them than were reckoned with take what there is.
        assert!(regions.reserve(Claim::Receives, 4096).is_some());
    }

    #[test]
    fn every_span_goes_back_to_where_it_came_from() {
        let mut regions = regions();
        for _ in 0..3 {
            let claims = [Claim::Made, Claim::Call, Claim::Reply, Claim::Receives];
            let mut spans: Vec<Span> = Vec::new();
            for claim in claims {
                spans.extend(take_all(&mut regions, claim));
            }
            assert_eq!(spans.len(), 8);
            spans.into_iter().for_each(|span| regions.release(span));
            let usage = regions.usage();
            assert_eq!((usage.in_use_bytes, usage.foreign_releases), (0, 0));
            assert_eq!(usage.peak_bytes, 128 * KIB);
        }
    }

    #[test]
    fn too_little_is_set_aside_as_far_as_it_goes() {
        let regions = Regions::new(72 * KIB, SHARES);
        assert_eq!(regions.usage().ceiling_bytes, 72 * KIB);
        assert_eq!(regions.shared.usage().ceiling_bytes, 0);
        let shared = Regions::from(Pool::new(0, 8 * KIB));
        assert_eq!(shared.usage().ceiling_bytes, 8 * KIB);
    }
}
