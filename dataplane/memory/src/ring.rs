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
//!
//! # Where to read
//!
//! `ring/array.rs` has the raw memory and every use of an address in it but the copying of
//! messages, which is in `ring/writer.rs` and `ring/reader.rs`, the two ends.

mod array;
mod reader;
mod writer;

pub(crate) use reader::Reader;
pub(crate) use writer::Writer;

use crate::padded::Padded;
use array::{Array, LINE};
use rpcrdma_fabric::Handle;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

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

/// What the two ends share.
#[derive(Debug)]
pub(crate) struct Ring {
    array: Array,
    /// The first line that the reader still needs, counted from the beginning of time.
    head: Padded<AtomicU64>,
    /// The writer found no room and would like to be woken when there is some.
    starved: Padded<AtomicBool>,
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

/// The longest message that a ring of `octets` can always take in the end: it must fit even
/// where the room before the end of the array is skipped.
pub(crate) fn longest(octets: u32) -> u32 {
    let lines = octets / 64;
    (lines / 2).saturating_sub(1) * 64 - if lines >= 4 { 16 } else { 0 }
}

/// A ring of `octets`, rounded up to a power of two of at least 1 KiB.
pub(crate) fn channel(octets: u32) -> (Writer, Reader) {
    let lines = (octets as usize).div_ceil(LINE).next_power_of_two().max(16);
    let ring = Arc::new(Ring {
        array: Array::of(lines),
        head: Padded::default(),
        starved: Padded::default(),
    });
    (Writer::new(Arc::clone(&ring)), Reader::new(ring))
}

#[cfg(test)]
mod tests;
