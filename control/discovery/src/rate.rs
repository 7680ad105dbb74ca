//! How many in a second: a bucket of tokens, time given.
//!
//! One value holds tokens and time, because a burst is a second's worth, and none is no limit. The buckets of the IPoIB node
//! (`rpcrdma-ipoib`, `time.rs`) have bursts of their own, run on that crate's milliseconds, and let nothing pass at zero.

use std::time::{Duration, Instant};

/// Lets a number of things happen in each second, and as many at once.
#[derive(Clone, Debug)]
pub struct Rate {
    per_second: u32,
    /// The instant at which the bucket would be empty if it had been filling since: one value holds tokens and time.
    empty_at: Option<Instant>,
}

impl Rate {
    /// None of more than this in a second; 0: no limit.
    #[must_use]
    pub const fn per_second(per_second: u32) -> Self {
        Self {
            per_second,
            empty_at: None,
        }
    }

    /// Takes one, if there is one.
    pub fn take(&mut self, now: Instant) -> bool {
        if self.per_second == 0 {
            return true;
        }
        let cost = Duration::from_secs(1) / self.per_second;
        let full = now.checked_sub(Duration::from_secs(1)).unwrap_or(now);
        let next = self.empty_at.map_or(full, |at| at.max(full)) + cost;
        let taken = next <= now;
        if taken {
            self.empty_at = Some(next);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_so_many_and_the_next_has_as_many_again() {
        let start = Instant::now() + Duration::from_secs(10);
        let mut rate = Rate::per_second(4);
        let mut taken = |after_ms: u64, tries: usize| {
            let now = start + Duration::from_millis(after_ms);
            (0..tries).filter(|_| rate.take(now)).count()
        };
        assert_eq!(taken(0, 9), 4);
        assert_eq!(taken(250, 9), 1);
        assert_eq!(taken(1250, 9), 4);
        assert_eq!(taken(60_000, 9), 4, "an idle minute saves up one second");
    }

    #[test]
    fn zero_is_no_limit() {
        let mut rate = Rate::per_second(0);
        assert!((0..1000).all(|_| rate.take(Instant::now())));
    }
}
