//! Whole Calls over ports on the device that is not there: lcores, engines, windows, Reads and
//! Writes, turned by hand.

use rpcrdma_perf::trial;
use rpcrdma_verbs::stand_in::StandInFabric;

#[test]
fn every_workload_is_answered() {
    trial::every_workload(|| Ok(StandInFabric::new()?)).unwrap_or_else(|error| panic!("{error:#}"));
}
