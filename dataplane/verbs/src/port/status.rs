//! What a device or the kernel says went wrong, in the engine's words: one table for the status
//! of completions, one for errno of calls that post.

use rdma_core_sys as rdma;
use rpcrdma_fabric::{Refused, WorkError};

/// A completion's status. Anything that is not in the table is the transport's fault: the queue
/// pair is in error all the same.
#[cold]
pub(crate) fn work_error(status: rdma::ibv_wc_status) -> WorkError {
    match status {
        rdma::IBV_WC_LOC_LEN_ERR => WorkError::LocalLength,
        // Our request, our memory, or our window's binding is not what it says.
        rdma::IBV_WC_LOC_QP_OP_ERR
        | rdma::IBV_WC_LOC_PROT_ERR
        | rdma::IBV_WC_MW_BIND_ERR
        | rdma::IBV_WC_LOC_ACCESS_ERR => WorkError::LocalProtection,
        rdma::IBV_WC_WR_FLUSH_ERR => WorkError::Flushed,
        // The peer's device did not take the message, or could not carry out what it asks for: rxe
        // says the latter of a message that is too long for its receive.
        rdma::IBV_WC_REM_INV_REQ_ERR | rdma::IBV_WC_REM_OP_ERR => WorkError::RemoteInvalid,
        // The peer's device says that our access is not allowed.
        rdma::IBV_WC_REM_ACCESS_ERR => WorkError::RemoteAccess,
        rdma::IBV_WC_RNR_RETRY_EXC_ERR => WorkError::NotReady,
        _ => WorkError::Transport,
    }
}

/// errno of a call that posts, for the request that it stopped at. The queue had room for it: a
/// port counts its entries.
#[cold]
pub(crate) fn post_error(errno: i32) -> WorkError {
    match errno {
        libc::EINVAL | libc::EFAULT | libc::EPERM => WorkError::LocalProtection,
        libc::EMSGSIZE | libc::E2BIG => WorkError::LocalLength,
        // Not in a state that sends: siw's word for a connection that is gone.
        libc::ENOTCONN | libc::ECONNRESET | libc::ESHUTDOWN => WorkError::Flushed,
        _ => WorkError::Transport,
    }
}

/// errno of a call, for who asked for the object.
#[cold]
pub(crate) fn refused(errno: i32) -> Refused {
    match errno {
        libc::ENOMEM | libc::EAGAIN | libc::EBUSY | libc::ENOSPC => Refused::Busy,
        libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::EMSGSIZE => Refused::Unsupported,
        _ => Refused::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every status that the headers know, by number.
    #[test]
    fn each_status_has_its_word() {
        use WorkError::{
            Flushed, LocalLength, LocalProtection, NotReady, RemoteAccess, RemoteInvalid, Transport,
        };
        let table = [
            (rdma::IBV_WC_LOC_LEN_ERR, LocalLength),
            (rdma::IBV_WC_LOC_QP_OP_ERR, LocalProtection),
            (rdma::IBV_WC_LOC_EEC_OP_ERR, Transport),
            (rdma::IBV_WC_LOC_PROT_ERR, LocalProtection),
            (rdma::IBV_WC_WR_FLUSH_ERR, Flushed),
            (rdma::IBV_WC_MW_BIND_ERR, LocalProtection),
            (rdma::IBV_WC_BAD_RESP_ERR, Transport),
            (rdma::IBV_WC_LOC_ACCESS_ERR, LocalProtection),
            (rdma::IBV_WC_REM_INV_REQ_ERR, RemoteInvalid),
            (rdma::IBV_WC_REM_ACCESS_ERR, RemoteAccess),
            (rdma::IBV_WC_REM_OP_ERR, RemoteInvalid),
            (rdma::IBV_WC_RETRY_EXC_ERR, Transport),
            (rdma::IBV_WC_RNR_RETRY_EXC_ERR, NotReady),
            (rdma::IBV_WC_LOC_RDD_VIOL_ERR, Transport),
            (rdma::IBV_WC_REM_INV_RD_REQ_ERR, Transport),
            (rdma::IBV_WC_REM_ABORT_ERR, Transport),
            (rdma::IBV_WC_INV_EECN_ERR, Transport),
            (rdma::IBV_WC_INV_EEC_STATE_ERR, Transport),
            (rdma::IBV_WC_FATAL_ERR, Transport),
            (rdma::IBV_WC_RESP_TIMEOUT_ERR, Transport),
            (rdma::IBV_WC_GENERAL_ERR, Transport),
            (rdma::IBV_WC_TM_ERR, Transport),
            (rdma::IBV_WC_TM_RNDV_INCOMPLETE, Transport),
        ];
        for (number, (status, word)) in (1..).zip(table) {
            assert_eq!(status, number, "the table leaves none out");
            assert_eq!(work_error(status), word, "status {status}");
        }
        assert_eq!(work_error(1000), Transport, "one that is not known yet");
    }

    #[test]
    fn each_errno_has_its_word() {
        for (errno, word) in [
            (libc::EINVAL, WorkError::LocalProtection),
            (libc::EFAULT, WorkError::LocalProtection),
            (libc::EPERM, WorkError::LocalProtection),
            (libc::EMSGSIZE, WorkError::LocalLength),
            (libc::E2BIG, WorkError::LocalLength),
            (libc::ENOTCONN, WorkError::Flushed),
            (libc::ECONNRESET, WorkError::Flushed),
            (libc::ESHUTDOWN, WorkError::Flushed),
            (libc::ENOMEM, WorkError::Transport),
            (libc::ENODEV, WorkError::Transport),
            (libc::EIO, WorkError::Transport),
        ] {
            assert_eq!(post_error(errno), word, "errno {errno}");
        }
        for (errno, word) in [
            (libc::ENOMEM, Refused::Busy),
            (libc::EAGAIN, Refused::Busy),
            (libc::EBUSY, Refused::Busy),
            (libc::ENOSPC, Refused::Busy),
            (libc::EOPNOTSUPP, Refused::Unsupported),
            (libc::ENOSYS, Refused::Unsupported),
            (libc::EINVAL, Refused::Unsupported),
            (libc::EMSGSIZE, Refused::Unsupported),
            (libc::ENODEV, Refused::Broken),
            (libc::EIO, Refused::Broken),
        ] {
            assert_eq!(refused(errno), word, "errno {errno}");
        }
    }
}
