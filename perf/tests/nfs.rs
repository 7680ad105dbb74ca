//! NFS as a workload, through the whole appliance: memory fabric, front, embedded server.

use rpcrdma_config::{Machine, embedded};
use rpcrdma_lcore::Idle;
use rpcrdma_memory::MemoryFabric;
use rpcrdma_perf::bed::{Bed, Place, Wanted};
use rpcrdma_perf::load::Order;
use rpcrdma_perf::nfs::{Export, Procedure, User, Work, find};
use rpcrdma_perf::workload::Workload;
use rpcrdma_wire::Version;
use rpcrdmad::supervise::Supervisor;
use std::time::Duration;

const SIZE: u32 = 70_001;
const DEPTH: u16 = 3;

#[test]
fn every_procedure_is_answered_by_a_server_found_by_name() {
    let directory = tempfile::tempdir().expect("a scratch directory");
    let machine = Machine {
        cores: core_affinity::get_core_ids()
            .unwrap_or_default()
            .into_iter()
            .map(|core| core.id)
            .take(1)
            .collect(),
        status_socket: "/nonexistent".into(),
    };
    let mut plan = embedded(directory.path(), &machine).expect("a plan");
    plan.status = None;
    let front = plan.fronts[0].listen.clone();
    let supervisor = Supervisor::start(plan, MemoryFabric::new()).expect("an appliance");
    let fabric = supervisor.fabric().clone();
    let export = supervisor.export().expect("an embedded server").address();
    let handle = supervisor.handle();
    let control = std::thread::spawn(move || supervisor.run(None).expect("an orderly end"));

    let export = Export {
        server: (*export.ip()).into(),
        mount_port: Some(export.port()),
        nfs_port: export.port(),
        path: "/export".to_owned(),
        file: "perf.dat".to_owned(),
    };
    let user = User::own();
    let bytes = u64::from(SIZE) * u64::from(DEPTH);
    let file = find(&export, user, bytes).expect("a file");
    let path = directory.path().join("perf.dat");
    assert_eq!(std::fs::metadata(&path).expect("made").len(), bytes);
    // It is there now, and long enough.
    assert_eq!(find(&export, user, bytes).expect("the same file"), file);

    for procedure in [
        Procedure::Null,
        Procedure::Getattr,
        Procedure::Write(SIZE),
        Procedure::Read(SIZE),
    ] {
        let wanted = Wanted {
            workload: Workload::Nfs(Work {
                procedure,
                file,
                user,
            }),
            depth: DEPTH,
            connections: 1,
            lcores: 1,
            version: Version::One,
            idle: Idle::Spin,
        };
        let place = Place::There(front.clone());
        let mut bed = Bed::on_threads(wanted, fabric.clone(), place).expect("a connection");
        bed.order_loads(Order::Measure).expect("an lcore");
        bed.run_for(Duration::from_millis(50), |_| {});
        let measured = bed.finish().expect("every answer");
        assert_eq!(measured.errors, 0, "{procedure:?}");
        assert!(measured.calls > 0, "{procedure:?}");
    }
    // What was written is in the file, to its end.
    let content = std::fs::read(&path).expect("the file");
    assert!(content.iter().all(|&octet| octet == 0x5a));
    handle.drain();
    control.join().expect("no panic");
}
