//! RDMA in software: the fabric that it is, as a plan has it.

use anyhow::{Context, Result};
use rpcrdma_config::plan::IwarpSctp;
use rpcrdma_iwarp_sctp::{InUdp, IwarpFabric, Native, Settings};

/// The fabric on SCTP in UDP.
pub(super) fn in_udp(plan: &IwarpSctp) -> Result<IwarpFabric<InUdp>> {
    let (settings, sctp) = settings(plan);
    IwarpFabric::in_udp(settings, sctp).context("fabric = \"iwarp-sctp\"")
}

/// The fabric on the kernel's SCTP.
pub(super) fn native(plan: &IwarpSctp) -> Result<IwarpFabric<Native>> {
    let (settings, sctp) = settings(plan);
    IwarpFabric::native(settings, sctp).context("fabric = \"iwarp-sctp\" with packets = \"native\"")
}

fn settings(plan: &IwarpSctp) -> (Settings, rpcrdma_sctp::Settings) {
    let settings = Settings {
        streams: plan.streams,
        chunk_bytes: plan.chunk_bytes,
        read_depth: plan.read_depth.into(),
        ..Settings::default()
    };
    let sctp = rpcrdma_sctp::Settings {
        streams: plan.streams,
        sctp_port: plan.sctp_port,
        path_mtu: plan.path_mtu.into(),
        ..rpcrdma_sctp::Settings::default()
    };
    (settings, sctp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpcrdma_config::Machine;

    /// What is not said in a file is what the crates take by themselves.
    #[test]
    fn the_defaults_are_the_same_in_all_three_places() {
        let machine = Machine {
            cores: vec![0],
            status_socket: "/s".into(),
        };
        let text = "[[service]]\nname = 's'\nfabric = 'iwarp-sctp'\nlisten = '[::]:9899'\n";
        let plan = rpcrdma_config::parse("", text, &machine).unwrap();
        let (ours, sctp) = settings(&plan.iwarp_sctp);
        assert_eq!(ours, Settings::default());
        let streams = Settings::default().streams;
        let defaults = rpcrdma_sctp::Settings::default();
        assert_eq!(
            sctp,
            rpcrdma_sctp::Settings {
                streams,
                ..defaults
            }
        );
    }
}
