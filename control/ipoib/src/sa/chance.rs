//! Randomness as data: seeded by the caller, so that a seed replays a run.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};

/// A seeded source of choices.
#[derive(Debug)]
pub struct Chance(Xoshiro256PlusPlus);

impl Chance {
    /// The choices that `seed` makes.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Any word.
    pub fn word(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// A number below `n`; 0 where `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        let wide = u128::from(self.0.next_u64()) * u128::from(n);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// `ms`, more or less by up to a quarter: so that nodes that were struck at once do not come back at once.
    pub fn about(&mut self, ms: u64) -> u64 {
        (ms - ms / 4).saturating_add(self.below(ms / 2 + 1))
    }

    /// The pause before a further attempt: twice as long after each, at most `longest`, with jitter.
    pub fn pause(&mut self, first: u64, longest: u64, attempts: u8) -> u64 {
        let doubled = first.saturating_mul(1 << attempts.min(20));
        self.about(doubled.min(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut chance = Chance::new(1);
        for (attempts, about) in [(0, 100), (1, 200), (3, 800), (4, 1000), (255, 1000)] {
            for _ in 0..100 {
                let pause = chance.pause(100, 1000, attempts);
                assert!((about * 3 / 4..=about * 5 / 4).contains(&pause), "{pause}");
            }
        }
    }

    #[test]
    fn a_seed_makes_the_same_choices() {
        let choices = |seed| {
            let mut chance = Chance::new(seed);
            [(); 8].map(|()| chance.below(1000))
        };
        assert_eq!(choices(7), choices(7));
        assert_ne!(choices(7), choices(8));
    }
}
