//! Of IPv6: duplicate address detection.

use super::*;

/// The group that it is asked for in.
const SOLICITED: &str = "ff12:601b:8006::1:ff0c:d";

#[test]
fn rfc4862_5_4_2_one_solicitation_from_nobody_when_the_group_is_joined() {
    let mut bed = Bed::new();
    let at = bed.up(v6());
    bed.held_back = Some(Vec::new());
    set(&mut bed, at, LOCAL);
    bed.pass(5_000);
    assert_eq!(phase(&bed, at), Phase::Waiting, "nobody would be heard");
    for to in bed.held_back.take().into_iter().flatten() {
        bed.seats[at].attached.insert(to.mgid);
        bed.seats[at].node.attached(bed.now, to, Ok(()));
    }
    bed.run();
    bed.pass(CHECK_MS - 1);
    assert_eq!(phase(&bed, at), Phase::Probing);
    bed.pass(CHECKED_MS);
    assert_eq!(bed.seats[at].address_news(), [AddressNews::Used]);
    let joined = bed.seats[at].when(|deed| {
        matches!(deed, Deed::Asked(asked) if asked.method == Method::Set && asked.mgid == Some(mgid(SOLICITED)))
    });
    let asked = bed.seats[at].when(|deed| matches!(deed, Deed::Output(Output::Frame { .. })));
    assert!(joined < asked);
    let to: Vec<_> = bed.seats[at].frames().iter().map(|to| to.gid).collect();
    assert_eq!(to, [mgid(SOLICITED), mgid("ff12:601b:8006::1")]);
    assert!(is_probe(bed.seats[at].sent()[0], LOCAL));
    assert_eq!(unheard(&bed, at, Unheard::Own), 2, "both came back");
}

/// A frame asks for an address, and says nothing of who asks.
fn is_probe(frame: &[u8], target: Ipv6Addr) -> bool {
    let Ok(Packet::Solicitation(it)) = Packet::parse(frame) else {
        return false;
    };
    (it.source, it.target, it.hardware) == (Ipv6Addr::UNSPECIFIED, target, None)
}

/// Looks for LOCAL, hears a frame from a host, and says where the address is then.
fn after_hearing(from: HardwareAddress, frame: &[u8]) -> Phase {
    let mut bed = Bed::new();
    let at = bed.up(v6());
    set(&mut bed, at, LOCAL);
    bed.pass(CHECK_MS / 2);
    hears(&mut bed, at, from, frame);
    phase(&bed, at)
}

#[test]
fn rfc4862_5_4_3_a_solicitation_from_nobody_is_a_claim() {
    let (nobody, other) = (Ipv6Addr::UNSPECIFIED, hardware(90));
    let probe = solicitation(nobody, LOCAL);
    assert_eq!(after_hearing(other, &probe), Phase::Taken);
    let elsewhere = solicitation(nobody, "fe80::6".parse().expect("an address"));
    assert_eq!(after_hearing(other, &elsewhere), Phase::Probing);
    // who has an address of his own wants to know where this one is
    let question = solicitation("fe80::9".parse().expect("an address"), LOCAL);
    assert_eq!(after_hearing(other, &question), Phase::Probing);
}

/// Another program's queue pair at the same port is somebody else.
#[test]
fn rfc4862_5_4_3_its_own_solicitation_is_told_by_the_queue_pair() {
    let probe = solicitation(Ipv6Addr::UNSPECIFIED, LOCAL);
    let own = HardwareAddress::datagrams(0x48, gid(10));
    assert_eq!(after_hearing(own, &probe), Phase::Probing);
    let beside = HardwareAddress::datagrams(0x49, gid(10));
    assert_eq!(after_hearing(beside, &probe), Phase::Taken);
}

#[test]
fn rfc4862_5_4_4_an_advertisement_is_a_claim() {
    let other = hardware(90);
    for (address, said, expected) in [
        (LOCAL, Some(other), Phase::Taken),
        (LOCAL, None, Phase::Taken),
        (LOCAL, Some(hardware(91)), Phase::Probing),
        ("fe80::9".parse().expect("one"), Some(other), Phase::Probing),
    ] {
        let frame = advertisement(address, said);
        assert_eq!(after_hearing(other, &frame), expected, "{address} {said:?}");
    }
}

#[test]
fn without_a_route_header_nobody_is_known_by_it() {
    let mut bed = Bed::new();
    let at = bed.up(v6());
    set(&mut bed, at, LOCAL);
    bed.pass(CHECK_MS / 2);
    let origin = Origin {
        lid: Lid(90),
        gid: None,
        group: None,
        qpn: 0x190,
    };
    let probe = solicitation(Ipv6Addr::UNSPECIFIED, LOCAL);
    bed.seats[at]
        .node
        .frame_came(bed.now, LINK, &origin, &probe);
    assert_eq!(phase(&bed, at), Phase::Probing);
    assert_eq!(unheard(&bed, at, Unheard::Impostor), 1);
}

#[test]
fn rfc4862_5_4_5_a_link_local_address_that_is_taken_disables_ip() {
    let mut bed = Bed::new();
    let first = using(&mut bed, v6(), LOCAL);
    let second = bed.up(v6());
    set(&mut bed, second, LOCAL);
    bed.pass(CHECKED_MS);
    let by = HardwareAddress::datagrams(0x48, gid(10));
    let seat = &bed.seats[second];
    assert_eq!(seat.address_news(), [AddressNews::Taken { by }]);
    let disabled = (LinkState::Down, Some(Refusal::AddressTaken));
    assert_eq!(standing(&bed, second), disabled);
    let told = |deed: &Deed| {
        matches!(
            deed,
            Deed::Output(Output::Link {
                state: LinkState::Down,
                error: Some(Refusal::AddressTaken),
                ..
            })
        )
    };
    bed.seats[second].when(told);

    // nothing is sent, and nothing is received
    assert_eq!(bed.send(second, "ff02::77"), Fate::Dropped(Drop::LinkDown));
    let mut frame = Vec::new();
    let udp = Udp {
        from: SocketAddr::new("fe80::9".parse().expect("one"), 700),
        to: SocketAddr::new(ip("ff02::77"), 111),
        hop_limit: 1,
        payload: b"x",
    };
    assert!(emit_udp(&mut frame, &udp));
    let origin = Origin {
        lid: MANAGER,
        gid: Some(gid(90)),
        group: None,
        qpn: 9,
    };
    let got = bed.seats[second]
        .node
        .frame_came(bed.now, LINK, &origin, &frame);
    assert_eq!(got, None);
    let ledger = bed.seats[second].node.ledger();
    assert_eq!(ledger.ignored_things().of(Ignored::EarlyFrame), 1);

    // nor is it tried again by itself
    let node = &mut bed.seats[first].node;
    node.set_address(bed.now, LINK, None).expect("a link");
    bed.pass(3_600_000);
    assert_eq!(standing(&bed, second), disabled);
    flap(&mut bed, second);
    bed.pass(CHECKED_MS);
    assert_eq!(phase(&bed, second), Phase::Used);
    assert_eq!(standing(&bed, second), (LinkState::Up, None));
}
