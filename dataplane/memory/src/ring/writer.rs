//! The writing end: room is found, a message is copied behind its header, and committed.

use super::array::{At, HEADER, LINE, Lines, lines_of};
use super::{Address, COMMITTED, Heading, INVALIDATED, JUDGE, MOST_QUEUE_PAIRS, Ring, SKIP};
use rpcrdma_fabric::Octets;
use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::short;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Room for one record, found by [`Writer::room`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    at: u64,
    lines: u64,
    len: u32,
}

/// The one writer of a ring.
#[derive(Debug)]
pub(crate) struct Writer {
    lines: Lines,
    tail: u64,
    /// The reader's head as last read.
    head: u64,
    ring: Arc<Ring>,
}

impl Writer {
    pub(super) fn new(ring: Arc<Ring>) -> Writer {
        Writer {
            lines: Lines::of(&ring.array),
            tail: 0,
            head: 0,
            ring,
        }
    }

    /// Everything before this position has been committed.
    #[inline]
    pub(crate) fn position(&self) -> u64 {
        self.tail
    }

    /// Room for a message of `len` octets, if there is some now.
    pub(crate) fn room(&mut self, len: u32) -> Option<Room> {
        let lines = lines_of(len);
        let left = self.lines.before_end(self.tail);
        let skip = if lines > left { left } else { 0 };
        let at = self.tail + skip;
        let end = at + lines;
        let all = self.lines.count();
        if end - self.head > all {
            self.look_again();
            if end - self.head > all {
                return None;
            }
        }
        Some(Room { at, lines, len })
    }

    /// Reads how far the reader has come.
    fn look_again(&mut self) {
        self.head = self.ring.head.load(Ordering::Acquire);
    }

    /// Copies a message into its room and commits it.
    ///
    /// All spans must be inside `arena` and the lengths must sum up to that of the room; what
    /// does not fit is not copied.
    pub(crate) fn push(&mut self, room: Room, to: Heading, message: &[Octets<'_>], arena: &Arena) {
        if room.at != self.tail {
            self.skip();
        }
        let record = self.lines.at(room.at);
        let gathered = gather(record, room.len, message, arena);
        debug_assert_eq!(gathered, Ok(room.len), "a message other than its room");
        let handle = to.invalidated.map_or(0, |handle| handle.0);
        let rest = u64::from(to.generation) << 32 | u64::from(handle);
        record.commit([commit_word(to) | u64::from(room.len), rest]);
        self.tail = room.at + room.lines;
    }

    /// As [`Writer::push`], to somebody who is told nothing but the message, measuring it on the
    /// way. False, and nothing done, for one of more than `most` octets, for one with a span that
    /// is not inside `arena`, and where there is too little room behind the last one, as far as is
    /// known without looking where the reader is: so seldom.
    #[inline(always)]
    pub(crate) fn push_plain(
        &mut self,
        to: Address,
        message: &[Octets<'_>],
        most: u32,
        arena: &Arena,
    ) -> bool {
        let before_head = self.lines.count() + self.head - self.tail;
        let lines = self.lines.before_end(self.tail).min(before_head);
        if lines == 0 {
            return false;
        }
        let room = lines * LINE as u64 - HEADER as u64;
        let record = self.lines.at(self.tail);
        match gather(
            record,
            u32::try_from(room).unwrap_or(u32::MAX).min(most),
            message,
            arena,
        ) {
            Ok(len) => {
                let Address([word, rest]) = to;
                record.commit([word | u64::from(len), rest]);
                self.tail += lines_of(len);
                true
            }
            Err(Unfit { written }) => {
                record.wipe(lines_of(written));
                false
            }
        }
    }

    /// Says that nothing comes before the start of the array.
    #[cold]
    fn skip(&self) {
        let skip = self.lines.at(self.tail).word(0);
        skip.store(COMMITTED | SKIP, Ordering::Release);
    }

    /// Asks to be woken when the reader makes room; ask for room once more afterwards.
    pub(crate) fn starve(&self) {
        self.ring.starved.store(true, Ordering::Relaxed);
    }
}

/// A message that does not go where it should; so much of it was written there.
#[derive(Debug, PartialEq, Eq)]
struct Unfit {
    written: u32,
}

/// Copies a message of at most `most` octets behind the header of its record, whose room is at
/// least that. How long it is.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "no more than `most`")]
fn gather(record: At<'_>, most: u32, message: &[Octets<'_>], arena: &Arena) -> Result<u32, Unfit> {
    let mut to = record.message();
    let mut left = most as usize;
    for part in message {
        let len = match part {
            Octets::Bytes(bytes) => bytes.len(),
            Octets::Span(span) => span.len as usize,
        };
        let fits = len <= left;
        let copied = fits
            && match part {
                Octets::Bytes(bytes) => {
                    // SAFETY: so many octets are left in the room, which the reader does not read
                    // before the commit, and which is never given out as a slice.
                    unsafe { short::copy(bytes.as_ptr(), to, len) };
                    true
                }
                // SAFETY: as above; an arena is not in a ring.
                Octets::Span(span) => unsafe { arena.copy_out(*span, to) },
            };
        if !copied {
            let written = most - left as u32;
            return Err(Unfit { written });
        }
        // SAFETY: still in the room, or one past its end.
        to = unsafe { to.add(len) };
        left -= len;
    }
    Ok(most - left as u32)
}

#[inline]
fn commit_word(to: Heading) -> u64 {
    debug_assert!(
        to.queue_pair < MOST_QUEUE_PAIRS,
        "queue pairs are limited at the start"
    );
    let mut word = COMMITTED | u64::from(to.queue_pair) << 32;
    if to.invalidated.is_some() {
        word |= INVALIDATED;
    }
    if to.judge {
        word |= JUDGE;
    }
    word
}
