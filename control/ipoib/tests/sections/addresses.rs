//! RFC 5227 section 2.1 and RFC 4862 section 5.4: an address is looked for before it is used.

use crate::bed::{Bed, Deed, LINK, MANAGER, SIX, Seat, gid, ip, mgid, spec};
use rpcrdma_ipoib::address::{MAX_CONFLICTS, Phase, RATE_LIMIT_INTERVAL_MS};
use rpcrdma_ipoib::gid::Lid;
use rpcrdma_ipoib::link::LinkState;
use rpcrdma_ipoib::mad::Method;
use rpcrdma_ipoib::mgid::Family;
use rpcrdma_ipoib::neighbour::{Lost, Unheard};
use rpcrdma_ipoib::node::{AddressNews, Fate, LinkStatus, Origin, Output};
use rpcrdma_ipoib::packet::{
    Advertisement, Arp, HardwareAddress, Operation, Packet, Solicitation, Udp, emit_udp,
    solicited_node,
};
use rpcrdma_ipoib::settings::{Creation, LinkSpec, Settings, Timing};
use rpcrdma_ipoib::trouble::{Drop, Ignored, Refusal, Trouble};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const ONE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const TWO: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const LOCAL: Ipv6Addr = Ipv6Addr::new(0xFE80, 0, 0, 0, 0xA, 0xB, 0xC, 0xD);
/// The group of the link, and the one that LOCAL is asked for in.
const BROADCAST: &str = "ff12:401b:8006::ffff:ffff";
const SOLICITED: &str = "ff12:601b:8006::1:ff0c:d";

/// An address that nobody else has is in use by then: the first wait, and the check.
const CHECKED_MS: u64 = 1_250;
/// The earliest moment at which it can be.
const CHECK_MS: u64 = 1_000;

fn v6() -> LinkSpec {
    LinkSpec {
        family: Family::V6,
        create: Some(Creation::default()),
        ..spec(SIX)
    }
}

fn set(bed: &mut Bed, at: usize, ip: impl Into<IpAddr>) {
    let node = &mut bed.seats[at].node;
    node.set_address(bed.now, LINK, Some(ip.into()))
        .expect("an address");
    bed.run();
}

/// A node whose link is up, and that uses an address.
fn using(bed: &mut Bed, spec: LinkSpec, ip: impl Into<IpAddr>) -> usize {
    let at = bed.up(spec);
    set(bed, at, ip);
    bed.pass(CHECKED_MS);
    assert_eq!(phase(bed, at), Phase::Used);
    at
}

fn status(bed: &Bed, at: usize) -> LinkStatus {
    bed.seats[at].node.link_status(LINK).expect("a link")
}

fn phase(bed: &Bed, at: usize) -> Phase {
    status(bed, at).address.expect("an address").1
}

/// How a link is, for whoever looks at it.
fn standing(bed: &Bed, at: usize) -> (LinkState, Option<Refusal>) {
    let link = status(bed, at);
    (link.state, link.error)
}

fn hardware(number: u16) -> HardwareAddress {
    HardwareAddress::datagrams(0x100 + u32::from(number), gid(number.into()))
}

/// A frame comes from another host, by a group.
fn hears(bed: &mut Bed, at: usize, from: HardwareAddress, frame: &[u8]) {
    let origin = Origin {
        lid: Lid(90),
        gid: Some(from.gid),
        group: Some(mgid(BROADCAST)),
        qpn: from.qpn,
    };
    let got = bed.seats[at].node.frame_came(bed.now, LINK, &origin, frame);
    assert_eq!(got, None);
    bed.run();
}

fn arp(operation: Operation, at: u16, sender_ip: Ipv4Addr, target_ip: Ipv4Addr) -> Vec<u8> {
    let arp = Arp {
        operation,
        sender: hardware(at),
        sender_ip,
        target: HardwareAddress::ZERO,
        target_ip,
    };
    arp.frame()
}

fn solicitation(source: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    let solicitation = Solicitation {
        source,
        destination: solicited_node(target),
        target,
        hardware: None,
    };
    solicitation.frame()
}

fn advertisement(target: Ipv6Addr, hardware: Option<HardwareAddress>) -> Vec<u8> {
    let advertisement = Advertisement {
        source: target,
        destination: Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 1),
        target,
        hardware,
        router: false,
        solicited: false,
        overrides: true,
    };
    advertisement.frame()
}

/// Of the ARP messages that a node has sent: the sender's address, whose it asks for.
fn questions(seat: &Seat) -> Vec<(Ipv4Addr, Ipv4Addr)> {
    let frames = seat.sent().into_iter();
    let asked = frames.filter_map(|frame| match Packet::parse(frame) {
        Ok(Packet::Arp(arp)) => Some((arp.sender_ip, arp.target_ip)),
        _ => None,
    });
    asked.collect()
}

fn probes(seat: &Seat, address: Ipv4Addr) -> usize {
    let probe = (Ipv4Addr::UNSPECIFIED, address);
    questions(seat).iter().filter(|it| **it == probe).count()
}

fn unheard(bed: &Bed, at: usize, why: Unheard) -> u64 {
    let counts = bed.seats[at].node.neighbour_counts(LINK).expect("a link");
    counts.unheard.of(why)
}

#[test]
fn rfc5227_2_1_1_three_probes_then_silence_then_it_is_announced() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    set(&mut bed, at, ONE);
    bed.pass(CHECK_MS - 1);
    assert_eq!(phase(&bed, at), Phase::Probing);
    assert_eq!(bed.seats[at].address_news(), []);
    bed.pass(CHECKED_MS - CHECK_MS + 1);
    assert_eq!(bed.seats[at].address_news(), [AddressNews::Used]);
    let probe = (Ipv4Addr::UNSPECIFIED, ONE);
    assert_eq!(questions(&bed.seats[at]), [probe, probe, probe, (ONE, ONE)]);
    assert_eq!(unheard(&bed, at, Unheard::Own), 4, "they came back");
    assert_eq!(standing(&bed, at), (LinkState::Up, None));
}

#[test]
fn the_times_are_settings() {
    let timing = Timing {
        check_ms: 40,
        probes: 1,
        ..Timing::default()
    };
    let mut bed = Bed::new();
    let at = bed.seat(Settings {
        timing,
        ..Settings::default()
    });
    bed.add_link(at, spec(SIX));
    set(&mut bed, at, ONE);
    bed.pass(50);
    assert_eq!(phase(&bed, at), Phase::Used);
    assert_eq!(probes(&bed.seats[at], ONE), 1);
}

#[test]
fn rfc5227_2_1_1_until_then_it_is_not_answered_for_and_nothing_is_sent_from_it() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    set(&mut bed, at, ONE);
    bed.pass(CHECK_MS / 2);
    let question = arp(Operation::Request, 90, TWO, ONE);
    hears(&mut bed, at, hardware(90), &question);
    let node = &mut bed.seats[at].node;
    let fate = node.send(bed.now, LINK, TWO.into(), vec![0; 64]);
    assert_eq!(fate, Ok(Fate::Dropped(Drop::NoNeighbour)));
    bed.pass(CHECKED_MS);
    assert_eq!(phase(&bed, at), Phase::Used, "a question is no claim");
    let said = questions(&bed.seats[at]);
    let own = said.iter().filter(|(sender, _)| *sender == ONE).count();
    assert_eq!(own, 1, "the announcement: {said:?}");
    hears(&mut bed, at, hardware(90), &question);
    let counts = bed.seats[at].node.neighbour_counts(LINK);
    let lost = counts.expect("a link").lost.of(Lost::NoPath);
    assert_eq!(lost, 1, "now it is answered, as far as there is a way");
}

#[test]
fn rfc5227_2_1_1_who_has_the_address_is_found_and_keeps_it() {
    let mut bed = Bed::new();
    let first = using(&mut bed, spec(SIX), ONE);
    let second = bed.up(spec(SIX));
    set(&mut bed, second, ONE);
    bed.pass(CHECKED_MS);
    let by = HardwareAddress::datagrams(0x48, gid(10));
    assert_eq!(
        bed.seats[second].address_news(),
        [AddressNews::Taken { by }]
    );
    let disputed = (LinkState::Degraded, Some(Refusal::AddressTaken));
    assert_eq!(standing(&bed, second), disputed);
    let refused = bed.seats[second].node.ledger().refusals();
    assert_eq!(refused.of(Refusal::AddressTaken), 1);
    assert_eq!(phase(&bed, first), Phase::Used);
    let conflict = |it: &Trouble| matches!(it, Trouble::Conflict { .. });
    assert!(!bed.seats[first].troubles().iter().any(conflict));
}

#[test]
fn rfc5227_2_1_1_an_address_that_was_taken_is_used_when_it_is_free() {
    let mut bed = Bed::new();
    let first = using(&mut bed, spec(SIX), ONE);
    let second = bed.up(spec(SIX));
    set(&mut bed, second, ONE);
    bed.pass(9_999);
    assert_eq!(phase(&bed, second), Phase::Taken, "not at once");
    bed.pass(5_000);
    assert_eq!(
        bed.seats[second].address_news().len(),
        2,
        "a second attempt"
    );
    let disputed = (LinkState::Degraded, Some(Refusal::AddressTaken));
    assert_eq!(standing(&bed, second), disputed);
    let node = &mut bed.seats[first].node;
    node.set_address(bed.now, LINK, None).expect("a link");
    bed.pass(30_000);
    let news = bed.seats[second].address_news();
    assert_eq!(news.last(), Some(&AddressNews::Used), "{news:?}");
    assert_eq!(standing(&bed, second), (LinkState::Up, None));
}

/// Who hears the other's probe leaves the address, and tries again later.
#[test]
fn rfc5227_2_1_1_of_two_that_look_at_once_one_gets_it() {
    let mut bed = Bed::new();
    let both = [bed.up(spec(SIX)), bed.up(spec(SIX))];
    for at in both {
        set(&mut bed, at, ONE);
    }
    let in_phase = |bed: &Bed, wanted: Phase| {
        let its = both.iter().filter(|at| phase(bed, **at) == wanted);
        its.count()
    };
    bed.pass(CHECK_MS / 2);
    assert!(in_phase(&bed, Phase::Taken) > 0);
    bed.pass(60_000);
    let phases = (in_phase(&bed, Phase::Used), in_phase(&bed, Phase::Taken));
    assert_eq!(phases, (1, 1));
}

/// Each kind of claim, and what is none.
#[test]
fn rfc5227_2_1_1_what_of_arp_is_a_claim() {
    use Operation::{Reply, Request};
    let nobody = Ipv4Addr::UNSPECIFIED;
    for (frame, taken) in [
        (arp(Request, 90, ONE, ONE), true),
        (arp(Request, 90, ONE, TWO), true),
        (arp(Reply, 90, ONE, TWO), true),
        (arp(Request, 90, nobody, ONE), true),
        (arp(Request, 90, nobody, TWO), false),
        (arp(Request, 90, TWO, ONE), false),
        (arp(Reply, 90, TWO, ONE), false),
        // another's word for it
        (arp(Reply, 91, ONE, TWO), false),
    ] {
        let mut bed = Bed::new();
        let at = bed.up(spec(SIX));
        set(&mut bed, at, ONE);
        bed.pass(CHECK_MS / 2);
        hears(&mut bed, at, hardware(90), &frame);
        let expected = if taken { Phase::Taken } else { Phase::Probing };
        assert_eq!(phase(&bed, at), expected, "{:?}", Packet::parse(&frame));
        if !taken {
            let counted =
                unheard(&bed, at, Unheard::NotAsked) + unheard(&bed, at, Unheard::Impostor);
            assert_eq!(counted, 1);
        }
    }
}

/// What a hostile host can bring about: an address that is not used, as often as it is looked for, and counters.
#[test]
fn rfc5227_2_1_1_who_claims_everything_is_asked_once_a_minute() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    set(&mut bed, at, ONE);
    let claim = arp(Operation::Reply, 90, ONE, TWO);
    let (mut attempts, mut claims) = (Vec::new(), 0_u64);
    let end = bed.now.after(3_600_000);
    while bed.now < end {
        bed.pass(100);
        let news = bed.seats[at].address_news().len();
        for _ in 0..5 {
            hears(&mut bed, at, hardware(90), &claim);
            claims += 1;
        }
        if bed.seats[at].address_news().len() > news {
            attempts.push(bed.now);
        }
    }
    let pauses = attempts.windows(2).map(|pair| pair[1].since(pair[0]));
    let limited = pauses.skip(MAX_CONFLICTS as usize - 1);
    assert!(limited.clone().count() > 20, "it is tried for ever");
    assert!(limited.clone().all(|ms| ms >= RATE_LIMIT_INTERVAL_MS));
    let node = &bed.seats[at].node;
    let ledger = node.ledger();
    let refused = ledger.refusals().of(Refusal::AddressTaken);
    assert_eq!(refused, attempts.len() as u64);
    let rest = ledger.ignored_things().of(Ignored::EarlyFrame);
    assert_eq!(refused + rest, claims, "each is counted");
}

/// A link that goes down and up again does not make a node ask more often.
#[test]
fn rfc5227_2_1_1_nor_when_the_link_comes_and_goes() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    set(&mut bed, at, ONE);
    let claim = arp(Operation::Reply, 90, ONE, TWO);
    let mut attempts = Vec::new();
    for _ in 0..3_000 {
        bed.pass(CHECK_MS / 2);
        let news = bed.seats[at].address_news().len();
        hears(&mut bed, at, hardware(90), &claim);
        if bed.seats[at].address_news().len() > news {
            attempts.push(bed.now);
        }
        flap(&mut bed, at);
    }
    let pauses: Vec<u64> = attempts.windows(2).map(|it| it[1].since(it[0])).collect();
    let limited = &pauses[MAX_CONFLICTS as usize - 1..];
    assert!(
        limited.iter().all(|ms| *ms >= RATE_LIMIT_INTERVAL_MS),
        "{pauses:?}"
    );
}

fn flap(bed: &mut Bed, at: usize) {
    for active in [false, true] {
        bed.seats[at].facts.active = active;
        bed.tell_port(at);
    }
}

#[test]
fn rfc5227_2_1_a_link_that_comes_back_looks_anew() {
    let mut bed = Bed::new();
    let at = using(&mut bed, spec(SIX), ONE);
    flap(&mut bed, at);
    bed.pass(CHECK_MS - 1);
    assert_eq!(phase(&bed, at), Phase::Probing);
    assert!(bed.seats[at].node.neighbours(LINK).is_none());
    bed.pass(CHECKED_MS);
    let news = [AddressNews::Used, AddressNews::Unused, AddressNews::Used];
    assert_eq!(bed.seats[at].address_news(), news);
    assert_eq!(probes(&bed.seats[at], ONE), 6);
}

#[test]
fn another_queue_pair_or_gid_looks_anew() {
    let mut bed = Bed::new();
    let at = using(&mut bed, spec(SIX), ONE);
    let p_keys = std::mem::take(&mut bed.seats[at].facts.p_keys);
    bed.tell_port(at);
    assert_eq!(phase(&bed, at), Phase::Waiting);
    bed.seats[at].facts.p_keys = p_keys;
    bed.tell_port(at);
    bed.pass(CHECKED_MS);
    assert_eq!(phase(&bed, at), Phase::Used);

    bed.seats[at].facts.gid = gid(99);
    bed.sa.add_port(rpcrdma_ipoib::small_sa::SubnetPort {
        gid: gid(99),
        lid: bed.seats[at].facts.lid,
        mtu: bed.seats[at].facts.mtu,
    });
    bed.tell_port(at);
    assert_ne!(phase(&bed, at), Phase::Used);
    bed.pass(20_000);
    assert_eq!(phase(&bed, at), Phase::Used);
}

/// What does not touch the link does not touch its address.
#[test]
fn an_sa_that_forgot_this_port_leaves_the_address_in_use() {
    let mut bed = Bed::new();
    let at = using(&mut bed, spec(SIX), ONE);
    bed.seats[at].node.reregister(bed.now);
    bed.run();
    bed.pass(60_000);
    assert_eq!(bed.seats[at].address_news(), [AddressNews::Used]);
}

#[test]
fn an_address_that_is_taken_away_is_looked_for_no_more() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    set(&mut bed, at, ONE);
    bed.pass(CHECK_MS / 2);
    let node = &mut bed.seats[at].node;
    node.set_address(bed.now, LINK, None).expect("a link");
    bed.pass(60_000);
    assert_eq!(bed.seats[at].address_news(), []);
    assert!(probes(&bed.seats[at], ONE) < 3);
}

#[test]
fn a_node_that_is_closed_stops_looking() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    set(&mut bed, at, ONE);
    bed.pass(CHECK_MS / 2);
    let asked = probes(&bed.seats[at], ONE);
    bed.seats[at].node.close(bed.now);
    bed.run();
    bed.pass(60_000);
    assert!(bed.seats[at].node.is_closed());
    assert_eq!(bed.seats[at].address_news(), []);
    assert_eq!(probes(&bed.seats[at], ONE), asked);
}

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
    let probe = Packet::parse(bed.seats[at].sent()[0]).map(|packet| packet.is_probe_for(LOCAL));
    assert_eq!(probe, Ok(true));
    assert_eq!(unheard(&bed, at, Unheard::Own), 2, "both came back");
}

trait IsProbe {
    fn is_probe_for(&self, target: Ipv6Addr) -> bool;
}

impl IsProbe for Packet<'_> {
    fn is_probe_for(&self, target: Ipv6Addr) -> bool {
        let nobody = Ipv6Addr::UNSPECIFIED;
        matches!(self, Packet::Solicitation(it) if it.source == nobody && it.target == target && it.hardware.is_none())
    }
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
    let elsewhere = solicitation(nobody, Ipv6Addr::LOCALHOST.to_bits().wrapping_add(5).into());
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
