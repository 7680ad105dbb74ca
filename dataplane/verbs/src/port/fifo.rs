//! A queue of fixed depth whose entries keep their numbers: what a device was given, in order.

/// A queue. Numbers wrap; more than its depth are never in it.
#[derive(Debug)]
pub(crate) struct Fifo<T> {
    /// A power of two, so that a number is a place.
    entries: Box<[T]>,
    depth: u32,
    /// Number of the oldest entry, and of the next one to come.
    head: u32,
    tail: u32,
}

impl<T: Copy + Default> Fifo<T> {
    /// Room for `depth` entries.
    pub(crate) fn new(depth: u32) -> Fifo<T> {
        let room = depth.max(1).next_power_of_two();
        Fifo {
            entries: vec![T::default(); room as usize].into_boxed_slice(),
            depth,
            head: 0,
            tail: 0,
        }
    }

    /// Entries in it.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Entries that can be pushed.
    #[inline]
    pub(crate) fn room(&self) -> u32 {
        self.depth - self.len()
    }

    /// The number that the next entry will have.
    #[inline]
    pub(crate) fn next_number(&self) -> u32 {
        self.tail
    }

    /// The number of the oldest entry, or of the next one when it is empty.
    #[inline]
    pub(crate) fn first_number(&self) -> u32 {
        self.head
    }

    /// Whether the entry of this number is in it.
    #[inline]
    pub(crate) fn has(&self, number: u32) -> bool {
        number.wrapping_sub(self.head) < self.len()
    }

    #[inline]
    fn place(&self, number: u32) -> usize {
        number as usize & (self.entries.len() - 1)
    }

    /// Puts an entry behind the others; its number. `None`, and nothing done, when it is full.
    #[inline]
    pub(crate) fn push(&mut self, entry: T) -> Option<u32> {
        if self.room() == 0 {
            return None;
        }
        let (number, place) = (self.tail, self.place(self.tail));
        *self.entries.get_mut(place)? = entry;
        self.tail = self.tail.wrapping_add(1);
        Some(number)
    }

    /// Takes the oldest entry.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let place = self.place(self.head);
        self.head = self.head.wrapping_add(1);
        self.entries.get(place).copied()
    }

    /// Takes the newest entry back.
    pub(crate) fn pop_back(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        self.tail = self.tail.wrapping_sub(1);
        self.entries.get(self.place(self.tail)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_out_in_order_and_under_their_numbers() {
        let mut fifo = Fifo::new(3);
        assert_eq!(fifo.pop(), None);
        for round in 0..10 {
            let first = fifo.next_number();
            for n in 0..3 {
                assert_eq!(fifo.push(round * 3 + n), Some(first.wrapping_add(n)));
            }
            assert_eq!(fifo.push(99), None, "three fit and no more");
            assert_eq!(fifo.room(), 0);
            assert!(fifo.has(first) && fifo.has(first.wrapping_add(2)));
            assert!(!fifo.has(first.wrapping_add(3)) && !fifo.has(first.wrapping_sub(1)));
            for n in 0..3 {
                assert_eq!(fifo.pop(), Some(round * 3 + n));
            }
            assert!(fifo.is_empty());
        }
    }

    #[test]
    fn numbers_wrap() {
        let mut fifo = Fifo::new(4);
        (fifo.head, fifo.tail) = (u32::MAX, u32::MAX);
        assert_eq!(fifo.push('a'), Some(u32::MAX));
        assert_eq!(fifo.push('b'), Some(0));
        assert!(fifo.has(u32::MAX) && fifo.has(0) && !fifo.has(1));
        assert_eq!(fifo.len(), 2);
        assert_eq!(fifo.pop(), Some('a'));
        assert_eq!(fifo.first_number(), 0);
        assert_eq!(fifo.pop(), Some('b'));
    }
}
