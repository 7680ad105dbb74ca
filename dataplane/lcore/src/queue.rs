//! A queue of seats, each in it at most once: who wants a turn, who waits for memory, who owes
//! control a notice.
//!
//! Being asked for again while waiting changes nothing, not even the place in the queue. So it
//! never holds more than there are seats, never grows, and a seat that changes hands while
//! queued costs its next occupant one needless call, nothing worse.

/// First in, first out; each index below the capacity at most once.
#[derive(Debug)]
pub(crate) struct SeatQueue {
    /// A ring of `waiting.len()` places.
    ring: Box<[u32]>,
    /// Who is in the ring.
    waiting: Box<[bool]>,
    head: usize,
    len: usize,
}

impl SeatQueue {
    /// A queue for the seats `0..seats`.
    pub(crate) fn new(seats: usize) -> SeatQueue {
        SeatQueue {
            ring: vec![0; seats].into(),
            waiting: vec![false; seats].into(),
            head: 0,
            len: 0,
        }
    }

    /// True when nobody waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many wait.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Puts a seat at the end, unless it waits already. True when it is new in the queue.
    #[inline]
    pub(crate) fn push(&mut self, seat: usize) -> bool {
        let Some(waiting) = self.waiting.get_mut(seat) else {
            debug_assert!(false, "seat {seat} of {}", self.ring.len());
            return false;
        };
        if std::mem::replace(waiting, true) {
            return false;
        }
        let mut place = self.head + self.len;
        if place >= self.ring.len() {
            place -= self.ring.len();
        }
        // `seat` indexes a table of at most 2^20.
        self.ring[place] = u32::try_from(seat).unwrap_or(u32::MAX);
        self.len += 1;
        true
    }

    /// The seat that waits longest, left where it is.
    #[inline]
    pub(crate) fn peek(&self) -> Option<usize> {
        (self.len > 0).then(|| self.ring[self.head] as usize)
    }

    /// Takes the seat that waits longest.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<usize> {
        let seat = self.peek()?;
        self.head += 1;
        if self.head == self.ring.len() {
            self.head = 0;
        }
        self.len -= 1;
        self.waiting[seat] = false;
        Some(seat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_waits_once_and_keeps_its_place() {
        let mut queue = SeatQueue::new(3);
        assert!(queue.push(2) && queue.push(0));
        assert!(!queue.push(2));
        assert_eq!(queue.len(), 2);
        assert_eq!(queue.pop(), Some(2));
        assert!(queue.push(2));
        assert_eq!(
            (queue.pop(), queue.pop(), queue.pop()),
            (Some(0), Some(2), None)
        );
    }

    #[test]
    fn all_seats_fit_however_often_they_come_round() {
        let mut queue = SeatQueue::new(3);
        for round in 0..10 {
            for seat in 0..3 {
                assert!(queue.push((seat + round) % 3));
            }
            assert_eq!(queue.len(), 3);
            assert_eq!(queue.peek(), Some(round % 3));
            for seat in 0..3 {
                assert_eq!(queue.pop(), Some((seat + round) % 3));
            }
            assert!(queue.is_empty());
        }
    }
}
