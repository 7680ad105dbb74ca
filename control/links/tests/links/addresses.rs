//! Addresses on the subnet of this process: whoever has one already keeps it, and the others know.

use crate::bench::Bench;
use rpcrdma_dhcp::message::{CLIENT_PORT, SERVER_PORT};
use rpcrdma_links::{Datagram, Links};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const A: usize = 0;
const B: usize = 1;
const CLIENT: usize = 2;
const HELD: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const FREE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 9);

/// Links on one partition, each with a line that says its address.
fn file(addresses: &[&str]) -> String {
    let mut text = String::from("[[service]]\nname = 's'\nlisten = 's'\n");
    for (number, address) in addresses.iter().enumerate() {
        let administrator = number == A;
        text += &format!(
            "[[link]]\nname = 'l{number}'\nadministrator = {administrator}\nipv6 = false\nipv4 = '{address}'\n"
        );
    }
    text
}

fn has(links: &Links, at: usize, address: Ipv4Addr) -> bool {
    links.addresses(at).any(|it| it == IpAddr::V4(address))
}

#[test]
fn rfc5227_2_1_1_an_address_that_another_link_has_is_not_used_and_said() {
    let mut bench = Bench::of(&file(&["10.1.0.1/24", "10.1.0.1/24"]));
    bench.until("one has it, the other says why not", |links| {
        let status = links.status();
        let says = |at: usize| {
            let mut errors = status[at].errors();
            errors.any(|why| why == "another node has its address")
        };
        let without = |at| says(at) && links.addresses(at).next().is_none();
        has(links, A, HELD) && without(B) || has(links, B, HELD) && without(A)
    });
}

/// A server's answer to a client's message: its type, and an address for an hour.
fn answer(message: &[u8], kind: u8, address: Ipv4Addr) -> Vec<u8> {
    let mut octets = message[..240].to_vec();
    octets[0] = 2;
    octets[16..20].copy_from_slice(&address.octets());
    octets.extend([53, 1, kind, 54, 4, 10, 1, 0, 2, 51, 4, 0, 0, 14, 16]);
    octets.extend([1, 4, 255, 255, 255, 0, 255]);
    octets
}

/// The type of a client's message: its first option.
fn kind_of(message: &Datagram) -> u8 {
    assert_eq!(message.octets[240..242], [53, 1]);
    message.octets[242]
}

const DISCOVER: u8 = 1;
const OFFER: u8 = 2;
const REQUEST: u8 = 3;
const DECLINE: u8 = 4;
const ACK: u8 = 5;

/// RFC 2131 section 4.4.1: the client declines an address that it finds in use, and begins anew.
#[test]
fn rfc2131_4_4_1_an_address_of_a_server_that_somebody_has_is_declined() {
    let mut bench = Bench::of(&file(&["10.1.0.1/24", "10.1.0.2/24", "dhcp"]));
    bench.until("holder and server have theirs", |links| {
        has(links, A, HELD) && links.addresses(B).next().is_some()
    });
    let all = SocketAddr::new(Ipv4Addr::BROADCAST.into(), CLIENT_PORT);
    let mut offered = HELD;
    let mut said = Vec::new();
    while !has(&bench.links, CLIENT, FREE) {
        let mut came = None;
        bench.until("the client says something, or has an address", |links| {
            came = links.take().filter(|it| it.link == B);
            came.is_some() || has(links, CLIENT, FREE)
        });
        let Some(came) = came.filter(|it| it.to.port() == SERVER_PORT) else {
            continue;
        };
        let kind = kind_of(&came);
        said.push(kind);
        let reply = match kind {
            DISCOVER => OFFER,
            REQUEST => ACK,
            _ => {
                offered = FREE;
                continue;
            }
        };
        let octets = answer(&came.octets, reply, offered);
        let sent = bench.links.send(B, SERVER_PORT, all, &octets, bench.now);
        sent.expect("a group of the link");
        assert!(!has(&bench.links, CLIENT, HELD));
    }
    assert_eq!(said, [DISCOVER, REQUEST, DECLINE, DISCOVER, REQUEST]);
    assert!(has(&bench.links, A, HELD), "whose it was");
}
