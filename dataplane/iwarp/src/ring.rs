//! A queue of fixed capacity whose items stay where they are.

/// First in, first out, in memory that is had once. An item keeps its slot from its coming to its
/// going, so a slot's number can go into a steering tag.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    slots: Box<[T]>,
    /// Counted from the beginning of time, wrapping; masked when used.
    head: u32,
    len: u32,
    capacity: u32,
}

impl<T: Copy + Default> Ring<T> {
    /// A ring of up to `capacity` items, at most 2^31.
    pub(crate) fn new(capacity: u32) -> Ring<T> {
        let slots = capacity.max(1).next_power_of_two() as usize;
        Ring {
            slots: vec![T::default(); slots].into_boxed_slice(),
            head: 0,
            len: 0,
            capacity,
        }
    }

    /// The slot of the `nth` item from the oldest.
    #[inline]
    pub(crate) fn slot(&self, nth: u32) -> u32 {
        self.head.wrapping_add(nth) & self.mask()
    }

    /// One less than the number of slots, which is a power of two.
    #[inline]
    pub(crate) fn mask(&self) -> u32 {
        // `new` made at most 2^31 slots.
        u32::try_from(self.slots.len())
            .unwrap_or(u32::MAX)
            .wrapping_sub(1)
    }

    /// How many items a slot is behind the oldest.
    #[inline]
    fn nth(&self, slot: u32) -> u32 {
        slot.wrapping_sub(self.head) & self.mask()
    }

    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    #[inline]
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Adds at the end; false when full.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> bool {
        if self.is_full() {
            return false;
        }
        let slot = self.slot(self.len);
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = item;
        }
        self.len = self.len.wrapping_add(1);
        true
    }

    /// The `nth` item from the oldest, which is number 0.
    #[inline]
    pub(crate) fn get(&self, nth: u32) -> Option<&T> {
        if nth >= self.len {
            return None;
        }
        self.slots.get(self.slot(nth) as usize)
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, nth: u32) -> Option<&mut T> {
        if nth >= self.len {
            return None;
        }
        let slot = self.slot(nth);
        self.slots.get_mut(slot as usize)
    }

    /// The item in a slot, if there is one.
    #[inline]
    pub(crate) fn in_slot_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.get_mut(self.nth(slot))
    }

    /// Takes the oldest.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let oldest = *self.get(0)?;
        self.head = self.head.wrapping_add(1);
        self.len = self.len.wrapping_sub(1);
        Some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn agrees_with_a_deque(
            capacity in 0_u32..20,
            steps in prop::collection::vec(any::<bool>(), 0..200),
        ) {
            let mut ring = Ring::new(capacity);
            let mut model = VecDeque::new();
            for (n, push) in steps.into_iter().enumerate() {
                if push {
                    let room = model.len() < capacity as usize;
                    prop_assert_eq!(ring.push(n), room);
                    if room {
                        model.push_back(n);
                    }
                } else {
                    prop_assert_eq!(ring.pop(), model.pop_front());
                }
                prop_assert_eq!(ring.len() as usize, model.len());
                for nth in 0..21 {
                    prop_assert_eq!(ring.get(nth), model.get(nth as usize));
                    let slot = ring.slot(nth);
                    if nth < ring.len() {
                        prop_assert_eq!(ring.in_slot_mut(slot).copied(), model.get(nth as usize).copied());
                    }
                }
            }
        }
    }
}
