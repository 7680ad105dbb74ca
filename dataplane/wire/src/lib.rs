//! RPC-over-RDMA headers, versions one (RFC 8166, 8167, 8797) and two
//! (draft-cel-nfsv4-rpcrdma-version-two-03), and the ONC RPC headers behind them (RFC 5531).
//!
//! What it owns: every octet of a transport header, in both directions. What it promises:
//! [`parse`] checks a message once, in place, against the receiver's [`Limits`], and what it
//! hands out can then be walked without failing; whatever it refuses has a name ([`Reject`]),
//! and each name has one wire answer ([`answer`]). Emission writes values into the caller's
//! buffer, its size known beforehand ([`message_bytes`]). What it never does: allocate, panic
//! on what a peer sent, keep state from one message to the next, or edit a received buffer.
//!
//! Start reading at [`header::parse`], then [`header::ChunkLists`].
#![no_std]
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

pub mod cel_v2_03;
pub mod emit;
pub mod header;
pub mod limits;
pub mod plain;
pub mod private_data;
pub mod property;
pub mod reject;
pub mod rfc8166;
pub mod rpc;
pub mod segment;
pub mod types;

mod octets;

pub use emit::{Emitter, emit_error, message_bytes};
pub use header::{
    Body, ChunkLists, ErrorBody, FixedHeader, Header, Optional, WriteList, check_long, parse,
    parse_as,
};
pub use limits::Limits;
pub use plain::Plain;
pub use private_data::PrivateData;
pub use property::{BackwardRequests, Property, PropertySet, PropertySubset};
pub use reject::{Answer, Reject, Role, answer, role_of};
pub use segment::{RawSegment, ReadSegment, Segment};
pub use types::{Direction, Handle, Procedure, Version, Xid};
