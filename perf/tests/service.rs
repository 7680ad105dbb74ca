//! READ from the service of an appliance that somebody else has set up.

use rpcrdma_config::{Machine, parse};
use rpcrdma_lcore::Idle;
use rpcrdma_memory::MemoryFabric;
use rpcrdma_perf::bed::{Bed, Place, Wanted};
use rpcrdma_perf::load::Order;
use rpcrdma_perf::workload::Workload;
use rpcrdma_upper::program::SOURCE_BYTES;
use rpcrdma_wire::Version;
use rpcrdmad::supervise::Supervisor;
use std::time::Duration;

/// Its source is no longer for loads of many lanes than for others.
#[test]
fn all_lanes_read_within_its_source() {
    let machine = Machine {
        cores: core_affinity::get_core_ids()
            .unwrap_or_default()
            .into_iter()
            .map(|core| core.id)
            .take(1)
            .collect(),
        status_socket: "/nonexistent".into(),
    };
    let text = "[[service]]\nname = 's'\nfabric = 'memory'\nlisten = 's'\n[runtime]\nlcores = 1\n";
    let mut plan = parse("", text, &machine).expect("a plan");
    plan.status = None;
    let supervisor = Supervisor::start(plan, MemoryFabric::new()).expect("an appliance");
    let fabric = supervisor.fabric().clone();
    let handle = supervisor.handle();
    let control = std::thread::spawn(move || supervisor.run(None).expect("an orderly end"));

    for (size, depth) in [(SOURCE_BYTES, 4), (65_536, 20), (300_000, 5)] {
        let wanted = Wanted {
            workload: Workload::Read(size),
            depth,
            connections: 1,
            lcores: 1,
            version: Version::Two,
            idle: Idle::Spin,
        };
        let place = Place::There("s".to_owned());
        let mut bed = Bed::on_threads(wanted, fabric.clone(), place).expect("a connection");
        bed.order_loads(Order::Measure).expect("an lcore");
        bed.run_for(Duration::from_millis(50), |_| {});
        let measured = bed.finish().expect("every answer");
        assert_eq!(measured.errors, 0, "READ of {size}, {depth} deep");
        assert!(measured.calls > 0, "READ of {size}, {depth} deep");
    }
    handle.drain();
    control.join().expect("no panic");
}
