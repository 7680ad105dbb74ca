//! Why there is no SCTP library here.

use std::fmt;

/// Why the library, or one more copy of it, cannot be had: one line for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absent {
    /// It is not installed, or cannot be loaded.
    NotFound {
        /// Its file name.
        name: &'static str,
        /// What the dynamic loader said.
        text: String,
    },
    /// It is there and lacks a call.
    TooOld {
        /// Its file name.
        name: &'static str,
        /// What the dynamic loader said.
        text: String,
    },
    /// It is in use, and this system does not let a program load a copy from memory.
    NoCopy {
        /// The step that failed, and how.
        text: String,
    },
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no SCTP: ")?;
        match self {
            Absent::NotFound { name, text } if text.contains("No such file") => {
                write!(f, "{name} not found; apt install libusrsctp2")
            }
            Absent::NotFound { name, text } => write!(f, "{name} not loaded: {text}"),
            Absent::TooOld { name, text } => write!(f, "{name} is older than 0.9.5: {text}"),
            Absent::NoCopy { text } => {
                write!(
                    f,
                    "the library serves one lcore, and no second copy: {text}"
                )
            }
        }
    }
}

impl std::error::Error for Absent {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_one_line_with_the_remedy() {
        let absent = Absent::NotFound {
            name: "libusrsctp.so.2",
            text: "libusrsctp.so.2: cannot open shared object file: No such file or directory"
                .into(),
        };
        assert_eq!(
            absent.to_string(),
            "no SCTP: libusrsctp.so.2 not found; apt install libusrsctp2"
        );
    }
}
