//! The constants of version one (RFC 8166 section 5, RFC 8797).

/// `rdma_vers`.
pub const VERSION: u32 = 1;

/// RDMA_MSG.
pub const MSG: u32 = 0;
/// RDMA_NOMSG.
pub const NOMSG: u32 = 1;
/// RDMA_MSGP: reserved, answered with ERR_CHUNK (section 4.6.1).
pub const MSGP: u32 = 2;
/// RDMA_DONE: reserved, discarded (section 4.6.2).
pub const DONE: u32 = 3;
/// RDMA_ERROR.
pub const ERROR: u32 = 4;

/// ERR_VERS: the version is not served; a range follows.
pub const ERR_VERS: u32 = 1;
/// ERR_CHUNK: the header cannot be used.
pub const ERR_CHUNK: u32 = 2;

/// Octets of the shortest message: four fixed words and three absent lists (section 4.5).
pub const SHORTEST_BYTES: usize = 28;
/// Octets of the shortest ERROR: four fixed words and the code.
pub const SHORTEST_ERROR_BYTES: usize = 20;
/// Octets every receiver takes inline (section 3.3.2).
pub const INLINE_BYTES: u32 = 1024;
