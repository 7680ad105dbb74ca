//! The control side of the appliance: everything around the dataplane.
#![forbid(unsafe_code)]

pub mod backend;
pub mod cli;
pub mod command;
pub mod decode;
mod discover;
pub mod dpdk;
mod endpoint;
pub mod export;
mod keepalive;
pub mod listen;
pub mod logging;
pub mod metrics;
pub mod notify;
pub mod selftest;
pub mod signals;
pub mod status;
pub mod supervise;
mod table;
pub mod version;
