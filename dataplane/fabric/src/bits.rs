//! A set of small numbers in a tree of words: each bit of a word above says whether a word
//! below is not empty. Insertion, removal and "the smallest member" take one step a level, and
//! three levels hold 262,144 numbers.

/// Deep enough for 2^36 members; arenas end at 2^32 blocks.
const LEVELS: usize = 6;

/// A set of numbers below a limit given at its making. Never allocates afterwards.
#[derive(Debug)]
pub(crate) struct BitTree {
    /// Level 0 has one bit a number; the last level in use is a single word.
    levels: [Box<[u64]>; LEVELS],
    depth: usize,
}

impl BitTree {
    /// An empty set of numbers below `limit`.
    pub(crate) fn new(limit: usize) -> BitTree {
        let mut levels: [Box<[u64]>; LEVELS] = Default::default();
        let mut words = limit.div_ceil(64).max(1);
        let mut depth = 0;
        for level in &mut levels {
            *level = vec![0; words].into_boxed_slice();
            depth += 1;
            if words == 1 {
                break;
            }
            words = words.div_ceil(64);
        }
        BitTree { levels, depth }
    }

    /// Whether `number` is in. Numbers beyond the limit are not.
    #[inline]
    pub(crate) fn contains(&self, number: usize) -> bool {
        self.levels[0]
            .get(number / 64)
            .is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    /// Puts `number` in.
    #[inline]
    pub(crate) fn insert(&mut self, mut number: usize) {
        for level in &mut self.levels[..self.depth] {
            let word = &mut level[number / 64];
            let known = *word != 0;
            *word |= 1 << (number % 64);
            if known {
                return;
            }
            number /= 64;
        }
    }

    /// Takes `number` out.
    #[inline]
    pub(crate) fn remove(&mut self, mut number: usize) {
        for level in &mut self.levels[..self.depth] {
            let word = &mut level[number / 64];
            *word &= !(1 << (number % 64));
            if *word != 0 {
                return;
            }
            number /= 64;
        }
    }

    /// The smallest member.
    #[inline]
    pub(crate) fn first(&self) -> Option<usize> {
        let mut number = 0;
        for level in self.levels[..self.depth].iter().rev() {
            let word = level[number];
            if word == 0 {
                return None;
            }
            number = number * 64 + word.trailing_zeros() as usize;
        }
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_an_ordered_set(
            limit in 1_usize..20_000,
            steps in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..200),
        ) {
            let mut tree = BitTree::new(limit);
            let mut model = BTreeSet::new();
            for (index, put) in steps {
                let number = index.index(limit);
                if put {
                    tree.insert(number);
                    model.insert(number);
                } else {
                    tree.remove(number);
                    model.remove(&number);
                }
                prop_assert_eq!(tree.first(), model.first().copied());
                prop_assert_eq!(tree.contains(number), model.contains(&number));
            }
        }
    }
}
