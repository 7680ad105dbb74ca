//! Replies made on the spot: RPC errors (RFC 5531 section 9), AUTH_NONE verifiers.

use arrayvec::ArrayVec;
use rpcrdma_wire::Xid;
use rpcrdma_wire::rpc::RPC_VERSION;

/// A reply without results.
pub(crate) type Short = ArrayVec<u8, 32>;

/// Why an RPC was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RpcError {
    /// The RPC version is not two.
    RpcMismatch,
    /// A credential of a flavour that is not served.
    BadCredential,
    /// No such program here.
    ProgramUnavailable,
    /// The program is here, in these versions.
    ProgramMismatch {
        /// Lowest.
        low: u32,
        /// Highest.
        high: u32,
    },
    /// The program has no such procedure.
    ProcedureUnavailable,
    /// The arguments cannot be decoded.
    GarbageArguments,
    /// Something else failed, on the way or at its end.
    System,
}

const REPLY: u32 = 1;
const ACCEPTED: u32 = 0;
const DENIED: u32 = 1;
const RPC_MISMATCH: u32 = 0;
const AUTH_ERROR: u32 = 1;
const AUTH_BADCRED: u32 = 1;

/// The reply that says so.
pub(crate) fn short(xid: Xid, error: RpcError) -> Short {
    match error {
        RpcError::RpcMismatch => {
            words(&[xid.0, REPLY, DENIED, RPC_MISMATCH, RPC_VERSION, RPC_VERSION])
        }
        RpcError::BadCredential => words(&[xid.0, REPLY, DENIED, AUTH_ERROR, AUTH_BADCRED]),
        RpcError::ProgramUnavailable => accepted(xid, &[1]),
        RpcError::ProgramMismatch { low, high } => accepted(xid, &[2, low, high]),
        RpcError::ProcedureUnavailable => accepted(xid, &[3]),
        RpcError::GarbageArguments => accepted(xid, &[4]),
        RpcError::System => accepted(xid, &[5]),
    }
}

fn accepted(xid: Xid, rest: &[u32]) -> Short {
    let mut reply = words(&[xid.0, REPLY, ACCEPTED, 0, 0]);
    reply.extend(rest.iter().flat_map(|word| word.to_be_bytes()));
    reply
}

fn words(words: &[u32]) -> Short {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpcrdma_wire::rpc::{Outcome, ReplyHeader};

    #[test]
    fn each_error_reads_back_as_itself() {
        let xid = Xid(0x1234_5678);
        for (error, outcome, rest) in [
            (RpcError::RpcMismatch, Outcome::Denied(0), &[2, 2][..]),
            (RpcError::BadCredential, Outcome::Denied(1), &[1]),
            (RpcError::ProgramUnavailable, Outcome::Accepted(1), &[]),
            (
                RpcError::ProgramMismatch { low: 3, high: 4 },
                Outcome::Accepted(2),
                &[3, 4],
            ),
            (RpcError::ProcedureUnavailable, Outcome::Accepted(3), &[]),
            (RpcError::GarbageArguments, Outcome::Accepted(4), &[]),
            (RpcError::System, Outcome::Accepted(5), &[]),
        ] {
            let reply = short(xid, error);
            let header = ReplyHeader::parse(&reply).expect("a reply");
            assert_eq!((header.xid, header.outcome), (xid, outcome));
            assert_eq!(
                &reply[header.results..],
                words(rest).as_slice(),
                "{error:?}"
            );
        }
    }
}
