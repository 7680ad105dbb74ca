//! The addresses in use of one link's IP, and which datagrams are for them. Pure.
//!
//! Whether one can be used, and who asks for it (ARP, neighbour discovery), is the node's affair.

use rpcrdma_fabric::datagram::Arrival;
use std::net::{IpAddr, Ipv4Addr};

/// What came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Datagrams for us.
    pub datagrams: u64,
    /// Datagrams for others.
    pub others: u64,
    /// Frames that cannot be read. On InfiniBand the port counts them, by reason.
    pub rejected: u64,
    /// Datagrams for us that found too many waiting to be taken.
    pub lost: u64,
}

/// One link's IP.
#[derive(Debug, Default)]
pub(crate) struct Host {
    addresses: Vec<IpAddr>,
    pub(crate) counts: HostCounts,
}

impl Host {
    /// The addresses in use.
    pub(crate) fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Uses an address from now on.
    pub(crate) fn add(&mut self, address: IpAddr) {
        if !self.addresses.contains(&address) {
            self.addresses.push(address);
        }
    }

    /// Uses none any more.
    pub(crate) fn clear(&mut self) {
        self.addresses.clear();
    }

    /// A datagram to this address, which came so, is for us.
    pub(crate) fn takes(&mut self, to: IpAddr, from: &Arrival) -> bool {
        let all = to == IpAddr::V4(Ipv4Addr::BROADCAST) || to.is_multicast();
        // What came by a group is to a group: an address of one host in it is somebody's trick.
        let ours = all || !from.is_multicast() && self.addresses.contains(&to);
        let counter = match ours {
            true => &mut self.counts.datagrams,
            false => &mut self.counts.others,
        };
        *counter += 1;
        ours
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 5);

    #[test]
    fn datagrams_are_taken_that_are_for_us() {
        let mut host = Host::default();
        host.add(OWN.into());
        let alone = Arrival {
            lid: 9,
            gid: None,
            to: None,
            queue_pair: 18,
            service_level: 0,
        };
        let by_group = Arrival {
            to: Some([0xFF; 16]),
            ..alone
        };
        for (to, arrival, ours) in [
            ("10.1.0.5", alone, true),
            ("10.1.0.6", alone, false),
            ("239.1.1.1", by_group, true),
            ("255.255.255.255", by_group, true),
            ("10.1.0.5", by_group, false),
        ] {
            assert_eq!(host.takes(to.parse().unwrap(), &arrival), ours, "{to}");
        }
        assert_eq!((host.counts.datagrams, host.counts.others), (3, 2));
    }
}
