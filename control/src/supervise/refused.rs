//! The lines in the log about what peers did wrong: how often since the last one, whoever did it.

use crate::logging::Complaints;
use std::collections::BTreeMap;
use std::time::Duration;

/// What is told of one kind of wrongs.
pub(super) struct Wrongs {
    /// Behind their number.
    what: &'static str,
    /// Where there is more about them.
    more: &'static str,
    /// Those that a line has told of.
    told: u64,
    complaints: Complaints,
}

impl Wrongs {
    /// A line in `every`, at most.
    pub(super) const fn new(what: &'static str, more: &'static str, every: Duration) -> Self {
        Self {
            what,
            more,
            told: 0,
            complaints: Complaints::new(1, every),
        }
    }

    /// Tells of those that are new, if it is time; with the sums by reason since the start.
    pub(super) fn tell<'a>(&mut self, counts: impl Iterator<Item = (&'a String, &'a u64)>) {
        let mut reasons = BTreeMap::<&str, u64>::new();
        for (reason, count) in counts {
            *reasons.entry(reason).or_default() += count;
        }
        let all = reasons.values().sum();
        if all <= self.told {
            return;
        }
        let reasons: Vec<_> = reasons
            .iter()
            .map(|(reason, n)| format!("{reason} {n}"))
            .collect();
        let (new, what, more) = (all - self.told, self.what, self.more);
        let reasons = reasons.join(", ");
        // What was withheld is told with the next line.
        if self
            .complaints
            .say(format_args!("{new} {what}; in all: {reasons}{more}"))
        {
            self.told = all;
        }
    }
}
