//! One counter for each value.

use crate::Listed;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

/// One counter for each value of an enumeration.
#[derive(Clone, PartialEq, Eq)]
pub struct Tally<E: Listed> {
    counts: Vec<u64>,
    kinds: PhantomData<E>,
}

impl<E: Listed> Default for Tally<E> {
    fn default() -> Self {
        Self {
            counts: vec![0; E::ALL.len()],
            kinds: PhantomData,
        }
    }
}

impl<E: Listed> Tally<E> {
    /// One more of a kind.
    pub fn add(&mut self, kind: E) {
        self.add_many(kind, 1);
    }

    /// Several more of a kind.
    pub fn add_many(&mut self, kind: E, many: u64) {
        if let Some(count) = self.counts.get_mut(kind.index()) {
            *count = count.saturating_add(many);
        }
    }

    /// Adds those of another tally.
    pub fn add_all(&mut self, other: &Self) {
        other
            .iter()
            .for_each(|(kind, many)| self.add_many(kind, many));
    }

    /// How many of a kind.
    #[must_use]
    pub fn of(&self, kind: E) -> u64 {
        self.counts.get(kind.index()).copied().unwrap_or(0)
    }

    /// Of all kinds together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Every kind with its count, in order.
    pub fn iter(&self) -> impl Iterator<Item = (E, u64)> + '_ {
        E::ALL.iter().copied().zip(self.counts.iter().copied())
    }
}

impl<E: Listed + fmt::Debug> fmt::Debug for Tally<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = self.iter().filter(|(_, count)| *count > 0);
        f.debug_map().entries(seen).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    crate::listed! {
        /// What befell it.
        Lot {
            /// Good.
            Won,
            /// Bad.
            Lost,
        }
    }

    #[test]
    fn each_kind_is_counted_by_itself() {
        let mut tally = Tally::default();
        tally.add(Lot::Lost);
        tally.add_many(Lot::Lost, 2);
        assert_eq!((tally.of(Lot::Won), tally.of(Lot::Lost)), (0, 3));
        assert_eq!(format!("{tally:?}"), "{Lost: 3}", "what there is of");
        let mut sum = tally.clone();
        sum.add(Lot::Won);
        sum.add_all(&tally);
        assert!(sum.iter().eq([(Lot::Won, 1), (Lot::Lost, 6)]));
        assert_eq!(sum.total(), 7);
    }

    #[test]
    fn a_counter_stops_at_its_end() {
        let mut tally = Tally::default();
        tally.add_many(Lot::Won, u64::MAX);
        tally.add(Lot::Won);
        assert_eq!(tally.of(Lot::Won), u64::MAX);
    }
}
