//! RDMAP, DDP and their adaptation to SCTP.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        clippy::panic
    )
)]

pub mod ddp;
mod event;
mod local;
mod lower;
pub mod rdmap;
mod reject;
mod ring;
pub mod session;
mod stag;

pub use event::{End, Event};
pub use local::{Local, Memory};
pub use lower::{Busy, Lower, Ppid, SegmentBytes, StreamId};
pub use rdmap::{Endpoint, Outfit, Terminate};
pub use reject::{Answer, Code, Reject};
pub use session::{Association, Depths, Flow, Indication, Misstep, Phase, Refusal, Settings};
pub use stag::{Denied, Domain, Owner, Party, Scope, Stag, StagTable, Violation};
