//! The encapsulation header (RFC 4391 section 6).

use super::Reject;

/// Octets of the header before every packet.
pub const ENCAPSULATION_BYTES: usize = 4;

/// What a frame carries, by the numbers of Ethernet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Protocol {
    /// 0x0800.
    Ipv4,
    /// 0x0806.
    Arp,
    /// 0x86DD.
    Ipv6,
}

impl Protocol {
    /// Its number.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Ipv4 => 0x0800,
            Self::Arp => 0x0806,
            Self::Ipv6 => 0x86DD,
        }
    }

    const fn of(code: u16) -> Option<Self> {
        match code {
            0x0800 => Some(Self::Ipv4),
            0x0806 => Some(Self::Arp),
            0x86DD => Some(Self::Ipv6),
            _ => None,
        }
    }
}

/// The header of a frame that is sent: its reserved half is zero.
#[must_use]
pub const fn encapsulate(protocol: Protocol) -> [u8; ENCAPSULATION_BYTES] {
    let [high, low] = protocol.code().to_be_bytes();
    [high, low, 0, 0]
}

/// What a frame carries, and the packet. The reserved half of the header is ignored, as it has to be.
///
/// # Errors
///
/// [`Reject::Short`], [`Reject::Protocol`].
pub fn split(frame: &[u8]) -> Result<(Protocol, &[u8]), Reject> {
    let (&[high, low, _, _], packet) = frame.split_first_chunk().ok_or(Reject::Short)?;
    let code = u16::from_be_bytes([high, low]);
    let protocol = Protocol::of(code).ok_or(Reject::Protocol)?;
    Ok((protocol, packet))
}
