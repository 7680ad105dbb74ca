//! Links and what is found on them.

use super::{flag, number, seconds, small, value, word, written};
use crate::file;
use crate::link::{Administrator, Answer, Discover, Ipv4, Link, Subnet};
use crate::schema as key;
use std::net::{IpAddr, Ipv4Addr};

pub(super) fn link(it: &file::Link) -> Link {
    let administrator = flag(&it.administrator, &key::ADMINISTRATOR);
    let subnet = word(&it.subnet, &key::SUBNET);
    Link {
        name: written(&it.name),
        subnet,
        device: value(&it.device),
        p_key: small(&it.p_key, &key::P_KEY),
        ipv4: value(&it.ipv4).unwrap_or(Ipv4::Off),
        ipv6: subnet != Subnet::Ethernet && flag(&it.ipv6, &key::IPV6),
        administrator: administrator.then(|| Administrator {
            mtu: small(&it.mtu, &key::LINK_MTU),
            q_key: number(&it.q_key, &key::Q_KEY),
        }),
        router: flag(&it.router, &key::ROUTER),
        send_only_full: flag(&it.send_only_full, &key::SEND_ONLY_FULL),
        groups: written(&it.groups),
        answer: Answer {
            groups: written(&it.answer),
            per_second: number(&it.answers, &key::ANSWERS),
            allow: value(&it.answer_allow),
        },
        datagrams: flag(&it.datagrams, &key::DATAGRAMS),
        verify: seconds(&it.verify, &key::VERIFY),
        cache: seconds(&it.cache, &key::CACHE),
    }
}

/// The link that is not named is the only one there is.
pub(super) fn discover(it: &file::Discover, links: &[file::Link]) -> Discover {
    let only = || links.first().map(|link| written(&link.name));
    Discover {
        link: value(&it.link).or_else(only).unwrap_or_default(),
        group: value(&it.group).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        program: number(&it.program, &key::DISCOVER_PROGRAM),
        version: number(&it.version, &key::DISCOVER_VERSION),
        period: seconds(&it.period, &key::DISCOVER_PERIOD),
        allow: value(&it.allow),
    }
}
