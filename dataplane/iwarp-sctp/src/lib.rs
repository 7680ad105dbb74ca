//! The fabric of hosts without RDMA devices.
#![deny(unsafe_code)]

mod endpoint;
mod error;
mod fabric;
mod inbox;
#[expect(unsafe_code, reason = "raw memory is this module's job")]
mod port;
mod settings;
mod stack;
#[cfg(any(test, feature = "stand-in"))]
pub mod stand_in;
mod udp;

pub use endpoint::Endpoint;
pub use error::Error;
pub use fabric::IwarpFabric;
pub use port::IwarpPort;
pub use settings::Settings;
pub use stack::Stack;
pub use udp::InUdp;

/// The one device there is.
const DEVICE: &str = "iwarp-sctp";
