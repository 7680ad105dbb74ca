//! What an IPoIB link carries: the octets of its frames, in both directions (RFC 4391 sections 6, 8 and 9).
//!
//! ```text
//!            | 4             | ...                                                    |
//! frame      | encapsulation | ARP, or IPv4 or IPv6 with UDP or neighbour discovery   |
//!
//!            | 1     | 3   | 16  |
//! hardware   | flags | QPN | GID |   in ARP and in the options of neighbour discovery
//! address
//! ```
//!
//! [`Packet::parse`] checks a whole frame once, and hands out values; whatever it refuses has a name ([`Reject`]). It
//! believes no length, no checksum and no address of a peer: what is inside an IP packet is bounded by the packet, and
//! what is behind it is padding, which is not looked at.
//!
//! **What is not done.** Fragments are refused, since nothing that control speaks is longer than the link's MTU. IPv6 extension
//! headers are refused. RARP is refused (RFC 4391 section 9.4 warns of it). Neither ICMP errors nor echoes are answered: a
//! host's own IP does that where there is one.
//!
//! **Connected mode** (RFC 4755). The first octet of a hardware address tells in which connected modes its owner can be
//! reached. It is parsed and kept ([`Modes`]), and what is sent says none, for the data path here is unreliable datagrams
//! alone. RFC 4755 section 3.1 has every interface support them, so a peer that *can* do more is a peer like any other, and
//! its flags decide nothing. A peer that *requires* a connection is one that tells no queue pair for datagrams, but flags:
//! [`HardwareAddress::check`] refuses it by that name, [`Reject::ConnectedOnly`].
//!
//! The headers of IPv4, IPv6 and UDP are read and written by `smoltcp`'s `wire` module; checksums are summed here, because
//! that crate takes all of them for right when it is fuzzed.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        clippy::panic
    )
)]

mod arp;
mod discovery;
mod encapsulation;
mod hardware;
mod ip;
mod reject;
mod sum;
mod udp;

pub use arp::{ARP_BYTES, Arp, Operation};
pub use discovery::{Advertisement, DISCOVERY_HOPS, Solicitation, solicited_node};
pub use encapsulation::{ENCAPSULATION_BYTES, Protocol, encapsulate, split};
pub use hardware::{HARDWARE_BYTES, HardwareAddress, Modes, link_local};
pub use ip::Ip;
pub use reject::Reject;
pub use udp::{Udp, emit_udp};

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'b> {
    /// A question for a hardware address by IPv4 address, or its answer.
    Arp(Arp),
    /// A question for a hardware address by IPv6 address.
    Solicitation(Solicitation),
    /// Its answer.
    Advertisement(Advertisement),
    /// A datagram.
    Udp(Udp<'b>),
}

impl<'b> Packet<'b> {
    /// Checks a frame from its encapsulation header on.
    ///
    /// # Errors
    ///
    /// Whatever is wrong first, from the outside in.
    pub fn parse(frame: &'b [u8]) -> Result<Self, Reject> {
        let (protocol, octets) = split(frame)?;
        match protocol {
            Protocol::Arp => Arp::parse(octets).map(Packet::Arp),
            Protocol::Ipv4 => Self::of_ip(&Ip::parse_v4(octets)?),
            Protocol::Ipv6 => Self::of_ip(&Ip::parse_v6(octets)?),
        }
    }

    /// Checks an IP packet of a family that is known from elsewhere.
    ///
    /// # Errors
    ///
    /// As [`Packet::parse`].
    pub fn of_ip(ip: &Ip<'b>) -> Result<Self, Reject> {
        match ip.next {
            ip::UDP => Udp::parse(ip).map(Packet::Udp),
            ip::ICMPV6 => discovery::parse(ip),
            _ => Err(Reject::Transport),
        }
    }
}
