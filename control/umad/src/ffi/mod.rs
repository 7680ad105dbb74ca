//! libibumad: its calls, loaded once, and what is safe to do with them.
//!
//! Everything `unsafe` of this crate is here. [`Library`] reads the facts of ports and opens them; [`Channel`] is an open port.

mod calls;
mod channel;
#[cfg(test)]
mod layout;
mod sysfs;

pub(crate) use calls::Library;
pub(crate) use channel::Channel;
pub(crate) use sysfs::{RawPort, port_facts, port_names};
