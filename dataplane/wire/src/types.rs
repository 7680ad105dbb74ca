//! The small values every header is made of.

use crate::{cel_v2_03, rfc8166};

/// A transaction identifier, host order. Opaque: only equality means anything (RFC 5531 section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Xid(pub u32);

/// The key of registered memory (an R_key or STag), host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub u32);

/// A protocol version this crate speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Version {
    /// RFC 8166.
    One = 1,
    /// draft-cel-nfsv4-rpcrdma-version-two-03.
    Two = 2,
}

impl Version {
    /// The version with this `rdma_vers`; `None` for one this crate does not speak.
    #[inline]
    #[must_use]
    pub const fn of(vers: u32) -> Option<Version> {
        match vers {
            rfc8166::VERSION => Some(Version::One),
            cel_v2_03::VERSION => Some(Version::Two),
            _ => None,
        }
    }

    /// Its `rdma_vers`.
    #[inline]
    #[must_use]
    pub const fn code(self) -> u32 {
        self as u32
    }
}

/// Whose xid a message carries (version two 6.2.2; in version one the RPC message's own type).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Direction {
    /// From a requester.
    Call = cel_v2_03::CALL,
    /// From a responder.
    Reply = cel_v2_03::REPLY,
}

impl Direction {
    /// The direction with this `rdma_direction` (or RPC `msg_type`: they are the same enum).
    #[inline]
    #[must_use]
    pub const fn of(code: u32) -> Option<Direction> {
        match code {
            cel_v2_03::CALL => Some(Direction::Call),
            cel_v2_03::REPLY => Some(Direction::Reply),
            _ => None,
        }
    }

    /// Its `rdma_direction`.
    #[inline]
    #[must_use]
    pub const fn code(self) -> u32 {
        self as u32
    }
}

/// The `rdma_proc` values of both versions that this crate recognises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Procedure {
    /// RDMA_MSG, RDMA2_MSG: 0.
    Msg = cel_v2_03::MSG,
    /// RDMA_NOMSG, RDMA2_NOMSG: 1.
    NoMsg = cel_v2_03::NOMSG,
    /// RDMA_ERROR, RDMA2_ERROR: 4.
    Error = cel_v2_03::ERROR,
    /// RDMA2_OPTIONAL: 5.
    Optional = cel_v2_03::OPTIONAL,
    /// RDMA2_CONNPROP: 6.
    ConnProp = cel_v2_03::CONNPROP,
    /// RDMA2_REQPROP: 7.
    ReqProp = cel_v2_03::REQPROP,
    /// RDMA2_RESPROP: 8.
    RespProp = cel_v2_03::RESPROP,
    /// RDMA2_UPDPROP: 9.
    UpdProp = cel_v2_03::UPDPROP,
}

impl Procedure {
    /// Its `rdma_proc`.
    #[inline]
    #[must_use]
    pub const fn code(self) -> u32 {
        self as u32
    }
}
