//! News that are overtaken by others.

use super::*;
use crate::memory::MemorySubnet;
use rpcrdma_config::{Machine, parse};
use rpcrdma_dhcp::phase::Phase as Client;
use rpcrdma_ipoib::gid::Gid;
use rpcrdma_ipoib::packet::HardwareAddress;
use rpcrdma_ipoib::pkey::PKey;
use std::time::Duration;

/// Two links whose addresses are not in use: one is looked for, the other not even given.
fn links(subnet: &mut MemorySubnet, now: &mut Instant) -> Links {
    let machine = Machine {
        cores: vec![0],
        status_socket: "/run/s".into(),
    };
    let file = "[[service]]\nname = 's'\nlisten = 's'\n\
                [[link]]\nname = 'a'\nadministrator = true\nipv6 = false\nipv4 = '10.1.0.1/24'\n\
                [[link]]\nname = 'b'\nipv6 = false\nipv4 = '10.1.0.2/24'\n";
    let mut plans = parse("", file, &machine).expect("a plan").links;
    // A file cannot ask for it on a subnet where nobody else is.
    plans[1].ipv4 = Ipv4::Dhcp;
    let mut links = Links::start_in(subnet, &plans, *now).expect("links");
    while links.links[1].dhcp.is_none() {
        *now += Duration::from_millis(10);
        links.turn(*now);
    }
    links
}

fn tell(links: &mut Links, link: usize, ip: &str, news: AddressNews, now: Instant) {
    let (port, id) = (links.links[link].port, links.links[link].halves[0].id);
    let ip = ip.parse().expect("an address");
    let output = Output::Address { link: id, ip, news };
    links.take_news(port, News::Node(output), now);
}

/// What a node said of an address counts only if it is so by now: it may have been told something since.
#[test]
fn what_is_not_so_any_more_is_not_believed() {
    let mut now = Instant::now();
    let mut subnet = MemorySubnet::new(vec![PKey::DEFAULT]);
    let mut links = links(&mut subnet, &mut now);
    let by = HardwareAddress::datagrams(9, Gid([9; 16]));
    for news in [
        AddressNews::Used,
        AddressNews::Taken { by },
        AddressNews::Contested { by },
    ] {
        tell(&mut links, 0, "10.1.0.1", news, now);
        tell(&mut links, 1, "10.1.0.9", news, now);
        for link in 0..2 {
            assert_eq!(links.addresses(link).count(), 0, "{news:?}");
            assert!(!links.links[link].halves[0].taken, "{news:?}");
        }
        let client = links.links[1].dhcp.as_ref().expect("a client");
        assert_eq!(client.phase(), Client::Init, "{news:?}");
    }
}
