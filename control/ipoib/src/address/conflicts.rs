//! How soon an address is tried again that somebody else has (RFC 5227 section 2.1.1).

use crate::sa::Chance;
use crate::time::Moment;

/// After so many conflicts on a link attempts are limited in rate (RFC 5227 section 1.1).
pub const MAX_CONFLICTS: u32 = 10;
/// To one in so many milliseconds (RFC 5227 section 1.1: `RATE_LIMIT_INTERVAL`).
pub const RATE_LIMIT_INTERVAL_MS: u64 = 60_000;

/// The conflicts of a link since an address of it was last found free: of whichever address, so that neither a server that
/// gives one taken address after the other nor a link that comes and goes makes this node probe without end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conflicts {
    in_a_row: u32,
    /// The next attempt is not made earlier, whatever happens.
    not_before: Moment,
}

impl Conflicts {
    /// One more: when the next attempt may be made. The pause doubles from `again_ms` on up to [`RATE_LIMIT_INTERVAL_MS`], and
    /// some more of it by chance: two nodes that took each other's probes for claims do not do so again.
    pub fn add(&mut self, now: Moment, again_ms: u64, chance: &mut Chance) -> Moment {
        let doublings = self.in_a_row.min(20);
        self.in_a_row = self.in_a_row.saturating_add(1);
        let limited = self.in_a_row >= MAX_CONFLICTS;
        let pause = again_ms.saturating_mul(1 << doublings);
        let pause = match limited {
            true => RATE_LIMIT_INTERVAL_MS,
            false => pause.min(RATE_LIMIT_INTERVAL_MS),
        };
        let next = now.after(pause).after(chance.below(pause / 4 + 1));
        if limited {
            self.not_before = next;
        }
        next
    }

    /// When an attempt that was to be made at a moment may be made.
    #[must_use]
    pub fn earliest(&self, at: Moment) -> Moment {
        at.max(self.not_before)
    }

    /// There are none.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.in_a_row == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc5227_2_1_1_after_ten_conflicts_one_attempt_a_minute() {
        let mut chance = Chance::new(3);
        let mut conflicts = Conflicts::default();
        let mut now = Moment(5);
        let mut pauses = Vec::new();
        for _ in 0..100 {
            let next = conflicts.add(now, 100, &mut chance);
            pauses.push(next.since(now));
            now = next;
        }
        for (pause, doubled) in pauses.iter().zip([100, 200, 400, 800]) {
            assert!((doubled..=doubled * 5 / 4).contains(pause), "{pauses:?}");
        }
        let (few, many) = pauses.split_at(MAX_CONFLICTS as usize - 1);
        assert!(few.iter().all(|ms| *ms < RATE_LIMIT_INTERVAL_MS));
        assert!(many.iter().all(|ms| *ms >= RATE_LIMIT_INTERVAL_MS));
        assert_eq!(conflicts.earliest(Moment(6)), now, "whoever asks for it");
        assert_eq!(Conflicts::default().earliest(Moment(6)), Moment(6));
    }
}
