//! What the tests of several crates prove things with. No program depends on it.
//!
//! - [`corpus`]: fuzz corpora, replayed by ordinary tests
//! - [`counting`]: an allocator that counts
//! - [`layout`]: structures and constants as a C compiler knows them
//! - [`phases`]: tables of state machines
#![deny(unsafe_code)]

pub mod corpus;
#[expect(unsafe_code, reason = "an allocator is unsafe by its trait")]
pub mod counting;
pub mod layout;
pub mod phases;
