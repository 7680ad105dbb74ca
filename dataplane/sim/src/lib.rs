//! A deterministic simulation of two connected engines, or of one engine and a hostile peer.
//!
//! One thread, no clock, no operating system: a seed decides what happens next, and the same
//! seed makes the same run. The [`link`] behaves as a reliable connection does, and as badly as
//! it may: completions late and in every order the contract allows, no room, no memory, the
//! connection lost at any point. [`memory`] and [`device`] catch an engine that touches what is
//! not its own, the [`ledger`] one that loses, repeats or changes an RPC.
//!
//! It never checks how an engine does its work, only what can be seen from above and below.
//! Start reading at [`world`].

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "arenas of a few mebibytes, on machines with 64-bit addresses"
)]

pub mod chance;
pub mod device;
pub mod exposures;
pub mod fiend;
pub mod hostile;
pub mod ledger;
mod lend;
pub mod link;
pub mod memory;
pub mod message;
pub mod node;
pub mod plan;
pub mod scene;
pub mod victim;
pub mod world;
