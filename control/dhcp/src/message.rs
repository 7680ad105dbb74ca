//! The messages as octets: RFC 2131 section 2 and table 5, with the fields as RFC 4390 section 2.1 wants them.

use ipnet::Ipv4Net;
use smoltcp::wire::{ArpHardware, DhcpFlags, DhcpMessageType, DhcpOpCode, DhcpOption, DhcpPacket};
use std::net::Ipv4Addr;

pub use smoltcp::wire::{DHCP_CLIENT_PORT as CLIENT_PORT, DHCP_SERVER_PORT as SERVER_PORT};

/// The hardware type of InfiniBand (RFC 4390 section 2.1).
pub const INFINIBAND: u16 = 32;
/// The least length of a message, in octets: what BOOTP's were (RFC 1542 section 2.1).
pub const LEAST_BYTES: usize = 300;
/// The longest message taken, in octets: an IPoIB link carries no longer datagram.
pub const MOST_BYTES: usize = 4092;

const MAGIC: u32 = 0x6382_5363;
const FIXED_BYTES: usize = 240;

/// Option numbers (RFC 2132).
mod option {
    pub(super) const MASK: u8 = 1;
    pub(super) const ROUTER: u8 = 3;
    pub(super) const MTU: u8 = 26;
    pub(super) const REQUESTED: u8 = 50;
    pub(super) const LEASE_TIME: u8 = 51;
    pub(super) const TYPE: u8 = 53;
    pub(super) const SERVER: u8 = 54;
    pub(super) const PARAMETERS: u8 = 55;
    pub(super) const LONGEST: u8 = 57;
    pub(super) const T1: u8 = 58;
    pub(super) const T2: u8 = 59;
    pub(super) const CLIENT: u8 = 61;
    pub(super) const END: u8 = 255;
}

/// Who the client is (RFC 4361 section 6.1): type 255, an identifier of the interface, and a DUID of its port's GUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientIdentifier([u8; 17]);

impl ClientIdentifier {
    /// Of a port's GUID and the partition of the link: each link is an interface of its own. The DUID is one of a link-layer
    /// address (DUID-LL) with the hardware type of InfiniBand.
    #[must_use]
    pub fn new(guid: u64, p_key: u16) -> Self {
        let mut octets = [0; 17];
        octets[0] = 255;
        octets[1..5].copy_from_slice(&u32::from(p_key).to_be_bytes());
        octets[5..7].copy_from_slice(&3_u16.to_be_bytes());
        octets[7..9].copy_from_slice(&INFINIBAND.to_be_bytes());
        octets[9..].copy_from_slice(&guid.to_be_bytes());
        Self(octets)
    }

    /// As it stands in option 61.
    #[must_use]
    pub const fn octets(&self) -> &[u8; 17] {
        &self.0
    }
}

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
        let wanted = [
            option::MASK,
            option::ROUTER,
            option::MTU,
            option::T1,
            option::T2,
        ];
        put(option::PARAMETERS, &wanted);
        put(option::LONGEST, &1472_u16.to_be_bytes());
    }
    octets.push(option::END);
    octets.resize(octets.len().max(LEAST_BYTES), 0);
    octets
}

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
    /// The first router.
    pub router: Option<Ipv4Addr>,
    /// The link's MTU, in octets.
    pub mtu: Option<u16>,
}

/// Why a datagram is no reply that counts. One counter each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reject {
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

impl Reject {
    /// All of them, in the order of their counters.
    pub const ALL: [Self; 5] = [
        Self::NotAReply,
        Self::NotMine,
        Self::Type,
        Self::Contents,
        Self::NotAsked,
    ];
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
    let address = Some(packet.your_ip()).filter(|&it| is_of_a_host(it))?;
    let length = options.address(option::MASK).map_or(Some(32), prefix)?;
    Some(Given {
        address: Ipv4Net::new(address, length).ok()?,
        seconds: options.word(option::LEASE_TIME).filter(|&it| it > 0)?,
        t1: options.word(option::T1),
        t2: options.word(option::T2),
        router: options
            .first_address(option::ROUTER)
            .filter(|&it| is_of_a_host(it)),
        mtu: options.half(option::MTU).filter(|&it| it >= 68),
    })
}

fn is_of_a_host(address: Ipv4Addr) -> bool {
    !(address.is_unspecified()
        || address.is_broadcast()
        || address.is_multicast()
        || address.is_loopback())
}

/// The length of a mask without gaps.
fn prefix(mask: Ipv4Addr) -> Option<u8> {
    let length = mask.to_bits().leading_ones();
    let whole = mask.to_bits().count_ones() == length;
    whole.then(|| u8::try_from(length).ok())?
}

/// The options of a message; the first of a number counts.
struct Options<'a>(&'a DhcpPacket<&'a [u8]>);

impl<'a> Options<'a> {
    fn find(&self, number: u8) -> Option<&'a [u8]> {
        let found: Option<DhcpOption<'a>> = self.0.options().find(|it| it.kind == number);
        found.map(|it| it.data)
    }

    fn word(&self, number: u8) -> Option<u32> {
        Some(u32::from_be_bytes(self.find(number)?.try_into().ok()?))
    }

    fn half(&self, number: u8) -> Option<u16> {
        Some(u16::from_be_bytes(self.find(number)?.try_into().ok()?))
    }

    fn address(&self, number: u8) -> Option<Ipv4Addr> {
        self.word(number).map(Ipv4Addr::from_bits)
    }

    fn first_address(&self, number: u8) -> Option<Ipv4Addr> {
        let first = self.find(number)?.first_chunk::<4>()?;
        Some(Ipv4Addr::from(*first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 5);
    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);

    fn me() -> ClientIdentifier {
        ClientIdentifier::new(0x0002_c903_0001_0203, 0x8006)
    }

    fn kinds() -> [Kind; 6] {
        let (address, server) = (ADDRESS, SERVER);
        [
            Kind::Discover(None),
            Kind::Select { address, server },
            Kind::Reboot(address),
            Kind::Extend(address),
            Kind::Decline { address, server },
            Kind::Release { address, server },
        ]
    }

    fn sent(kind: Kind) -> Vec<u8> {
        emit(kind, 0x0102_0304, 7, &me())
    }

    fn option_of(octets: &[u8], number: u8) -> Option<Vec<u8>> {
        let packet = DhcpPacket::new_checked(octets).unwrap();
        Options(&packet).find(number).map(<[u8]>::to_vec)
    }

    /// A reply as a server makes it.
    fn reply(kind: u8, options: &[(u8, &[u8])]) -> Vec<u8> {
        let mut octets = vec![0; FIXED_BYTES];
        octets[..4].copy_from_slice(&[2, 32, 0, 0]);
        octets[4..8].copy_from_slice(&[1, 2, 3, 4]);
        octets[16..20].copy_from_slice(&ADDRESS.octets());
        octets[236..240].copy_from_slice(&MAGIC.to_be_bytes());
        octets.extend([option::TYPE, 1, kind]);
        for (number, data) in options {
            octets.extend([*number, u8::try_from(data.len()).unwrap()]);
            octets.extend(*data);
        }
        octets.push(option::END);
        octets
    }

    const OFFER: u8 = 2;
    const NAK: u8 = 6;
    const HOUR: [u8; 4] = 3600_u32.to_be_bytes();

    fn usual() -> [(u8, &'static [u8]); 3] {
        [
            (option::SERVER, &[10, 1, 0, 1]),
            (option::LEASE_TIME, &HOUR),
            (option::MASK, &[255, 255, 255, 0]),
        ]
    }

    #[test]
    fn rfc4390_2_1_fields_of_ipoib() {
        for kind in kinds() {
            let octets = sent(kind);
            assert_eq!(octets[..4], [1, 32, 0, 0], "{kind:?}");
            assert_eq!(octets[28..44], [0; 16], "chaddr is zero");
            assert!(octets.len() >= LEAST_BYTES);
            assert_eq!(option_of(&octets, option::CLIENT).unwrap(), me().octets());
        }
    }

    #[test]
    fn rfc4361_6_1_client_identifier() {
        let octets = [
            255, 0, 0, 0x80, 0x06, 0, 3, 0, 32, 0, 2, 0xC9, 3, 0, 1, 2, 3,
        ];
        assert_eq!(me().octets(), &octets);
    }

    #[test]
    fn the_lists_clarification_of_the_broadcast_flag() {
        let flags: Vec<_> = kinds().map(|kind| sent(kind)[10] == 0x80).to_vec();
        assert_eq!(flags, [true, true, true, false, false, false]);
        let addresses = kinds().map(|kind| sent(kind)[12..16] == ADDRESS.octets());
        assert_eq!(addresses, [false, false, false, true, false, true]);
        for kind in kinds().into_iter().filter(|kind| kind.broadcasts()) {
            assert_eq!(sent(kind)[12..16], [0; 4], "ciaddr of {kind:?}");
        }
    }

    #[test]
    fn rfc2131_table_5_options() {
        let have = |number| kinds().map(|kind| option_of(&sent(kind), number).is_some());
        assert_eq!(
            have(option::REQUESTED),
            [false, true, true, false, true, false]
        );
        assert_eq!(
            have(option::SERVER),
            [false, true, false, false, true, true]
        );
        assert_eq!(
            have(option::PARAMETERS),
            [true, true, true, true, false, false]
        );
        let types = kinds().map(|kind| option_of(&sent(kind), option::TYPE).unwrap()[0]);
        assert_eq!(types, [1, 3, 3, 3, 4, 7]);
    }

    #[test]
    fn an_offer_is_read() {
        let me = me();
        let more: [(u8, &[u8]); 3] = [
            (option::ROUTER, &[10, 1, 0, 254, 10, 1, 0, 253]),
            (option::MTU, &2044_u16.to_be_bytes()),
            (option::CLIENT, me.octets()),
        ];
        let octets = reply(OFFER, &[&usual()[..], &more[..]].concat());
        let given = Given {
            address: "10.1.0.5/24".parse().unwrap(),
            seconds: 3600,
            t1: None,
            t2: None,
            router: Some(Ipv4Addr::new(10, 1, 0, 254)),
            mtu: Some(2044),
        };
        let expected = Reply {
            xid: 0x0102_0304,
            server: SERVER,
            says: Says::Offer(given),
        };
        assert_eq!(parse(&octets, &me), Ok(expected));
    }

    #[test]
    fn a_refusal_needs_no_address() {
        let octets = reply(NAK, &[(option::SERVER, &SERVER.octets())]);
        assert_eq!(parse(&octets, &me()).unwrap().says, Says::Nak);
    }

    #[test]
    fn what_does_not_count_is_told_apart() {
        let good = reply(OFFER, &usual());
        let changed = |at: usize, octets: &[u8]| {
            let mut it = good.clone();
            it[at..at + octets.len()].copy_from_slice(octets);
            it
        };
        let without = |number: u8| {
            let kept: Vec<_> = usual().into_iter().filter(|it| it.0 != number).collect();
            reply(OFFER, &kept)
        };
        let with = |number: u8, data: &'static [u8]| {
            let mut options = vec![(number, data)];
            options.extend(usual());
            reply(OFFER, &options)
        };
        for (octets, expected) in [
            (changed(0, &[1]), Reject::NotAReply),
            (changed(236, &[0]), Reject::NotAReply),
            (vec![2; MOST_BYTES + 1], Reject::NotAReply),
            (changed(1, &[1]), Reject::NotMine),
            (with(option::CLIENT, &[1, 2, 3]), Reject::NotMine),
            (reply(9, &usual()), Reject::Type),
            (without(option::SERVER), Reject::Contents),
            (without(option::LEASE_TIME), Reject::Contents),
            (with(option::LEASE_TIME, &[0; 4]), Reject::Contents),
            (with(option::MASK, &[255, 0, 255, 0]), Reject::Contents),
            (changed(16, &[0; 4]), Reject::Contents),
            (changed(16, &[224, 0, 0, 1]), Reject::Contents),
            (changed(16, &[255; 4]), Reject::Contents),
        ] {
            assert_eq!(parse(&octets, &me()), Err(expected));
        }
    }

    #[test]
    fn no_prefix_is_taken_that_lacks_an_option() {
        let whole = reply(OFFER, &usual());
        for end in 0..whole.len() - 1 {
            let cut = parse(&whole[..end], &me());
            // The mask is the last option: without it the address stands alone.
            let alone = |reply: &Reply| matches!(reply.says, Says::Offer(it) if it.address.prefix_len() == 32);
            assert!(cut.is_err() || cut.is_ok_and(|it| alone(&it)), "{end}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_datagram_does_harm(tail in proptest::collection::vec(proptest::num::u8::ANY, 0..400), keep in 0..FIXED_BYTES + 3) {
            let mut octets = reply(OFFER, &[]);
            octets.truncate(keep);
            octets.extend(tail);
            let _ = parse(&octets, &me());
        }
    }
}
