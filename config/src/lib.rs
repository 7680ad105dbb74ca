//! The configuration of the appliance: what an operator writes, and the plan that comes of it.
//!
//! It owns the format (TOML), its keys, their defaults and ranges, the checks that span several
//! keys, and all memory arithmetic. It promises that a [`Plan`] it returns has been checked, and
//! that a file which is refused is refused with every problem in it, each at its place. It never
//! opens a socket, never looks at the machine on its own (what it has to know comes in as
//! [`Machine`]), and depends on no other crate of the project.
//!
//! Start reading at [`plan`], then `schema.rs` (every key as data), `file.rs` (the mirror of the
//! file), `resolve.rs` (mirror to plan).

#![forbid(unsafe_code)]

pub mod allow;
pub mod budget;
pub mod plan;

pub use plan::Plan;
