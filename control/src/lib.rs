//! The control side of the appliance: everything around the dataplane.
#![forbid(unsafe_code)]

pub mod backend;
mod endpoint;
pub mod export;
pub mod logging;
pub mod metrics;
pub mod notify;
pub mod selftest;
pub mod signals;
pub mod status;
mod table;
