//! The control side of the appliance: everything around the dataplane.
#![forbid(unsafe_code)]

mod endpoint;
pub mod export;
pub mod metrics;
pub mod selftest;
pub mod status;
mod table;
