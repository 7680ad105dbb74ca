//! The addresses of one link's IP: which datagrams are for them, and whether somebody else has one. Pure.
//!
//! Questions for addresses in use (ARP, neighbour discovery) are the node's affair. Not yet in use is an address that a DHCP
//! server gave: it is looked for here first (RFC 2131 section 2.2, RFC 5227).

use rpcrdma_fabric::datagram::Arrival;
use rpcrdma_ipoib::packet::{Arp, HardwareAddress, Operation, Packet};
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
    /// An address that is not used before it is known that nobody has it.
    checked: Option<Ipv4Addr>,
    pub(crate) counts: HostCounts,
}

impl Host {
    /// The addresses in use.
    pub(crate) fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Uses an address from now on.
    pub(crate) fn add(&mut self, address: IpAddr) {
        self.checked = None;
        if !self.addresses.contains(&address) {
            self.addresses.push(address);
        }
    }

    /// Uses none any more.
    pub(crate) fn clear(&mut self) {
        self.checked = None;
        self.addresses.clear();
    }

    /// Looks whether somebody has this address: the frame is to be sent to all nodes (RFC 5227 section 2.1.1).
    pub(crate) fn probe(&mut self, address: Ipv4Addr, own: HardwareAddress) -> Vec<u8> {
        self.checked = Some(address);
        request(own, Ipv4Addr::UNSPECIFIED, address).frame()
    }

    /// The address looked for is somebody else's, as this frame says.
    pub(crate) fn claimed(&self, frame: &[u8], own: HardwareAddress) -> Option<Ipv4Addr> {
        let checked = self.checked?;
        let Ok(Packet::Arp(arp)) = Packet::parse(frame) else {
            return None;
        };
        // Two that look for the same address at once both leave it.
        let same = arp.sender_ip.is_unspecified() && arp.target_ip == checked;
        let theirs = arp.sender_ip == checked || same;
        (theirs && !arp.sender.is_same(&own)).then_some(checked)
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

const fn request(sender: HardwareAddress, sender_ip: Ipv4Addr, target_ip: Ipv4Addr) -> Arp {
    Arp {
        operation: Operation::Request,
        sender,
        sender_ip,
        target: HardwareAddress::ZERO,
        target_ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpcrdma_ipoib::gid::{Gid, Guid};

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 5);
    const OTHER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 9);

    fn at(number: u32) -> HardwareAddress {
        let gid = Gid::of_port(0xFE80 << 48, Guid(number.into()));
        HardwareAddress::datagrams(number, gid)
    }

    #[test]
    fn rfc5227_2_1_1_an_address_that_somebody_has_is_found_out() {
        let mut host = Host::default();
        let probe = host.probe(OWN, at(17));
        assert_eq!(host.claimed(&probe, at(17)), None, "our own, come back");
        let same = request(at(18), Ipv4Addr::UNSPECIFIED, OWN).frame();
        assert_eq!(host.claimed(&same, at(17)), Some(OWN));
        let theirs = Arp {
            operation: Operation::Reply,
            ..request(at(18), OWN, OTHER)
        };
        assert_eq!(host.claimed(&theirs.frame(), at(17)), Some(OWN));
        let another = request(at(18), OTHER, OTHER).frame();
        assert_eq!(host.claimed(&another, at(17)), None);
        host.add(OWN.into());
        assert_eq!(host.claimed(&same, at(17)), None, "in use: the node tells");
    }

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
