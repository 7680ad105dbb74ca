//! Messages against the RFCs, octet by octet.

use super::reply::Options;
use super::*;
use smoltcp::wire::DhcpPacket;
use std::net::Ipv4Addr;

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
        // A router and an MTU, which were not asked for.
        (3, &[10, 1, 0, 254, 10, 1, 0, 253]),
        (26, &2044_u16.to_be_bytes()),
        (option::CLIENT, me.octets()),
    ];
    let octets = reply(OFFER, &[&usual()[..], &more[..]].concat());
    let given = Given {
        address: "10.1.0.5/24".parse().unwrap(),
        seconds: 3600,
        t1: None,
        t2: None,
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
        (changed(16, &[0, 1, 2, 3]), Reject::Contents),
        (changed(16, &[240, 0, 0, 1]), Reject::Contents),
        (changed(16, &[10, 1, 0, 0]), Reject::Contents),
        (changed(16, &[10, 1, 0, 255]), Reject::Contents),
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
        let alone =
            |reply: &Reply| matches!(reply.says, Says::Offer(it) if it.address.prefix_len() == 32);
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
