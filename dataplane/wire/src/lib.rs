//! RPC-over-RDMA headers, versions one (RFC 8166, 8167, 8797) and two
//! (draft-cel-nfsv4-rpcrdma-version-two-03), and the ONC RPC headers behind them.
#![no_std]
#![forbid(unsafe_code)]

pub mod emit;
pub mod header;
pub mod limits;
pub mod private_data;
pub mod property;
pub mod reject;
pub mod rpc;
pub mod segment;
pub mod types;

pub use emit::Emitter;
pub use header::{Body, ChunkLists, ErrorBody, Header, Payload, parse};
pub use limits::Limits;
pub use reject::{Answer, Reject, Role};
pub use segment::{ReadSegment, Segment};
pub use types::{Direction, Handle, Procedure, Version, Xid};
