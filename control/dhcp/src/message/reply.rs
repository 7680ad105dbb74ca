//! What a server says, and what is believed of it.

use super::{ClientIdentifier, FIXED_BYTES, INFINIBAND, MAGIC, MOST_BYTES, option};
use ipnet::Ipv4Net;
use rpcrdma_unicast::judge;
use smoltcp::wire::{ArpHardware, DhcpOpCode, DhcpOption, DhcpPacket};
use std::net::Ipv4Addr;

/// What a server says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Of the exchange.
    pub xid: u32,
    /// Which server.
    pub server: Ipv4Addr,
    /// What.
    pub says: Says,
}

/// The three replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// DHCPOFFER.
    Offer(Given),
    /// DHCPACK.
    Ack(Given),
    /// DHCPNAK.
    Nak,
}

/// An address with what goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// The address and its network.
    pub address: Ipv4Net,
    /// How long, in seconds.
    pub seconds: u32,
    /// T1, T2, in seconds.
    pub t1: Option<u32>,
    /// See `t1`.
    pub t2: Option<u32>,
}

rpcrdma_listed::listed! {
    /// Why a datagram is no reply that counts. One counter each.
    pub Reject {
        /// Too short, too long, no reply, or without the magic number.
        NotAReply,
        /// For another client: its identifier is not ours (RFC 6842), or its hardware type is not.
        NotMine,
        /// Without a message type, or of one that no server sends to a client.
        Type,
        /// Without server identifier, address or lease time, or with one that cannot be.
        Contents,
        /// To another exchange, or not waited for.
        NotAsked,
    }
}

/// Reads a UDP payload that came to the client's port.
///
/// # Errors
///
/// [`Reject`], any but `NotAsked`.
pub fn parse(octets: &[u8], client: &ClientIdentifier) -> Result<Reply, Reject> {
    if !(FIXED_BYTES..=MOST_BYTES).contains(&octets.len()) {
        return Err(Reject::NotAReply);
    }
    let packet = DhcpPacket::new_checked(octets).map_err(|_| Reject::NotAReply)?;
    if packet.opcode() != DhcpOpCode::Reply || packet.magic_number() != MAGIC {
        return Err(Reject::NotAReply);
    }
    if packet.hardware_type() != ArpHardware::Unknown(INFINIBAND) {
        return Err(Reject::NotMine);
    }
    let options = Options(&packet);
    if options
        .find(option::CLIENT)
        .is_some_and(|it| it != client.octets())
    {
        return Err(Reject::NotMine);
    }
    let server = options.address(option::SERVER).ok_or(Reject::Contents)?;
    let says = match options.find(option::TYPE) {
        Some(&[2]) => Says::Offer(given(&packet, &options).ok_or(Reject::Contents)?),
        Some(&[5]) => Says::Ack(given(&packet, &options).ok_or(Reject::Contents)?),
        Some(&[6]) => Says::Nak,
        _ => return Err(Reject::Type),
    };
    Ok(Reply {
        xid: packet.transaction_id(),
        server,
        says,
    })
}

fn given(packet: &DhcpPacket<&[u8]>, options: &Options<'_>) -> Option<Given> {
    let length = options.address(option::MASK).map_or(Some(32), prefix)?;
    let address = Ipv4Net::new(packet.your_ip(), length).ok()?;
    judge(&address.into()).ok()?;
    Some(Given {
        address,
        seconds: options.word(option::LEASE_TIME).filter(|&it| it > 0)?,
        t1: options.word(option::T1),
        t2: options.word(option::T2),
    })
}

/// The length of a mask without gaps.
fn prefix(mask: Ipv4Addr) -> Option<u8> {
    let length = mask.to_bits().leading_ones();
    let whole = mask.to_bits().count_ones() == length;
    whole.then(|| u8::try_from(length).ok())?
}

/// The options of a message; the first of a number counts.
pub(super) struct Options<'a>(pub(super) &'a DhcpPacket<&'a [u8]>);

impl<'a> Options<'a> {
    pub(super) fn find(&self, number: u8) -> Option<&'a [u8]> {
        let found: Option<DhcpOption<'a>> = self.0.options().find(|it| it.kind == number);
        found.map(|it| it.data)
    }

    fn word(&self, number: u8) -> Option<u32> {
        Some(u32::from_be_bytes(self.find(number)?.try_into().ok()?))
    }

    fn address(&self, number: u8) -> Option<Ipv4Addr> {
        self.word(number).map(Ipv4Addr::from_bits)
    }
}
