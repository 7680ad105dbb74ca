//! DDP stream sessions on SCTP (RFC 5043): who may talk, and in which order what was said counts.
//!
//! An [`Association`] has numbered streams; on each there is at most one session at a time. Start
//! reading in `phase.rs`, then `stream/receive.rs`.

mod association;
pub mod control;
mod depths;
pub mod phase;
mod stream;

pub use crate::ddp::order::WINDOW;
pub use association::{ADAPTATION_DDP, Association, Indication, Refusal, Settings};
pub use control::PRIVATE_DATA_BYTES;
pub use depths::{Depths, Word};
pub use phase::Phase;
pub use stream::{Counts, Flow, Misstep};
