use super::*;
use rand::SeedableRng;

const ALICE: Owner = Owner(10);
const BOB: Owner = Owner(11);
const MEMORY: Span = Span {
    offset: 4096,
    len: 1000,
};

fn one(access: Access) -> (Windows, Segment) {
    let windows = Windows::new(4);
    let mut random = StdRng::seed_from_u64(1);
    let segment = windows
        .open(2, ALICE, MEMORY, access, &mut random)
        .expect("free");
    (windows, segment)
}

#[test]
fn a_window_opens_for_its_owners_peer_within_its_bounds() {
    let (windows, segment) = one(Access::Write);
    assert_eq!(segment.length, 1000);
    let inside = windows
        .enter(ALICE, segment, Access::Write)
        .expect("the whole");
    assert_eq!(inside.memory, MEMORY);
    drop(inside);
    let part = Segment {
        offset: segment.offset + 990,
        length: 10,
        ..segment
    };
    let inside = windows.enter(ALICE, part, Access::Write).expect("the end");
    assert_eq!(
        inside.memory,
        Span {
            offset: 5086,
            len: 10
        }
    );
    let none = Segment {
        offset: segment.offset + 1000,
        length: 0,
        ..segment
    };
    assert!(windows.enter(ALICE, none, Access::Write).is_ok());
}

#[test]
fn everything_else_is_denied_and_leaves_nobody_inside() {
    let (windows, segment) = one(Access::Write);
    let at = |offset, length| Segment {
        offset,
        length,
        ..segment
    };
    let base = segment.offset;
    for target in [
        at(base, 1001),
        at(base + 1, 1000),
        at(base + 1000, 1),
        at(base + 1001, 0),
        at(base - 1, 2),
        at(base - 1, 0),
        at(0, 1),
        at(u64::MAX, 1),
        at(u64::MAX, u32::MAX),
        at(base, u32::MAX),
        at(base.wrapping_sub(u64::from(u32::MAX)), u32::MAX),
    ] {
        assert!(
            windows.enter(ALICE, target, Access::Write).is_err(),
            "{target:?}"
        );
    }
    assert!(
        windows.enter(BOB, segment, Access::Write).is_err(),
        "another's peer"
    );
    assert!(
        windows.enter(ALICE, segment, Access::Read).is_err(),
        "the other right"
    );
    for flip in 0..32 {
        let wrong = Segment {
            handle: Handle(segment.handle.0 ^ 1 << flip),
            ..segment
        };
        assert!(
            windows.enter(ALICE, wrong, Access::Write).is_err(),
            "{flip}"
        );
    }
    assert_eq!(windows.close(ALICE, segment.handle, false), Ok(true));
}

#[test]
fn reading_and_writing_are_different_rights() {
    let (windows, segment) = one(Access::Read);
    assert!(windows.enter(ALICE, segment, Access::Write).is_err());
    assert!(windows.enter(ALICE, segment, Access::Read).is_ok());
}

#[test]
fn a_close_waits_for_those_inside() {
    let (windows, segment) = one(Access::Write);
    let inside = windows.enter(ALICE, segment, Access::Write).expect("open");
    assert_eq!(windows.close(ALICE, segment.handle, false), Ok(false));
    assert!(windows.enter(ALICE, segment, Access::Write).is_err());
    assert!(!windows.vacant(2));
    let mut random = StdRng::seed_from_u64(2);
    let again = windows.open(2, BOB, MEMORY, Access::Read, &mut random);
    assert_eq!(again, Err(Denied), "not while somebody is inside");
    drop(inside);
    assert!(windows.vacant(2));
    assert!(
        windows
            .open(2, BOB, MEMORY, Access::Read, &mut random)
            .is_ok()
    );
}

#[test]
fn a_peers_invalidation_ends_access_once() {
    let (windows, segment) = one(Access::Write);
    assert_eq!(windows.invalidate(BOB, segment.handle), Err(Denied));
    assert_eq!(
        windows.reclaim(ALICE, segment.handle),
        Err(Denied),
        "still open"
    );
    assert_eq!(windows.invalidate(ALICE, segment.handle), Ok(()));
    assert_eq!(windows.invalidate(ALICE, segment.handle), Err(Denied));
    assert!(windows.enter(ALICE, segment, Access::Write).is_err());
    assert_eq!(
        windows.close(ALICE, segment.handle, false),
        Err(Denied),
        "not open any more"
    );
    assert_eq!(windows.reclaim(BOB, segment.handle), Err(Denied));
    assert_eq!(windows.reclaim(ALICE, segment.handle), Ok(true));
    assert_eq!(windows.reclaim(ALICE, segment.handle), Err(Denied));
}

#[test]
fn handles_are_never_zero_and_change_with_each_opening() {
    let windows = Windows::new(1);
    let mut random = StdRng::seed_from_u64(3);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..1000 {
        let segment = windows
            .open(0, ALICE, MEMORY, Access::Read, &mut random)
            .expect("free");
        assert_ne!(segment.handle, Handle(0));
        assert_eq!(windows.index(segment.handle), 0);
        seen.insert(segment.handle);
        assert_eq!(windows.close(ALICE, segment.handle, false), Ok(true));
    }
    assert!(
        seen.len() > 990,
        "20 random bits: {} different of 1000",
        seen.len()
    );
}

#[test]
fn closing_all_spares_the_windows_of_others() {
    let windows = Windows::new(4);
    let mut random = StdRng::seed_from_u64(4);
    let mut open = |index, owner| {
        windows
            .open(index, owner, MEMORY, Access::Read, &mut random)
            .expect("free")
    };
    let segments = [open(0, ALICE), open(1, BOB), open(3, ALICE)];
    windows.invalidate(ALICE, segments[2].handle).expect("open");
    let mut closed = Vec::new();
    windows.close_all(Some(ALICE), |index, free| closed.push((index, free)));
    assert_eq!(closed, [(0, true), (3, true)]);
    assert!(windows.enter(BOB, segments[1], Access::Read).is_ok());
    windows.close_all(None, |index, free| closed.push((index, free)));
    assert_eq!(closed.last(), Some(&(1, true)));
}

/// Accesses race with closes: none is inside when a close is done, and none gets in after.
#[test]
fn no_access_outlives_a_close() {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU32;
    let rounds = if cfg!(miri) { 50 } else { 20_000 };
    let windows = Windows::new(1);
    let current = Mutex::new(None::<Segment>);
    let over = std::sync::atomic::AtomicBool::new(false);
    // What the window protects: the owner sets it to odd when nobody may touch it.
    let protected = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut got_in = 0_u32;
            while !over.load(Ordering::Relaxed) {
                let segment = *current.lock().expect("not poisoned");
                let Some(segment) = segment else { continue };
                for _ in 0..8 {
                    if let Ok(_inside) = windows.enter(ALICE, segment, Access::Write) {
                        assert_eq!(protected.load(Ordering::Relaxed) % 2, 0, "after a close");
                        got_in += 1;
                    }
                }
            }
            got_in
        });
        let mut random = StdRng::seed_from_u64(5);
        for _ in 0..rounds {
            protected.fetch_and(!1, Ordering::Relaxed);
            let opened = loop {
                // A late access may be looking at the free window.
                if let Ok(segment) = windows.open(0, ALICE, MEMORY, Access::Write, &mut random) {
                    break segment;
                }
                std::thread::yield_now();
            };
            *current.lock().expect("not poisoned") = Some(opened);
            if windows.close(ALICE, opened.handle, false) == Ok(false) {
                while !windows.vacant(0) {
                    std::hint::spin_loop();
                }
            }
            protected.fetch_or(1, Ordering::Relaxed);
        }
        over.store(true, Ordering::Relaxed);
    });
}
