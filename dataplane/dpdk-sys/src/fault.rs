//! What DPDK refuses, and what it said about it.

use crate::{ffi, log};
use std::ffi::{CStr, c_int};
use std::fmt;

/// A call of DPDK that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The call, in DPDK's own name.
    pub call: &'static str,
    /// The errno: of the system, or above 1000 one of DPDK's own.
    pub errno: i32,
    /// What that means.
    pub meaning: String,
    /// The last complaints that DPDK logged, oldest first; few and short.
    pub said: Vec<String>,
}

impl Fault {
    /// Of a status of the shim: the negated errno.
    pub(crate) fn of(call: &'static str, status: c_int) -> Fault {
        let errno = status.saturating_neg();
        Fault {
            call,
            errno,
            meaning: text(ffi::shim_error_text(errno)),
            said: log::complaints(),
        }
    }

    /// Of something that happens on the fast path: without words, and so without memory.
    pub(crate) fn short(call: &'static str, errno: i32) -> Fault {
        Fault {
            call,
            errno,
            meaning: String::new(),
            said: Vec::new(),
        }
    }

    /// Of something that never got as far as DPDK.
    pub(crate) fn ours(call: &'static str, errno: i32, meaning: &str) -> Fault {
        Fault {
            call,
            errno,
            meaning: meaning.to_owned(),
            said: Vec::new(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault {
            call,
            errno,
            meaning,
            said,
        } = self;
        write!(f, "{call}: {meaning} ({errno})")?;
        if !said.is_empty() {
            write!(f, "; DPDK says: {}", said.join(" / "))?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

/// A string of the shim's that is there as long as the program; `None` for none.
pub(crate) fn constant(of: *const std::ffi::c_char) -> Option<&'static str> {
    if of.is_null() {
        return None;
    }
    // SAFETY: what is given here is a string literal of the shim's.
    let text = unsafe { CStr::from_ptr(of) };
    text.to_str().ok()
}

/// A string of the shim's, copied. Empty for none.
pub(crate) fn text(of: *const std::ffi::c_char) -> String {
    if of.is_null() {
        return String::new();
    }
    // SAFETY: the shim gives out strings that end in a zero octet, and that nobody changes
    // before this thread asks it again.
    let text = unsafe { CStr::from_ptr(of) };
    text.to_string_lossy().into_owned()
}
