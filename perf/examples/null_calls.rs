//! Makes a fixed number of NULL calls, requester, responder and memory fabric on one thread, for
//! counting instructions: `valgrind --tool=callgrind null_calls COUNT [DEPTH [CONNECTIONS]]`. One
//! call at a time on one connection unless told otherwise. With a thousand connections and
//! `--cache-sim=yes` it is cache misses that are worth counting.

use rpcrdma_lcore::Idle;
use rpcrdma_memory::MemoryFabric;
use rpcrdma_perf::bed::{Bed, Wanted};
use rpcrdma_perf::workload::Workload;
use rpcrdma_wire::Version;

fn main() -> anyhow::Result<()> {
    let numbers: Result<Vec<u64>, _> = std::env::args().skip(1).map(|arg| arg.parse()).collect();
    let (calls, depth, connections) = match numbers.as_deref() {
        Ok(&[calls]) => (calls, 1, 1),
        Ok(&[calls, depth @ 1..=1024]) => (calls, u16::try_from(depth)?, 1),
        Ok(&[calls, depth @ 1..=1024, connections @ 1..=10_000]) => {
            (calls, u16::try_from(depth)?, usize::try_from(connections)?)
        }
        _ => anyhow::bail!("usage: null_calls COUNT [DEPTH [CONNECTIONS]]"),
    };
    let wanted = Wanted {
        workload: Workload::Null,
        depth,
        connections,
        lcores: 1,
        version: Version::Two,
        idle: Idle::Spin,
    };
    let mut bed = Bed::by_hand(wanted, MemoryFabric::new(), "null")?;
    bed.turn_until(calls);
    let measured = bed.finish()?;
    println!("{} calls, {} errors", measured.calls, measured.errors);
    Ok(())
}
