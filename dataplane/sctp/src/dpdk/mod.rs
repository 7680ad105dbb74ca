//! Datagrams by ports of DPDK: Ethernet, ARP or neighbour discovery, IP and UDP in this process,
//! frames received and sent by the lcore itself.
//!
//! # Who shares what
//!
//! ```text
//!   Usrsctp ── End ──┐                 ┌── Link: who the neighbours are, every header
//!   Usrsctp ── End ──┼── Hub of a port ┤
//!   Usrsctp ── End ──┘                 └── Port: one queue each way
//! ```
//!
//! A port belongs to one lcore ([`Ports`]), and so do all endpoints that use it: those of
//! listeners, those that ask, each with a UDP port of its own. Whichever has its turn receives for
//! all, and puts what is another's into that one's queue. The hub is behind a lock that is never
//! waited for: there is one thread. It is there so that endpoints can be made by one thread and
//! used by another; to find it taken is an outcome, as if the port had nothing and took nothing.
//!
//! An endpoint finds its port when it is first used, by the lcore that uses it. So what control
//! makes need not know on which lcore it will be.
//!
//! # Copies
//!
//! What goes is copied once, from the library into the frame's buffer, headers being written in
//! front of it. What comes is handed to the library where the port has put it.
//!
//! # Sleep
//!
//! A port has nothing to sleep on: most drivers have no interrupts. An endpoint's descriptor is
//! never readable, and its deadline never further than [`LOOK`] away, so an lcore that may sleep
//! looks ten thousand times a second while it is idle. `runtime.idle = "spin"` is what DPDK is for.

mod end;
mod hub;
mod ports;

pub use ports::{EtherPort, PortPlan, Ports};

pub(crate) use end::{End, Inbox};

use std::time::Duration;

/// How long an lcore may sleep before it looks at its port again.
pub(crate) const LOOK: Duration = Duration::from_micros(100);
