//! Addresses on the subnet of this process: whoever has one already keeps it, and the others know.

use crate::bench::{Bench, addressed, has};
use rpcrdma_ipoib::gid::Guid;
use rpcrdma_ipoib::packet::link_local;
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_links::{Links, MemorySubnet};
use std::net::{IpAddr, Ipv4Addr};

const A: usize = 0;
const B: usize = 1;
const HELD: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);

#[test]
fn rfc5227_2_1_1_an_address_that_another_link_has_is_not_used_and_said() {
    let mut bench = Bench::of(&addressed(&["10.1.0.1/24", "10.1.0.1/24"]));
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

/// RFC 4391 section 8: the link-local address is made of the GUID that the port has, not of one that it had.
#[test]
fn rfc4391_8_with_another_guid_a_port_has_another_link_local_address() {
    let mut subnet = MemorySubnet::new(vec![PKey::DEFAULT]);
    let mut plans = addressed(&["10.1.0.1/24"]);
    plans[A].ipv6 = true;
    let mut bench = Bench::start_in(&mut subnet, &plans);
    let both = |links: &Links| has(links, A, HELD) && links.addresses(A).count() == 2;
    bench.until("both IPs have an address", |links| both(links));
    let old: Vec<IpAddr> = bench.links.addresses(A).collect();
    let other = Guid(0x0200_00FF_FE00_0099);
    subnet.change(A, |facts| facts.guid = other);
    let address = IpAddr::V6(link_local(other));
    assert!(!old.contains(&address));
    bench.until(
        "the address of the new GUID is used, and only that",
        |links| both(links) && links.addresses(A).any(|it| it == address),
    );
}
