//! Links.

use super::{Sheet, time};
use crate::link::{Answer, Ipv4, Link, Subnet};
use std::net::IpAddr;

pub(super) fn print(sheet: &mut Sheet, link: &Link) {
    sheet.head(&format!("link {}", link.name));
    let device = link.device.as_ref();
    let device = device.map_or_else(String::new, |device| format!("{device}, "));
    let keeper = match link.subnet {
        Subnet::Memory => "a subnet of this process",
        Subnet::Infiniband if !link.datagrams => {
            "groups of the subnet administrator, and no datagrams"
        }
        Subnet::Infiniband => "groups of the subnet administrator",
        Subnet::Ethernet => "groups joined by rdma_cm",
    };
    sheet.row(
        "subnet",
        format!("{device}P_Key {:#06x}, {keeper}", link.p_key),
    );
    let v4 = match link.ipv4 {
        Ipv4::Off => None,
        Ipv4::Is(network) => Some(network.to_string()),
        Ipv4::Dhcp => Some("IPv4 by DHCP".to_owned()),
    };
    let v6 = link.ipv6.then(|| "IPv6 by the port's GUID".to_owned());
    let addresses: Vec<_> = v4.into_iter().chain(v6).collect();
    sheet.row("addresses", addresses.join(", "));
    let broadcast = match &link.administrator {
        None => "waited for".to_owned(),
        Some(it) => format!(
            "created where missing: {} octets, Q_Key {:#010x}",
            it.mtu, it.q_key
        ),
    };
    sheet.row("broadcast", broadcast);
    sheet.row("groups", groups(link));
    sheet.row("answers", answers(&link.answer));
    let (verify, cache) = (time(link.verify), time(link.cache));
    sheet.row(
        "looks",
        format!("at its memberships every {verify}, at other groups after {cache}"),
    );
}

fn groups(link: &Link) -> String {
    let joined: Vec<IpAddr> = link.joined().collect();
    let joined = match joined.is_empty() {
        true => "none but the broadcast group".to_owned(),
        false => list(&joined),
    };
    let sends = match link.send_only_full {
        true => "SendOnlyFullMember where there is such",
        false => "SendOnlyNonMember",
    };
    let router = if link.router {
        "; a router: all of the link"
    } else {
        ""
    };
    format!("{joined}; sends as {sends}{router}")
}

fn answers(answer: &Answer) -> String {
    if answer.groups.is_empty() {
        return "none".to_owned();
    }
    let rate = match answer.per_second {
        0 => String::new(),
        rate => format!(", {rate} a second"),
    };
    let from = match &answer.allow {
        None => "everybody".to_owned(),
        Some(networks) => networks.to_string(),
    };
    format!("in {} to {from}{rate}", list(&answer.groups))
}

fn list(groups: &[IpAddr]) -> String {
    let texts: Vec<_> = groups.iter().map(IpAddr::to_string).collect();
    texts.join(", ")
}
