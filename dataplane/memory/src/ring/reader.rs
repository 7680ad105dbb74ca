//! The reading end: the oldest record is looked at, copied out and wiped, and its lines given back.

use super::array::{At, Lines, lines_of};
use super::{Heading, INVALIDATED, JUDGE, MOST_QUEUE_PAIRS, Ring, SKIP};
use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::{Handle, Span};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Lines taken after which the writer is told, be there more to take or not.
const OWED_LINES: u64 = 16;

/// A message that is there, still in the ring.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    pub(crate) heading: Heading,
    /// Octets of the message.
    pub(crate) len: u32,
    at: At<'a>,
    /// The reader's.
    head: &'a mut u64,
}

/// The one reader of a ring.
#[derive(Debug)]
pub(crate) struct Reader {
    lines: Lines,
    head: u64,
    published: u64,
    ring: Arc<Ring>,
}

impl Reader {
    pub(super) fn new(ring: Arc<Ring>) -> Reader {
        Reader {
            lines: Lines::of(&ring.array),
            head: 0,
            published: 0,
            ring,
        }
    }

    /// Everything before this position has been taken.
    #[inline]
    pub(crate) fn position(&self) -> u64 {
        self.head
    }

    /// The oldest message, if there is one. It stays until [`Record::advance`].
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<Record<'_>> {
        let Reader { lines, head, .. } = self;
        let mut at = lines.at(*head);
        let mut word = at.word(0).load(Ordering::Acquire);
        if word & SKIP != 0 {
            (at, word) = skip(lines, head);
        }
        if word == 0 {
            return None;
        }
        let rest = at.word(1).load(Ordering::Relaxed);
        Some(record(word, rest, at, head))
    }

    /// Which queue pair the record at `position` is for, and where the one after it begins. `None`
    /// where none is there yet, or only the word to go on at the start of the array. For positions
    /// that were reached from [`Reader::position`] by this alone.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "halves of a word, masked")]
    pub(crate) fn glance(&self, position: u64) -> Option<(u32, u64)> {
        let word = self.lines.at(position).word(0).load(Ordering::Relaxed);
        if word == 0 || word & SKIP != 0 {
            return None;
        }
        let queue_pair = (word >> 32) as u32 & (MOST_QUEUE_PAIRS - 1);
        Some((queue_pair, position + lines_of(word as u32)))
    }

    /// So much has been taken that the writer should hear of it.
    #[inline]
    pub(crate) fn owes(&self) -> bool {
        self.head - self.published >= OWED_LINES
    }

    /// Lets the writer have the lines of everything taken so far. True when the writer waits
    /// for that and should be woken.
    #[inline]
    pub(crate) fn publish(&mut self) -> bool {
        if self.published == self.head {
            return false;
        }
        self.published = self.head;
        self.ring.head.store(self.head, Ordering::Release);
        crate::barrier::light();
        self.ring.starved.load(Ordering::Relaxed)
            && self.ring.starved.swap(false, Ordering::Relaxed)
    }
}

/// Goes on at the start of the array: the line there, and its commit word.
#[cold]
fn skip<'a>(lines: &'a Lines, head: &mut u64) -> (At<'a>, u64) {
    lines.at(*head).word(0).store(0, Ordering::Relaxed);
    *head += lines.before_end(*head);
    let at = lines.at(*head);
    (at, at.word(0).load(Ordering::Acquire))
}

impl Record<'_> {
    /// Copies the message to the start of `span`; false when it does not fit there.
    #[inline]
    pub(crate) fn copy(&self, arena: &Arena, span: Span) -> bool {
        let from = self.at.message().cast_const();
        // SAFETY: the record's octets are whole (its commit word was read) and stay until
        // `advance`; the span is a posted receive, over which no slice lives.
        unsafe { arena.copy_in(span, from, self.len) }
    }

    /// Goes past it.
    #[inline]
    pub(crate) fn advance(self) {
        let lines = lines_of(self.len);
        self.at.wipe(lines);
        *self.head += lines;
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "halves of words, masked")]
fn record<'a>(word: u64, rest: u64, at: At<'a>, head: &'a mut u64) -> Record<'a> {
    Record {
        heading: Heading {
            queue_pair: (word >> 32) as u32 & (MOST_QUEUE_PAIRS - 1),
            generation: (rest >> 32) as u32,
            invalidated: (word & INVALIDATED != 0).then_some(Handle(rest as u32)),
            judge: word & JUDGE != 0,
        },
        len: word as u32,
        at,
        head,
    }
}
