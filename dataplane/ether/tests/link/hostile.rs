//! Frames that nobody should believe.

use crate::bodies::{self, HERE, HERE6, THERE_MAC, link, there};
use crate::vectors::{VECTORS, octets};
use proptest::prelude::*;
use rpcrdma_ether::{Arrival, Dispatch, Refused};
use smoltcp::wire::{Icmpv6Packet, Ipv4Packet, UdpPacket};
use std::time::Instant;

/// Makes one thing wrong.
type Edit = fn(&mut [u8]);

/// A frame with one thing wrong, and why it is refused.
fn refused(here: &str, frame: &[u8]) -> Refused {
    let mut link = link(here);
    let arrival = link.take(frame, Instant::now());
    assert_eq!(arrival, Arrival::Nothing);
    let mut reasons = Refused::ALL.iter().copied();
    let found = reasons.find(|why| link.counts().refused(*why) == 1);
    found.expect("a reason")
}

/// The datagram of IPv4, edited, with its header's checksum right again.
fn edited4(edit: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut frame = octets("datagram of IPv4");
    edit(&mut frame);
    Ipv4Packet::new_unchecked(&mut frame[14..]).fill_checksum();
    frame
}

fn edited(name: &str, edit: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = octets(name);
    edit(&mut frame);
    frame
}

#[test]
fn each_check_of_ethernet_and_ipv4() {
    let tagged = edited("datagram of IPv4", |it| {
        it.splice(12..12, [0x81, 0, 0, 5]);
    });
    assert_eq!(refused(HERE, &tagged), Refused::Tagged);
    let other = edited("datagram of IPv4", |it| it[5] = 9);
    assert_eq!(refused(HERE, &other), Refused::NotOurs);
    let all = edited("datagram of IPv4", |it| it[..6].fill(0xff));
    assert_eq!(refused(HERE, &all), Refused::NotOurs);
    let group = edited("datagram of IPv4", |it| it[6] = 1);
    assert_eq!(refused(HERE, &group), Refused::Source);
    let kind = edited("datagram of IPv4", |it| it[12] = 9);
    assert_eq!(refused(HERE, &kind), Refused::Kind);

    let cases: [(Edit, Refused); 10] = [
        (|it| it[14] = 0x65, Refused::Header),
        (|it| it[14] = 0x44, Refused::Header),
        (|it| it[14] = 0x40, Refused::Header),
        (|it| it[17] += 1, Refused::Short),
        (|it| it[17] = 19, Refused::Short),
        (|it| it[20] |= 0x20, Refused::Fragment),
        (|it| it[21] = 1, Refused::Fragment),
        (|it| it[23] = 6, Refused::Protocol),
        (|it| it[33] = 9, Refused::NotOurs),
        (
            |it| it[26..30].copy_from_slice(&[10, 9, 0, 1]),
            Refused::Source,
        ),
    ];
    for (at, (edit, why)) in cases.into_iter().enumerate() {
        assert_eq!(refused(HERE, &edited4(edit)), why, "case {at}");
    }
    for source in [
        [0, 0, 0, 0],
        [127, 0, 0, 1],
        [224, 0, 0, 1],
        [10, 9, 0, 255],
        [255; 4],
    ] {
        let frame = edited4(|it| it[26..30].copy_from_slice(&source));
        assert_eq!(refused(HERE, &frame), Refused::Source, "{source:?}");
    }
    let sum = edited("datagram of IPv4", |it| it[24] ^= 1);
    assert_eq!(refused(HERE, &sum), Refused::HeaderSum);
    assert_eq!(
        refused(HERE, &octets("last fragment of IPv4")),
        Refused::Fragment
    );
}

#[test]
fn each_check_of_a_datagram() {
    let longer = edited("datagram of IPv4", |it| it[39] += 1);
    assert_eq!(refused(HERE, &longer), Refused::Short);
    let headless = edited("datagram of IPv4", |it| it[39] = 7);
    assert_eq!(refused(HERE, &headless), Refused::Short);
    let sum = edited("datagram of IPv4", |it| it[60] ^= 4);
    assert_eq!(refused(HERE, &sum), Refused::DatagramSum);
    let none = edited("datagram of IPv6", |it| it[60..62].fill(0));
    assert_eq!(refused(HERE6, &none), Refused::DatagramSum);
    let nobody = edited("datagram of IPv4", |it| {
        it[34..36].fill(0);
        it[40..42].fill(0);
    });
    assert_eq!(refused(HERE, &nobody), Refused::Source);

    // None at all is a datagram's right in IPv4.
    let unsummed = edited("datagram of IPv4", |it| it[40..42].fill(0));
    let taken = link(HERE).take(&unsummed, Instant::now());
    assert!(matches!(taken, Arrival::Datagram(_)));
}

/// What comes behind the packet, or behind the datagram within, is nobody's.
#[test]
fn padding_is_not_taken_for_data() {
    let padded = edited("datagram of IPv4", |it| it.extend([0xaa; 9]));
    let Arrival::Datagram(datagram) = link(HERE).take(&padded, Instant::now()) else {
        panic!("refused");
    };
    assert_eq!(datagram.octets, 42..74);
    let surplus = edited4(|it| {
        let mut udp = UdpPacket::new_unchecked(&mut it[34..]);
        udp.set_len(8 + 4);
        udp.set_checksum(0);
    });
    let Arrival::Datagram(datagram) = link(HERE).take(&surplus, Instant::now()) else {
        panic!("refused");
    };
    assert_eq!(datagram.octets, 42..46);
}

#[test]
fn each_check_of_ipv6_and_its_discovery() {
    let version = edited("datagram of IPv6", |it| it[14] = 0x50);
    assert_eq!(refused(HERE6, &version), Refused::Header);
    let long = edited("datagram of IPv6", |it| it[19] += 1);
    assert_eq!(refused(HERE6, &long), Refused::Short);
    let options = edited("datagram of IPv6", |it| it[20] = 0);
    assert_eq!(refused(HERE6, &options), Refused::Protocol);
    let fragment = edited("datagram of IPv6", |it| it[20] = 44);
    assert_eq!(refused(HERE6, &fragment), Refused::Fragment);

    // RFC 4861 section 7.1.1: hops, code, checksum, target; a source that has none but an option.
    let resummed = |name: &str, edit: Edit| {
        edited(name, |it| {
            edit(it);
            let ends = <[u8; 32]>::try_from(&it[22..54]).expect("two addresses");
            let (from, to) = ends.split_at(16);
            let of = |octets: &[u8]| <[u8; 16]>::try_from(octets).expect("an address").into();
            Icmpv6Packet::new_unchecked(&mut it[54..]).fill_checksum(&of(from), &of(to));
        })
    };
    let cases: [(&str, Edit); 8] = [
        ("solicitation", |it| it[21] = 254),
        ("solicitation", |it| it[55] = 1),
        ("solicitation", |it| it[79] = 0),
        ("solicitation", |it| it[80] = 1),
        ("solicitation", |it| it[53] = 9),
        ("probe", |it| it[78] = 1),
        ("advertisement", |it| it[62] = 0xff),
        ("advertisement", |it| it[62..78].copy_from_slice(&[0; 16])),
    ];
    for (at, (name, edit)) in cases.into_iter().enumerate() {
        assert_eq!(
            refused(HERE6, &resummed(name, edit)),
            Refused::Icmp,
            "case {at}"
        );
    }
    let sum = edited("solicitation", |it| it[57] ^= 1);
    assert_eq!(refused(HERE6, &sum), Refused::Icmp);
}

#[test]
fn each_check_of_arp() {
    let cases: [(Edit, Refused); 7] = [
        (|it| it[15] = 6, Refused::Arp),
        (|it| it[18] = 5, Refused::Arp),
        (|it| it[21] = 3, Refused::Arp),
        // Somebody else's address of Ethernet.
        (|it| it[27] = 9, Refused::Arp),
        // This station's own address of IP, one that is no neighbour's, one that is no host's.
        (|it| it[31] = 1, Refused::Source),
        (|it| it[30] = 1, Refused::Source),
        (|it| it[31] = 255, Refused::Source),
    ];
    for (at, (edit, why)) in cases.into_iter().enumerate() {
        assert_eq!(
            refused(HERE, &edited("arp reply", |it| edit(it))),
            why,
            "case {at}"
        );
    }
}

/// Who was not asked for is not remembered, and who is known is not replaced without a look.
#[test]
fn nobody_is_believed_who_was_not_asked() {
    let (mut link, now) = (link(HERE), Instant::now());
    link.take(&octets("arp reply"), now);
    assert_eq!(
        link.dispatch(there(HERE), 1, now),
        Dispatch::Kept,
        "not remembered"
    );
    link.take(&octets("arp reply"), now);
    while link.request(now).is_some() {}
    let other = edited("arp request", |it| {
        it[11] = 9;
        it[27] = 9;
    });
    assert!(matches!(link.take(&other, now), Arrival::Answer(_)));
    let question = link.request(now).expect("a look");
    assert_eq!(question.as_ref()[5], 9, "the one that says so is asked");
    link.take(&octets("arp reply"), now);
    let Dispatch::Go(way, _) = link.dispatch(there(HERE), 1, now) else {
        panic!("known");
    };
    assert_eq!(way.mac, THERE_MAC);
}

#[test]
fn every_prefix_of_every_vector_is_borne() {
    for (name, meaning, _) in VECTORS {
        let frame = octets(name);
        for len in 0..frame.len() {
            for here in [HERE, HERE6] {
                let arrival = link(here).take(&frame[..len], Instant::now());
                // A message without its last option is still one.
                let cut = name.contains("solicitation") && len == 78;
                assert!(
                    cut || arrival == Arrival::Nothing,
                    "{name}, {len} octets: {meaning}"
                );
            }
        }
    }
}

/// Each octet of each vector with each of its bits turned over.
#[test]
fn no_bit_breaks_anything() {
    for (name, ..) in VECTORS {
        let frame = octets(name);
        for at in 0..frame.len() * 8 {
            let mut frame = frame.clone();
            frame[at / 8] ^= 1 << (at % 8);
            bodies::take(&lengthed(&frame));
        }
    }
}

/// As the body has it: with its length in front.
fn lengthed(frame: &[u8]) -> Vec<u8> {
    let len = u8::try_from(frame.len()).expect("short");
    std::iter::once(len).chain(frame.iter().copied()).collect()
}

#[test]
fn the_corpus_of_the_fuzz_target() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/take");
    let mut count = 0;
    for entry in std::fs::read_dir(directory).expect("a corpus") {
        let path = entry.expect("an entry").path();
        bodies::take(&std::fs::read(path).expect("octets"));
        count += 1;
    }
    assert!(count >= VECTORS.len(), "{count}");
}

proptest! {
    #[test]
    fn any_octets_are_borne(octets in proptest::collection::vec(any::<u8>(), 0..600)) {
        bodies::take(&octets);
    }

    /// Vectors with a few octets of somebody else's.
    #[test]
    fn edited_vectors_are_borne(
        which in 0..VECTORS.len(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut frame = octets(VECTORS[which].0);
        for (at, octet) in edits {
            let at = at.index(frame.len());
            frame[at] = octet;
        }
        bodies::take(&lengthed(&frame));
    }
}
