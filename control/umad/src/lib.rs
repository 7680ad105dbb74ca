//! Management datagrams (MADs) of an InfiniBand port, by libibumad: how control reaches the subnet administrator (SA).
//!
//! It owns: the port's descriptor, the thread that reads from it, and what is known of the port ([`Facts`]). It promises:
//! sending never waits; what arrives waits in a queue with a limit, and what finds that full is counted and dropped, as a MAD
//! may be on any wire; one [bell](Umad::bell) rings for all of it; a machine without library or device hears so in one line
//! ([`Absent`]). It never reads what a MAD of the SA says, never repeats one, and keeps no timers for them: that is for the
//! transactions of `rpcrdma-ipoib`.
//!
//! [`Subnet`] is what control asks of it, so that something else can stand in its place. Start with [`Umad::open`], then
//! `reader`.
//!
//! # Facts of a port
//!
//! They are read again every [`Settings::survey`], and when asked for. umad tells of no changes by itself: the events of
//! a device (port down, LID change, client reregister) come through verbs, where there is a verbs device, and are an occasion to
//! [ask](Subnet::ask_facts). libibumad's own functions read sysfs, which has no MTU; and what is in sysfs is the kernel's copy.
//! So the port's own agent is asked too, by directed-route SMPs that go no further than the port (IBA 14.2.1.2): its answer
//! wins, and brings the MTU (see `survey`).
#![deny(unsafe_code)]

mod absent;
mod facts;
#[expect(unsafe_code, reason = "a foreign interface")]
mod ffi;
mod frame;
mod port;
mod reader;
mod smp;
mod subnet;
mod survey;

pub use absent::{Absent, Fault};
pub use facts::{Facts, PortMtu, PortName, PortState, ports};
pub use port::{Settings, Umad};
pub use subnet::{Arrived, Class, Event, Reply, Source, Subnet, SubnetCounts, Target, Undelivered};
