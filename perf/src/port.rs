//! A port of DPDK in place of sockets.

use anyhow::{Context, Result, bail};
use ipnet::IpNet;
use rpcrdma_iwarp_sctp::{ByPort, IwarpFabric, Settings};
use rpcrdma_lcore::eal::{Eal, Level};
use rpcrdma_sctp::{EtherPort, PortPlan, Ports};
use std::io::{Write, stderr};
use std::str::FromStr;

/// Buffers of the port.
const FRAMES: u32 = 8191;
/// EAL's memory: the port's buffers, its queues, and what EAL itself needs.
const MEMORY_MIB: u32 = 128;
/// Octets of the longest IP packet.
const MTU: u16 = 1500;

/// `DEVICE@IP/BITS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortArg {
    device: String,
    address: IpNet,
}

impl FromStr for PortArg {
    type Err = String;

    fn from_str(text: &str) -> Result<PortArg, String> {
        let (device, address) = text
            .rsplit_once('@')
            .ok_or("write DEVICE@IP/BITS, such as net_memif0,role=client@10.9.0.2/24")?;
        let address = address
            .parse()
            .map_err(|_| format!("{address} is no address with its bits, such as 10.9.0.2/24"))?;
        Ok(PortArg {
            device: device.to_owned(),
            address,
        })
    }
}

/// RDMA in software, on SCTP in UDP, by that port. EAL is started for it, with a worker where the one
/// lcore will be; so this can be done once.
///
/// # Errors
///
/// EAL does not start, the port cannot be opened, or the SCTP library is missing.
pub fn fabric(arg: &PortArg) -> Result<IwarpFabric<ByPort>> {
    let processors = core_affinity::get_core_ids().unwrap_or_default();
    let processors: Vec<_> = processors.iter().map(|core| core.id).collect();
    let Some(&first) = processors.first() else {
        bail!("there is no processor that this process may use");
    };
    let prefix = format!("rpcrdma-perf-{}", std::process::id());
    let memory = MEMORY_MIB.to_string();
    let mut arguments = vec!["--no-huge", "--no-shconf", "-m", &memory];
    arguments.extend(["--file-prefix", &prefix, "--log-level=lib.telemetry:error"]);
    let device = if arg.device.starts_with("net_") {
        arguments.push("--no-pci");
        format!("--vdev={}", arg.device)
    } else {
        format!("--allow={}", arg.device)
    };
    arguments.push(&device);
    let arguments: Vec<_> = arguments.into_iter().map(str::to_owned).collect();
    let eal = Eal::start(&processors, &[first], &arguments, hear).context("EAL does not start")?;
    let name = arg.device.split(',').next().unwrap_or(&arg.device);
    let plan = PortPlan {
        name: name.to_owned(),
        address: arg.address,
        gateway: None,
        mtu: MTU,
        frames: FRAMES,
    };
    let ports = Ports::new(vec![EtherPort::open(eal, &plan)?])?;
    let sctp = rpcrdma_sctp::Settings::default();
    Ok(IwarpFabric::by_port(ports, Settings::default(), sctp)?)
}

fn hear(level: Level, line: &str) {
    if level == Level::Error {
        // Where that cannot be, nobody could be told.
        let _ = writeln!(stderr(), "DPDK: {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_a_device_and_an_address() {
        let arg: PortArg = "net_memif0,role=client,socket=/tmp/a@b@10.9.0.2/24"
            .parse()
            .expect("a port");
        assert_eq!(arg.device, "net_memif0,role=client,socket=/tmp/a@b");
        assert_eq!(arg.address.to_string(), "10.9.0.2/24");
        assert!("net_memif0".parse::<PortArg>().is_err());
        assert!("net_memif0@10.9.0.2".parse::<PortArg>().is_err());
    }
}
