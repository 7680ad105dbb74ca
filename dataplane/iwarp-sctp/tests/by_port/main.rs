//! Whole Calls over this fabric by a port of DPDK whose cable leads back (net_ring). There is one EAL
//! per process: one test.

use dpdk_sys::{Eal, Level};
use rpcrdma_iwarp_sctp::{ByPort, IwarpFabric, Settings};
use rpcrdma_perf::trial;
use rpcrdma_sctp::{EtherPort, PortPlan, Ports};

fn hear(_: Level, _: &str) {}

#[test]
fn every_workload_is_answered() {
    let directory = tempfile::tempdir().expect("a directory");
    // SAFETY: this is the only test of its process, and no other thread runs yet.
    unsafe { std::env::set_var("XDG_RUNTIME_DIR", directory.path()) };
    let prefix = format!("--file-prefix=iwarp-sctp-{}", std::process::id());
    let arguments = [
        "--no-huge",
        "--no-shconf",
        "--no-pci",
        "-m128",
        "--vdev=net_ring0",
    ];
    let arguments = arguments.into_iter().chain([prefix.as_str()]);
    let arguments: Vec<_> = arguments.map(str::to_owned).collect();
    // It pins the thread that starts it, which may be wherever it was before.
    let here = std::thread::available_parallelism().map_or(1, usize::from);
    let here: Vec<usize> = (0..here).collect();
    let eal = Eal::start(&here, &[], &arguments, hear).expect("EAL");
    let plan = PortPlan {
        name: "net_ring0".to_owned(),
        address: "10.9.0.1/24".parse().expect("a prefix"),
        gateway: None,
        mtu: 1500,
        frames: 8191,
    };
    let port = EtherPort::open(eal, &plan).expect("a port");
    let ports = Ports::new(vec![port]).expect("one");

    let sctp = rpcrdma_sctp::Settings::default();
    if let Err(error) = ByPort::new(ports.clone(), sctp) {
        return println!("SKIPPED: {error}");
    }
    let make = || {
        Ok(IwarpFabric::by_port(
            ports.clone(),
            Settings::default(),
            sctp,
        )?)
    };
    trial::every_workload_at("10.9.0.1:9899", make).unwrap_or_else(|error| panic!("{error:#}"));

    let runtime = eal.runtime_directory();
    let _ = std::fs::remove_file(format!("{runtime}/dpdk_telemetry.v2"));
    let _ = std::fs::remove_dir(runtime);
}
