//! How many links and groups there can be.

use super::subnet;
use crate::error::Problems;
use crate::file::Link;
use crate::link::{DevicePort, Subnet};

/// Links on one port.
const LINKS: usize = 32;
/// Groups of all links together.
const GROUPS: usize = 4096;

pub(super) fn check(links: &[Link], problems: &Problems<'_>) {
    ports(links, problems);
    groups(links, problems);
}

/// The subnet of this process is as one port.
fn ports(links: &[Link], problems: &Problems<'_>) {
    let port = |link: &Link| -> Option<Option<DevicePort>> {
        match subnet(link) {
            Subnet::Memory => Some(None),
            Subnet::Infiniband => Some(Some(link.device.as_ref()?.value.clone())),
            Subnet::Ethernet => None,
        }
    };
    let ports: Vec<_> = links.iter().map(port).collect();
    for (index, link) in links.iter().enumerate() {
        let before = ports[..index].iter().filter(|it| **it == ports[index]);
        if ports[index].is_some() && before.count() == LINKS {
            let what = format!("is one more than the {LINKS} links that a port can have");
            problems.add(&link.origin, what, "remove it, or give it another port");
        }
    }
}

/// Complains once, at the list that goes beyond.
fn groups(links: &[Link], problems: &Problems<'_>) {
    let lists = links.iter().flat_map(|link| [&link.groups, &link.answer]);
    let mut sum = 0;
    for list in lists.flatten() {
        sum += list.value.len();
        if sum > GROUPS {
            let what = format!("makes {sum} groups, and {GROUPS} in all are the most");
            problems.add(&list.origin, what, "list fewer");
            return;
        }
    }
}
