//! The floor: what the machine and the fabric do at best, measured in the same run.
//!
//! Both are measured on threads of their own, pinned to the processors that the lcores get
//! afterwards: the caller keeps its own processors.

use crate::bed::Wanted;
use crate::report::Floor;
use anyhow::{Context, Result, anyhow};
use core_affinity::{CoreId, get_core_ids, set_for_current};
use hdrhistogram::Histogram;
use rpcrdma_fabric::connect::Fabric;
use rpcrdma_fabric::floor::{memcpy_bytes_per_second, send_receive_ping_pong};
use rpcrdma_wire::plain::PLAIN_BYTES;
use rpcrdma_wire::rpc::CALL_BYTES;
use std::time::{Duration, Instant};

/// Octets of a NULL call on the wire: the messages of the ping-pong.
const MESSAGE_BYTES: usize = PLAIN_BYTES + CALL_BYTES;
/// Round trips that the median is taken of, at most, and how long they are made at most.
const ROUNDS: u64 = 50_000;
const TIME: Duration = Duration::from_secs(1);
/// The longest of them told apart from longer ones, nanoseconds.
const LONGEST_NS: u64 = 10_000_000_000;
/// Those before them, at most and for how long at most.
const WARM_ROUNDS: u64 = 5_000;
const WARM_TIME: Duration = Duration::from_millis(100);
/// How long is copied.
const COPYING: Duration = Duration::from_millis(300);
/// Blocks of a working set, each of source and destination, at most.
const BLOCKS: u16 = 8;
/// Octets copied at a time for a workload without payload.
const NO_PAYLOAD_BYTES: u32 = 1 << 20;

/// Measures it: a raw ping-pong of messages as long as a NULL call's, where there are two
/// processors for it and an address where the fabric meets itself, and a copy of the workload's
/// working set. The fabric that `make` makes is for this alone.
///
/// # Errors
///
/// There is no memory for it, or no connection.
pub fn measure<F: Fabric>(
    wanted: &Wanted,
    make: impl Fn() -> Result<F> + Sync,
    address: Option<&str>,
) -> Result<Floor> {
    let cores = get_core_ids().unwrap_or_default();
    let latency_ns_p50 = match (cores.as_slice(), address) {
        ([near, far, ..], Some(address)) => {
            let job = || ping_pong(&mut make()?, address, [*near, *far]);
            Some(apart(job)?)
        }
        _ => None,
    };
    let (octets, blocks) = working_set(wanted);
    let copied = apart(|| {
        pin(cores.first());
        memcpy_bytes_per_second(octets, blocks, COPYING).context("the rate of memcpy")
    })?;
    Ok(Floor {
        latency_ns_p50,
        memcpy_bytes_per_second: whole(copied),
    })
}

/// Octets of a block, and how many of them there are on each side.
fn working_set(wanted: &Wanted) -> (u32, u32) {
    let octets = match wanted.workload.block_bytes() {
        0 => NO_PAYLOAD_BYTES,
        octets => octets,
    };
    (octets, wanted.depth.clamp(1, BLOCKS).into())
}

/// The median of a Send and Receive there and back, nanoseconds.
fn ping_pong<F: Fabric>(fabric: &mut F, address: &str, cores: [CoreId; 2]) -> Result<u64> {
    let rounds = Histogram::<u64>::new_with_max(LONGEST_NS, 3);
    let mut rounds = rounds.map_err(|error| anyhow!("{error:?}"))?;
    let octets = u32::try_from(MESSAGE_BYTES)?;
    let begun = Instant::now();
    let mut warm = 0;
    let record = |time: Duration| {
        if warm < WARM_ROUNDS && begun.elapsed() < WARM_TIME {
            warm += 1;
            return true;
        }
        rounds.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        rounds.len() < ROUNDS && begun.elapsed() < TIME + WARM_TIME
    };
    let pin = |end| pin(cores.get(end));
    send_receive_ping_pong(fabric, address, octets, pin, record)
        .context("the latency of the fabric")?;
    Ok(rounds.value_at_quantile(0.5))
}

/// Keeps this thread to one processor, where the system lets it.
fn pin(core: Option<&CoreId>) {
    if let Some(core) = core {
        set_for_current(*core);
    }
}

/// Does something on a thread of its own.
fn apart<T: Send>(job: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| scope.spawn(job).join())
        .unwrap_or_else(|_| Err(anyhow!("measuring the floor: the thread panicked")))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate of copying is positive and far below 2^53"
)]
fn whole(rate: f64) -> u64 {
    rate as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;
    use rpcrdma_lcore::Idle;
    use rpcrdma_memory::MemoryFabric;
    use rpcrdma_wire::Version;

    fn wanted(workload: Workload, depth: u16) -> Wanted {
        Wanted {
            workload,
            depth,
            connections: 1,
            lcores: 2,
            version: Version::Two,
            idle: Idle::Spin,
        }
    }

    #[test]
    fn the_working_set_is_that_of_the_transfers_in_flight() {
        let set = |workload, depth| working_set(&wanted(workload, depth));
        assert_eq!(set(Workload::Read(1 << 20), 8), (1 << 20, 8));
        assert_eq!(set(Workload::Write(65_536), 1), (65_536, 1));
        assert_eq!(set(Workload::Echo(100), 64), (100, 8));
        assert_eq!(set(Workload::Null, 1), (NO_PAYLOAD_BYTES, 1));
    }

    #[test]
    fn a_floor_has_figures() {
        let make = || Ok(MemoryFabric::new());
        let wanted = wanted(Workload::Read(4096), 1);
        let floor = measure(&wanted, make, Some("floor")).expect("memory");
        assert!(floor.memcpy_bytes_per_second > 0);
        let two = get_core_ids().is_some_and(|cores| cores.len() > 1);
        assert_eq!(floor.latency_ns_p50.is_some_and(|ns| ns > 0), two);
        // Where the fabric does not meet itself there is no round trip to take.
        let floor = measure(&wanted, make, None).expect("memory");
        assert_eq!(floor.latency_ns_p50, None);
    }
}
