//! One command of DPDK's telemetry socket, answered with names and numbers.
//!
//! Its thread asks, any time; the answer is what the closure says then. DPDK knows no way of
//! taking a command back: [`hush`] leaves it without an answer instead.

use crate::eal::Eal;
use crate::fault::Fault;
use crate::ffi::{self, NAME_LENGTH};
use libc::{EEXIST, EIO, ENODEV};
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The longest name of a counter, octets; a longer one is cut.
pub const NAME_BYTES: usize = NAME_LENGTH - 1;

/// A counter: its name and its value.
pub type Counter = (String, u64);

/// The command's parameters in, its counters out; an errno where there are none such.
pub type Names = Box<dyn Fn(&str) -> Result<Vec<Counter>, i32> + Send>;

/// Counters of one answer, as `SHIM_COUNTERS_MAX`; what comes after them is left out.
pub const COUNTERS_MAX: usize = 256;

static ANSWER: Mutex<Option<Names>> = Mutex::new(None);

fn names() -> MutexGuard<'static, Option<Names>> {
    ANSWER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers `command` with what `names` says, from now on.
///
/// # Errors
///
/// EAL refuses the command: it needs a leading slash, and nobody else may have it.
pub fn answer(_eal: &Eal, command: &CStr, help: &CStr, says: Names) -> Result<(), Fault> {
    static REGISTERED: OnceLock<Result<CString, Fault>> = OnceLock::new();
    *names() = Some(says);
    let registered = REGISTERED.get_or_init(|| {
        // SAFETY: DPDK copies both strings, and `take` is there as long as the process.
        let status = unsafe { ffi::shim_telemetry_answer(command.as_ptr(), help.as_ptr(), take) };
        match status {
            0.. => Ok(command.to_owned()),
            _ => Err(Fault::of("rte_telemetry_register_cmd", status)),
        }
    });
    match registered {
        Ok(known) if known.as_c_str() == command => Ok(()),
        Ok(_) => Err(Fault::ours(
            "rte_telemetry_register_cmd",
            EEXIST,
            "one command, once",
        )),
        Err(fault) => Err(fault.clone()),
    }
}

/// Leaves the command without an answer.
pub fn hush() {
    *names() = None;
}

extern "C" fn take(parameters: *const c_char, to: *mut ffi::Counter, room: u32) -> c_int {
    let parameters = crate::fault::text(parameters);
    let said = catch_unwind(AssertUnwindSafe(|| match &*names() {
        Some(says) => says(&parameters),
        None => Err(ENODEV),
    }));
    let counters = match said {
        Ok(Ok(counters)) => counters,
        Ok(Err(errno)) => return errno.abs().saturating_neg(),
        Err(_) => return -EIO,
    };
    // SAFETY: the shim gives that much room, and looks at it when this has returned.
    let to = unsafe { std::slice::from_raw_parts_mut(to, room as usize) };
    let filled = to.iter_mut().zip(&counters).map(|(to, (name, value))| {
        let name = name.as_bytes();
        let length = name.len().min(NAME_BYTES);
        to.name = [0; NAME_LENGTH];
        to.name[..length].copy_from_slice(&name[..length]);
        to.value = *value;
    });
    c_int::try_from(filled.count()).unwrap_or(0)
}
