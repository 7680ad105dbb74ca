//! ARP with addresses of 20 octets (RFC 4391 section 9.2, RFC 826).

use super::{HARDWARE_BYTES, HardwareAddress, Protocol, Reject, encapsulate};
use rpcrdma_unicast::is_v4_of_a_host;
use std::net::Ipv4Addr;
use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Octets of a message, without the encapsulation header.
pub const ARP_BYTES: usize = 56;

const INFINIBAND: u16 = 32;
const IPV4: u16 = 0x0800;
const IPV4_BYTES: u8 = 4;

/// What a message does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u16)]
pub enum Operation {
    /// It asks.
    Request = 1,
    /// It answers.
    Reply = 2,
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arp {
    /// It asks, or it answers.
    pub operation: Operation,
    /// Who speaks: checked, a datagram can go there.
    pub sender: HardwareAddress,
    /// The address that it says is its own; unspecified of one that looks whether an address is free (RFC 5227).
    pub sender_ip: Ipv4Addr,
    /// Who is spoken to: of no meaning in a request.
    pub target: HardwareAddress,
    /// The address that is asked for; of an answer, who asked.
    pub target_ip: Ipv4Addr,
}

/// The octets of a message.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ArpOctets {
    hardware: U16,
    protocol: U16,
    hardware_bytes: u8,
    protocol_bytes: u8,
    operation: U16,
    sender: [u8; HARDWARE_BYTES],
    sender_ip: [u8; 4],
    target: [u8; HARDWARE_BYTES],
    target_ip: [u8; 4],
}

const _: () = assert!(size_of::<ArpOctets>() == ARP_BYTES);

impl Arp {
    /// Checks a message from its hardware type on. What is behind it is padding.
    ///
    /// # Errors
    ///
    /// It is short, about other addresses than these, neither question nor answer, or from one that cannot be answered.
    pub fn parse(octets: &[u8]) -> Result<Self, Reject> {
        let (octets, _) = ArpOctets::ref_from_prefix(octets).map_err(|_| Reject::ArpShort)?;
        if octets.hardware.get() != INFINIBAND
            || usize::from(octets.hardware_bytes) != HARDWARE_BYTES
        {
            return Err(Reject::ArpHardware);
        }
        if octets.protocol.get() != IPV4 || octets.protocol_bytes != IPV4_BYTES {
            return Err(Reject::ArpProtocol);
        }
        let operation = match octets.operation.get() {
            1 => Operation::Request,
            2 => Operation::Reply,
            _ => return Err(Reject::ArpOperation),
        };
        let sender_ip = Ipv4Addr::from(octets.sender_ip);
        let probe = operation == Operation::Request && sender_ip.is_unspecified();
        if !probe && !is_v4_of_a_host(sender_ip) {
            return Err(Reject::ArpSender);
        }
        Ok(Self {
            operation,
            sender: HardwareAddress::of_octets(&octets.sender).check()?,
            sender_ip,
            target: HardwareAddress::of_octets(&octets.target),
            target_ip: Ipv4Addr::from(octets.target_ip),
        })
    }

    /// The frame of it, with its encapsulation header.
    #[must_use]
    pub fn frame(&self) -> Vec<u8> {
        let octets = ArpOctets {
            hardware: U16::new(INFINIBAND),
            protocol: U16::new(IPV4),
            hardware_bytes: 20,
            protocol_bytes: IPV4_BYTES,
            operation: U16::new(self.operation as u16),
            sender: self.sender.octets(),
            sender_ip: self.sender_ip.octets(),
            target: self.target.octets(),
            target_ip: self.target_ip.octets(),
        };
        [&encapsulate(Protocol::Arp), octets.as_bytes()].concat()
    }
}
