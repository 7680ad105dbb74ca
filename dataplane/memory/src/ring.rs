//! One direction between two ports: a ring of messages with one writer and one reader.
//!
//! # Layout
//!
//! The ring is an array of 64-octet lines, a power of two of them. A message is a record: 16
//! octets of header, then its octets, at the start of a line, in consecutive lines. The first
//! header word is the *commit word*: zero until the record is whole, then never zero. So the
//! line that says "there is a message" is the line that the message begins in, and a message
//! of up to 48 octets crosses between two cores as one cache line, one of up to 112 as two.
//! There is no shared write index at all.
//!
//! ```text
//!   tail (writer's)                                          head (reader's)
//!     | record: commit, rest, octets ...    | 0 ...            |
//!     +-------------------------------------+------------------+
//! ```
//!
//! # Why the reader never takes old octets for a commit word
//!
//! Where a record begins, an earlier lap may have left message octets, which a peer chose. So
//! the reader clears the commit word of every line it has taken before it gives the line back:
//! in free room each line begins with zero. The writer could clear the line after its record
//! instead, but that is the very line that a waiting reader polls, and each store to it costs
//! both sides the line's way between the cores once more.
//!
//! A record that does not fit before the end of the array begins at its start; a record of kind
//! "skip" says so.
//!
//! # Who reads what when
//!
//! The writer's octets are ordered before the commit word (release, acquire). The reader's use
//! of the octets is ordered before its publishing of `head` (release), and the writer writes
//! only lines that a `head` it has read (acquire) freed. The writer reads `head` only when its
//! copy of it leaves too little room.

use crate::padded::Padded;
use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::short;
use rpcrdma_fabric::{Handle, Octets, Span};
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Octets of a line.
const LINE: usize = 64;
/// Octets of a record before the message.
const HEADER: usize = 16;

/// Lines taken after which the writer is told, be there more to take or not.
const OWED_LINES: u64 = 16;

/// Commit word: a record, not free room.
const COMMITTED: u64 = 1 << 63;
/// Commit word: nothing here, go on at the start of the array.
const SKIP: u64 = 1 << 62;
/// Commit word: a handle of the reader's side was invalidated with this message.
const INVALIDATED: u64 = 1 << 61;
/// Commit word: the writer waits to hear whether this message fitted its receive.
const JUDGE: u64 = 1 << 60;

/// 2^22 queue pairs are enough for a number to fit beside the flags and the length.
pub(crate) const MOST_QUEUE_PAIRS: u32 = 1 << 22;

#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "accessed by address only")] [u8; LINE]);

/// What the two ends share.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: Memory,
    /// The first line that the reader still needs, counted from the beginning of time.
    head: Padded<AtomicU64>,
    /// The writer found no room and would like to be woken when there is some.
    starved: Padded<AtomicBool>,
}

struct Memory(Box<[UnsafeCell<Line>]>);

// SAFETY: lines are octets; the protocol of the module text keeps writer and reader apart.
unsafe impl Sync for Memory {}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} lines", self.0.len())
    }
}

/// The array as an end has it at hand, beside the ring that keeps it alive.
#[derive(Debug)]
struct Lines {
    start: *mut u8,
    /// The bits of a position that are an index.
    mask: u64,
}

// SAFETY: an address in the ring's memory, which an end owns together with the ring.
unsafe impl Send for Lines {}

impl Lines {
    fn of(ring: &Ring) -> Lines {
        let lines = &ring.memory.0;
        Lines {
            // The address comes from the whole array, so that a record may go beyond one line.
            start: lines.as_ptr().cast::<u8>().cast_mut(),
            mask: lines.len() as u64 - 1,
        }
    }

    /// The line at a position.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "masked")]
    fn at(&self, position: u64) -> At<'_> {
        let index = (position & self.mask) as usize;
        // SAFETY: masked to an index of the array.
        let start = unsafe { self.start.add(index * LINE) };
        At(start, PhantomData)
    }

    /// How many lines there are from a position to the end of the array.
    #[inline]
    fn before_end(&self, position: u64) -> u64 {
        self.mask + 1 - (position & self.mask)
    }
}

/// A line of the array: its first octet, good for as many octets as follow it in the array.
#[derive(Clone, Copy, Debug)]
struct At<'a>(*mut u8, PhantomData<&'a Lines>);

impl<'a> At<'a> {
    /// Commit word (0) or the other header word (1) of the record that begins here.
    #[inline]
    fn word(self, which: usize) -> &'a AtomicU64 {
        // SAFETY: the line has eight words.
        let word = unsafe { self.0.cast::<u64>().add(which) };
        // SAFETY: aligned, inside the array that outlives 'a. Other accesses to these octets
        // that are not atomic (message octets of another lap) are ordered by `head`.
        unsafe { AtomicU64::from_ptr(word) }
    }

    /// The line after it. Only where it is in the same record.
    #[inline]
    fn next(self) -> At<'a> {
        // SAFETY: the lines of a record follow one another in the array.
        At(unsafe { self.0.add(LINE) }, PhantomData)
    }

    /// The message of the record that begins here.
    #[inline]
    fn message(self) -> *mut u8 {
        // SAFETY: a record has at least its header.
        unsafe { self.0.add(HEADER) }
    }

    /// Lets the reader see the record that begins here.
    #[inline]
    fn commit(self, [word, rest]: [u64; 2]) {
        self.word(1).store(rest, Ordering::Relaxed);
        self.word(0).store(word, Ordering::Release);
    }

    /// Makes free room of so many lines, all of one record: each begins with zero.
    #[inline]
    fn wipe(self, lines: u64) {
        self.word(0).store(0, Ordering::Relaxed);
        if lines > 1 {
            self.next().word(0).store(0, Ordering::Relaxed);
        }
        if lines > 2 {
            self.next().next().wipe_many(lines - 2);
        }
    }

    /// The same, for what is longer than nearly all there is.
    #[inline(never)]
    fn wipe_many(self, lines: u64) {
        let mut line = self;
        for _ in 1..lines {
            line.word(0).store(0, Ordering::Relaxed);
            line = line.next();
        }
        line.word(0).store(0, Ordering::Relaxed);
    }
}

/// Where a message goes, and what is said with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heading {
    /// The reader's queue pair, below [`MOST_QUEUE_PAIRS`].
    pub(crate) queue_pair: u32,
    /// That queue pair's generation.
    pub(crate) generation: u32,
    /// The reader's handle that was invalidated.
    pub(crate) invalidated: Option<Handle>,
    /// The writer wants to hear whether the message fitted.
    pub(crate) judge: bool,
}

/// The header of records to one queue pair, but for the length: with nothing else said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address([u64; 2]);

impl Address {
    /// That of a queue pair below [`MOST_QUEUE_PAIRS`] and its generation.
    pub(crate) fn new(queue_pair: u32, generation: u32) -> Address {
        let word = COMMITTED | u64::from(queue_pair) << 32;
        Address([word, u64::from(generation) << 32])
    }
}

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

/// Room for one record, found by [`Writer::room`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    at: u64,
    lines: u64,
    len: u32,
}

#[inline]
fn lines_of(len: u32) -> u64 {
    (u64::from(len) + (HEADER + LINE - 1) as u64) / LINE as u64
}

/// The longest message that a ring of `octets` can always take in the end: it must fit even
/// where the room before the end of the array is skipped.
pub(crate) fn longest(octets: u32) -> u32 {
    let lines = octets / 64;
    (lines / 2).saturating_sub(1) * 64 - if lines >= 4 { 16 } else { 0 }
}

/// A ring of `octets`, rounded up to a power of two of at least 1 KiB.
pub(crate) fn channel(octets: u32) -> (Writer, Reader) {
    let lines = (octets as usize).div_ceil(LINE).next_power_of_two().max(16);
    let lines = (0..lines)
        .map(|_| UnsafeCell::new(Line([0; LINE])))
        .collect();
    let ring = Arc::new(Ring {
        memory: Memory(lines),
        head: Padded::default(),
        starved: Padded::default(),
    });
    let writer = Writer {
        lines: Lines::of(&ring),
        ring: Arc::clone(&ring),
        tail: 0,
        head: 0,
    };
    let reader = Reader {
        lines: Lines::of(&ring),
        ring,
        head: 0,
        published: 0,
    };
    (writer, reader)
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
        let all = self.lines.mask + 1;
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
        let before_head = self.lines.mask + 1 + self.head - self.tail;
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

/// The one reader of a ring.
#[derive(Debug)]
pub(crate) struct Reader {
    lines: Lines,
    head: u64,
    published: u64,
    ring: Arc<Ring>,
}

impl Reader {
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

#[cfg(test)]
mod tests;
