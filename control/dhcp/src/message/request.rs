//! What a client says: table 5 of RFC 2131.

use super::{ClientIdentifier, FIXED_BYTES, INFINIBAND, LEAST_BYTES, MAGIC, option};
use smoltcp::wire::{ArpHardware, DhcpFlags, DhcpMessageType, DhcpOpCode, DhcpPacket};
use std::net::Ipv4Addr;

/// A message of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// DHCPDISCOVER, perhaps with a wish.
    Discover(Option<Ipv4Addr>),
    /// DHCPREQUEST in SELECTING: this offer of this server.
    Select {
        /// The offered address.
        address: Ipv4Addr,
        /// Whose offer.
        server: Ipv4Addr,
    },
    /// DHCPREQUEST in INIT-REBOOT: the address of before.
    Reboot(Ipv4Addr),
    /// DHCPREQUEST in RENEWING and REBINDING: more time for the address in use.
    Extend(Ipv4Addr),
    /// DHCPDECLINE: somebody else has it.
    Decline {
        /// The address.
        address: Ipv4Addr,
        /// Who gave it.
        server: Ipv4Addr,
    },
    /// DHCPRELEASE: not needed any more.
    Release {
        /// The address.
        address: Ipv4Addr,
        /// Who gave it.
        server: Ipv4Addr,
    },
}

impl Kind {
    /// The server is asked to broadcast its answer, having no way to send to a client without an address: in DISCOVER, and in
    /// REQUEST of SELECTING and INIT-REBOOT; not in RENEWING and REBINDING, whose answers come to the address in use (the list's
    /// clarification of the BROADCAST flag, RFC 4390 section 2.2).
    #[must_use]
    pub const fn broadcasts(self) -> bool {
        matches!(
            self,
            Self::Discover(_) | Self::Select { .. } | Self::Reboot(_)
        )
    }

    /// `ciaddr`: the address in use, else zero.
    const fn client_address(self) -> Ipv4Addr {
        match self {
            Self::Extend(address) | Self::Release { address, .. } => address,
            _ => Ipv4Addr::UNSPECIFIED,
        }
    }

    const fn requested(self) -> Option<Ipv4Addr> {
        match self {
            Self::Discover(wish) => wish,
            Self::Select { address, .. }
            | Self::Reboot(address)
            | Self::Decline { address, .. } => Some(address),
            Self::Extend(_) | Self::Release { .. } => None,
        }
    }

    const fn server(self) -> Option<Ipv4Addr> {
        match self {
            Self::Select { server, .. }
            | Self::Decline { server, .. }
            | Self::Release { server, .. } => Some(server),
            _ => None,
        }
    }

    const fn message_type(self) -> DhcpMessageType {
        match self {
            Self::Discover(_) => DhcpMessageType::Discover,
            Self::Select { .. } | Self::Reboot(_) | Self::Extend(_) => DhcpMessageType::Request,
            Self::Decline { .. } => DhcpMessageType::Decline,
            Self::Release { .. } => DhcpMessageType::Release,
        }
    }

    /// Table 5 of RFC 2131: nothing is asked for in DECLINE and RELEASE.
    const fn asks(self) -> bool {
        !matches!(self, Self::Decline { .. } | Self::Release { .. })
    }
}

/// A message of a client, as a UDP payload.
#[must_use]
pub fn emit(kind: Kind, xid: u32, seconds: u16, client: &ClientIdentifier) -> Vec<u8> {
    let mut octets = vec![0; FIXED_BYTES];
    let mut packet = DhcpPacket::new_unchecked(&mut octets[..]);
    packet.set_opcode(DhcpOpCode::Request);
    packet.set_hardware_type(ArpHardware::Unknown(INFINIBAND));
    packet.set_hardware_len(0);
    packet.set_transaction_id(xid);
    packet.set_secs(seconds);
    packet.set_flags(match kind.broadcasts() {
        true => DhcpFlags::BROADCAST,
        false => DhcpFlags::empty(),
    });
    packet.set_client_ip(kind.client_address());
    packet.set_magic_number(MAGIC);
    let mut put = |kind: u8, data: &[u8]| {
        // Every option here is of a few octets.
        octets.extend([kind, u8::try_from(data.len()).unwrap_or_default()]);
        octets.extend(data);
    };
    put(option::TYPE, &[kind.message_type().into()]);
    put(option::CLIENT, client.octets());
    if let Some(address) = kind.requested() {
        put(option::REQUESTED, &address.octets());
    }
    if let Some(server) = kind.server() {
        put(option::SERVER, &server.octets());
    }
    if kind.asks() {
        let wanted = [option::MASK, option::T1, option::T2];
        put(option::PARAMETERS, &wanted);
        put(option::LONGEST, &1472_u16.to_be_bytes());
    }
    octets.push(option::END);
    octets.resize(octets.len().max(LEAST_BYTES), 0);
    octets
}
