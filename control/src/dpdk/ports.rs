//! Ports of Ethernet, as a plan has them.

use anyhow::Result;
use rpcrdma_config::plan::Idle;
use rpcrdma_config::port::Port;
use rpcrdma_lcore::eal::Eal;
use rpcrdma_sctp::{EtherPort, PortPlan, Ports};
use tracing::info;

/// Buffers of each port: what its queues hold, what waits in either direction, and room.
const FRAMES: u32 = 8191;

/// What a port is opened with.
pub(super) fn plan(port: &Port) -> PortPlan {
    PortPlan {
        name: port.device.name().to_owned(),
        address: port.address,
        gateway: port.gateway,
        mtu: port.mtu,
        frames: FRAMES,
    }
}

/// Opens ports, for the lcores in their order.
///
/// # Errors
///
/// One cannot be opened: which, and why.
pub(super) fn open<'a>(
    eal: &'static Eal,
    ports: impl Iterator<Item = &'a Port>,
    idle: Idle,
) -> Result<Ports> {
    let mut open = Vec::new();
    for port in ports {
        let port = EtherPort::open(eal, &plan(port))?;
        let station = port.station();
        info!(
            "port {} ({}) is {} at {:?}, MTU {}",
            port.name(),
            port.driver(),
            station.address,
            station.mac,
            station.mtu,
        );
        open.push(port);
    }
    if idle != Idle::Spin {
        info!("a port wakes nobody: lcores that sleep look at theirs all 100 us (runtime.idle)");
    }
    Ok(Ports::new(open)?)
}
