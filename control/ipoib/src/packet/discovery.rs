//! Discovery of neighbours in IPv6 with addresses of 20 octets (RFC 4391 section 9.3, RFC 4861 sections 4.3, 4.4 and 7.1).

use super::ip::{self, IPV6_BYTES, Ip};
use super::sum::sum_of_message;
use super::{
    ENCAPSULATION_BYTES, HARDWARE_BYTES, HardwareAddress, Packet, Protocol, Reject, encapsulate,
};
use std::net::{IpAddr, Ipv6Addr};
use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The hop limit of every message: no router has passed it on.
pub const DISCOVERY_HOPS: u8 = 255;

const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const SOURCE_ADDRESS: u8 = 1;
const TARGET_ADDRESS: u8 = 2;
/// Of the option, in units of eight octets: type, length, two octets of padding, and the address.
const OPTION_UNITS: u8 = 3;
const OPTION_BYTES: usize = 24;

const ROUTER: u8 = 0x80;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

/// A question for the hardware address of an IPv6 address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Solicitation {
    /// Who asks; unspecified of one that looks whether the address is free (RFC 4862).
    pub source: Ipv6Addr,
    /// Whom: the target, or the group that it is in.
    pub destination: Ipv6Addr,
    /// The address that is asked for.
    pub target: Ipv6Addr,
    /// The asker's own hardware address.
    pub hardware: Option<HardwareAddress>,
}

/// The answer, or word of a change without a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Advertisement {
    /// Who speaks.
    pub source: Ipv6Addr,
    /// To whom.
    pub destination: Ipv6Addr,
    /// The address that it is about.
    pub target: Ipv6Addr,
    /// Its hardware address.
    pub hardware: Option<HardwareAddress>,
    /// The speaker is a router.
    pub router: bool,
    /// A question of ours is answered.
    pub solicited: bool,
    /// What is known already is to be replaced.
    pub overrides: bool,
}

/// The octets of both messages before their options.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct MessageOctets {
    kind: u8,
    code: u8,
    sum: U16,
    flags: u8,
    reserved: [u8; 3],
    target: [u8; 16],
}

/// The option that has a hardware address.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct AddressOption {
    kind: u8,
    units: u8,
    padding: [u8; 2],
    address: [u8; HARDWARE_BYTES],
}

const _: () = assert!(size_of::<AddressOption>() == OPTION_BYTES);

/// The group in which an address is asked for (RFC 4291 section 2.7.1): FF02::1:FFxx:xxxx.
#[must_use]
pub const fn solicited_node(target: Ipv6Addr) -> Ipv6Addr {
    let prefix = 0xFF02_0000_0000_0000_0000_0001_FF00_0000_u128;
    Ipv6Addr::from_bits(prefix | (target.to_bits() & 0xFF_FFFF))
}

/// Checks a message of ICMPv6 that came in an IPv6 packet.
pub(super) fn parse<'b>(ip: &Ip<'b>) -> Result<Packet<'b>, Reject> {
    let (IpAddr::V6(source), IpAddr::V6(destination)) = ip.ends() else {
        return Err(Reject::Transport);
    };
    let kind = ip.payload.first().copied();
    let Some(kind @ (SOLICITATION | ADVERTISEMENT)) = kind else {
        return Err(Reject::IcmpType);
    };
    if sum_of_message(ip.ends(), ip::ICMPV6, ip.payload) != 0 {
        return Err(Reject::IcmpSum);
    }
    if ip.hop_limit != DISCOVERY_HOPS {
        return Err(Reject::DiscoveryHops);
    }
    let (message, options) =
        MessageOctets::ref_from_prefix(ip.payload).map_err(|_| Reject::DiscoveryShort)?;
    if message.code != 0 {
        return Err(Reject::DiscoveryShort);
    }
    let target = Ipv6Addr::from(message.target);
    if target.is_multicast() || target.is_unspecified() || target.is_loopback() {
        return Err(Reject::DiscoveryTarget);
    }
    let wanted = if kind == SOLICITATION {
        SOURCE_ADDRESS
    } else {
        TARGET_ADDRESS
    };
    let hardware = find_address(options, wanted)?;
    if kind == SOLICITATION {
        let solicitation = Solicitation {
            source,
            destination,
            target,
            hardware,
        };
        return solicitation.check().map(Packet::Solicitation);
    }
    let advertisement = Advertisement {
        source,
        destination,
        target,
        hardware,
        router: message.flags & ROUTER != 0,
        solicited: message.flags & SOLICITED != 0,
        overrides: message.flags & OVERRIDE != 0,
    };
    advertisement.check().map(Packet::Advertisement)
}

/// Goes through the options. The first of the wanted kind counts; those of other kinds are skipped.
fn find_address(mut options: &[u8], wanted: u8) -> Result<Option<HardwareAddress>, Reject> {
    let mut found = None;
    while let [kind, units, ..] = *options {
        let bytes = usize::from(units).saturating_mul(8);
        let (option, rest) = options
            .split_at_checked(bytes)
            .filter(|_| bytes > 0)
            .ok_or(Reject::DiscoveryOption)?;
        if kind == wanted && found.is_none() {
            let option =
                AddressOption::ref_from_bytes(option).map_err(|_| Reject::DiscoveryAddress)?;
            found = Some(HardwareAddress::of_octets(&option.address).check()?);
        }
        options = rest;
    }
    match options {
        [] => Ok(found),
        _ => Err(Reject::DiscoveryOption),
    }
}

impl Solicitation {
    /// RFC 4861 section 7.1.1: who has no address asks the group, and says no hardware address.
    fn check(self) -> Result<Self, Reject> {
        let group = solicited_node(self.target);
        let probe = self.destination == group && self.hardware.is_none();
        if self.source.is_unspecified() && !probe {
            return Err(Reject::DiscoverySource);
        }
        Ok(self)
    }

    /// The frame of it.
    #[must_use]
    pub fn frame(&self) -> Vec<u8> {
        let option = self.hardware.map(|it| (SOURCE_ADDRESS, it));
        let message = (SOLICITATION, 0, self.target);
        frame(message, option, (self.source, self.destination))
    }
}

impl Advertisement {
    /// RFC 4861 section 7.1.2: what goes to all was not asked for by all.
    fn check(self) -> Result<Self, Reject> {
        let to_all = self.destination.is_multicast() && self.solicited;
        if to_all || self.source.is_unspecified() {
            return Err(Reject::DiscoverySource);
        }
        Ok(self)
    }

    /// The frame of it.
    #[must_use]
    pub fn frame(&self) -> Vec<u8> {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let flags = flag(self.router, ROUTER)
            | flag(self.solicited, SOLICITED)
            | flag(self.overrides, OVERRIDE);
        let option = self.hardware.map(|it| (TARGET_ADDRESS, it));
        let message = (ADVERTISEMENT, flags, self.target);
        frame(message, option, (self.source, self.destination))
    }
}

/// A frame with its encapsulation and IPv6 headers, the message and its option.
fn frame(
    (kind, flags, target): (u8, u8, Ipv6Addr),
    option: Option<(u8, HardwareAddress)>,
    ends: (Ipv6Addr, Ipv6Addr),
) -> Vec<u8> {
    let mut message = MessageOctets {
        kind,
        code: 0,
        sum: U16::ZERO,
        flags,
        reserved: [0; 3],
        target: target.octets(),
    };
    let option = option.map(|(kind, hardware)| AddressOption {
        kind,
        units: OPTION_UNITS,
        padding: [0; 2],
        address: hardware.octets(),
    });
    let option = option.as_ref().map_or(&[][..], IntoBytes::as_bytes);
    let whole = [message.as_bytes(), option].concat();
    let (from, to) = ends;
    message.sum = U16::new(sum_of_message((from.into(), to.into()), ip::ICMPV6, &whole));
    let head = [0; IPV6_BYTES];
    let encapsulation = encapsulate(Protocol::Ipv6);
    let mut frame = [&encapsulation[..], &head, message.as_bytes(), option].concat();
    if let Some(packet) = frame.get_mut(ENCAPSULATION_BYTES..) {
        ip::write_v6(packet, ends, ip::ICMPV6, DISCOVERY_HOPS);
    }
    frame
}
