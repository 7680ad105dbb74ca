//! The small values every header is made of.

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

/// Whose xid a message carries (version two 6.2.2; in version one the RPC message's own type).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From a requester.
    Call,
    /// From a responder.
    Reply,
}

/// The `rdma_proc` values of both versions that this crate recognises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Procedure {
    /// RDMA_MSG, RDMA2_MSG: 0.
    Msg,
    /// RDMA_NOMSG, RDMA2_NOMSG: 1.
    NoMsg,
    /// RDMA_ERROR, RDMA2_ERROR: 4.
    Error,
    /// RDMA2_OPTIONAL: 5.
    Optional,
    /// RDMA2_CONNPROP: 6.
    ConnProp,
    /// RDMA2_REQPROP: 7.
    ReqProp,
    /// RDMA2_RESPROP: 8.
    RespProp,
    /// RDMA2_UPDPROP: 9.
    UpdProp,
}
