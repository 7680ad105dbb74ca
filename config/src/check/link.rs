//! Links: what their values do to each other.

mod discovery;
mod limits;
mod partitions;
mod told;

use super::collisions;
use crate::error::{Origin, Problems};
use crate::file::{File, Link};
use crate::link::{Ipv4, Subnet};
use crate::section::At;
use std::net::IpAddr;

/// The bit of full membership in a P_Key.
const FULL: u32 = 0x8000;

pub(super) fn check(file: &File, problems: &Problems<'_>) {
    names(&file.links, problems);
    partitions::check(&file.links, problems);
    datagrams(&file.links, problems);
    limits::check(&file.links, problems);
    for link in &file.links {
        device(link, problems);
        ethernet(link, problems);
        p_key(link, problems);
        administrator(link, problems);
        dhcp(link, problems);
        families(link, problems);
        discovery::answered(link, problems);
    }
    told::check(file, problems);
    for back in &file.backs {
        discovery::asked(back, &file.links, problems);
    }
}

/// One name, one link.
fn names(links: &[Link], problems: &Problems<'_>) {
    let names = links.iter().filter_map(|link| link.name.as_ref());
    let names = names.map(|name| (&name.origin, &name.value)).collect();
    collisions(
        names,
        |a, b| (a == b).then_some(()),
        |later, earlier, ()| {
            let what = format!("the name is taken at line {}", problems.line(earlier));
            problems.add(later, what, "choose another");
        },
    );
}

/// Queue pairs are a device's: it has them for all of its links, or for none.
fn datagrams(links: &[Link], problems: &Problems<'_>) {
    let told = links
        .iter()
        .filter(|link| subnet(link) == Subnet::Infiniband)
        .filter_map(|link| Some((link, &link.device.as_ref()?.value.device)))
        .map(|(link, device)| match &link.datagrams {
            Some(at) => (at.origin.clone(), (device, at.value)),
            None => (link.origin.absent("datagrams"), (device, true)),
        })
        .collect::<Vec<_>>();
    collisions(
        told.iter().map(|(origin, told)| (origin, *told)).collect(),
        |a, b| (a.0 == b.0 && a.1 != b.1).then_some(a.1),
        |later, earlier, first| {
            let line = problems.line(earlier);
            let what = format!("line {line} has it otherwise for a link of this device");
            let remedy = format!("say datagrams = {first} here too, or change that one");
            problems.add(later, what, remedy);
        },
    );
}

fn device(link: &Link, problems: &Problems<'_>) {
    let infiniband = subnet(link) == Subnet::Infiniband;
    if infiniband && link.device.is_none() && !link.device_refused {
        let remedy = "add it: \"device\" or \"device/port\", as `ibstat -l` lists them";
        problems.add(&link.origin.absent("device"), "is missing", remedy);
    }
    let alone = [
        link.device.as_ref().map(|at| &at.origin),
        link.datagrams.as_ref().map(|at| &at.origin),
    ];
    // Written as it is by default it may stand anywhere.
    let told = |it: &&Origin| it.key.ends_with("device") || it.value == "false";
    for origin in alone
        .into_iter()
        .flatten()
        .filter(told)
        .filter(|_| !infiniband)
    {
        let what = "has no effect where subnet is not \"infiniband\"";
        problems.add(origin, what, "remove it, or set subnet to that");
    }
}

/// On Ethernet there are an interface's address, and neither partitions nor a broadcast group.
fn ethernet(link: &Link, problems: &Problems<'_>) {
    if subnet(link) != Subnet::Ethernet {
        return;
    }
    let address = |at: &At<Ipv4>| matches!(at.value, Ipv4::Is(_));
    if !link.ipv4.as_ref().is_some_and(address) && !link.ipv4_refused {
        let origin = match &link.ipv4 {
            Some(at) => at.origin.clone(),
            None => link.origin.absent("ipv4"),
        };
        let what = "has to be an interface's address where subnet is \"ethernet\"";
        problems.add(&origin, what, "give it, such as \"10.1.0.5/24\"");
    }
    let flag = |at: &'_ At<bool>| at.value.then(|| at.origin.clone());
    let flags = [
        &link.ipv6,
        &link.administrator,
        &link.router,
        &link.send_only_full,
    ];
    let flags = flags.into_iter().flatten().filter_map(flag);
    let p_key = link.p_key.as_ref().map(|at| at.origin.clone());
    for origin in flags.chain(p_key) {
        let what = "has no meaning where subnet is \"ethernet\"";
        problems.add(&origin, what, "remove it");
    }
}

/// A limited member cannot talk to other limited ones (link section 6).
fn p_key(link: &Link, problems: &Problems<'_>) {
    let limited = |at: &&At<u32>| at.value & FULL == 0;
    if let Some(at) = link.p_key.as_ref().filter(limited) {
        let what = "is of a limited member, and the nodes of a link have to be full ones";
        let remedy = format!("give {} ({:#06x})", at.value | FULL, at.value | FULL);
        problems.add(&at.origin, what, remedy);
    } else if let Some(at) = link.p_key.as_ref().filter(|at| at.value == FULL) {
        problems.add(
            &at.origin,
            "names no partition",
            "give 32769 (0x8001) to 65535 (0xffff)",
        );
    }
}

/// What only an administrator chooses.
fn administrator(link: &Link, problems: &Problems<'_>) {
    let is_one = link.administrator.as_ref().is_some_and(|at| at.value);
    let chosen = [link.mtu.as_ref(), link.q_key.as_ref()];
    for at in chosen.into_iter().flatten().filter(|_| !is_one) {
        let remedy = "remove it, or set administrator = true";
        problems.add(
            &at.origin,
            "has no effect on a node that is no administrator",
            remedy,
        );
    }
}

/// A subnet of this process has nobody on it but the links of this file.
fn dhcp(link: &Link, problems: &Problems<'_>) {
    let asked = |at: &&At<Ipv4>| at.value == Ipv4::Dhcp && is_in_memory(link);
    if let Some(at) = link.ipv4.as_ref().filter(asked) {
        let what = "has no server on a subnet of this process, where nobody else is";
        problems.add(&at.origin, what, "give an address such as \"10.1.0.5/24\"");
    }
}

/// No link without IP, no group of an IP that the link has not.
fn families(link: &Link, problems: &Problems<'_>) {
    let (v4, v6) = (has_ipv4(link), has_ipv6(link));
    if let (false, false, Some(at)) = (v4, v6, &link.ipv6)
        && !at.value
    {
        problems.add(
            &at.origin,
            "leaves the link without IP",
            "give it an ipv4 address",
        );
    }
    for list in [&link.groups, &link.answer].into_iter().flatten() {
        let lacks = |group: &IpAddr| Some((*group, lacked(link, *group)?));
        if let Some((group, (family, set))) = list.value.iter().find_map(lacks) {
            let what = format!("has {group} in it, and the link has no {family}");
            problems.add(&list.origin, what, format!("{set}remove the group"));
        }
    }
}

/// The IP of a group where the link has not got it, and how a remedy begins: with the key that gives it, if one can.
fn lacked(link: &Link, group: IpAddr) -> Option<(&'static str, &'static str)> {
    match group {
        IpAddr::V4(_) => (!has_ipv4(link)).then_some(("IPv4", "set ipv4 of the link, or ")),
        IpAddr::V6(_) if has_ipv6(link) => None,
        IpAddr::V6(_) if subnet(link) == Subnet::Ethernet => Some(("IPv6", "")),
        IpAddr::V6(_) => Some(("IPv6", "set ipv6 of the link, or ")),
    }
}

/// An address that was refused counts: its mistake is told once.
fn has_ipv4(link: &Link) -> bool {
    let given = link.ipv4.as_ref().is_some_and(|at| at.value != Ipv4::Off);
    given || link.ipv4_refused
}

fn has_ipv6(link: &Link) -> bool {
    link.ipv6.as_ref().is_none_or(|at| at.value) && subnet(link) != Subnet::Ethernet
}

/// It sends and receives. Elsewhere than on InfiniBand it always does.
fn has_datagrams(link: &Link) -> bool {
    subnet(link) != Subnet::Infiniband || link.datagrams.as_ref().is_none_or(|at| at.value)
}

/// It is on the subnet of this process, said or not. Where what was said is no subnet it is on none.
fn is_in_memory(link: &Link) -> bool {
    subnet(link) == Subnet::Memory && !link.subnet_refused
}

fn subnet(link: &Link) -> Subnet {
    link.subnet.as_ref().map_or(Subnet::Memory, |at| at.value)
}
