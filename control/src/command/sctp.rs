//! RDMA in software: the fabric that it is, as a plan has it.

use crate::dpdk::Dpdk;
use anyhow::{Context, Result};
use rpcrdma_config::Plan;
use rpcrdma_config::plan::IwarpSctp;
#[cfg(feature = "dpdk")]
use rpcrdma_iwarp_sctp::ByPort;
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

/// The fabric on SCTP in UDP, by the ports of the plan.
#[cfg(feature = "dpdk")]
pub(super) fn by_port(plan: &Plan, dpdk: &Dpdk) -> Result<IwarpFabric<ByPort>> {
    const WHAT: &str = "fabric = \"iwarp-sctp\" with packets = \"dpdk\"";
    let ports = dpdk.ports(plan).context(WHAT)?;
    let (settings, sctp) = settings(&plan.iwarp_sctp);
    IwarpFabric::by_port(ports, settings, sctp).context(WHAT)
}

/// Says that there are no ports in builds without DPDK.
#[cfg(not(feature = "dpdk"))]
pub(super) fn by_port(_: &Plan, _: &Dpdk) -> Result<IwarpFabric<InUdp>> {
    anyhow::bail!(
        "iwarp_sctp.packets is \"dpdk\", and this build has no DPDK: build with --features dpdk, or \
         set it to \"udp\""
    )
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
