//! What every fabric and every port promises, and whole Calls, on libusrsctp over loopback.

mod bed;

#[path = "../../../fabric/tests/promises/control.rs"]
mod control;
#[path = "../../../fabric/tests/promises/port.rs"]
mod port;

use rpcrdma_iwarp_sctp::{InUdp, IwarpFabric, Settings};
use rpcrdma_perf::trial;

#[test]
fn every_workload_is_answered() {
    let sctp = rpcrdma_sctp::Settings::default();
    if let Err(error) = InUdp::new(sctp) {
        return println!("SKIPPED: {error}");
    }
    let make = || Ok(IwarpFabric::in_udp(Settings::default(), sctp)?);
    trial::every_workload_at("127.0.0.1:0", make).unwrap_or_else(|error| panic!("{error:#}"));
}
