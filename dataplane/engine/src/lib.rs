//! One RPC-over-RDMA connection, both roles and both directions, as pure state machines.
//!
//! No I/O and no clock: work goes out through an [`Io`], events come in by method calls, and
//! what the upper layer must know comes back as an [`Event`].
//!
//! Start reading at [`Connection::receive`].

#![forbid(unsafe_code)]

pub mod counters;
pub mod work;

mod api;
pub use api::*;
pub use counters::Counters;
pub use work::{Access, Io, Octets, Posted, Refused, Span, WorkError, WorkId};
