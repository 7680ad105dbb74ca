//! One RPC-over-RDMA connection, both roles and both directions, as pure state machines.
//!
//! It owns: the phase of the connection, its slots and credits, which receive is posted and
//! which is held, which exposure is in force. It promises: every Call ends in exactly one way,
//! no memory is handed up or given back while a peer can reach it, the grant is never above the
//! receives posted. It never does I/O, reads a clock, or allocates after
//! [`Connection::new`]: work goes out through an [`Io`], events come in by method calls, and
//! what the upper layer must know comes back as an [`Event`].
//!
//! Start reading at [`Connection::receive`]; the life of a Call on either side is in
//! [`phase`].

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

pub mod counters;
pub mod phase;
pub mod work;

mod admission;
mod answer;
mod api;
mod arrivals;
mod connection;
mod deferred;
mod delivery;
mod fetch;
mod head;
mod ids;
mod kept;
mod launch;
mod layout;
mod negotiation;
mod outline;
mod properties;
mod receives;
mod refusal;
mod replies;
mod requester;
mod responder;
mod settling;
mod setup;
mod slots;
mod xids;

pub use api::*;
pub use connection::Connection;
pub use counters::Counters;
pub use properties::{Decision, PropertyEvent, Values, Verdict};
pub use setup::{Setup, Side};
pub use work::{Access, Io, Octets, Posted, Refused, Span, WorkError, WorkId};
