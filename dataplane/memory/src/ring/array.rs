//! The array of a ring: its memory, and the addresses in it.
//!
//! An end addresses the array by positions, which count lines from the beginning of time; only
//! here are they masked and made into addresses. What keeps writer and reader off one another's
//! lines is the protocol of the module above: nothing here looks at `head`.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// Octets of a line.
pub(super) const LINE: usize = 64;
/// Octets of a record before the message.
pub(super) const HEADER: usize = 16;

/// Lines of a record with a message of `len` octets.
#[inline]
pub(super) fn lines_of(len: u32) -> u64 {
    (u64::from(len) + (HEADER + LINE - 1) as u64) / LINE as u64
}

#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "accessed by address only")] [u8; LINE]);

/// The memory of a ring.
pub(super) struct Array(Box<[UnsafeCell<Line>]>);

// SAFETY: lines are octets; the protocol of the module text keeps writer and reader apart.
unsafe impl Sync for Array {}

impl Array {
    /// An array of so many lines, a power of two, all of them free room.
    pub(super) fn of(lines: usize) -> Array {
        debug_assert!(lines.is_power_of_two(), "positions are masked");
        Array(
            (0..lines)
                .map(|_| UnsafeCell::new(Line([0; LINE])))
                .collect(),
        )
    }
}

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} lines", self.0.len())
    }
}

/// The array as an end has it at hand, beside the ring that keeps it alive.
#[derive(Debug)]
pub(super) struct Lines {
    start: *mut u8,
    /// The bits of a position that are an index.
    mask: u64,
}

// SAFETY: an address in the ring's array, which an end owns together with the ring.
unsafe impl Send for Lines {}

impl Lines {
    pub(super) fn of(array: &Array) -> Lines {
        let lines = &array.0;
        Lines {
            // The address comes from the whole array, so that a record may go beyond one line.
            start: lines.as_ptr().cast::<u8>().cast_mut(),
            mask: lines.len() as u64 - 1,
        }
    }

    /// The line at a position.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "masked")]
    pub(super) fn at(&self, position: u64) -> At<'_> {
        let index = (position & self.mask) as usize;
        // SAFETY: masked to an index of the array.
        let start = unsafe { self.start.add(index * LINE) };
        At(start, PhantomData)
    }

    /// How many lines there are.
    #[inline]
    pub(super) fn count(&self) -> u64 {
        self.mask + 1
    }

    /// How many lines there are from a position to the end of the array.
    #[inline]
    pub(super) fn before_end(&self, position: u64) -> u64 {
        self.mask + 1 - (position & self.mask)
    }
}

/// A line of the array: its first octet, good for as many octets as follow it in the array.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<'a>(*mut u8, PhantomData<&'a Lines>);

impl<'a> At<'a> {
    /// Commit word (0) or the other header word (1) of the record that begins here.
    #[inline]
    pub(super) fn word(self, which: usize) -> &'a AtomicU64 {
        // SAFETY: the line has eight words.
        let word = unsafe { self.0.cast::<u64>().add(which) };
        // SAFETY: aligned, inside the array that outlives 'a. Other accesses to these octets
        // that are not atomic (message octets of another lap) are ordered by `head`.
        unsafe { AtomicU64::from_ptr(word) }
    }

    /// The line after it. Only where it is in the same record.
    #[inline]
    pub(super) fn next(self) -> At<'a> {
        // SAFETY: the lines of a record follow one another in the array.
        At(unsafe { self.0.add(LINE) }, PhantomData)
    }

    /// The message of the record that begins here.
    #[inline]
    pub(super) fn message(self) -> *mut u8 {
        // SAFETY: a record has at least its header.
        unsafe { self.0.add(HEADER) }
    }

    /// Lets the reader see the record that begins here.
    #[inline]
    pub(super) fn commit(self, [word, rest]: [u64; 2]) {
        self.word(1).store(rest, Ordering::Relaxed);
        self.word(0).store(word, Ordering::Release);
    }

    /// Makes free room of so many lines, all of one record: each begins with zero.
    #[inline]
    pub(super) fn wipe(self, lines: u64) {
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
