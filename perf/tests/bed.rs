//! The whole bed, turned by hand: every workload's Calls are answered, and rightly.

use rpcrdma_lcore::Idle;
use rpcrdma_memory::MemoryFabric;
use rpcrdma_perf::bed::{Bed, Wanted};
use rpcrdma_perf::load::Measured;
use rpcrdma_perf::workload::Workload;
use rpcrdma_wire::Version;

const CALLS: u64 = 300;

fn run(workload: Workload, depth: u16, connections: usize, version: Version) -> Measured {
    let wanted = Wanted {
        workload,
        depth,
        connections,
        lcores: 1,
        version,
        idle: Idle::Spin,
    };
    let mut bed = Bed::by_hand(wanted, MemoryFabric::new(), "bed").expect("a bed");
    bed.turn_until(CALLS);
    bed.finish().expect("every answer and every close")
}

fn check(workload: Workload, depth: u16, connections: usize) {
    for version in [Version::One, Version::Two] {
        let measured = run(workload, depth, connections, version);
        assert_eq!(measured.errors, 0, "{workload:?} {version:?}");
        assert!(measured.calls >= CALLS, "{workload:?} {version:?}");
        assert_eq!(measured.latency.len(), measured.calls);
    }
}

#[test]
fn null_calls_are_answered() {
    check(Workload::Null, 1, 1);
    check(Workload::Null, 64, 1);
}

#[test]
fn echoes_come_back_inline_and_as_long_messages() {
    check(Workload::Echo(1), 3, 1);
    check(Workload::Echo(700), 3, 1);
    check(Workload::Echo(100_000), 3, 1);
}

#[test]
fn reads_come_by_write_chunk() {
    check(Workload::Read(1), 4, 1);
    check(Workload::Read(65_536), 8, 1);
    check(Workload::Read((1 << 20) + 1), 2, 1);
}

#[test]
fn writes_go_by_read_chunk() {
    check(Workload::Write(3), 4, 1);
    check(Workload::Write(65_535), 8, 1);
    check(Workload::Write(1 << 20), 2, 1);
}

#[test]
fn many_connections_share_an_lcore() {
    check(Workload::Null, 2, 40);
}
