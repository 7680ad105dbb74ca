//! A queue of untagged buffers (RFC 5041 section 5.1.2), and the message sequence numbers they
//! stand for.
//!
//! ```text
//!     delivered      |   posted, in order of MSN    |  not posted
//!   -----------------+------------------------------+----------------------
//!     ..., first - 1 | first ... first + posted - 1 | first + posted, ...
//!        MsnRange    |            taken             |        NoBuffer
//! ```
//!
//! Half of all numbers are behind the first buffer and half before it, as they wrap.

use super::assembly::{Assembly, Tiling};
use super::header::Untagged;
use crate::rdmap::Culprit;
use crate::reject::Reject;
use crate::ring::Ring;

/// A buffer, and what has come for it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot<T> {
    buffer: T,
    tail: Option<Culprit>,
    assembly: Assembly,
}

/// A message that is whole, or is not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered<T> {
    pub(crate) buffer: T,
    /// Its last segment, to be delivered with it, and to be shown to the peer if something is
    /// wrong with it.
    pub(crate) tail: Culprit,
    /// Its length in octets; `None` when not every octet came exactly once.
    pub(crate) len: Option<u32>,
}

/// The buffers of one queue.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// The MSN of the oldest buffer.
    first: u32,
    slots: Ring<Slot<T>>,
}

impl<T: Copy + Default> Queue<T> {
    pub(crate) fn new(capacity: u32) -> Queue<T> {
        Queue {
            first: 1,
            slots: Ring::new(capacity),
        }
    }

    /// Buffers that are posted.
    pub(crate) fn posted(&self) -> u32 {
        self.slots.len()
    }

    /// Adds a buffer; false when the queue is full.
    #[inline]
    pub(crate) fn post(&mut self, buffer: T) -> bool {
        self.slots.push(Slot {
            buffer,
            tail: None,
            assembly: Assembly::default(),
        })
    }

    /// Takes the oldest buffer back, with whatever is in it.
    pub(crate) fn withdraw(&mut self) -> Option<T> {
        self.slots.pop().map(|slot| slot.buffer)
    }

    /// The buffer for a segment's payload of `len` octets, after every check of section 7.1 and
    /// the book-keeping. `room` is the length of a buffer.
    #[inline]
    pub(crate) fn place(
        &mut self,
        header: &Untagged,
        segment: &[u8],
        len: usize,
        tiling: Tiling,
        room: impl FnOnce(&T) -> u32,
    ) -> Result<&mut T, Reject> {
        let nth = header.msn.wrapping_sub(self.first);
        let slot = match self.slots.get_mut(nth) {
            Some(slot) => slot,
            None if nth < 1 << 31 => return Err(Reject::NoBuffer),
            None => return Err(Reject::MsnRange),
        };
        let room = room(&slot.buffer);
        slot.assembly
            .add(tiling, header.mo, len, header.last, room)?;
        if header.last {
            slot.tail = Some(Culprit::of(segment));
        }
        Ok(&mut slot.buffer)
    }

    /// The oldest message, whose last segment has had its turn. `None` when that was another
    /// message's, or there is none: the numbers were not in the order of submission.
    #[inline]
    pub(crate) fn deliver(&mut self) -> Option<Delivered<T>> {
        let tail = self.slots.get(0)?.tail?;
        let slot = self.slots.pop()?;
        self.first = self.first.wrapping_add(1);
        Some(Delivered {
            buffer: slot.buffer,
            tail,
            len: slot.assembly.whole(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(msn: u32, mo: u32, last: bool) -> Untagged {
        Untagged {
            last,
            ulp: 0,
            ulp_word: 0,
            queue: 0,
            msn,
            mo,
        }
    }

    fn place(queue: &mut Queue<u32>, msn: u32, len: usize) -> Result<u32, Reject> {
        let header = header(msn, 0, true);
        let buffer = queue.place(&header, &[0; 18], len, Tiling::new([3, 4]), |_| 100)?;
        Ok(*buffer)
    }

    #[test]
    fn section_7_1_msn_window() {
        let mut queue = Queue::new(4);
        assert!(queue.post(10) && queue.post(20));
        assert_eq!(place(&mut queue, 0, 1), Err(Reject::MsnRange));
        assert_eq!(place(&mut queue, 3, 1), Err(Reject::NoBuffer));
        assert_eq!(place(&mut queue, 1 << 31, 1), Err(Reject::NoBuffer));
        assert_eq!(place(&mut queue, (1 << 31) + 1, 1), Err(Reject::MsnRange));
        assert_eq!(place(&mut queue, u32::MAX, 1), Err(Reject::MsnRange));
        assert_eq!(place(&mut queue, 2, 1), Ok(20));
        assert_eq!(place(&mut queue, 1, 100), Ok(10));
        assert_eq!(place(&mut queue, 1, 1), Err(Reject::MessageOffset));
        let first = queue.deliver().unwrap();
        assert_eq!((first.buffer, first.len), (10, Some(100)));
        assert_eq!(place(&mut queue, 1, 1), Err(Reject::MsnRange));
    }

    #[test]
    fn section_4_3_msn_wraps_to_zero() {
        let mut queue = Queue::new(2);
        queue.first = u32::MAX;
        queue.post(1);
        queue.post(2);
        assert_eq!(place(&mut queue, 0, 5), Ok(2));
        assert_eq!(place(&mut queue, u32::MAX, 5), Ok(1));
        assert!(queue.deliver().is_some());
        assert!(queue.deliver().is_some());
        assert_eq!(queue.first, 1);
    }

    #[test]
    fn nothing_is_delivered_before_its_end_has_come() {
        let mut queue = Queue::new(2);
        queue.post(1);
        queue.post(2);
        assert_eq!(place(&mut queue, 2, 5), Ok(2));
        assert!(queue.deliver().is_none());
        assert_eq!(queue.posted(), 2);
    }
}
