//! IP packets without fragments and extension headers (RFC 791, RFC 8200).

use super::Reject;
use super::sum::sum_of;
use rpcrdma_unicast::is_v4_of_a_host;
use smoltcp::wire::{IpProtocol, Ipv4Packet, Ipv6Packet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) const UDP: u8 = 17;
pub(super) const ICMPV6: u8 = 58;

/// Octets of an IPv4 header without options.
pub(super) const IPV4_BYTES: usize = 20;
/// Octets of an IPv6 header.
pub(super) const IPV6_BYTES: usize = 40;

/// An IP packet whose header was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip<'b> {
    /// From whom: a host, or nobody where the address is unspecified.
    pub source: IpAddr,
    /// To whom.
    pub destination: IpAddr,
    /// Routers that it may still pass: the TTL of IPv4.
    pub hop_limit: u8,
    /// The protocol of the payload, by its number.
    pub next: u8,
    /// What is behind the header, up to the packet's end.
    pub payload: &'b [u8],
}

impl<'b> Ip<'b> {
    /// Checks an IPv4 packet. Its options are skipped.
    ///
    /// # Errors
    ///
    /// Its version, a length, its checksum or its source is wrong, or it is a fragment.
    pub fn parse_v4(octets: &'b [u8]) -> Result<Self, Reject> {
        // The version first: what has another is not cut by lengths of this one.
        if octets.first().is_none_or(|octet| octet >> 4 != 4) || octets.len() < IPV4_BYTES {
            return Err(Reject::IpHeader);
        }
        let packet = Ipv4Packet::new_checked(octets).map_err(|_| Reject::IpLength)?;
        let header = octets.get(..packet.header_len().into());
        if usize::from(packet.header_len()) < IPV4_BYTES {
            return Err(Reject::IpHeader);
        }
        if header.is_none_or(|header| sum_of(header) != 0) {
            return Err(Reject::IpSum);
        }
        let source = packet.src_addr();
        if !is_v4_of_a_host(source) && !source.is_unspecified() {
            return Err(Reject::IpSource);
        }
        if packet.more_frags() || packet.frag_offset() != 0 {
            return Err(Reject::Fragment);
        }
        Ok(Self {
            source: source.into(),
            destination: packet.dst_addr().into(),
            hop_limit: packet.hop_limit(),
            next: packet.next_header().into(),
            payload: packet.payload(),
        })
    }

    /// Checks an IPv6 packet.
    ///
    /// # Errors
    ///
    /// Its version, a length or its source is wrong, or it has extension headers.
    pub fn parse_v6(octets: &'b [u8]) -> Result<Self, Reject> {
        if octets.first().is_none_or(|octet| octet >> 4 != 6) || octets.len() < IPV6_BYTES {
            return Err(Reject::IpHeader);
        }
        let packet = Ipv6Packet::new_checked(octets).map_err(|_| Reject::IpLength)?;
        let source = packet.src_addr();
        if source.is_multicast() || source.is_loopback() {
            return Err(Reject::IpSource);
        }
        match packet.next_header() {
            IpProtocol::Ipv6Frag => return Err(Reject::Fragment),
            IpProtocol::HopByHop | IpProtocol::Ipv6Route | IpProtocol::Ipv6Opts => {
                return Err(Reject::Extension);
            }
            _ => {}
        }
        Ok(Self {
            source: source.into(),
            destination: packet.dst_addr().into(),
            hop_limit: packet.hop_limit(),
            next: packet.next_header().into(),
            payload: packet.payload(),
        })
    }

    /// Source and destination.
    #[must_use]
    pub const fn ends(&self) -> (IpAddr, IpAddr) {
        (self.source, self.destination)
    }
}

/// Writes the header of an IPv4 packet at its front. It is never to be fragmented, and so needs no identification (RFC 6864
/// section 4.1). The caller has room for it, and no more octets than the length field can say.
pub(super) fn write_v4(
    packet: &mut [u8],
    (from, to): (Ipv4Addr, Ipv4Addr),
    next: u8,
    hop_limit: u8,
) {
    let length = length_of(packet);
    let mut header = Ipv4Packet::new_unchecked(&mut *packet);
    header.set_version(4);
    header.set_header_len(20);
    header.set_dscp(0);
    header.set_ecn(0);
    header.set_total_len(length);
    header.set_ident(0);
    header.clear_flags();
    header.set_dont_frag(true);
    header.set_frag_offset(0);
    header.set_hop_limit(hop_limit);
    header.set_next_header(next.into());
    header.set_src_addr(from);
    header.set_dst_addr(to);
    header.set_checksum(0);
    let sum = packet.get(..IPV4_BYTES).map_or(0, sum_of);
    Ipv4Packet::new_unchecked(packet).set_checksum(sum);
}

/// Writes the header of an IPv6 packet at its front; the caller has room for it.
pub(super) fn write_v6(
    packet: &mut [u8],
    (from, to): (Ipv6Addr, Ipv6Addr),
    next: u8,
    hop_limit: u8,
) {
    let length = length_of(packet.get(IPV6_BYTES..).unwrap_or(&[]));
    let mut header = Ipv6Packet::new_unchecked(packet);
    header.set_version(6);
    header.set_traffic_class(0);
    header.set_flow_label(0);
    header.set_payload_len(length);
    header.set_next_header(next.into());
    header.set_hop_limit(hop_limit);
    header.set_src_addr(from);
    header.set_dst_addr(to);
}

pub(super) fn length_of(octets: &[u8]) -> u16 {
    u16::try_from(octets.len()).unwrap_or(u16::MAX)
}
