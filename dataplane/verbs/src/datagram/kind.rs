//! Of which kind a failed call is.

use crate::error::{Error, Fault};
use rpcrdma_fabric::datagram::{Failure, FailureKind};

/// What a fault means to whoever wanted something.
pub(super) fn failure(fault: Fault) -> Failure {
    kind(fault.errno).because(fault.to_string())
}

/// The same for any error of the fabric.
pub(super) fn of_error(error: Error) -> Failure {
    let kind = match &error {
        Error::Fault(fault) => kind(fault.errno),
        Error::Absent(_) | Error::NoDevice(_) | Error::Address(_) => FailureKind::Absent,
        Error::Unfit { .. } => FailureKind::Unsupported,
        Error::System(_) | Error::Busy(_) => FailureKind::Exhausted,
        _ => FailureKind::Refused,
    };
    kind.because(error.to_string())
}

fn kind(errno: i32) -> FailureKind {
    match errno {
        libc::EPERM | libc::EACCES => FailureKind::Forbidden,
        libc::ENOMEM | libc::ENOSPC | libc::EMFILE | libc::ENFILE | libc::EAGAIN => {
            FailureKind::Exhausted
        }
        // What the kernel calls ENOTSUPP has no name elsewhere.
        libc::EOPNOTSUPP | libc::ENOSYS | 524 => FailureKind::Unsupported,
        libc::EIO | libc::ENODEV => FailureKind::Gone,
        libc::EADDRNOTAVAIL => FailureKind::Absent,
        _ => FailureKind::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_follows_from_errno_and_the_call_is_named() {
        let of = |errno| {
            failure(Fault {
                call: "ibv_attach_mcast",
                errno,
            })
        };
        assert_eq!(of(libc::ENOMEM).kind, FailureKind::Exhausted);
        assert_eq!(of(libc::EPERM).kind, FailureKind::Forbidden);
        assert_eq!(of(libc::EIO).kind, FailureKind::Gone);
        assert_eq!(of(524).kind, FailureKind::Unsupported);
        assert_eq!(of(libc::EINVAL).kind, FailureKind::Refused);
        assert!(of(libc::EINVAL).detail.starts_with("ibv_attach_mcast: "));
        assert_eq!(
            of_error(Error::NoDevice("x".into())).kind,
            FailureKind::Absent
        );
    }
}
