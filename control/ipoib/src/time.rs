//! Time as data: this crate has no clock.

use std::fmt;

/// A moment, in milliseconds since a start of the caller's choosing. Never goes back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub u64);

impl Moment {
    /// `ms` milliseconds later; the last moment there is instead of one beyond it.
    #[must_use]
    pub const fn after(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds since an earlier moment; 0 since a later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// So many events a second, and so many at once: a bucket that fills with tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Tokens that come in a second; 0 lets nothing pass once the first burst is spent.
    pub per_second: u32,
    /// Tokens that the bucket holds.
    pub burst: u32,
}

/// A bucket of tokens, each good for one event.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: Pace,
    /// Thousandths of a token.
    level: u64,
    filled: Moment,
}

impl Bucket {
    /// A full one.
    #[must_use]
    pub fn new(rate: Pace) -> Self {
        Self {
            rate,
            level: u64::from(rate.burst) * 1000,
            filled: Moment::default(),
        }
    }

    /// Takes a token, if there is one.
    pub fn take(&mut self, now: Moment) -> bool {
        let came = now
            .since(self.filled)
            .saturating_mul(u64::from(self.rate.per_second));
        self.filled = self.filled.max(now);
        let full = u64::from(self.rate.burst) * 1000;
        self.level = self.level.saturating_add(came).min(full);
        match self.level.checked_sub(1000) {
            Some(left) => {
                self.level = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let mut bucket = Bucket::new(Pace {
            per_second: 2,
            burst: 3,
        });
        let taken = |bucket: &mut Bucket, ms| (0..9).filter(|_| bucket.take(Moment(ms))).count();
        assert_eq!(taken(&mut bucket, 0), 3);
        assert_eq!(taken(&mut bucket, 499), 0);
        assert_eq!(taken(&mut bucket, 500), 1);
        assert_eq!(taken(&mut bucket, 1_000_000), 3);
    }

    #[test]
    fn time_does_not_go_back() {
        assert_eq!(Moment(5).since(Moment(7)), 0);
        assert_eq!(Moment(u64::MAX).after(1), Moment(u64::MAX));
    }
}
