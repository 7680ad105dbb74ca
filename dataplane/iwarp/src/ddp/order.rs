//! The order of submission (RFC 5043 sections 5.2.1 and 10).
//!
//! Chunks come in any order. What has to happen with each in its turn is one of a few things, so
//! four bits a chunk are enough to remember it, whatever the peer sends: the payload has been
//! placed when the chunk came, and what else is needed lies in the buffer it was placed in. So the
//! table covers every DDP-SSN that can be in flight, 32767 of them, in 16 KiB, and no peer that
//! keeps the rules can be refused for want of room. A stream gets the table when an endpoint is
//! bound to it, not before: what comes in its turn needs none.

use crate::reject::Reject;

/// Chunks that a sender may have in flight on one stream (RFC 5043 section 10).
pub const WINDOW: u16 = 32767;

/// What happens with a chunk when its turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Nothing: a segment that is not the last of its message, or the last of an RDMA Write.
    Quiet,
    /// A Send is delivered.
    Send,
    /// A Read Request is delivered.
    ReadRequest,
    /// A Read Response is delivered.
    ReadResponse,
    /// The RDMAP Terminate is delivered.
    Terminate,
    /// The session's Terminate.
    End,
}

impl Mark {
    const fn code(self) -> u8 {
        match self {
            Mark::Quiet => 1,
            Mark::Send => 2,
            Mark::ReadRequest => 3,
            Mark::ReadResponse => 4,
            Mark::Terminate => 5,
            Mark::End => 6,
        }
    }

    const fn of(code: u8) -> Option<Mark> {
        match code {
            1 => Some(Mark::Quiet),
            2 => Some(Mark::Send),
            3 => Some(Mark::ReadRequest),
            4 => Some(Mark::ReadResponse),
            5 => Some(Mark::Terminate),
            6 => Some(Mark::End),
            _ => None,
        }
    }
}

/// The chunks of one session that have come, by DDP-SSN.
#[derive(Debug)]
pub(crate) struct Order {
    /// The first that has not had its turn.
    next: u16,
    /// It has come.
    front: Option<Mark>,
    /// Later ones that have come.
    held: u16,
    /// Two in an octet, by the last fifteen bits of the DDP-SSN; empty until [`Order::prepare`].
    marks: Box<[u8]>,
}

impl Order {
    pub(crate) fn new() -> Order {
        Order {
            next: 0,
            front: None,
            held: 0,
            marks: Box::default(),
        }
    }

    /// Gets the table: from now on chunks are remembered that come before their turn.
    pub(crate) fn prepare(&mut self) {
        if self.marks.is_empty() {
            self.marks = vec![0; 1 << 14].into_boxed_slice();
        }
    }

    /// A new session: the first chunk is number 0.
    pub(crate) fn reset(&mut self) {
        self.next = 0;
        self.front = None;
        if self.held > 0 {
            self.held = 0;
            self.marks.fill(0);
        }
    }

    /// The number whose turn it is.
    #[inline]
    pub(crate) fn next(&self) -> u16 {
        self.next
    }

    #[inline]
    fn place(ssn: u16) -> (usize, u32) {
        let shift = if ssn & 1 == 0 { 0 } else { 4 };
        (usize::from((ssn & WINDOW) >> 1), shift)
    }

    #[inline]
    fn code(&self, ssn: u16) -> u8 {
        let (at, shift) = Order::place(ssn);
        self.marks.get(at).copied().unwrap_or(0).wrapping_shr(shift) & 0xF
    }

    #[inline]
    fn set(&mut self, ssn: u16, code: u8) {
        let (at, shift) = Order::place(ssn);
        if let Some(pair) = self.marks.get_mut(at) {
            *pair = (*pair & !0xF_u8.wrapping_shl(shift)) | code.wrapping_shl(shift);
        }
    }

    /// Whether a chunk with this number can come now. To be asked before anything is done with
    /// it.
    #[inline]
    pub(crate) fn check(&self, ssn: u16) -> Result<(), Reject> {
        let ahead = ssn.wrapping_sub(self.next);
        if ahead >= WINDOW {
            // Exactly half the numbers are behind, and one is neither.
            let jump = ahead == WINDOW;
            return Err(if jump {
                Reject::SsnJump
            } else {
                Reject::SsnRepeat
            });
        }
        let here = if ahead == 0 {
            self.front.is_some()
        } else {
            self.code(ssn) != 0
        };
        if here {
            return Err(Reject::SsnRepeat);
        }
        Ok(())
    }

    /// It has come; [`Order::check`] said that it may. Without a table, what comes before its
    /// turn is forgotten.
    #[inline]
    pub(crate) fn insert(&mut self, ssn: u16, mark: Mark) {
        if ssn == self.next {
            self.front = Some(mark);
        } else if !self.marks.is_empty() {
            self.set(ssn, mark.code());
            self.held = self.held.wrapping_add(1);
        }
    }

    /// The next chunk's mark, if it is here; its turn is over then.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Mark> {
        let mark = self.front.take()?;
        self.next = self.next.wrapping_add(1);
        if self.held > 0 {
            self.front = Mark::of(self.code(self.next));
            if self.front.is_some() {
                self.set(self.next, 0);
                self.held = self.held.wrapping_sub(1);
            }
        }
        Some(mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MARKS: [Mark; 6] = [
        Mark::Quiet,
        Mark::Send,
        Mark::ReadRequest,
        Mark::ReadResponse,
        Mark::Terminate,
        Mark::End,
    ];

    fn prepared() -> Order {
        let mut order = Order::new();
        order.prepare();
        order
    }

    #[test]
    fn without_a_table_only_turns_are_taken() {
        let mut order = Order::new();
        order.insert(1, Mark::Send);
        order.insert(0, Mark::Quiet);
        assert_eq!((order.take(), order.take()), (Some(Mark::Quiet), None));
        assert_eq!(order.check(1), Ok(()));
    }

    #[test]
    fn a_mark_is_its_code() {
        for mark in MARKS {
            assert_eq!(Mark::of(mark.code()), Some(mark));
        }
        assert_eq!(Mark::of(0), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        /// Shuffled within a distance, over two wraps of the sixteen bits.
        #[test]
        fn section_10_order_is_of_submission(seed in prop::collection::vec(0..6_usize, 64), distance in 1..400_usize) {
            let mut order = prepared();
            let total = 140_000_usize;
            let mark = |n: usize| MARKS[seed[n % 64]];
            let mut taken = 0;
            for block in 0..total / distance {
                for n in (0..distance).rev() {
                    let n = block * distance + n;
                    let ssn = u16::try_from(n & 0xFFFF).unwrap();
                    prop_assert_eq!(order.check(ssn), Ok(()));
                    order.insert(ssn, mark(n));
                    prop_assert_eq!(order.check(ssn), Err(Reject::SsnRepeat));
                }
                while let Some(found) = order.take() {
                    prop_assert_eq!(found, mark(taken));
                    taken += 1;
                }
                prop_assert_eq!(taken, (block + 1) * distance);
            }
        }
    }

    #[test]
    fn section_10_window_of_32767() {
        let mut order = prepared();
        assert_eq!(order.check(32766), Ok(()));
        assert_eq!(order.check(32767), Err(Reject::SsnJump));
        assert_eq!(order.check(32768), Err(Reject::SsnRepeat));
        assert_eq!(order.check(65535), Err(Reject::SsnRepeat));
        for ssn in (0..WINDOW).rev() {
            assert_eq!(order.take(), None);
            order.insert(ssn, Mark::Quiet);
        }
        for _ in 0..WINDOW {
            assert_eq!(order.take(), Some(Mark::Quiet));
        }
        assert_eq!(order.take(), None);
        assert_eq!(order.next(), WINDOW);
    }

    #[test]
    fn what_came_after_a_sessions_end_is_not_the_next_ones() {
        let mut order = prepared();
        order.insert(0, Mark::End);
        order.insert(1, Mark::Send);
        assert_eq!(order.take(), Some(Mark::End));
        order.reset();
        assert_eq!(order.check(0), Ok(()));
        assert_eq!(order.take(), None);
    }

    #[test]
    fn a_session_begins_with_an_empty_window() {
        let mut order = prepared();
        order.insert(0, Mark::Quiet);
        order.take();
        order.insert(5, Mark::Send);
        order.reset();
        assert_eq!(order.next(), 0);
        assert_eq!(order.check(5), Ok(()));
        assert_eq!(order.take(), None);
    }
}
