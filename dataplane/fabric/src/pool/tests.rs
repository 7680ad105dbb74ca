use super::*;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

/// Every octet of a region that the core and the stacks hold, in whole blocks.
fn free_bytes(pool: &mut Pool) -> u64 {
    for order in 0..STACKED {
        pool.unstack(order, 0);
    }
    let mut bytes = 0;
    for order in 0..ORDERS {
        while let Some(number) = pool.free[order].first() {
            pool.remove(number, order);
            bytes += GRAIN << order;
        }
    }
    bytes
}

#[test]
fn costs_are_whole_blocks_or_eighths() {
    for (len, bytes) in [
        (0, 256),
        (1, 256),
        (256, 256),
        (257, 512),
        (4096, 4096),
        (4097, 8192),
        (65536, 65536),
        (65537, 81920),
        (1 << 20, 1 << 20),
        ((1 << 20) + 200, 5 << 18),
        (LONGEST, 8 << 20),
    ] {
        assert_eq!(Pool::cost(len), Some(bytes), "{len}");
    }
    assert_eq!(Pool::cost(LONGEST + 1), None);
}

#[test]
fn marks_are_all_different() {
    let mut seen = std::collections::HashSet::new();
    for order in 0..ORDERS {
        for eighths in 5..=8 {
            let mark = Class { order, eighths }.mark();
            assert!(mark != 0 && seen.insert(mark));
        }
    }
}

#[test]
fn all_of_a_region_can_be_reserved_and_joined_again() {
    let mut pool = Pool::new(0, 16 * MIB);
    let small: Vec<Span> = std::iter::from_fn(|| pool.reserve(256)).collect();
    assert_eq!(small.len(), 65536);
    assert_eq!(pool.usage().in_use_bytes, 16 * MIB);
    assert_eq!(pool.usage().refusals, 1);
    small.into_iter().for_each(|span| pool.release(span));
    let whole = [pool.reserve(LONGEST), pool.reserve(LONGEST)];
    assert!(
        whole.iter().all(Option::is_some),
        "stacks and buddies were joined"
    );
}

#[test]
fn odd_regions_are_trimmed_and_used_to_the_end() {
    let mut pool = Pool::new(100, 10_000);
    // 100 is rounded up to 256: 9,844 octets are left, 38 blocks.
    assert_eq!(pool.usage().ceiling_bytes, 38 * 256);
    let spans: Vec<Span> = std::iter::from_fn(|| pool.reserve(200)).collect();
    assert_eq!(spans.len(), 38);
    assert!(
        spans
            .iter()
            .all(|span| span.offset >= 256 && span.offset + 256 <= 10_100)
    );
    let mut nothing = Pool::new(0, 255);
    assert_eq!(nothing.reserve(1), None);
}

#[test]
fn a_released_block_is_the_next_one_reserved() {
    let mut pool = Pool::new(0, MIB);
    let first = pool.reserve(4096).expect("room");
    let _second = pool.reserve(4096).expect("room");
    pool.release(first);
    assert_eq!(pool.reserve(4000).expect("room").offset, first.offset);
}

#[cfg(not(debug_assertions))]
#[test]
fn foreign_releases_are_counted_and_ignored() {
    for (wrong, before) in wrong_releases() {
        let mut pool = before;
        let usage = pool.usage();
        pool.release(wrong);
        assert_eq!(pool.usage().foreign_releases, 1, "{wrong:?}");
        assert_eq!(pool.usage().in_use_bytes, usage.in_use_bytes);
    }
}

#[cfg(debug_assertions)]
#[test]
fn foreign_releases_panic() {
    for (wrong, mut pool) in wrong_releases() {
        let released = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.release(wrong);
        }));
        assert!(released.is_err(), "{wrong:?}");
        assert_eq!(pool.usage().foreign_releases, 1, "{wrong:?}");
    }
}

/// Spans that are not reserved, each with the pool they are wrong for.
fn wrong_releases() -> Vec<(Span, Pool)> {
    let spoil: [fn(&mut Pool, Span) -> Span; 6] = [
        |pool, span| {
            pool.release(span);
            span
        },
        |_, span| Span {
            offset: span.offset + 256,
            ..span
        },
        |_, span| Span {
            offset: span.offset + 1,
            ..span
        },
        |_, span| Span { len: 8192, ..span },
        |_, span| Span { offset: 0, ..span },
        |_, span| Span {
            offset: !255,
            ..span
        },
    ];
    spoil
        .into_iter()
        .map(|spoil| {
            let mut pool = Pool::new(4096, MIB);
            let span = pool.reserve(4096).expect("room");
            (spoil(&mut pool, span), pool)
        })
        .collect()
}

fn length() -> impl Strategy<Value = u32> {
    prop_oneof![
        8 => 0_u32..10_000,
        3 => 10_000_u32..200_000,
        2 => 200_000_u32..LONGEST + 2,
    ]
}

proptest! {
    /// The model is the list of live spans: no two share an octet, all are aligned and inside,
    /// nothing is lost when all are back, and a refusal is never wrong about an empty pool.
    #[test]
    fn agrees_with_the_list_of_live_spans(
        base in 0_u64..4096,
        bytes in 256 * 1024_u64..20 * MIB,
        steps in prop::collection::vec((length(), any::<prop::sample::Index>(), 0_u8..5), 1..300),
    ) {
        let mut pool = Pool::new(base, bytes);
        let ceiling = pool.usage().ceiling_bytes;
        let mut live: Vec<Span> = Vec::new();
        for (len, index, kind) in steps {
            if kind < 3 {
                let Some(span) = pool.reserve(len) else { continue };
                prop_assert_eq!(span.len, len);
                prop_assert_eq!(span.offset % 256, 0);
                let cost = Pool::cost(len).expect("it was had");
                prop_assert!(span.offset >= base && span.offset + cost <= base + bytes);
                for other in &live {
                    let apart = span.offset + cost <= other.offset
                        || other.offset + Pool::cost(other.len).expect("had") <= span.offset;
                    prop_assert!(apart, "{:?} and {:?}", span, other);
                }
                live.push(span);
            } else if !live.is_empty() {
                let span = live.swap_remove(index.index(live.len()));
                pool.release(span);
            }
            let in_use: u64 = live.iter().filter_map(|span| Pool::cost(span.len)).sum();
            prop_assert_eq!(pool.usage().in_use_bytes, in_use);
            prop_assert!(pool.usage().peak_bytes >= in_use && in_use <= ceiling);
        }
        for span in live.drain(..) {
            pool.release(span);
        }
        prop_assert_eq!(pool.usage().in_use_bytes, 0);
        prop_assert_eq!(pool.usage().foreign_releases, 0);
        prop_assert_eq!(free_bytes(&mut pool), ceiling);
    }
}
