//! What is checked of a frame before anything in it is believed.
//!
//! Lengths come first, from the outside in, each against what the layer around it holds; then who
//! it is for; then who it is from; then checksums. What is left over at the end of a packet is
//! padding, and is not looked at.

use crate::depart::datagram_sum;
use crate::refused::Refused;
use crate::short::{DISCOVERY_HOPS, Short, icmp_sum};
use crate::station::{Mac, Station};
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, ETHERNET_HEADER_LEN, EthernetFrame, EthernetProtocol,
    Icmpv6Message, Icmpv6Packet, IpProtocol, Ipv4Packet, Ipv6Packet, NdiscNeighborFlags, NdiscRepr,
    RawHardwareAddress, UDP_HEADER_LEN, UdpPacket,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

/// What a frame came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A datagram for this station.
    Datagram(Datagram),
    /// A question: this is the answer to send.
    Answer(Short),
    /// Nothing that anybody has to do something about.
    Nothing,
}

/// A datagram for this station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Who sent it.
    pub from: SocketAddr,
    /// The port that it is for.
    pub port: u16,
    /// Which octets of the frame it is.
    pub octets: Range<usize>,
}

/// What a frame says.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    Datagram(Datagram),
    /// Somebody asks for the station's address.
    Wanted {
        by: (Mac, IpAddr),
    },
    /// A neighbour answers, or says so without being asked; whether it is sure.
    Neighbour {
        ip: IpAddr,
        mac: Mac,
        asked: bool,
        sure: bool,
    },
    /// An echo is asked for.
    Echo {
        by: (Mac, IpAddr),
        request: &'a [u8],
    },
    /// Nothing of interest.
    Nothing,
}

const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Types of ICMP messages that ask for an echo, of both versions.
const ECHO_REQUEST: [u8; 2] = [8, 128];

/// Looks at a frame.
pub(crate) fn examine<'a>(station: &Station, frame: &'a [u8]) -> Result<Found<'a>, Refused> {
    let ethernet = EthernetFrame::new_checked(frame).map_err(|_| Refused::Short)?;
    let kind = ethernet.ethertype();
    if TAGS.contains(&kind.into()) {
        return Err(Refused::Tagged);
    }
    let (to, from) = (
        Mac::from(ethernet.dst_addr()),
        Mac::from(ethernet.src_addr()),
    );
    if to != station.mac && !to.is_group() {
        return Err(Refused::NotOurs);
    }
    if from.is_group() {
        return Err(Refused::Source);
    }
    let packet = ethernet.payload();
    match (kind, station.ip()) {
        (EthernetProtocol::Arp, IpAddr::V4(own)) => examine_arp(station, own, from, packet),
        (EthernetProtocol::Ipv4, IpAddr::V4(own)) => examine_ipv4(station, own, (from, to), packet),
        (EthernetProtocol::Ipv6, IpAddr::V6(own)) => examine_ipv6(station, own, (from, to), packet),
        _ => Err(Refused::Kind),
    }
}

fn examine_arp<'a>(
    station: &Station,
    own: Ipv4Addr,
    sender: Mac,
    packet: &[u8],
) -> Result<Found<'a>, Refused> {
    let packet = ArpPacket::new_checked(packet).map_err(|_| Refused::Arp)?;
    let ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr,
        source_protocol_addr,
        target_protocol_addr,
        ..
    } = ArpRepr::parse(&packet).map_err(|_| Refused::Arp)?
    else {
        return Err(Refused::Arp);
    };
    let mac = Mac::from(source_hardware_addr);
    // Who speaks for another one is not believed.
    if mac != sender || mac.is_group() {
        return Err(Refused::Arp);
    }
    let ip = IpAddr::from(source_protocol_addr);
    let asks = operation == ArpOperation::Request && target_protocol_addr == own;
    // A probe of one that has no address yet (RFC 5227 section 2.1.1).
    if source_protocol_addr.is_unspecified() {
        let by = (mac, ip);
        return Ok(if asks {
            Found::Wanted { by }
        } else {
            Found::Nothing
        });
    }
    if !station.is_host(ip) || !station.is_neighbour(ip) || source_protocol_addr == own {
        return Err(Refused::Source);
    }
    Ok(match (operation, asks) {
        (ArpOperation::Request, true) => Found::Wanted { by: (mac, ip) },
        (ArpOperation::Request | ArpOperation::Reply, _) => Found::Neighbour {
            ip,
            mac,
            asked: operation == ArpOperation::Reply && target_protocol_addr == own,
            sure: true,
        },
        _ => return Err(Refused::Arp),
    })
}

/// The packet is from one host to this one.
fn check_ends(station: &Station, macs: (Mac, Mac), ends: (IpAddr, IpAddr)) -> Result<(), Refused> {
    if ends.1 != station.ip() || macs.1 != station.mac {
        return Err(Refused::NotOurs);
    }
    // From the station itself comes only what it sent: a port whose cable leads back.
    let own = ends.0 == station.ip() && macs.0 != station.mac;
    if own || !station.is_host(ends.0) {
        return Err(Refused::Source);
    }
    Ok(())
}

fn examine_ipv4<'a>(
    station: &Station,
    own: Ipv4Addr,
    macs: (Mac, Mac),
    octets: &'a [u8],
) -> Result<Found<'a>, Refused> {
    let packet = Ipv4Packet::new_checked(octets).map_err(|_| Refused::Short)?;
    if packet.version() != 4 || packet.header_len() < 20 {
        return Err(Refused::Header);
    }
    let ends = (packet.src_addr().into(), packet.dst_addr().into());
    if ends.1 != IpAddr::from(own) {
        return Err(Refused::NotOurs);
    }
    if !packet.verify_checksum() {
        return Err(Refused::HeaderSum);
    }
    check_ends(station, macs, ends)?;
    if packet.more_frags() || packet.frag_offset() != 0 {
        return Err(Refused::Fragment);
    }
    let start = ETHERNET_HEADER_LEN + usize::from(packet.header_len());
    match packet.next_header() {
        IpProtocol::Udp => examine_datagram(ends, packet.payload(), start),
        IpProtocol::Icmp => examine_echo((macs.0, ends.0), ends, packet.payload()),
        _ => Err(Refused::Protocol),
    }
}

fn examine_ipv6<'a>(
    station: &Station,
    own: Ipv6Addr,
    macs: (Mac, Mac),
    octets: &'a [u8],
) -> Result<Found<'a>, Refused> {
    let packet = Ipv6Packet::new_checked(octets).map_err(|_| Refused::Short)?;
    if packet.version() != 6 {
        return Err(Refused::Header);
    }
    let (from, to) = (packet.src_addr(), packet.dst_addr());
    let ends = (from.into(), to.into());
    let payload = packet.payload();
    let asks = packet.next_header() == IpProtocol::Icmpv6
        && payload
            .first()
            .is_some_and(|kind| matches!(kind, 135 | 136));
    if asks {
        return examine_discovery(
            station,
            own,
            (macs.0, from, to),
            packet.hop_limit(),
            payload,
        );
    }
    check_ends(station, macs, ends)?;
    match packet.next_header() {
        IpProtocol::Udp => {
            examine_datagram(ends, payload, ETHERNET_HEADER_LEN + packet.header_len())
        }
        IpProtocol::Icmpv6 => examine_echo((macs.0, ends.0), ends, payload),
        IpProtocol::Ipv6Frag => Err(Refused::Fragment),
        _ => Err(Refused::Protocol),
    }
}

fn examine_datagram<'a>(
    ends: (IpAddr, IpAddr),
    payload: &[u8],
    start: usize,
) -> Result<Found<'a>, Refused> {
    let datagram = UdpPacket::new_checked(payload).map_err(|_| Refused::Short)?;
    let len = usize::from(datagram.len());
    let whole = payload.get(..len).ok_or(Refused::Short)?;
    // None of IPv4's is to be had; of IPv6 it has to be there (RFC 8200 section 8.1).
    let unsummed = datagram.checksum() == 0 && ends.0.is_ipv4();
    if !unsummed && (datagram.checksum() == 0 || datagram_sum(whole, ends) != 0) {
        return Err(Refused::DatagramSum);
    }
    // Nobody can be answered there.
    if datagram.src_port() == 0 {
        return Err(Refused::Source);
    }
    Ok(Found::Datagram(Datagram {
        from: SocketAddr::new(ends.0, datagram.src_port()),
        port: datagram.dst_port(),
        octets: start + UDP_HEADER_LEN..start + len,
    }))
}

fn examine_echo(
    by: (Mac, IpAddr),
    ends: (IpAddr, IpAddr),
    message: &[u8],
) -> Result<Found<'_>, Refused> {
    let (Some(kind), Some(code)) = (message.first(), message.get(1)) else {
        return Err(Refused::Icmp);
    };
    if icmp_sum(message, ends) != 0 {
        return Err(Refused::Icmp);
    }
    if !ECHO_REQUEST.contains(kind) {
        return Ok(Found::Nothing);
    }
    if *code != 0 || message.len() < 8 {
        return Err(Refused::Icmp);
    }
    let request = message;
    Ok(Found::Echo { by, request })
}

/// RFC 4861 sections 7.1.1 and 7.1.2.
fn examine_discovery<'a>(
    station: &Station,
    own: Ipv6Addr,
    way: (Mac, Ipv6Addr, Ipv6Addr),
    hops: u8,
    message: &[u8],
) -> Result<Found<'a>, Refused> {
    let (sender, from, to) = way;
    let packet = Icmpv6Packet::new_checked(message).map_err(|_| Refused::Icmp)?;
    let sum = icmp_sum(message, (from.into(), to.into()));
    if hops != DISCOVERY_HOPS || packet.msg_code() != 0 || sum != 0 {
        return Err(Refused::Icmp);
    }
    let group = Station::group_of(own);
    let says = NdiscRepr::parse(&packet).map_err(|_| Refused::Icmp)?;
    match (packet.msg_type(), says) {
        (
            Icmpv6Message::NeighborSolicit,
            NdiscRepr::NeighborSolicit {
                target_addr,
                lladdr,
            },
        ) => {
            if target_addr != own {
                return Ok(Found::Nothing);
            }
            if from.is_unspecified() {
                // Somebody looks whether the address is free (RFC 4862 section 5.4).
                let is_probe = to == group && lladdr.is_none();
                let by = (sender, from.into());
                return is_probe
                    .then_some(Found::Wanted { by })
                    .ok_or(Refused::Icmp);
            }
            if !station.is_host(from.into()) || from == own || (to != own && to != group) {
                return Err(Refused::Icmp);
            }
            let mac = lladdr.map_or(Ok(sender), address_of)?;
            let by = (mac, from.into());
            Ok(Found::Wanted { by })
        }
        (
            Icmpv6Message::NeighborAdvert,
            NdiscRepr::NeighborAdvert {
                flags,
                target_addr,
                lladdr,
            },
        ) => {
            let asked = flags.contains(NdiscNeighborFlags::SOLICITED);
            let ip = IpAddr::from(target_addr);
            if (asked && to.is_multicast()) || !station.is_host(ip) || target_addr == own {
                return Err(Refused::Icmp);
            }
            Ok(Found::Neighbour {
                ip,
                mac: lladdr.map_or(Ok(sender), address_of)?,
                asked,
                sure: flags.contains(NdiscNeighborFlags::OVERRIDE),
            })
        }
        _ => Err(Refused::Icmp),
    }
}

fn address_of(raw: RawHardwareAddress) -> Result<Mac, Refused> {
    let octets = <[u8; 6]>::try_from(raw.as_bytes()).map_err(|_| Refused::Icmp)?;
    Some(Mac(octets))
        .filter(|mac| !mac.is_group())
        .ok_or(Refused::Icmp)
}
