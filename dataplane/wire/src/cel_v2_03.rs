//! The constants of draft-cel-nfsv4-rpcrdma-version-two-03, section 6.2.
//!
//! Later working-group drafts gave version number 2 to another wire format. Everything that
//! tells the two apart is in this one module, so that a second profile can stand beside it.

/// `rdma_vers`.
pub const VERSION: u32 = 2;

/// RDMA2_MSG.
pub const MSG: u32 = 0;
/// RDMA2_NOMSG.
pub const NOMSG: u32 = 1;
/// RDMA2_ERROR.
pub const ERROR: u32 = 4;
/// RDMA2_OPTIONAL.
pub const OPTIONAL: u32 = 5;
/// RDMA2_CONNPROP.
pub const CONNPROP: u32 = 6;
/// RDMA2_REQPROP.
pub const REQPROP: u32 = 7;
/// RDMA2_RESPROP.
pub const RESPROP: u32 = 8;
/// RDMA2_UPDPROP.
pub const UPDPROP: u32 = 9;

/// `rdma_direction` CALL.
pub const CALL: u32 = 0;
/// `rdma_direction` REPLY.
pub const REPLY: u32 = 1;

/// RDMA2_ERR_VERS: the same code in both versions (V2-09).
pub const ERR_VERS: u32 = 1;
/// RDMA2_ERR_BAD_XDR.
pub const ERR_BAD_XDR: u32 = 2;
/// RDMA2_ERR_REPLY_RESOURCE.
pub const ERR_REPLY_RESOURCE: u32 = 3;
/// RDMA2_ERR_INVAL_PROC.
pub const ERR_INVAL_PROC: u32 = 4;
/// RDMA2_ERR_INVAL_OPTION.
pub const ERR_INVAL_OPTION: u32 = 5;
/// RDMA2_ERR_SYSTEM.
pub const ERR_SYSTEM: u32 = 6;

/// Octets of the shortest message that is answered at all (V2-16).
pub const SHORTEST_BYTES: usize = 20;
/// Octets every receiver takes inline, once it is known to speak version two.
pub const INLINE_BYTES: u32 = 4096;
/// Octets a connection's first message may have, which a version-one peer must be able to
/// receive (V2-04).
pub const FIRST_MESSAGE_BYTES: u32 = 1024;

/// RDMA2_PROPID_RBSIZ: the smallest posted receive, octets.
pub const PROPERTY_RBSIZ: u32 = 1;
/// RDMA2_PROPID_BRS: which backward Calls are taken.
pub const PROPERTY_BRS: u32 = 2;
/// First of the experimental property identifiers (5.4.2); they go on to `u32::MAX`.
pub const PROPERTY_EXPERIMENTAL: u32 = 0xFFFF_FF00;

/// Default of RBSIZ, octets.
pub const RBSIZ_DEFAULT: u32 = 4096;
/// Smallest RBSIZ that is honoured, octets (V2-21).
pub const RBSIZ_LEAST: u32 = 1024;

/// RDMA2_BKREQSUP_NONE.
pub const BRS_NONE: u32 = 0;
/// RDMA2_BKREQSUP_INLINE: the default.
pub const BRS_INLINE: u32 = 1;
/// RDMA2_BKREQSUP_GENL.
pub const BRS_GENL: u32 = 2;
