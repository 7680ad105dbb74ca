//! Makes a fixed number of NULL calls, requester, responder and memory fabric on one thread, for
//! counting instructions: `valgrind --tool=callgrind null_calls 10000`.

use rpcrdma_perf::bed::{Bed, Wanted};
use rpcrdma_perf::workload::Workload;
use rpcrdma_wire::Version;

fn main() -> anyhow::Result<()> {
    let calls = match std::env::args().nth(1).map(|count| count.parse()) {
        Some(Ok(calls)) => calls,
        _ => anyhow::bail!("usage: null_calls COUNT"),
    };
    let mut bed = Bed::by_hand(Wanted {
        workload: Workload::Null,
        depth: 1,
        connections: 1,
        lcores: 1,
        version: Version::Two,
    })?;
    bed.turn_until(calls);
    let measured = bed.finish()?;
    println!("{} calls, {} errors", measured.calls, measured.errors);
    Ok(())
}
