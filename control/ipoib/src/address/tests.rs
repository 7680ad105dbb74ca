use super::*;

fn timing(probes: u8) -> Timing {
    Timing {
        check_ms: 900,
        probes,
        ..Timing::default()
    }
}

/// The moments of an address's probes, and of its use, from when it is looked for on.
fn moments(ip: &str, timing: &Timing) -> (Vec<u64>, u64) {
    let mut address = Address::new(ip.parse().expect("an address"));
    assert_eq!(address.pass(Moment(0), timing), None, "not yet");
    address.ready(Moment(100));
    assert_eq!(address.pass(Moment(99), timing), None, "not before");
    let mut probes = Vec::new();
    while let Some(due) = address.due() {
        match address.pass(due, timing) {
            Some(Deed::Probe) => probes.push(due.0),
            Some(Deed::Use) => return (probes, due.0),
            other => panic!("{other:?} at {due:?}"),
        }
    }
    panic!("never: {probes:?}");
}

#[test]
fn rfc5227_2_1_1_probes_are_even_over_the_time() {
    for (probes, expected) in [
        (3, vec![100, 400, 700]),
        (1, vec![100]),
        // it is looked for in any case
        (0, vec![100]),
    ] {
        assert_eq!(moments("10.0.0.1", &timing(probes)), (expected, 1_000));
    }
}

#[test]
fn rfc4862_5_4_one_solicitation_however_many_probes() {
    assert_eq!(moments("fe80::1", &timing(3)), (vec![100], 1_000));
}

#[test]
fn rfc4862_5_4_5_only_a_link_local_address_is_not_tried_again() {
    for (ip, again) in [
        ("10.0.0.1", Some(Moment(7))),
        ("2001:db8::1", Some(Moment(7))),
        ("fe80::1", None),
    ] {
        let mut address = Address::new(ip.parse().expect("an address"));
        address.ready(Moment(0));
        address.taken(Moment(7));
        assert_eq!((address.phase(), address.due()), (Phase::Taken, again));
        assert_eq!(address.disables_ip(), again.is_none());
        address.fall();
        assert!(!address.disables_ip(), "until the link has been down");
    }
}

/// (b) and (c) of the section differ in what the owner does when the address is contested.
#[test]
fn rfc5227_2_4_it_is_announced_once_in_the_interval_and_contested_once() {
    let timing = timing(1);
    let mut address = Address::new("10.0.0.1".parse().expect("an address"));
    let used = |address: &mut Address, from: Moment| {
        address.ready(from);
        assert_eq!(address.pass(from, &timing), Some(Deed::Probe));
        assert_eq!(address.pass(from.after(900), &timing), Some(Deed::Use));
    };
    used(&mut address, Moment(0));
    for (at, deed) in [
        (1_000, Some(Deed::Announce)),
        (1_000, Some(Deed::Contest)),
        (1_001, None),
        (10_999, None),
        // ten seconds after the announcement, and not after the last claim
        (11_000, Some(Deed::Announce)),
        (20_999, Some(Deed::Contest)),
        (50_000, Some(Deed::Announce)),
    ] {
        assert_eq!(address.disputed(Moment(at)), deed, "at {at} ms");
        assert_eq!(address.phase(), Phase::Used);
    }
    address.fall();
    used(&mut address, Moment(50_000));
    let first = address.disputed(Moment(51_000));
    assert_eq!(first, Some(Deed::Announce), "of the new station");
}

#[test]
fn what_was_taken_is_looked_for_from_the_beginning() {
    let timing = timing(3);
    let mut address = Address::new("10.0.0.1".parse().expect("an address"));
    address.ready(Moment(0));
    for now in [0, 300] {
        assert_eq!(address.pass(Moment(now), &timing), Some(Deed::Probe));
    }
    address.taken(Moment(5_000));
    assert_eq!(address.pass(Moment(4_999), &timing), None);
    for now in [5_000, 5_300, 5_600] {
        assert_eq!(address.pass(Moment(now), &timing), Some(Deed::Probe));
    }
    assert_eq!(address.pass(Moment(5_900), &timing), Some(Deed::Use));
    assert_eq!(address.phase(), Phase::Used);
}

#[test]
fn rfc5227_2_3_it_is_announced_twice() {
    let timing = timing(1);
    let mut address = Address::new("10.0.0.1".parse().expect("an address"));
    address.ready(Moment(0));
    for (at, deed) in [
        (0, Some(Deed::Probe)),
        (900, Some(Deed::Use)),
        (2_899, None),
        (2_900, Some(Deed::Announce)),
        (60_000, None),
    ] {
        assert_eq!(address.pass(Moment(at), &timing), deed, "at {at} ms");
    }
    assert_eq!((address.phase(), address.due()), (Phase::Used, None));
}
