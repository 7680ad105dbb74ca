//! What links of one partition do to each other.

use super::{FULL, is_in_memory, subnet};
use crate::check::collisions;
use crate::error::{Origin, Problems};
use crate::file::Link;
use crate::link::{Ipv4, Subnet};
use std::collections::BTreeSet;

pub(super) fn check(links: &[Link], problems: &Problems<'_>) {
    once(links, problems);
    addresses(links, problems);
    administered(links, problems);
}

/// The partition, without the bit that says which kind of member its node is; `None`: what was written is none.
fn partition(link: &Link) -> Option<u32> {
    match &link.p_key {
        Some(at) => Some(at.value & !FULL),
        None => (!link.p_key_refused).then_some(0xFFFF & !FULL),
    }
}

/// One partition of one port, one link.
fn once(links: &[Link], problems: &Problems<'_>) {
    let places = links
        .iter()
        .filter(|link| subnet(link) == Subnet::Infiniband)
        .filter_map(|link| {
            let device = link.device.as_ref()?;
            Some((&device.origin, (&device.value, partition(link)?)))
        })
        .collect();
    collisions(
        places,
        |a, b| (a == b).then_some(()),
        |later, earlier, ()| {
            let line = problems.line(earlier);
            let what = format!("the link at line {line} is of this port and partition");
            problems.add(later, what, "give one of them another p_key or device");
        },
    );
}

/// One address of a partition, one link; on Ethernet, where there are none, of all.
fn addresses(links: &[Link], problems: &Problems<'_>) {
    let addressed = links
        .iter()
        .filter(|link| !link.subnet_refused)
        .filter_map(|link| {
            let at = link.ipv4.as_ref()?;
            let Ipv4::Is(network) = at.value else {
                return None;
            };
            Some((&at.origin, (subnet(link), partition(link)?, network.addr())))
        });
    collisions(
        addressed.collect(),
        |a, b| (a == b).then_some(a.0),
        |later, earlier, subnet| {
            let line = problems.line(earlier);
            let among = match subnet {
                Subnet::Ethernet => "",
                Subnet::Memory | Subnet::Infiniband => " of this partition",
            };
            let what = format!("is the address of another link{among} already, at line {line}");
            problems.add(later, what, "give one of them another");
        },
    );
}

/// On a subnet of this process nobody else creates a broadcast group. Told of the first link of a partition.
fn administered(links: &[Link], problems: &Problems<'_>) {
    let mut seen = BTreeSet::new();
    for link in links.iter().filter(|link| is_in_memory(link)) {
        let Some(partition) = partition(link).filter(|&it| seen.insert(it)) else {
            continue;
        };
        let is_one = |it: &Link| it.administrator.as_ref().is_some_and(|at| at.value);
        let refused = |it: &Link| it.administrator_refused;
        let mut all = links.iter().filter(|it| is_in_memory(it));
        if !all.any(|it| self::partition(it) == Some(partition) && (is_one(it) || refused(it))) {
            let what = "has nobody to create the broadcast group of its partition: that subnet is this file's alone";
            let remedy = "set administrator = true for one link of the partition";
            problems.add(&administrator(link), what, remedy);
        }
    }
}

fn administrator(link: &Link) -> Origin {
    match &link.administrator {
        Some(at) => at.origin.clone(),
        None => link.origin.absent("administrator"),
    }
}
