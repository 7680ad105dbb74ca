//! Headers in front of what goes.

use crate::link::Way;
use crate::station::{Mac, Station};
use crate::sum::Sum;
use smoltcp::wire::{
    ETHERNET_HEADER_LEN, EthernetFrame, EthernetProtocol, IPV4_HEADER_LEN, IPV6_HEADER_LEN,
    IpProtocol, Ipv4Packet, Ipv6Packet, UDP_HEADER_LEN, UdpPacket,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Octets of headers at most: Ethernet, IPv6 and UDP.
pub const HEAD_MAX: usize = ETHERNET_HEADER_LEN + IPV6_HEADER_LEN + UDP_HEADER_LEN;
/// Routers that a packet may pass (RFC 1700).
pub(crate) const HOPS: u8 = 64;

/// Octets of headers in front of a datagram.
pub(crate) fn head_len(station: &Station) -> usize {
    let ip = match station.ip() {
        IpAddr::V4(_) => IPV4_HEADER_LEN,
        IpAddr::V6(_) => IPV6_HEADER_LEN,
    };
    ETHERNET_HEADER_LEN + ip + UDP_HEADER_LEN
}

/// Writes the headers of a frame that has room for them in front of its datagram. False: it has
/// none, or is too long for a packet.
pub(crate) fn write_head(station: &Station, way: &Way, from: u16, frame: &mut [u8]) -> bool {
    if frame.len() < head_len(station) || frame.len() > usize::from(u16::MAX) {
        return false;
    }
    let (own, protocol) = (station.mac, IpProtocol::Udp);
    let rest = match (station.ip(), way.to.ip()) {
        (IpAddr::V4(here), IpAddr::V4(there)) => {
            let rest = write_ethernet(frame, own, way.mac, EthernetProtocol::Ipv4);
            write_ipv4(rest, (here, there), protocol, HOPS)
        }
        (IpAddr::V6(here), IpAddr::V6(there)) => {
            let rest = write_ethernet(frame, own, way.mac, EthernetProtocol::Ipv6);
            write_ipv6(rest, (here, there), protocol, HOPS)
        }
        _ => return false,
    };
    let len = length(rest);
    let mut datagram = UdpPacket::new_unchecked(&mut *rest);
    datagram.set_src_port(from);
    datagram.set_dst_port(way.to.port());
    datagram.set_len(len);
    datagram.set_checksum(0);
    let ends = (station.ip(), way.to.ip());
    // A checksum that is zero is sent as all ones: zero says that there is none (RFC 768).
    let sum = match datagram_sum(rest, ends) {
        0 => 0xffff,
        sum => sum,
    };
    UdpPacket::new_unchecked(rest).set_checksum(sum);
    true
}

/// The checksum of a datagram with its header; zero of one that has it in itself and is whole.
pub(crate) fn datagram_sum(datagram: &[u8], ends: (IpAddr, IpAddr)) -> u16 {
    let sum = Sum::default().with_pseudo_header(ends, IpProtocol::Udp.into(), length(datagram));
    sum.with(datagram).finish()
}

fn length(octets: &[u8]) -> u16 {
    u16::try_from(octets.len()).unwrap_or(u16::MAX)
}

/// Writes a header of Ethernet at the front; the rest.
pub(crate) fn write_ethernet(
    frame: &mut [u8],
    from: Mac,
    to: Mac,
    kind: EthernetProtocol,
) -> &mut [u8] {
    let mut header = EthernetFrame::new_unchecked(&mut *frame);
    header.set_dst_addr(to.into());
    header.set_src_addr(from.into());
    header.set_ethertype(kind);
    &mut frame[ETHERNET_HEADER_LEN..]
}

/// Writes a header of IPv4 at the front; the rest. It is not to be fragmented, so it needs no
/// identification (RFC 6864 section 4.1).
pub(crate) fn write_ipv4(
    packet: &mut [u8],
    ends: (Ipv4Addr, Ipv4Addr),
    protocol: IpProtocol,
    hops: u8,
) -> &mut [u8] {
    let len = length(packet);
    let mut header = Ipv4Packet::new_unchecked(&mut *packet);
    header.set_version(4);
    header.set_header_len(20);
    header.set_dscp(0);
    header.set_ecn(0);
    header.set_total_len(len);
    header.set_ident(0);
    header.clear_flags();
    header.set_dont_frag(true);
    header.set_frag_offset(0);
    header.set_hop_limit(hops);
    header.set_next_header(protocol);
    header.set_src_addr(ends.0);
    header.set_dst_addr(ends.1);
    header.fill_checksum();
    &mut packet[IPV4_HEADER_LEN..]
}

/// Writes a header of IPv6 at the front; the rest.
pub(crate) fn write_ipv6(
    packet: &mut [u8],
    ends: (Ipv6Addr, Ipv6Addr),
    protocol: IpProtocol,
    hops: u8,
) -> &mut [u8] {
    let len = length(&packet[IPV6_HEADER_LEN..]);
    let mut header = Ipv6Packet::new_unchecked(&mut *packet);
    header.set_version(6);
    header.set_traffic_class(0);
    header.set_flow_label(0);
    header.set_payload_len(len);
    header.set_next_header(protocol);
    header.set_hop_limit(hops);
    header.set_src_addr(ends.0);
    header.set_dst_addr(ends.1);
    &mut packet[IPV6_HEADER_LEN..]
}
