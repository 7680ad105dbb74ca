//! The clock of nodes: milliseconds since the links were started.

use rpcrdma_ipoib::time::Moment;
use std::time::{Duration, Instant};

/// Turns instants into moments and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) const fn starting(at: Instant) -> Self {
        Self(at)
    }

    /// When they were started.
    pub(crate) const fn start(self) -> Instant {
        self.0
    }

    pub(crate) fn moment(self, at: Instant) -> Moment {
        let since = at.saturating_duration_since(self.0).as_millis();
        Moment(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// The end of that millisecond: whoever wakes then finds the moment reached.
    pub(crate) fn instant(self, at: Moment) -> Option<Instant> {
        self.0.checked_add(Duration::from_millis(at.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_reached_at_its_instant() {
        let start = Instant::now();
        let clock = Clock::starting(start);
        for ms in [0, 1, 999, 86_400_000] {
            let at = clock.instant(Moment(ms)).unwrap();
            assert_eq!(clock.moment(at), Moment(ms));
        }
        assert_eq!(clock.moment(start - Duration::from_secs(1)), Moment(0));
    }
}
