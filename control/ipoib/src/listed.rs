//! Enums whose values can be gone through, and one counter for each value.

/// Declares an enum of plain values with the list of them, an index and a name.
macro_rules! listed {
    ($(#[doc = $doc:literal])* $visible:vis $name:ident { $($(#[doc = $vdoc:literal])* $value:ident,)* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visible enum $name { $($(#[doc = $vdoc])* $value,)* }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$value,)*];

            /// Its name, as in this source.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$value => stringify!($value),)* }
            }
        }

        impl $crate::listed::Listed for $name {
            const ALL: &'static [Self] = Self::ALL;

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}
pub(crate) use listed;

/// An enum of plain values, counted from zero.
pub trait Listed: Copy + 'static {
    /// Every value, in order.
    const ALL: &'static [Self];

    /// Its place in [`Listed::ALL`].
    fn index(self) -> usize;
}

/// A step that this code must never take: its own mistake, told and not obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Illegal;

/// One counter for each value of an enum.
#[derive(Clone, PartialEq, Eq)]
pub struct Tally<E: Listed> {
    counts: Vec<u64>,
    kinds: std::marker::PhantomData<E>,
}

impl<E: Listed> Default for Tally<E> {
    fn default() -> Self {
        Self {
            counts: vec![0; E::ALL.len()],
            kinds: std::marker::PhantomData,
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

impl<E: Listed + std::fmt::Debug> std::fmt::Debug for Tally<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seen = self.iter().filter(|(_, count)| *count > 0);
        f.debug_map().entries(seen).finish()
    }
}
