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
/// EAL's memory besides the port's buffers: its queues, and what EAL itself needs.
const BESIDES_MIB: u64 = 96;
/// Octets of the longest IP packet where nothing is said.
const MTU: u16 = 1500;
/// The longest that may be asked for, as of an appliance's `[[dpdk.port]]`.
const MOST_MTU: u16 = 16_000;

/// `DEVICE@IP/BITS`, or `DEVICE@IP/BITS,mtu=OCTETS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortArg {
    device: String,
    address: IpNet,
    mtu: u16,
}

impl FromStr for PortArg {
    type Err = String;

    fn from_str(text: &str) -> Result<PortArg, String> {
        let (device, rest) = text
            .rsplit_once('@')
            .ok_or("write DEVICE@IP/BITS, such as net_memif0,role=client@10.9.0.2/24")?;
        let (address, option) = match rest.split_once(',') {
            Some((address, option)) => (address, Some(option)),
            None => (rest, None),
        };
        let address = address
            .parse()
            .map_err(|_| format!("{address} is no address with its bits, such as 10.9.0.2/24"))?;
        let mtu = option.map_or(Ok(MTU), |option| mtu_of(option, address))?;
        Ok(PortArg {
            device: device.to_owned(),
            address,
            mtu,
        })
    }
}

/// `mtu=OCTETS`, of a port with that address: at least what every link carries (RFC 791, RFC 8200 section 5).
fn mtu_of(option: &str, address: IpNet) -> Result<u16, String> {
    let octets = option
        .strip_prefix("mtu=")
        .ok_or_else(|| format!("{option} is nothing that a port has; write mtu=OCTETS"))?;
    let least = match address {
        IpNet::V4(_) => 576,
        IpNet::V6(_) => 1280,
    };
    let mtu = octets.parse().ok();
    mtu.filter(|mtu| (least..=MOST_MTU).contains(mtu))
        .ok_or_else(|| format!("mtu={octets}: from {least} to {MOST_MTU}"))
}

impl PortArg {
    /// What it is opened with.
    fn plan(&self) -> PortPlan {
        let name = self.device.split(',').next().unwrap_or(&self.device);
        PortPlan {
            name: name.to_owned(),
            address: self.address,
            gateway: None,
            mtu: self.mtu,
            frames: FRAMES,
        }
    }
}

/// EAL's memory, mebibytes.
fn memory_mib(plan: &PortPlan) -> u64 {
    plan.pool_bytes().div_ceil(1 << 20) + BESIDES_MIB
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
    let plan = arg.plan();
    let memory = memory_mib(&plan).to_string();
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
        assert_eq!(arg.plan().name, "net_memif0");
        assert_eq!(arg.plan().mtu, 1500);
        assert!("net_memif0".parse::<PortArg>().is_err());
        assert!("net_memif0@10.9.0.2".parse::<PortArg>().is_err());
    }

    #[test]
    fn its_mtu_is_one_that_its_link_can_have() {
        let mtu = |text: &str| text.parse::<PortArg>().map(|arg| arg.plan().mtu);
        for (text, expected) in [
            ("a@10.9.0.2/24,mtu=9000", Some(9000)),
            ("a@10.9.0.2/24,mtu=576", Some(576)),
            ("a@10.9.0.2/24,mtu=575", None),
            ("a@fd00::2/64,mtu=1280", Some(1280)),
            ("a@fd00::2/64,mtu=1279", None),
            ("a@10.9.0.2/24,mtu=16000", Some(16_000)),
            ("a@10.9.0.2/24,mtu=16001", None),
            ("a@10.9.0.2/24,mtu=65537", None),
            ("a@10.9.0.2/24,mtu=", None),
            ("a@10.9.0.2/24,mtu=9k", None),
            ("a@10.9.0.2/24,", None),
            ("a@10.9.0.2/24,gateway=10.9.0.1", None),
            // What comes before the @ is the device's.
            ("net_tap0,mtu=9000@10.9.0.2/24", Some(1500)),
        ] {
            assert_eq!(mtu(text).ok(), expected, "{text}");
        }
        let said = mtu("a@fd00::2/64,mtu=1000").expect_err("too short");
        assert_eq!(said, "mtu=1000: from 1280 to 16000");
    }

    #[test]
    fn memory_grows_with_what_a_buffer_has_to_hold() {
        let mib = |text: &str| memory_mib(&text.parse::<PortArg>().expect("a port").plan());
        let (short, long) = (mib("a@10.9.0.2/24"), mib("a@10.9.0.2/24,mtu=16000"));
        assert!((96..=128).contains(&short), "{short}");
        // As many buffers, each 14,000 octets longer at least.
        assert!(long > short + (8191 * 13_000) / (1 << 20), "{long}");
    }
}
