//! Direct data placement (RFC 5041): headers, where a payload goes, and what is whole.
//!
//! Placement and delivery are different things. A segment's payload is placed when it comes, in
//! whatever order that is; a message is delivered when all that was submitted before it has been
//! placed. `order.rs` keeps the order of submission, which the DDP-SSN of the adaptation tells;
//! `queue.rs` finds the buffer of an untagged message; `assembly.rs` knows whether every octet of
//! a message is there, by sums under `siphash.rs`; `cut.rs` makes segments.

pub(crate) mod assembly;
pub(crate) mod cut;
pub mod header;
pub(crate) mod order;
pub(crate) mod queue;
mod siphash;

pub use cut::cut;
pub use header::{Header, TAGGED_BYTES, Tagged, UNTAGGED_BYTES, Untagged, parse};
