//! Record marking on byte streams (RFC 5531 section 11): a record is a chain of fragments, each
//! behind a four-octet marker whose top bit says that it is the last.

pub mod reader;
pub mod writer;

#[cfg(test)]
mod tests;

pub use reader::{Head, RecordReader, Refusal, Step};
pub use writer::{Full, MAX_LEAD_BYTES, Progress, RecordWriter};

/// The bit of a marker that says that its fragment is the last of the record.
const LAST: u32 = 1 << 31;

/// Longest fragment a marker can announce, in octets.
pub const MAX_FRAGMENT_BYTES: u32 = LAST - 1;
