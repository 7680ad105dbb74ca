use super::*;
use proptest::prelude::*;
use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::{Octets, Span};
use std::collections::VecDeque;

fn arena() -> Arena {
    Arena::map(1 << 16, Hugepages::Off).expect("memory")
}

fn heading(n: u32) -> Heading {
    Heading {
        queue_pair: n % MOST_QUEUE_PAIRS,
        generation: n.wrapping_mul(7),
        invalidated: n.is_multiple_of(3).then_some(Handle(n)),
        judge: n.is_multiple_of(5),
    }
}

fn octets(n: u32, len: u32) -> Vec<u8> {
    (0..len)
        .map(|i| n.wrapping_mul(31).wrapping_add(i).to_le_bytes()[0] | 1)
        .collect()
}

fn push(writer: &mut Writer, n: u32, len: u32, arena: &Arena) -> bool {
    let Some(room) = writer.room(len) else {
        return false;
    };
    let message = octets(n, len);
    let (first, second) = message.split_at(message.len() / 3);
    writer.push(
        room,
        heading(n),
        &[Octets::Bytes(first), Octets::Bytes(second)],
        arena,
    );
    true
}

/// Takes the next message and compares it with what was pushed as number `n`.
fn take(reader: &mut Reader, n: u32, len: u32, arena: &Arena) {
    let record = reader.peek().expect("it was committed");
    assert_eq!((record.heading, record.len), (heading(n), len));
    let span = Span { offset: 64, len };
    assert!(record.copy(arena, span));
    // SAFETY: this arena is the test's alone.
    assert_eq!(unsafe { arena.octets(span) }, octets(n, len));
    record.advance();
}

#[test]
fn nothing_is_there_before_the_first_commit() {
    let (_writer, mut reader) = channel(1024);
    assert!(reader.peek().is_none());
    assert!(!reader.publish());
}

#[test]
fn a_message_that_looks_like_records_is_not_taken_for_one() {
    let (mut writer, mut reader) = channel(1024);
    let arena = arena();
    let forged = [0xff; 112];
    for _ in 0..64 {
        let room = writer.room(112).expect("room");
        writer.push(room, heading(1), &[Octets::Bytes(&forged)], &arena);
        let record = reader.peek().expect("committed");
        assert_eq!(record.len, 112);
        record.advance();
        assert!(reader.peek().is_none());
        reader.publish();
        // A short record in between, so that beginnings fall on lines of old octets.
        assert!(push(&mut writer, 2, 1, &arena));
        take(&mut reader, 2, 1, &arena);
        assert!(reader.peek().is_none());
        reader.publish();
    }
}

#[test]
fn a_full_ring_refuses_until_the_reader_publishes() {
    let (mut writer, mut reader) = channel(1024);
    let arena = arena();
    let mut pushed = 0;
    while push(&mut writer, pushed, 48, &arena) {
        pushed += 1;
    }
    // Sixteen lines.
    assert_eq!(pushed, 16);
    take(&mut reader, 0, 48, &arena);
    assert!(
        !push(&mut writer, pushed, 48, &arena),
        "taken, but not published"
    );
    writer.starve();
    assert!(reader.publish(), "the writer wants to be woken");
    assert!(push(&mut writer, pushed, 48, &arena));
}

#[test]
fn gathers_arena_memory() {
    let (mut writer, mut reader) = channel(1024);
    let arena = arena();
    // SAFETY: this arena is the test's alone.
    assert!(unsafe {
        arena.fill(
            Span {
                offset: 4096,
                len: 6,
            },
            b"middle",
        )
    });
    let room = writer.room(12).expect("room");
    let span = Octets::Span(Span {
        offset: 4096,
        len: 6,
    });
    writer.push(
        room,
        heading(0),
        &[Octets::Bytes(b"<<<"), span, Octets::Bytes(b">>>")],
        &arena,
    );
    let record = reader.peek().expect("committed");
    assert!(
        !record.copy(&arena, Span { offset: 0, len: 11 }),
        "one too short"
    );
    assert!(record.copy(&arena, Span { offset: 0, len: 12 }));
    // SAFETY: as above.
    let copied = unsafe { arena.octets(Span { offset: 0, len: 12 }) };
    assert_eq!(copied, b"<<<middle>>>");
}

#[test]
fn the_longest_message_fits_from_everywhere() {
    let arena = arena();
    for octets in [1024, 4096, 1 << 16] {
        let most = longest(octets);
        for before in 0..octets / 64 {
            let (mut writer, mut reader) = channel(octets);
            for n in 0..before {
                assert!(push(&mut writer, n, 1, &arena));
                take(&mut reader, n, 1, &arena);
                reader.publish();
            }
            assert!(push(&mut writer, 9, most, &arena), "{octets} {before}");
            take(&mut reader, 9, most, &arena);
        }
        if cfg!(miri) {
            break;
        }
    }
}

/// Two threads, all lengths, everything in order and whole.
#[test]
fn crosses_threads_in_order() {
    let count = if cfg!(miri) { 200 } else { 20_000 };
    let (mut writer, mut reader) = channel(4096);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let arena = arena();
            let mut n = 0;
            while n < count {
                if push(&mut writer, n, n * 37 % 1900, &arena) {
                    n += 1;
                } else {
                    std::thread::yield_now();
                }
            }
        });
        let arena = arena();
        let mut n = 0;
        while n < count {
            if reader.peek().is_some() {
                take(&mut reader, n, n * 37 % 1900, &arena);
                n += 1;
            } else {
                reader.publish();
                std::thread::yield_now();
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 64 }))]

    /// The model is a queue: what was taken is what was pushed, and a push is refused only
    /// while the reader has unpublished or untaken messages.
    #[test]
    fn agrees_with_a_queue(
        steps in prop::collection::vec((0_u32..450, 0_u8..4), 1..400),
    ) {
        let (mut writer, mut reader) = channel(1024);
        let arena = arena();
        let mut model = VecDeque::new();
        let mut published = true;
        for (n, (len, what)) in (0_u32..).zip(steps) {
            if what < 2 {
                if push(&mut writer, n, len, &arena) {
                    model.push_back((n, len));
                } else {
                    prop_assert!(!(model.is_empty() && published), "{len} refused by an empty ring");
                }
            } else if what == 2 {
                prop_assert_eq!(reader.peek().is_some(), !model.is_empty());
                if let Some((n, len)) = model.pop_front() {
                    take(&mut reader, n, len, &arena);
                    published = false;
                }
            } else {
                reader.publish();
                published = true;
            }
        }
    }
}
