//! How DPDK is started, and its ports, as the file has them.

use super::Maybe;
use crate::error::Origin;
use crate::form;
use crate::port::PortDevice;
use crate::schema as key;
use crate::section::Section;
use ipnet::IpNet;
use std::net::IpAddr;

/// `[[dpdk.port]]`.
pub(crate) struct Port {
    pub(crate) origin: Origin,
    pub(crate) device: Maybe<PortDevice>,
    pub(crate) address: Maybe<IpNet>,
    pub(crate) gateway: Maybe<IpAddr>,
    pub(crate) mtu: Maybe<u32>,
}

impl Port {
    fn read(table: &Section<'_>) -> Port {
        table.require(&[&key::PORT_DEVICE, &key::PORT_ADDRESS]);
        Port {
            origin: table.origin.clone(),
            device: table.text(&key::PORT_DEVICE, form::port_device),
            address: table.text(&key::PORT_ADDRESS, form::port_address),
            gateway: table.text(&key::PORT_GATEWAY, form::gateway),
            mtu: table.integer(&key::PORT_MTU),
        }
    }
}

/// `[dpdk]`.
pub(crate) struct Dpdk {
    pub(crate) enabled: Maybe<bool>,
    pub(crate) arguments: Maybe<Vec<String>>,
    pub(crate) ports: Vec<Port>,
}

impl Dpdk {
    pub(super) fn read(table: &Section<'_>) -> Dpdk {
        Dpdk {
            enabled: table.flag(&key::DPDK_ENABLED),
            arguments: table.value(&key::EAL_ARGS, "a list", form::eal_args),
            ports: table
                .tables(&key::PORT_TABLES)
                .iter()
                .map(Port::read)
                .collect(),
        }
    }
}
