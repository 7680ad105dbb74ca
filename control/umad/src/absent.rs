//! What keeps a port from being used, and what fails on it.

use std::fmt;
use std::io;

/// Why there are no management datagrams here: one line for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absent {
    /// libibumad is not installed, or cannot be loaded.
    LibraryNotFound {
        /// What the dynamic loader said.
        text: String,
    },
    /// libibumad lacks a call, or speaks to a kernel of before 2.6.24.
    TooOld {
        /// What it lacks.
        text: String,
    },
    /// The kernel has no user management datagrams: no InfiniBand device, or the module ib_umad is not loaded.
    NoDriver,
    /// There is no port of this name.
    NoPort {
        /// The name that was asked for.
        name: String,
    },
    /// It is there, and cannot be used.
    Refused(Fault),
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no subnet management: ")?;
        match self {
            Absent::LibraryNotFound { text } if text.contains("No such file") => {
                f.write_str("libibumad.so.3 not found; apt install libibumad3")
            }
            Absent::LibraryNotFound { text } => write!(f, "libibumad.so.3 not loaded: {text}"),
            Absent::TooOld { text } => write!(f, "libibumad.so.3 is too old: {text}"),
            Absent::NoDriver => {
                f.write_str("no InfiniBand device, or the kernel module ib_umad is not loaded")
            }
            Absent::NoPort { name } => write!(f, "there is no InfiniBand port {name}"),
            Absent::Refused(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for Absent {}

impl From<Fault> for Absent {
    fn from(fault: Fault) -> Self {
        Absent::Refused(fault)
    }
}

/// A call of the library that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The call.
    pub call: &'static str,
    /// Its errno.
    pub errno: i32,
}

impl Fault {
    /// Of a call that returns the errno negated, or -1 and leaves it in `errno`.
    pub(crate) fn of(call: &'static str, returned: i32) -> Self {
        let errno = match returned {
            ..-1 => returned.saturating_neg(),
            _ => io::Error::last_os_error().raw_os_error().unwrap_or(0),
        };
        Self { call, errno }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = io::Error::from_raw_os_error(self.errno);
        write!(f, "{}: {error}", self.call)
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_one_line() {
        let text =
            "libibumad.so.3: cannot open shared object file: No such file or directory".to_owned();
        assert_eq!(
            Absent::LibraryNotFound { text }.to_string(),
            "no subnet management: libibumad.so.3 not found; apt install libibumad3"
        );
        assert_eq!(
            Absent::from(Fault::of("umad_open_port", -libc::EACCES)).to_string(),
            "no subnet management: umad_open_port: Permission denied (os error 13)"
        );
        let name = "mlx5_0/3".to_owned();
        assert_eq!(
            Absent::NoPort { name }.to_string(),
            "no subnet management: there is no InfiniBand port mlx5_0/3"
        );
    }
}
