//! What an lcore does when there is nothing to do, and what time it is.
//!
//! The clock is read every [`TURNS`] turns, not at each: reading it costs as much as a whole
//! idle turn. All that is timed here or by upper layers is far coarser than that.

use std::time::{Duration, Instant};

/// What an lcore does when there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Polls on: the lowest latency, and a whole processor.
    Spin,
    /// Polls on for a while, then sleeps until the port, a socket or control has something.
    Adaptive {
        /// How long without work before it sleeps.
        spin: Duration,
    },
}

/// Turns between two readings of the clock.
const TURNS: u32 = 32;
/// How often every engine and upper layer is told that time has passed.
const TICK: Duration = Duration::from_secs(1);
/// The longest sleep: a tick is not late by more than that.
const NAP: Duration = Duration::from_millis(100);
/// The longest sleep while control's ring is full: nobody rings when there is room again.
const SHORT_NAP: Duration = Duration::from_millis(2);

/// The time as one lcore sees it.
#[derive(Debug)]
pub(crate) struct Clock {
    now: Instant,
    turns: u32,
    /// When there was work last, as far as the readings tell.
    worked: Instant,
    ticked: Instant,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        let now = Instant::now();
        Clock {
            now,
            turns: 0,
            worked: now,
            ticked: now,
        }
    }

    /// The last reading.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Ends a turn, with or without work. True when a tick is due.
    #[inline]
    pub(crate) fn turn(&mut self, worked: bool) -> bool {
        if worked {
            self.worked = self.now;
        }
        self.turns += 1;
        self.turns >= TURNS && self.read()
    }

    /// Reads the clock. True when a tick is due.
    pub(crate) fn read(&mut self) -> bool {
        self.set(Instant::now())
    }

    fn set(&mut self, now: Instant) -> bool {
        self.turns = 0;
        self.now = now;
        let due = now.duration_since(self.ticked) >= TICK;
        if due {
            self.ticked = now;
        }
        due
    }

    /// How long to sleep now; `None`: not at all. `stuck`: notices wait for room in control's ring.
    pub(crate) fn nap(&self, idle: Idle, stuck: bool) -> Option<Duration> {
        match idle {
            Idle::Spin => None,
            Idle::Adaptive { spin } if self.now.duration_since(self.worked) < spin => None,
            Idle::Adaptive { .. } if stuck => Some(SHORT_NAP),
            Idle::Adaptive { .. } => Some(NAP),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPIN: Duration = Duration::from_micros(50);

    #[test]
    fn sleeps_only_after_spinning_in_vain() {
        let mut clock = Clock::new();
        let adaptive = Idle::Adaptive { spin: SPIN };
        let start = clock.now();
        assert_eq!(clock.nap(adaptive, false), None);
        clock.set(start + SPIN);
        assert_eq!(clock.nap(adaptive, false), Some(NAP));
        assert_eq!(clock.nap(adaptive, true), Some(SHORT_NAP));
        assert_eq!(clock.nap(Idle::Spin, false), None);
        clock.turn(true);
        assert_eq!(clock.nap(adaptive, false), None, "there was work");
        clock.set(start + SPIN + SPIN);
        assert_eq!(clock.nap(adaptive, false), Some(NAP));
    }

    #[test]
    fn a_tick_is_due_once_per_period() {
        let mut clock = Clock::new();
        let start = clock.now();
        assert!(!clock.set(start + TICK - Duration::from_nanos(1)));
        assert!(clock.set(start + TICK));
        assert!(!clock.set(start + TICK));
        assert!(clock.set(start + TICK * 5));
    }

    #[test]
    fn the_clock_is_read_now_and_then() {
        let mut clock = Clock::new();
        let start = clock.now();
        for _ in 1..TURNS {
            clock.turn(false);
        }
        assert_eq!(clock.now(), start);
        clock.turn(false);
        assert_eq!(clock.turns, 0, "read, and counting again");
    }
}
