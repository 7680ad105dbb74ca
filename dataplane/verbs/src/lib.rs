//! The fabric of real RDMA devices, by rdma-core: mlx5, rxe, siw and whatever else it drives.
//!
//! [`VerbsFabric`] is what a control thread sees, [`VerbsPort`] what an lcore polls. Both
//! libraries are loaded when the first fabric is made; a machine without them, or without a
//! device, gets one line that says so ([`Error::Absent`]).
//!
//! # Who does what
//!
//! ```text
//!   control: VerbsFabric                              lcore: VerbsPort
//!     devices: context, protection domain               one completion queue
//!     connection manager: ids, events        ──►        queue pairs: posting, completions
//!     makes and destroys every object    Endpoint,      windows, short-lived regions
//!                                         Notice
//!                                            ◄──
//!                                       Word, Endpoint
//! ```
//!
//! Control makes and destroys, an lcore posts and polls. They share nothing that is written, but
//! for two rings and the end of each endpoint ([`inbox`], [`endpoint`]). Nothing that a peer does
//! makes control wait: the connection manager's channel, the devices' own events and the ports'
//! words are read without waiting, behind one descriptor.
//!
//! # What it promises
//!
//! - An object is destroyed once, after everything that stands on it ([`object`]).
//! - A connection ends once, whoever ends it, and each side hears of it once ([`cm`]).
//! - A lost device or link ends its own connections and nothing else.
//! - Device limits are known before anything is planned ([`Limits`]): a plan is clamped to them,
//!   and credits follow from the plan.
//!
//! It never allocates, locks or logs on the way of a message.
//!
//! Datagrams and multicast groups are beside all this, and control's alone ([`datagram`]).
//!
//! Start reading in `fabric.rs` (control) and `port/mod.rs` (lcore).

#![deny(unsafe_code)]

mod cm;
mod datagram;
mod device;
mod endpoint;
mod error;
mod expose;
mod fabric;
mod inbox;
mod object;
mod port;
mod settings;
#[cfg(any(test, feature = "stand-in"))]
pub mod stand_in;

pub use datagram::{ManagedDatagrams, ManagedWanted, PortSpace, VerbsDatagrams};
pub use device::{Gid, GidKind, Limits, Link, LinkState, Survey, Surveys, Transport, survey};
pub use endpoint::Endpoint;
pub use error::{Error, Fault};
pub use fabric::VerbsFabric;
pub use port::VerbsPort;
pub use rdma_core_sys::Absent;
pub use settings::{Expose, Settings};
