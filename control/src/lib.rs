//! The control side of the appliance: everything around the dataplane.
#![forbid(unsafe_code)]

pub mod export;
pub mod selftest;
mod table;
