use super::*;
use proptest::prelude::*;
use rand::SeedableRng;
use std::collections::HashSet;

fn table(entries: u32) -> StagTable {
    StagTable::new(entries, StdRng::seed_from_u64(1))
}

fn party(owner: u64, domain: u32) -> Party {
    Party {
        owner: Owner(owner),
        domain: Domain(domain),
    }
}

const MINE: Party = Party {
    owner: Owner(1),
    domain: Domain(1),
};

fn span(offset: u64, len: u32) -> Span {
    Span { offset, len }
}

fn open(table: &mut StagTable, access: Access) -> Segment {
    table
        .open(MINE, Scope::Stream, span(1000, 100), access)
        .unwrap()
}

/// Whether the first octet of a buffer can be had.
fn reach(
    table: &StagTable,
    party: Party,
    segment: Segment,
    access: Access,
) -> Result<Span, Violation> {
    table.admit(party, segment.handle.into(), segment.offset, 1, access)
}

#[test]
fn section_6_1_1_of_rfc_5042_streams_and_domains() {
    let mut table = table(8);
    let own = open(&mut table, Access::Write);
    let region = table
        .open(MINE, Scope::Domain, span(0, 10), Access::Write)
        .unwrap();
    let reach = |party, segment| reach(&table, party, segment, Access::Write).is_ok();
    assert!(reach(MINE, own) && reach(MINE, region));
    // Another stream of the domain, the stream's number in another domain, neither.
    assert!(!reach(party(2, 1), own) && reach(party(2, 1), region));
    assert!(!reach(party(1, 2), own) && !reach(party(1, 2), region));
    assert!(!reach(party(2, 2), own) && !reach(party(2, 2), region));
}

#[test]
fn section_6_1_1_of_rfc_5042_stags_are_hard_to_predict() {
    let mut table = table(4);
    let mut stags = HashSet::new();
    let mut bases = HashSet::new();
    for _ in 0..1000 {
        let segment = open(&mut table, Access::Read);
        assert_ne!(segment.handle.0, 0);
        stags.insert(segment.handle.0);
        bases.insert(segment.offset);
        table.close(MINE.owner, segment.handle.into()).unwrap();
    }
    // One entry all the time, and hardly an STag twice: 30 bits of each are random.
    assert!(stags.len() >= 999);
    assert!(bases.len() >= 999);
}

/// Of one buffer, and with the longest table: half of the bits stay random.
#[test]
fn section_8_1_1_of_rfc_5040_rule_8_stags_are_sparse() {
    let mut table = table(u32::MAX);
    assert_eq!(table.free(), 1 << 16);
    let keys: HashSet<u32> = (0..1000)
        .map(|_| {
            let segment = open(&mut table, Access::Read);
            let stag = Stag::from(segment.handle);
            table.close(MINE.owner, stag).unwrap();
            assert_eq!(table.index(stag), 0, "the entry that was last let go of");
            stag.0 >> 16
        })
        .collect();
    // A thousand of 65536 drawn at random: some eight come twice.
    assert!(keys.len() > 950, "{}", keys.len());
}

#[test]
fn rights_are_one_way() {
    let mut table = table(4);
    for (access, other) in [(Access::Read, Access::Write), (Access::Write, Access::Read)] {
        let segment = open(&mut table, access);
        assert!(reach(&table, MINE, segment, access).is_ok());
        let refused = reach(&table, MINE, segment, other);
        assert_eq!(refused, Err(Violation::Rights));
    }
}

#[test]
fn section_6_2_1_of_rfc_5042_bounds_and_wrap() {
    let mut table = table(4);
    let segment = open(&mut table, Access::Write);
    let stag = segment.handle.into();
    let base = segment.offset;
    let admit = |to, len| table.admit(MINE, stag, to, len, Access::Write);
    assert_eq!(admit(base, 100), Ok(span(1000, 100)));
    assert_eq!(admit(base + 99, 1), Ok(span(1099, 1)));
    assert_eq!(admit(base + 100, 0), Ok(span(1100, 0)));
    assert_eq!(admit(base, 101), Err(Violation::Bounds));
    assert_eq!(admit(base + 100, 1), Err(Violation::Bounds));
    assert_eq!(admit(base - 1, 1), Err(Violation::Bounds));
    assert_eq!(admit(base - 1, 2), Err(Violation::Bounds));
    assert_eq!(admit(0, 1), Err(Violation::Bounds));
    assert_eq!(admit(u64::MAX, 1), Err(Violation::Wrap));
    assert_eq!(admit(u64::MAX - 3, u32::MAX), Err(Violation::Wrap));
}

#[test]
fn what_is_closed_is_reached_no_more() {
    let mut table = table(1);
    let segment = open(&mut table, Access::Write);
    let stag = segment.handle.into();
    assert_eq!(table.free(), 0);
    assert!(
        table
            .open(MINE, Scope::Stream, span(0, 1), Access::Read)
            .is_none()
    );
    assert_eq!(table.close(Owner(2), stag), Err(Denied));
    assert_eq!(table.reclaim(MINE.owner, stag), Err(Denied));
    assert_eq!(table.close(MINE.owner, stag), Ok(()));
    assert_eq!(table.close(MINE.owner, stag), Err(Denied));
    let invalid = Err(Violation::Invalid);
    assert_eq!(reach(&table, MINE, segment, Access::Write), invalid);
    // Its entry again, and not its STag.
    let other = open(&mut table, Access::Write);
    assert_eq!(reach(&table, MINE, segment, Access::Write), invalid);
    assert!(reach(&table, MINE, other, Access::Write).is_ok());
}

#[test]
fn what_the_peer_invalidates_is_its_owners_to_reclaim() {
    let mut table = table(1);
    let segment = open(&mut table, Access::Write);
    let stag = segment.handle.into();
    assert_eq!(table.invalidate(party(2, 1), stag), Err(Denied));
    assert_eq!(table.invalidate(MINE, stag), Ok(()));
    assert_eq!(table.invalidate(MINE, stag), Err(Denied));
    let invalid = Err(Violation::Invalid);
    assert_eq!(reach(&table, MINE, segment, Access::Write), invalid);
    assert_eq!(table.free(), 0);
    assert_eq!(table.close(MINE.owner, stag), Err(Denied));
    assert_eq!(table.reclaim(Owner(2), stag), Err(Denied));
    assert_eq!(table.reclaim(MINE.owner, stag), Ok(()));
    assert_eq!(table.free(), 1);
}

/// RFC 5042 section 6.4.5: a peer could take away what others use.
#[test]
fn section_6_4_5_of_rfc_5042_regions_are_not_invalidated() {
    let mut table = table(1);
    let region = table
        .open(MINE, Scope::Domain, span(0, 10), Access::Write)
        .unwrap();
    assert_eq!(table.invalidate(MINE, region.handle.into()), Err(Denied));
    assert!(reach(&table, MINE, region, Access::Write).is_ok());
}

#[test]
fn a_stream_that_ends_leaves_nothing_open() {
    let mut table = table(4);
    let first = open(&mut table, Access::Read);
    let second = open(&mut table, Access::Write);
    table.invalidate(MINE, second.handle.into()).unwrap();
    let other = table
        .open(party(2, 1), Scope::Stream, span(0, 1), Access::Read)
        .unwrap();
    table.close_all(MINE.owner);
    assert_eq!(table.free(), 3);
    assert!(reach(&table, MINE, first, Access::Read).is_err());
    assert!(reach(&table, party(2, 1), other, Access::Read).is_ok());
}

proptest! {
    /// Whatever is admitted lies within what was opened.
    #[test]
    fn nothing_outside_is_ever_admitted(
        guess: u32,
        near in -300_i64..300,
        to: u64,
        len: u32,
        short in 0..200_u32,
    ) {
        let mut table = table(16);
        let segment = open(&mut table, Access::Write);
        let near = segment.offset.wrapping_add_signed(near);
        for stag in [segment.handle.0, guess] {
            for (to, len) in [(near, short), (to, len), (near, len), (to, short)] {
                if let Ok(memory) = table.admit(MINE, Stag(stag), to, len, Access::Write) {
                    prop_assert_eq!(stag, segment.handle.0);
                    prop_assert_eq!(memory.len, len);
                    prop_assert!(memory.offset >= 1000 && memory.offset + u64::from(len) <= 1100);
                    prop_assert_eq!(memory.offset - 1000, to - segment.offset);
                }
            }
        }
    }
}
