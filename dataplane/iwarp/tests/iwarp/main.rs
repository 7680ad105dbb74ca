//! Everything that is asked of the crate from outside.
#![allow(
    clippy::cast_possible_truncation,
    reason = "what the tests count and cut up is small"
)]

mod errors;
mod operations;
mod phases;
mod session;
mod support;
