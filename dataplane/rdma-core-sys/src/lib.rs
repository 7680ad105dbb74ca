//! libibverbs and librdmacm, loaded at run time.
//!
//! [`Library::load`] gives the tables of calls, or says in one line why there is no RDMA on
//! this machine ([`Absent`]). Types and constants have the names of the C headers. What the
//! headers define in place, mostly calls through a context's own table, is in [`inline`].
//!
//! Everything here is as safe as C: ownership and the order of destruction are the caller's.

#![allow(unsafe_code, reason = "a foreign interface, raw as it is")]

mod absent;
#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    clippy::all,
    clippy::pedantic,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "generated from C headers, whose documentation is rdma-core's manual pages"
)]
mod bindings {
    pub mod manager;
    pub mod types;
    pub mod verbs;
}
pub mod inline;
mod library;
mod zeroed;

pub use absent::Absent;
pub use bindings::manager::ConnectionManager;
pub use bindings::types::*;
pub use bindings::verbs::Verbs;
pub use library::Library;
