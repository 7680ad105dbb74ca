//! DPDK in this process, in builds that have it (feature `dpdk`).
//!
//! The command that runs the appliance enters DPDK before anything else is started. From then on
//! lcores are launched on EAL's workers ([`rpcrdma_lcore::spawn`] sees to that), arenas are carved
//! from EAL's memory, one zone for each socket, and its telemetry socket has the counters. Where
//! DPDK was not entered, because the build lacks it or the configuration does not want it, lcores
//! are plain threads and arenas are mapped one by one: everything else is the same.
//!
//! Ports of Ethernet are opened for the fabric that asks for them, `iwarp-sctp` with `packets = "dpdk"`;
//! from then on each is its lcore's.
//!
//! Huge pages that are missing are no reason not to start, unless `runtime.hugepages` is
//! `"require"`: EAL then runs on ordinary pages, and one line says so.

#[cfg(feature = "dpdk")]
mod arguments;
#[cfg(feature = "dpdk")]
mod counters;
#[cfg(feature = "dpdk")]
mod eal;
#[cfg(not(feature = "dpdk"))]
#[path = "absent.rs"]
mod eal;
mod memory;
#[cfg(feature = "dpdk")]
mod ports;

pub use eal::Dpdk;
pub(crate) use memory::Memory;

/// `dpdk 22.11.4`, of the library that is loaded; `None` in builds without it.
#[must_use]
pub fn version() -> Option<String> {
    eal::version().map(|version| format!("dpdk {version}"))
}
