//! Whole Calls over ports on the device that is not there: lcores, engines, windows, Reads and
//! Writes, turned by hand.

use rpcrdma_lcore::Idle;
use rpcrdma_perf::bed::{Bed, Wanted};
use rpcrdma_perf::workload::Workload;
use rpcrdma_verbs::stand_in::StandInFabric;
use rpcrdma_wire::Version;

const CALLS: u64 = 300;

fn check(workload: Workload, depth: u16, connections: usize) {
    for version in [Version::One, Version::Two] {
        let wanted = Wanted {
            workload,
            depth,
            connections,
            lcores: 1,
            version,
            idle: Idle::Spin,
        };
        let fabric = StandInFabric::new().expect("a fabric");
        let mut bed = Bed::by_hand(wanted, fabric, "calls").expect("a bed");
        bed.turn_until(CALLS);
        let measured = bed.finish().expect("every answer and every close");
        assert_eq!(measured.errors, 0, "{workload:?} {version:?}");
        assert!(measured.calls >= CALLS, "{workload:?} {version:?}");
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
fn many_connections_share_a_port() {
    check(Workload::Null, 2, 40);
    check(Workload::Read(65_536), 8, 20);
}
