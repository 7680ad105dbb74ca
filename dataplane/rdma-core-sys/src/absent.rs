//! Why there is no RDMA here.

use std::fmt;
use std::io;

/// Why there is no RDMA device to use: one line for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absent {
    /// A shared library is not installed, or cannot be used.
    LibraryNotFound {
        /// Its file name.
        name: &'static str,
        /// What the dynamic loader said.
        text: String,
    },
    /// A shared library is there and lacks a call that rdma-core 44 has.
    LibraryTooOld {
        /// Its file name.
        name: &'static str,
        /// What the dynamic loader said.
        text: String,
    },
    /// Both libraries are there, and the kernel has no device.
    NoDevice,
    /// Both libraries are there, and the kernel does not let us ask.
    Refused {
        /// The call that failed.
        call: &'static str,
        /// Its errno.
        errno: i32,
    },
}

impl Absent {
    /// What a failed first call of either library means. A kernel without InfiniBand answers
    /// ENOSYS to `ibv_get_device_list`; one without connection manager, or without any device,
    /// ENODEV (or ENOENT for its device node) to `rdma_create_event_channel`.
    #[must_use]
    pub fn by_errno(call: &'static str, errno: i32) -> Self {
        match errno {
            libc::ENOSYS | libc::ENODEV | libc::ENOENT => Absent::NoDevice,
            errno => Absent::Refused { call, errno },
        }
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no RDMA device: ")?;
        match self {
            Absent::LibraryNotFound { name, text } if text.contains("No such file") => {
                write!(f, "{name} not found")
            }
            Absent::LibraryNotFound { name, text } => write!(f, "{name} not loaded: {text}"),
            Absent::LibraryTooOld { name, text } => {
                write!(f, "{name} is older than rdma-core 44: {text}")
            }
            Absent::NoDevice => f.write_str("libibverbs.so.1 present, no device"),
            Absent::Refused { call, errno } => {
                write!(f, "{call}: {}", io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

impl std::error::Error for Absent {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_one_line() {
        let not_found = Absent::LibraryNotFound {
            name: "libibverbs.so.1",
            text: "libibverbs.so.1: cannot open shared object file: No such file or directory"
                .into(),
        };
        assert_eq!(
            not_found.to_string(),
            "no RDMA device: libibverbs.so.1 not found"
        );
        assert_eq!(
            Absent::by_errno("ibv_get_device_list", libc::ENOSYS).to_string(),
            "no RDMA device: libibverbs.so.1 present, no device"
        );
        assert_eq!(
            Absent::by_errno("rdma_create_event_channel", libc::ENODEV),
            Absent::NoDevice
        );
        assert_eq!(
            Absent::by_errno("ibv_get_device_list", libc::EPERM).to_string(),
            "no RDMA device: ibv_get_device_list: Operation not permitted (os error 1)"
        );
    }
}
