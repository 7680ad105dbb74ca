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
    lines: Lines,
    /// The first line that the reader still needs, counted from the beginning of time.
    head: Padded<AtomicU64>,
    /// The writer found no room and would like to be woken when there is some.
    starved: Padded<AtomicBool>,
}

struct Lines(Box<[UnsafeCell<Line>]>);

// SAFETY: lines are octets; the protocol of the module text keeps writer and reader apart.
unsafe impl Sync for Lines {}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} lines", self.0.len())
    }
}

impl Lines {
    #[inline]
    fn mask(&self) -> u64 {
        self.0.len() as u64 - 1
    }

    /// The line at a position.
    #[inline]
    fn at(&self, position: u64) -> At<'_> {
        let index = usize::try_from(position & self.mask()).unwrap_or(0);
        // The address comes from the whole array, so that a record may go beyond one line.
        let all = self.0.as_ptr().cast::<u8>().cast_mut();
        // SAFETY: masked to an index of the array.
        let start = unsafe { all.add(index * LINE) };
        At(start, PhantomData)
    }
}

/// A line of the array: its first octet, good for as many octets as follow it in the array.
#[derive(Clone, Copy)]
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) heading: Heading,
    /// Octets of the message.
    pub(crate) len: u32,
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
        lines: Lines(lines),
        head: Padded::default(),
        starved: Padded::default(),
    });
    let writer = Writer {
        ring: Arc::clone(&ring),
        tail: 0,
        head: 0,
    };
    (
        writer,
        Reader {
            ring,
            head: 0,
            published: 0,
        },
    )
}

/// The one writer of a ring.
#[derive(Debug)]
pub(crate) struct Writer {
    ring: Arc<Ring>,
    tail: u64,
    /// The reader's head as last read.
    head: u64,
}

impl Writer {
    /// Everything before this position has been committed.
    #[inline]
    pub(crate) fn position(&self) -> u64 {
        self.tail
    }

    /// Room for a message of `len` octets right behind the last one, as far as is known without
    /// looking where the reader is: nearly always.
    #[inline]
    pub(crate) fn room_behind(&self, len: u32) -> Option<Room> {
        let lines = lines_of(len);
        let mask = self.ring.lines.mask();
        let before_end = (self.tail & mask) + lines <= mask + 1;
        let before_head = self.tail + lines - self.head <= mask + 1;
        (before_end && before_head).then_some(Room {
            at: self.tail,
            lines,
            len,
        })
    }

    /// Room for a message of `len` octets, if there is some now.
    pub(crate) fn room(&mut self, len: u32) -> Option<Room> {
        let lines = lines_of(len);
        let mask = self.ring.lines.mask();
        let left = mask + 1 - (self.tail & mask);
        let skip = if lines > left { left } else { 0 };
        let at = self.tail + skip;
        let end = at + lines;
        if end - self.head > mask + 1 {
            self.look_again();
            if end - self.head > mask + 1 {
                return None;
            }
        }
        Some(Room { at, lines, len })
    }

    /// Reads how far the reader has come.
    #[cold]
    fn look_again(&mut self) {
        self.head = self.ring.head.load(Ordering::Acquire);
    }

    /// Copies a message into its room and commits it.
    ///
    /// All spans must be inside `arena` and the lengths must sum up to that of the room; what
    /// does not fit is not copied.
    #[inline]
    pub(crate) fn push(&mut self, room: Room, to: Heading, message: &[Octets<'_>], arena: &Arena) {
        if room.at != self.tail {
            self.skip();
        }
        let handle = to.invalidated.map_or(0, |handle| handle.0);
        let rest = u64::from(to.generation) << 32 | u64::from(handle);
        self.commit(room, [commit_word(to), rest], message, arena);
    }

    /// As [`Writer::push`], to somebody who is told nothing but the message, where the room is
    /// that of [`Writer::room_behind`].
    #[inline(always)]
    pub(crate) fn push_plain(
        &mut self,
        room: Room,
        to: Address,
        message: &[Octets<'_>],
        arena: &Arena,
    ) {
        self.commit(room, to.0, message, arena);
    }

    #[inline(always)]
    fn commit(&mut self, room: Room, header: [u64; 2], message: &[Octets<'_>], arena: &Arena) {
        let record = self.ring.lines.at(room.at);
        self.tail = room.at + room.lines;
        gather(record, room.len, message, arena);
        let [word, rest] = header;
        record.word(1).store(rest, Ordering::Relaxed);
        let word = word | u64::from(room.len);
        record.word(0).store(word, Ordering::Release);
    }

    /// Says that nothing comes before the start of the array.
    #[cold]
    fn skip(&self) {
        let skip = self.ring.lines.at(self.tail).word(0);
        skip.store(COMMITTED | SKIP, Ordering::Release);
    }

    /// Asks to be woken when the reader makes room; ask for room once more afterwards.
    pub(crate) fn starve(&self) {
        self.ring.starved.store(true, Ordering::Relaxed);
    }
}

/// Copies a message of `len` octets behind the header of its record.
#[inline(always)]
fn gather(record: At<'_>, len: u32, message: &[Octets<'_>], arena: &Arena) {
    let mut to = record.message();
    let mut left = len as usize;
    for part in message {
        let len = match part {
            Octets::Bytes(bytes) if bytes.len() <= left => {
                // SAFETY: so many octets are left in the room, which the reader does not read
                // before the commit, and which is never given out as a slice.
                unsafe { short::copy(bytes.as_ptr(), to, bytes.len()) };
                bytes.len()
            }
            Octets::Span(span) if span.len as usize <= left => {
                // SAFETY: as above; an arena is not in a ring.
                let inside = unsafe { arena.copy_out(*span, to) };
                debug_assert!(inside, "spans are checked before");
                span.len as usize
            }
            _ => {
                debug_assert!(false, "a message longer than its room");
                return;
            }
        };
        // SAFETY: still in the room, or one past its end.
        to = unsafe { to.add(len) };
        left -= len;
    }
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
    ring: Arc<Ring>,
    head: u64,
    published: u64,
}

impl Reader {
    /// Everything before this position has been taken.
    #[inline]
    pub(crate) fn position(&self) -> u64 {
        self.head
    }

    /// The oldest message, if there is one. It stays until [`Reader::advance`].
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<Record> {
        let mut word = self.commit_word()?;
        if word & SKIP != 0 {
            word = self.skip()?;
        }
        let rest = self
            .ring
            .lines
            .at(self.head)
            .word(1)
            .load(Ordering::Relaxed);
        Some(record(word, rest))
    }

    /// The commit word at the head, if it is there.
    #[inline]
    fn commit_word(&self) -> Option<u64> {
        let word = self
            .ring
            .lines
            .at(self.head)
            .word(0)
            .load(Ordering::Acquire);
        (word != 0).then_some(word)
    }

    /// Goes on at the start of the array.
    #[cold]
    fn skip(&mut self) -> Option<u64> {
        let skipped = self.ring.lines.at(self.head).word(0);
        skipped.store(0, Ordering::Relaxed);
        let mask = self.ring.lines.mask();
        self.head += mask + 1 - (self.head & mask);
        self.commit_word()
    }

    /// Copies a peeked message to the start of `span`; false when it does not fit there.
    #[inline]
    pub(crate) fn copy(&self, record: Record, arena: &Arena, span: Span) -> bool {
        let from = self.ring.lines.at(self.head).message().cast_const();
        // SAFETY: the record's octets are whole (its commit word was read) and stay until
        // `advance`; the span is a posted receive, over which no slice lives.
        unsafe { arena.copy_in(span, from, record.len) }
    }

    /// Goes past a peeked message.
    #[inline]
    pub(crate) fn advance(&mut self, record: Record) {
        let lines = lines_of(record.len);
        let mut line = self.ring.lines.at(self.head);
        for _ in 1..lines {
            line.word(0).store(0, Ordering::Relaxed);
            line = line.next();
        }
        line.word(0).store(0, Ordering::Relaxed);
        self.head += lines;
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

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "halves of words, masked")]
fn record(word: u64, rest: u64) -> Record {
    Record {
        heading: Heading {
            queue_pair: (word >> 32) as u32 & (MOST_QUEUE_PAIRS - 1),
            generation: (rest >> 32) as u32,
            invalidated: (word & INVALIDATED != 0).then_some(Handle(rest as u32)),
            judge: word & JUDGE != 0,
        },
        len: word as u32,
    }
}

#[cfg(test)]
mod tests;
