//! Ports of Ethernet that builds with DPDK drive themselves.

use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;

/// `[[dpdk.port]]`: one, for one lcore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Which device it is.
    pub device: PortDevice,
    /// Its address, with the prefix that it shares with its neighbours.
    pub address: IpNet,
    /// The neighbour that knows the way to everybody else.
    pub gateway: Option<IpAddr>,
    /// Octets of the longest IP packet.
    pub mtu: u16,
}

/// A device of DPDK's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PortDevice {
    /// One that EAL makes, as `--vdev` takes it: a driver's name with a number, and arguments.
    Virtual(String),
    /// One on the PCI bus, as `-a` takes it, with its domain: `0000:01:00.0`.
    Pci(String),
}

impl PortDevice {
    /// What DPDK calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            PortDevice::Virtual(text) => text.split(',').next().unwrap_or(text),
            PortDevice::Pci(address) => address,
        }
    }

    /// The argument of EAL that brings it in.
    #[must_use]
    pub fn eal_arg(&self) -> String {
        match self {
            PortDevice::Virtual(text) => format!("--vdev={text}"),
            PortDevice::Pci(address) => format!("--allow={address}"),
        }
    }
}

impl fmt::Display for PortDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
