//! Every choice of a run comes from here, so that a seed replays it.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};

/// A seeded source of choices.
pub struct Chance(Xoshiro256PlusPlus);

impl Chance {
    /// The choices that `seed` makes.
    #[must_use]
    pub fn new(seed: u64) -> Chance {
        Chance(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Another source, whose choices do not shift when this one is asked more or less often.
    #[must_use]
    pub fn fork(&mut self) -> Chance {
        Chance::new(self.0.next_u64())
    }

    /// Any word.
    pub fn word(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// A number below `n`; zero when `n` is.
    pub fn below(&mut self, n: u32) -> u32 {
        let wide = u64::from(self.word()) * u64::from(n);
        (wide >> 32) as u32
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// True once in `n` times; never when `n` is zero.
    pub fn one_in(&mut self, n: u32) -> bool {
        n > 0 && self.below(n) == 0
    }

    /// True `n` times of a hundred.
    pub fn percent(&mut self, n: u32) -> bool {
        self.below(100) < n
    }

    /// One of `choices`, which are not empty.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// An index below `len`, which is not zero.
    pub fn index(&mut self, len: usize) -> usize {
        let len = u32::try_from(len).expect("a short list");
        self.below(len) as usize
    }

    /// `len` octets, none of which is the poison of freed memory.
    pub fn octets(&mut self, len: u32) -> Vec<u8> {
        let mut octets = vec![0; len as usize];
        self.0.fill_bytes(&mut octets);
        for octet in &mut octets {
            *octet &= 0x7f;
        }
        octets
    }
}
