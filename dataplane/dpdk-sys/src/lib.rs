//! DPDK, as far as the appliance uses it: EAL, its lcores, its memory, ports of Ethernet, one
//! telemetry command.
//!
//! It owns a C shim of some thirty functions over the system's libdpdk, and a safe face over
//! those. Only numbers, octets and opaque pointers cross between the two: no layout of DPDK is
//! known on this side, so that a newer libdpdk needs a compiler and no edit. Frames come and go in
//! bursts, so that a crossing is paid for once in up to 32 of them.
//!
//! It promises that nothing unwinds into C, and that memory of EAL outlives whoever holds a
//! [`Zone`]. It never starts EAL on its own, and never ends it under a zone or a job.
//!
//! Everything stands behind the feature `libdpdk`. Without it this crate is empty and needs no
//! package of the system.
//!
//! Start reading at [`Eal::start`]. `ffi.rs` is the list of all that is called.

#[cfg(feature = "libdpdk")]
mod eal;
#[cfg(feature = "libdpdk")]
mod fault;
#[cfg(feature = "libdpdk")]
mod ffi;
#[cfg(feature = "libdpdk")]
mod frame;
#[cfg(feature = "libdpdk")]
mod job;
#[cfg(feature = "libdpdk")]
mod log;
#[cfg(feature = "libdpdk")]
mod port;
#[cfg(feature = "libdpdk")]
mod telemetry;
#[cfg(feature = "libdpdk")]
mod zone;

#[cfg(feature = "libdpdk")]
pub use eal::{Eal, version};
#[cfg(feature = "libdpdk")]
pub use fault::Fault;
#[cfg(feature = "libdpdk")]
pub use frame::{BURST, Frame, HEADROOM, Pool};
#[cfg(feature = "libdpdk")]
pub use job::{Lcore, Task, current};
#[cfg(feature = "libdpdk")]
pub use log::{Hear, Level};
#[cfg(feature = "libdpdk")]
pub use port::{Port, PortCounts, pool_bytes};
#[cfg(feature = "libdpdk")]
pub use telemetry::{COUNTERS_MAX, Counter, NAME_BYTES, Names, answer, hush};
#[cfg(feature = "libdpdk")]
pub use zone::{Socket, Zone};
