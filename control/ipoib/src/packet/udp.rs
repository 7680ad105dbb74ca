//! UDP datagrams (RFC 768), and the frames around them.

use super::ip::{self, IPV4_BYTES, IPV6_BYTES, Ip, length_of};
use super::sum::sum_of_message;
use super::{ENCAPSULATION_BYTES, Protocol, Reject, encapsulate};
use smoltcp::wire::{UDP_HEADER_LEN, UdpPacket};
use std::net::{IpAddr, SocketAddr};

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp<'b> {
    /// From whom; its address is unspecified of a host that has none yet.
    pub from: SocketAddr,
    /// To whom: a host, or a group.
    pub to: SocketAddr,
    /// Routers that its packet may still pass.
    pub hop_limit: u8,
    /// What it carries.
    pub payload: &'b [u8],
}

impl<'b> Udp<'b> {
    /// Checks a packet's datagram. What is behind it in the packet is padding.
    ///
    /// # Errors
    ///
    /// A length, the checksum or a port is wrong. IPv4 may leave the checksum out, IPv6 may not.
    pub fn parse(ip: &Ip<'b>) -> Result<Self, Reject> {
        let packet = UdpPacket::new_checked(ip.payload).map_err(|_| Reject::UdpLength)?;
        let whole = ip.payload.get(..packet.len().into());
        let whole = whole.ok_or(Reject::UdpLength)?;
        let summed = packet.checksum() != 0;
        let right = match (summed, ip.source) {
            (true, _) => sum_of_message(ip.ends(), ip::UDP, whole) == 0,
            (false, IpAddr::V4(_)) => true,
            (false, IpAddr::V6(_)) => false,
        };
        if !right {
            return Err(Reject::UdpSum);
        }
        if packet.src_port() == 0 || packet.dst_port() == 0 {
            return Err(Reject::UdpPort);
        }
        Ok(Self {
            from: SocketAddr::new(ip.source, packet.src_port()),
            to: SocketAddr::new(ip.destination, packet.dst_port()),
            hop_limit: ip.hop_limit,
            payload: packet.payload(),
        })
    }
}

/// Writes a datagram's frame into `frame`, whatever was there before. `false`, and nothing in it, where the addresses are
/// not of one family or the packet would be longer than it can say.
#[must_use]
pub fn emit_udp(frame: &mut Vec<u8>, datagram: &Udp<'_>) -> bool {
    frame.clear();
    let ends = (datagram.from.ip(), datagram.to.ip());
    let (protocol, head_bytes) = match ends {
        (IpAddr::V4(_), IpAddr::V4(_)) => (Protocol::Ipv4, IPV4_BYTES),
        (IpAddr::V6(_), IpAddr::V6(_)) => (Protocol::Ipv6, IPV6_BYTES),
        _ => return false,
    };
    let datagram_bytes = UDP_HEADER_LEN.saturating_add(datagram.payload.len());
    if head_bytes.saturating_add(datagram_bytes) > usize::from(u16::MAX) {
        return false;
    }
    frame.extend_from_slice(&encapsulate(protocol));
    let head_end = frame.len().saturating_add(head_bytes);
    frame.resize(head_end.saturating_add(UDP_HEADER_LEN), 0);
    frame.extend_from_slice(datagram.payload);
    if let Some(message) = frame.get_mut(head_end..) {
        write_datagram(message, datagram);
    }
    if let Some(packet) = frame.get_mut(ENCAPSULATION_BYTES..) {
        match ends {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                ip::write_v4(packet, (from, to), ip::UDP, datagram.hop_limit);
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                ip::write_v6(packet, (from, to), ip::UDP, datagram.hop_limit);
            }
            _ => return false,
        }
    }
    true
}

fn write_datagram(message: &mut [u8], datagram: &Udp<'_>) {
    let length = length_of(message);
    let mut header = UdpPacket::new_unchecked(&mut *message);
    header.set_src_port(datagram.from.port());
    header.set_dst_port(datagram.to.port());
    header.set_len(length);
    header.set_checksum(0);
    let ends = (datagram.from.ip(), datagram.to.ip());
    // A checksum that is zero goes as all ones: zero says that there is none.
    let sum = match sum_of_message(ends, ip::UDP, message) {
        0 => 0xFFFF,
        sum => sum,
    };
    UdpPacket::new_unchecked(message).set_checksum(sum);
}
