//! `rpcrdmad status`: a running appliance says how it is, over a socket in the file system.
//!
//! Whoever connects is sent one JSON [`Document`], and the connection is closed. The socket
//! is its owner's alone (mode 0600).

mod client;
pub mod document;
mod render;
mod server;

#[cfg(test)]
mod tests;

pub use client::{ask, parse};
pub use document::{
    Backend, Clamp, Connection, Device, DeviceState, Document, Lcore, Link, LinkAddress,
    LinkFailure, LinkGroup, LinkIp, LinkResource, Listener, Memory, REFUSED_HEADERS, RefusedHeader,
    Reloads, Role, Sought, State,
};
pub use server::{Occupied, StatusSocket};
