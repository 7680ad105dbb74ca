//! Whole Calls of every workload over a fabric: what the tests of each fabric ask of it.
//!
//! Beds are turned by hand, so nothing depends on how fast the machine is.

use crate::bed::{Bed, Wanted};
use crate::workload::Workload;
use anyhow::{Context, Result, ensure};
use rpcrdma_fabric::connect::Fabric;
use rpcrdma_lcore::Idle;
use rpcrdma_wire::Version;

/// Calls of each bed.
const CALLS: u64 = 300;

/// A workload, Calls in flight on each connection, connections.
type Case = (Workload, u16, usize);

/// What there is to try.
const CASES: [Case; 13] = [
    (Workload::Null, 1, 1),
    (Workload::Null, 64, 1),
    // Inline, and as long messages.
    (Workload::Echo(1), 3, 1),
    (Workload::Echo(700), 3, 1),
    (Workload::Echo(100_000), 3, 1),
    // By Write chunk.
    (Workload::Read(1), 4, 1),
    (Workload::Read(65_536), 8, 1),
    (Workload::Read((1 << 20) + 1), 2, 1),
    // By Read chunk.
    (Workload::Write(3), 4, 1),
    (Workload::Write(65_535), 8, 1),
    (Workload::Write(1 << 20), 2, 1),
    // Many on one port.
    (Workload::Null, 2, 40),
    (Workload::Read(65_536), 8, 20),
];

/// Tries every workload in both versions, each on a fabric of its own.
///
/// # Errors
///
/// The first that does not end, or is answered wrongly.
pub fn every_workload<F: Fabric>(make: impl Fn() -> Result<F>) -> Result<()> {
    every_workload_at("trial", make)
}

/// The same, with the service at an address of the fabric's own form.
///
/// # Errors
///
/// As above.
pub fn every_workload_at<F: Fabric>(address: &str, make: impl Fn() -> Result<F>) -> Result<()> {
    for case in CASES {
        for version in [Version::One, Version::Two] {
            let tried = one(make()?, address, case, version);
            tried.with_context(|| format!("{case:?} {version:?}"))?;
        }
    }
    Ok(())
}

fn one<F: Fabric>(
    fabric: F,
    address: &str,
    (workload, depth, connections): Case,
    version: Version,
) -> Result<()> {
    let wanted = Wanted {
        workload,
        depth,
        connections,
        lcores: 1,
        version,
        idle: Idle::Spin,
    };
    let mut bed = Bed::by_hand(wanted, fabric, address)?;
    bed.turn_until(CALLS);
    let measured = bed.finish()?;
    let (calls, errors) = (measured.calls, measured.errors);
    ensure!(errors == 0, "{errors} of {calls} went wrong");
    ensure!(calls >= CALLS, "only {calls} were answered");
    ensure!(measured.latency.len() == calls, "not all were timed");
    Ok(())
}
