//! libusrsctp, loaded at run time.
//!
//! [`Instance`] is the library with state of its own: associations, timers, configuration and locks
//! are global variables of it, so whoever wants an SCTP that nobody else touches takes a copy.
//! Types and constants have the names of `usrsctp.h`.
//!
//! Everything here is as safe as C. What the header does not say: a copy that one thread at a
//! time uses needs no lock of the caller's; `usrsctp_init_nothreads` still starts one thread, for
//! changes of addresses, which sleeps for ever where there are none; the library's memory comes
//! from the C allocator, and what a receive callback is given is to be given to `free`.

#![allow(unsafe_code, reason = "a foreign interface, raw as it is")]

mod absent;
mod instances;
mod library;
#[allow(
    missing_docs,
    non_camel_case_types,
    reason = "named and documented by usrsctp.h"
)]
pub mod types;

pub use absent::Absent;
pub use instances::Instance;
pub use library::Calls;
