//! Frames of the station's own making: requests and answers.

use crate::depart::{HOPS, write_ethernet, write_ipv4, write_ipv6};
use crate::station::{Mac, Station};
use crate::sum::Sum;
use arrayvec::ArrayVec;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, ETHERNET_HEADER_LEN, EthernetProtocol, IPV4_HEADER_LEN,
    IPV6_HEADER_LEN, Icmpv6Packet, IpProtocol, NdiscNeighborFlags, NdiscRepr,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Octets of the longest such frame: an echo of 64 octets of data over IPv6, rounded up.
const ROOM: usize = 128;
/// Octets of the shortest frame of Ethernet, its checksum not counted.
const LEAST: usize = 60;
/// The hop limit of neighbour discovery, which shows that no router has passed it on (RFC 4861
/// section 7.1.1).
pub(crate) const DISCOVERY_HOPS: u8 = 255;

/// A short frame, to be sent as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Short(ArrayVec<u8, ROOM>);

impl AsRef<[u8]> for Short {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Short {
    /// With so many octets, all zero.
    fn blank(len: usize) -> Option<Short> {
        let mut octets = ArrayVec::from([0; ROOM]);
        octets.truncate(len);
        (octets.len() == len).then_some(Short(octets))
    }

    /// Not shorter than Ethernet allows.
    fn padded(mut self) -> Short {
        while self.0.len() < LEAST {
            self.0.push(0);
        }
        self
    }

    /// Asks for an IPv4 address: everybody, or the one that had it (RFC 1122 section 2.3.2.1).
    pub(crate) fn arp_request(station: &Station, of: Ipv4Addr, to: Option<Mac>) -> Option<Short> {
        let target = to.unwrap_or(Mac([0; 6]));
        let operation = ArpOperation::Request;
        Short::arp(
            station,
            operation,
            (target, of),
            to.unwrap_or(Mac::BROADCAST),
        )
    }

    /// Answers one who asked for the station's address.
    pub(crate) fn arp_reply(station: &Station, to: (Mac, Ipv4Addr)) -> Option<Short> {
        Short::arp(station, ArpOperation::Reply, to, to.0)
    }

    fn arp(
        station: &Station,
        operation: ArpOperation,
        target: (Mac, Ipv4Addr),
        to: Mac,
    ) -> Option<Short> {
        let IpAddr::V4(own) = station.ip() else {
            return None;
        };
        let message = ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: station.mac.into(),
            source_protocol_addr: own,
            target_hardware_addr: target.0.into(),
            target_protocol_addr: target.1,
        };
        let mut short = Short::blank(ETHERNET_HEADER_LEN + message.buffer_len())?;
        let rest = write_ethernet(&mut short.0, station.mac, to, EthernetProtocol::Arp);
        message.emit(&mut ArpPacket::new_unchecked(rest));
        Some(short.padded())
    }

    /// Asks for an IPv6 address: the group of all that might have it, or the one that had it.
    pub(crate) fn solicitation(station: &Station, of: Ipv6Addr, to: Option<Mac>) -> Option<Short> {
        let message = NdiscRepr::NeighborSolicit {
            target_addr: of,
            lladdr: Some(smoltcp::wire::EthernetAddress::from(station.mac).into()),
        };
        let group = Station::group_of(of);
        let (ip, mac) = match to {
            Some(mac) => (of, mac),
            None => (group, Mac::of_group(group)),
        };
        Short::discovery(station, message, (mac, ip))
    }

    /// Says what the station's address is: to one who asked, or to all where the one that asked
    /// has no address yet (RFC 4861 section 7.2.4).
    pub(crate) fn advertisement(station: &Station, to: (Mac, Ipv6Addr)) -> Option<Short> {
        const ALL: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
        let IpAddr::V6(own) = station.ip() else {
            return None;
        };
        let (flags, to) = if to.1.is_unspecified() {
            (NdiscNeighborFlags::OVERRIDE, (Mac::of_group(ALL), ALL))
        } else {
            let both = NdiscNeighborFlags::OVERRIDE | NdiscNeighborFlags::SOLICITED;
            (both, to)
        };
        let message = NdiscRepr::NeighborAdvert {
            flags,
            target_addr: own,
            lladdr: Some(smoltcp::wire::EthernetAddress::from(station.mac).into()),
        };
        Short::discovery(station, message, to)
    }

    fn discovery(station: &Station, message: NdiscRepr<'_>, to: (Mac, Ipv6Addr)) -> Option<Short> {
        let IpAddr::V6(own) = station.ip() else {
            return None;
        };
        let len = message.buffer_len();
        let mut short = Short::blank(ETHERNET_HEADER_LEN + IPV6_HEADER_LEN + len)?;
        let rest = write_ethernet(&mut short.0, station.mac, to.0, EthernetProtocol::Ipv6);
        let ends = (own, to.1);
        let rest = write_ipv6(rest, ends, IpProtocol::Icmpv6, DISCOVERY_HOPS);
        let mut packet = Icmpv6Packet::new_unchecked(rest);
        message.emit(&mut packet);
        packet.fill_checksum(&own, &to.1);
        Some(short)
    }

    /// The answer to an echo request, of ICMP or ICMPv6; `None` where it is longer than anybody
    /// needs.
    pub(crate) fn echo(station: &Station, to: (Mac, IpAddr), request: &[u8]) -> Option<Short> {
        let (kind, head) = match to.1 {
            IpAddr::V4(_) => (0, IPV4_HEADER_LEN),
            IpAddr::V6(_) => (129, IPV6_HEADER_LEN),
        };
        let mut short = Short::blank(ETHERNET_HEADER_LEN + head + request.len())?;
        let rest = match (station.ip(), to.1) {
            (IpAddr::V4(own), IpAddr::V4(peer)) => {
                let rest = write_ethernet(&mut short.0, station.mac, to.0, EthernetProtocol::Ipv4);
                write_ipv4(rest, (own, peer), IpProtocol::Icmp, HOPS)
            }
            (IpAddr::V6(own), IpAddr::V6(peer)) => {
                let rest = write_ethernet(&mut short.0, station.mac, to.0, EthernetProtocol::Ipv6);
                write_ipv6(rest, (own, peer), IpProtocol::Icmpv6, HOPS)
            }
            _ => return None,
        };
        rest.copy_from_slice(request);
        *rest.first_mut()? = kind;
        rest.get_mut(2..4)?.fill(0);
        let sum = icmp_sum(rest, (station.ip(), to.1));
        rest.get_mut(2..4)?.copy_from_slice(&sum.to_be_bytes());
        Some(short.padded())
    }
}

/// The checksum of a message of ICMP, or of ICMPv6, which counts its addresses too (RFC 4443
/// section 2.3); zero of one that has it in itself and is whole.
pub(crate) fn icmp_sum(message: &[u8], ends: (IpAddr, IpAddr)) -> u16 {
    let sum = Sum::default();
    let sum = match ends.0 {
        IpAddr::V4(_) => sum,
        IpAddr::V6(_) => {
            let len = u16::try_from(message.len()).unwrap_or(u16::MAX);
            sum.with_pseudo_header(ends, IpProtocol::Icmpv6.into(), len)
        }
    };
    sum.with(message).finish()
}
