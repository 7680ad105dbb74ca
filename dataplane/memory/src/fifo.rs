//! A queue of fixed capacity.

use rpcrdma_fabric::fetch;

/// First in, first out, in memory that is had once.
#[derive(Debug)]
pub(crate) struct Fifo<T> {
    slots: Box<[T]>,
    /// Counted from the beginning of time, wrapping; masked when used.
    head: u32,
    len: u32,
    capacity: u32,
}

impl<T: Copy + Default> Fifo<T> {
    /// A queue of up to `capacity` (below 2^31).
    pub(crate) fn new(capacity: u32) -> Fifo<T> {
        let slots = capacity.next_power_of_two() as usize;
        Fifo {
            slots: vec![T::default(); slots].into_boxed_slice(),
            head: 0,
            len: 0,
            capacity,
        }
    }

    #[inline]
    fn slot(&self, nth: u32) -> usize {
        self.head.wrapping_add(nth) as usize & self.slots.len().wrapping_sub(1)
    }

    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len == self.capacity
    }

    /// Adds at the end; false when full.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> bool {
        if self.is_full() {
            return false;
        }
        let slot = self.slot(self.len);
        self.slots[slot] = item;
        self.len += 1;
        true
    }

    /// The oldest.
    #[inline]
    pub(crate) fn front(&self) -> Option<T> {
        (self.len > 0).then(|| self.slots[self.slot(0)])
    }

    /// The oldest, to be changed.
    #[inline]
    pub(crate) fn front_mut(&mut self) -> Option<&mut T> {
        let slot = self.slot(0);
        (self.len > 0).then(|| &mut self.slots[slot])
    }

    /// Takes the oldest.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let front = self.front();
        if front.is_some() {
            self.head = self.head.wrapping_add(1);
            self.len -= 1;
        }
        front
    }

    /// Asks for the cache line of the oldest.
    #[inline(always)]
    pub(crate) fn fetch(&self) {
        if let Some(slot) = self.slots.get(self.slot(0)) {
            fetch::lines(slot, 1);
        }
    }

    /// All, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.len).map(|nth| self.slots[self.slot(nth)])
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
            let mut fifo = Fifo::new(capacity);
            let mut model = VecDeque::new();
            for (n, push) in steps.into_iter().enumerate() {
                if push {
                    let room = model.len() < capacity as usize;
                    prop_assert_eq!(fifo.push(n), room);
                    if room {
                        model.push_back(n);
                    }
                } else {
                    prop_assert_eq!(fifo.pop(), model.pop_front());
                }
                prop_assert_eq!(fifo.front(), model.front().copied());
                prop_assert!(fifo.iter().eq(model.iter().copied()));
            }
        }
    }
}
