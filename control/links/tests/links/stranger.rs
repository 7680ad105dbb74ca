//! A host on the links' subnet that says what it likes.

use rpcrdma_fabric::datagram::{AddressVector, DatagramFabric, Datagrams, Group, PairWanted};
use rpcrdma_ipoib::gid::Gid;
use rpcrdma_ipoib::packet::{Arp, HardwareAddress, Operation};
use rpcrdma_links::{Links, MemorySubnet};
use rpcrdma_memory::{MemoryDatagrams, MemoryFabric};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The Q_Key of a link whose administrator was not told another.
const Q_KEY: u32 = 0x8000_0B1B;

pub(crate) struct Stranger {
    pair: MemoryDatagrams,
    _fabric: MemoryFabric,
    all: AddressVector,
}

impl Stranger {
    /// One on the link that is the first of the configuration, and up.
    pub(crate) fn on(subnet: &mut MemorySubnet, links: &Links) -> Self {
        let groups = links.status().swap_remove(0).groups;
        let broadcast = |group: &str| group.contains(":401b:") && group.ends_with(":ffff:ffff");
        let group = groups.into_iter().find(|it| broadcast(&it.group));
        let group = group.expect("a broadcast group");
        let mgid: Ipv6Addr = group.group.parse().expect("an MGID");
        let group = Group {
            mgid: mgid.octets(),
            mlid: group.mlid,
        };
        let mut fabric = subnet.add_stranger();
        let wanted = PairWanted {
            p_key: 0xFFFF,
            q_key: Q_KEY,
            ..PairWanted::default()
        };
        Self {
            pair: fabric.open_pair(&wanted).expect("a queue pair"),
            _fabric: fabric,
            all: AddressVector::of_group(group, Q_KEY),
        }
    }

    /// Says that an address is its own.
    pub(crate) fn claim(&mut self, ip: Ipv4Addr) {
        let facts = self.pair.facts();
        let claim = Arp {
            operation: Operation::Reply,
            sender: HardwareAddress::datagrams(facts.queue_pair, Gid(facts.gid)),
            sender_ip: ip,
            target: HardwareAddress::ZERO,
            target_ip: ip,
        };
        let sent = self.pair.send(&claim.frame(), &self.all);
        sent.expect("the link carries it");
    }
}
