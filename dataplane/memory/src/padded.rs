//! Values that get cache lines of their own.

use std::ops::Deref;

/// Two lines to itself: the adjacent-line prefetcher of common processors fetches pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> Deref for Padded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}
