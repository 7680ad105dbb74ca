//! Of IPv4: probes, claims, and how often an address is tried again.

use super::*;

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
    bed.pass(ANNOUNCE_INTERVAL_MS);
    assert_eq!(questions(&bed.seats[at])[4..], [(ONE, ONE)], "once more");
    bed.pass(60_000);
    assert_eq!(questions(&bed.seats[at]).len(), 5);
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

/// RFC 5227 section 2.4: one announcement for the first claim, a word to whose address it is for the second, and no more.
#[test]
fn rfc5227_2_4_an_address_in_use_is_defended_once_in_ten_seconds() {
    let mut bed = Bed::new();
    let at = using(&mut bed, spec(SIX), ONE);
    let announced = |bed: &Bed| {
        let said = questions(&bed.seats[at]);
        said.iter().filter(|it| **it == (ONE, ONE)).count()
    };
    bed.pass(DEFEND_INTERVAL_MS);
    let before = announced(&bed);
    let claim = arp(Operation::Reply, 90, ONE, TWO);
    let contested = AddressNews::Contested { by: hardware(90) };
    for interval in 1..=3 {
        hears(&mut bed, at, hardware(90), &claim);
        assert_eq!(announced(&bed), before + interval);
        assert_eq!(bed.seats[at].address_news().len(), interval);
        for _ in 0..1_000 {
            hears(&mut bed, at, hardware(90), &claim);
        }
        assert_eq!(announced(&bed), before + interval);
        let news = bed.seats[at].address_news();
        assert_eq!((news.len(), news[interval]), (1 + interval, contested));
        bed.pass(DEFEND_INTERVAL_MS);
    }
    assert_eq!(phase(&bed, at), Phase::Used, "it is kept");
    assert_eq!(unheard(&bed, at, Unheard::Conflict), 3 * 1_001);
    let conflict = |it: &Trouble| matches!(it, Trouble::Conflict { .. });
    let told = bed.seats[at].troubles().into_iter().filter(conflict);
    assert_eq!(told.count(), 6, "as often as something is done");
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
