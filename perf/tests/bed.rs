//! The whole bed over the memory fabric: every workload's Calls are answered, and rightly.

use rpcrdma_memory::MemoryFabric;
use rpcrdma_perf::trial;

#[test]
fn every_workload_is_answered() {
    trial::every_workload(|| Ok(MemoryFabric::new())).unwrap_or_else(|error| panic!("{error:#}"));
}
