//! Who claims everything, and what is almost a claim.

use super::*;

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

/// Whatever becomes of a claim on its way: it is one, or it is counted as what it is.
#[test]
fn a_claim_with_an_octet_that_is_another_is_accounted_for() {
    let other = hardware(90);
    let v4 = (spec(SIX), ONE.into(), arp(Operation::Reply, 90, ONE, TWO));
    let v6 = (v6(), LOCAL.into(), advertisement(LOCAL, Some(other)));
    let mut claims = 0;
    for (spec, address, frame) in [v4, v6] {
        let address: IpAddr = address;
        for (place, octet) in (0..frame.len()).flat_map(|at| [(at, 0x01), (at, 0x80), (at, 0xFF)]) {
            let mut bed = Bed::new();
            let at = bed.up(spec);
            set(&mut bed, at, address);
            bed.pass(CHECK_MS / 2);
            let before = accounted(&bed, at);
            let mut garbled = frame.clone();
            garbled[place] ^= octet;
            hears(&mut bed, at, other, &garbled);
            assert_eq!(accounted(&bed, at), before + 1, "{place}: {octet:#x}");
            claims += u32::from(phase(&bed, at) == Phase::Taken);
        }
    }
    assert!(claims > 0, "some octets decide nothing");
}

/// Claims, and frames that were none.
fn accounted(bed: &Bed, at: usize) -> u64 {
    let node = &bed.seats[at].node;
    let ledger = node.ledger();
    let counts = node.neighbour_counts(LINK).expect("a link");
    ledger.refusals().of(Refusal::AddressTaken)
        + ledger.ignored_things().of(Ignored::BrokenFrame)
        + counts.unheard.total()
}

/// Link section 11: a failed join is told, whoever claims whatever meanwhile.
#[test]
fn section_11_who_claims_addresses_does_not_silence_failures() {
    let one = Pace {
        per_second: 0,
        burst: 1,
    };
    let limits = Limits {
        told: one,
        conflicts: one,
        ..Limits::default()
    };
    let mut bed = Bed::new();
    let at = bed.seat(Settings {
        limits,
        ..Settings::default()
    });
    bed.add_link(at, spec(SIX));
    set(&mut bed, at, ONE);
    bed.pass(CHECKED_MS);
    let claim = arp(Operation::Reply, 90, ONE, TWO);
    for _ in 0..10 {
        hears(&mut bed, at, hardware(90), &claim);
    }
    let told = bed.seats[at].troubles();
    assert!(matches!(told[..], [Trouble::Conflict { .. }]), "{told:?}");
    bed.seats[at].device = Err(28);
    bed.join(at, "239.0.0.1");
    let told = bed.seats[at].troubles();
    // the second conflict, for which there was no line
    let [_, Trouble::Untold { count: 1 }, Trouble::Failed(failure)] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(failure.cause, Cause::Device);
}
