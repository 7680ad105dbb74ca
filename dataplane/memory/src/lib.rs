//! An RDMA fabric inside one process.
#![deny(unsafe_code)]

mod barrier;
mod bell;
#[expect(unsafe_code, reason = "raw memory is this module's job")]
mod copy;
mod error;
mod fabric;
mod fault;
mod fifo;
pub mod floor;
mod lane;
mod link;
mod padded;
mod port;
mod queue_pair;
mod registry;
#[expect(unsafe_code, reason = "raw memory is this module's job")]
mod ring;
mod settings;
mod shared;
#[expect(unsafe_code, reason = "raw memory is this module's job")]
mod transfer;
mod window;

pub use bell::Waker;
pub use error::Error;
pub use fabric::MemoryFabric;
pub use port::MemoryPort;
pub use queue_pair::Endpoint;
pub use settings::{Faults, Settings};
