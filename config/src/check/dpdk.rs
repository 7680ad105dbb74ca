//! DPDK: arguments of EAL against what the rest of the file says, and ports against lcores,
//! listeners and each other.

use super::collisions;
use crate::Machine;
use crate::error::Problems;
use crate::file::{Dpdk, File, Port};
use crate::form::{Lcores, port_device};
use crate::plan::{Fabric, Hugepages, Packets};
use crate::port::PortDevice;
use crate::resolve::lcores;
use crate::section::At;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

/// Octets of the least MTU of IPv6 (RFC 8200 section 5).
const LEAST_MTU: u32 = 1280;
/// Options of EAL that have a device for their value.
const DEVICE_OPTIONS: [&str; 3] = ["--vdev", "--allow", "-a"];

pub(super) fn check(file: &File, machine: &Machine, problems: &Problems<'_>) {
    let asked = |it: &&At<Packets>| it.value == Packets::Dpdk;
    let packets = file.iwarp_sctp.packets.as_ref().filter(asked);
    if let Some(packets) = packets {
        has_ports(file, packets, machine, problems);
        listeners(file, problems);
    }
    let Some(dpdk) = &file.dpdk else {
        return;
    };
    arguments(file, dpdk, problems);
    let used = file.fabrics().any(|it| it.known == Some(Fabric::IwarpSctp));
    if let (None, Some(port), true) = (packets, dpdk.ports.first(), used) {
        let what = "has no effect where iwarp_sctp.packets is not \"dpdk\"";
        problems.add(&port.origin, what, "remove it, or set that");
    }
    same(&dpdk.ports, problems);
    for port in &dpdk.ports {
        on_its_link(port, problems);
    }
}

fn arguments(file: &File, dpdk: &Dpdk, problems: &Problems<'_>) {
    let Some(arguments) = &dpdk.arguments else {
        return;
    };
    if let Some(enabled) = dpdk.enabled.as_ref().filter(|enabled| !enabled.value) {
        let what = format!("has no effect where {} is false", enabled.origin.key);
        problems.add(&arguments.origin, what, "remove one of the two");
        return;
    }
    let has = |option: &str| arguments.value.iter().any(|it| it == option);
    let required = file.runtime.hugepages.as_ref();
    let required = required.is_some_and(|pages| pages.value == Hugepages::Require);
    if required && has("--no-huge") {
        let what = "has --no-huge, where runtime.hugepages is \"require\"";
        problems.add(&arguments.origin, what, "remove one of the two");
    }
    let devices = dpdk.ports.iter().filter_map(|port| port.device.as_ref());
    let mut on_bus = devices.filter(|at| matches!(at.value, PortDevice::Pci(_)));
    if let Some(device) = on_bus.next().filter(|_| has("--no-pci")) {
        let what = format!(
            "is on the PCI bus, and {} has --no-pci",
            arguments.origin.key
        );
        problems.add(&device.origin, what, "remove one of the two");
    }
    brought_twice(dpdk, arguments, problems);
}

/// A device that an argument names besides its port: of two EAL takes the last one's word, and
/// drops the other's without one.
fn brought_twice(dpdk: &Dpdk, arguments: &At<Vec<String>>, problems: &Problems<'_>) {
    for device in dpdk.ports.iter().filter_map(|port| port.device.as_ref()) {
        let twice = |named: &PortDevice| named.name() == device.value.name();
        if devices(&arguments.value).any(|named| twice(&named)) {
            let what = format!("is among the devices of {} too", arguments.origin.key);
            let remedy = "remove it there: a port brings its device";
            problems.add(&device.origin, what, remedy);
        }
    }
}

/// The devices that arguments of EAL bring in: an option with its value behind it, or in the next
/// argument.
fn devices(arguments: &[String]) -> impl Iterator<Item = PortDevice> {
    let following = arguments.iter().skip(1).map(Some).chain([None]);
    arguments
        .iter()
        .zip(following)
        .filter_map(|(option, next)| {
            let text = DEVICE_OPTIONS.into_iter().find_map(|name| {
                let rest = option.strip_prefix(name)?;
                match (rest, name.starts_with("--")) {
                    ("", _) => next.map(String::as_str),
                    (rest, true) => rest.strip_prefix('='),
                    (rest, false) => Some(rest),
                }
            })?;
            // Those of the bus may have arguments behind their address, which no port's has.
            let bare = text.split(',').next().unwrap_or(text);
            port_device(bare).ok()
        })
}

/// Each lcore has a port of its own.
fn has_ports(file: &File, packets: &At<Packets>, machine: &Machine, problems: &Problems<'_>) {
    let dpdk = file.dpdk.as_ref();
    if let Some(enabled) = dpdk
        .and_then(|it| it.enabled.as_ref())
        .filter(|it| !it.value)
    {
        let what = format!("needs DPDK, and {} is false", enabled.origin.key);
        problems.add(&packets.origin, what, "remove one of the two");
        return;
    }
    let wanted = file.runtime.lcores.as_ref().map(|at| &at.value);
    let count = lcores(wanted.unwrap_or(&Lcores::Auto), &machine.cores).len();
    let ports = dpdk.map_or(0, |it| it.ports.len());
    if ports != count {
        let what = format!("needs a port for each lcore, and there are {ports} for {count}");
        let remedy = match ports {
            0 => "add a [[dpdk.port]]".to_owned(),
            _ => format!("add another [[dpdk.port]], or set runtime.lcores = {ports}"),
        };
        let remedy = match ports < count {
            true => remedy,
            false => "remove the others".to_owned(),
        };
        problems.add(&packets.origin, what, remedy);
    }
}

/// Somebody hears what is listened at.
fn listeners(file: &File, problems: &Problems<'_>) {
    let ports = file.dpdk.iter().flat_map(|it| &it.ports);
    let addresses: Vec<IpAddr> = ports
        .filter_map(|port| Some(port.address.as_ref()?.value.addr()))
        .collect();
    let fronts = file.fronts.iter().map(|it| &it.listener);
    let services = file.services.iter().map(|it| &it.listener);
    for listener in fronts.chain(services) {
        let Some(listen) = listener.listen.as_ref() else {
            continue;
        };
        let Ok(address) = listen.value.parse::<SocketAddr>() else {
            continue;
        };
        if listener.fabric.known != Some(Fabric::IwarpSctp) || addresses.is_empty() {
            continue;
        }
        let ip = address.ip();
        if address.port() == 0 {
            let what = "port 0 would be another one on each lcore";
            problems.add(&listen.origin, what, "give a port, such as 9899");
        } else if !ip.is_unspecified() && !addresses.contains(&ip) {
            let mut known: Vec<_> = addresses.iter().map(IpAddr::to_string).collect();
            known.dedup();
            let what = "is the address of no [[dpdk.port]]";
            problems.add(
                &listen.origin,
                what,
                format!("give {}, or \"[::]\" for all", known.join(" or ")),
            );
        }
    }
}

/// One device, one address, one port.
fn same(ports: &[Port], problems: &Problems<'_>) {
    let devices = ports.iter().filter_map(|port| port.device.as_ref());
    let devices = devices.map(|at| (&at.origin, at.value.name())).collect();
    let addresses = ports.iter().filter_map(|port| port.address.as_ref());
    let addresses = addresses.map(|at| (&at.origin, at.value.addr())).collect();
    collisions(
        devices,
        |a, b| (a == b).then_some(()),
        |later, earlier, ()| {
            let what = format!("is the device of line {}", problems.line(earlier));
            problems.add(later, what, "give another");
        },
    );
    collisions(
        addresses,
        |a, b| (a == b).then_some(()),
        |later, earlier, ()| {
            let what = format!("is the address of line {}", problems.line(earlier));
            problems.add(later, what, "give another");
        },
    );
}

/// Its gateway is a neighbour, and its packets are not too short.
fn on_its_link(port: &Port, problems: &Problems<'_>) {
    let Some(address) = &port.address else {
        return;
    };
    if let Some(gateway) = &port.gateway
        && !is_neighbour(gateway.value, address.value)
    {
        let what = format!("is no neighbour of {}", address.value);
        let remedy = "give the address of a router on the same network";
        problems.add(&gateway.origin, what, remedy);
    }
    if let Some(mtu) = &port.mtu
        && address.value.addr().is_ipv6()
        && mtu.value < LEAST_MTU
    {
        let what = "is less than what IPv6 needs";
        problems.add(&mtu.origin, what, format!("give {LEAST_MTU} or more"));
    }
}

fn is_neighbour(ip: IpAddr, of: IpNet) -> bool {
    let local = match ip {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => v6.is_unicast_link_local() && of.addr().is_ipv6(),
    };
    ip != of.addr() && (local || of.contains(&ip))
}
