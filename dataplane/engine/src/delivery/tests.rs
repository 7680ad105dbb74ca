//! Where Replies go, and which room is missing, found out by trying.

use super::*;
use proptest::prelude::*;
use rpcrdma_wire::{Body, Limits, parse};

/// The rooms that a Call offers: segments of each Write chunk, and of the Reply chunk.
#[derive(Clone, Debug)]
struct Rooms {
    writes: Vec<Vec<u32>>,
    reply: Option<Vec<u32>>,
}

impl Rooms {
    /// The Call that offers them.
    fn message(&self) -> Vec<u8> {
        let chunk = |lengths: &[u32]| -> Vec<Segment> {
            let segment = |(n, &length): (u64, &u32)| Segment {
                handle: Handle(1),
                length,
                offset: n << 32,
            };
            (0..).zip(lengths).map(segment).collect()
        };
        let mut buf = vec![0; 4096];
        let mut header = Emitter::new(&mut buf);
        header.start(Version::Two, Xid(7), 1, Procedure::Msg);
        header.direction(Direction::Call, None).end_reads();
        for lengths in &self.writes {
            header.write_chunk(chunk(lengths).into_iter());
        }
        header.end_writes();
        header.reply_chunk(
            self.reply
                .as_deref()
                .map(|lengths| chunk(lengths).into_iter()),
        );
        let len = header.finish().expect("room");
        buf.truncate(len);
        buf.extend([0, 0, 0, 7, 0, 0, 0, 0]);
        buf
    }

    /// Chunks with something in them: the number of each one's last segment, from one.
    fn last_segments(&self) -> Vec<u32> {
        let mut before = 0;
        let chunks = self.writes.iter().chain(&self.reply);
        let last = chunks.map(|chunk| {
            before += chunk.len() as u32;
            (!chunk.is_empty()).then_some(before)
        });
        last.flatten().collect()
    }

    /// The same, with one segment of another length.
    fn with(&self, segment: u32, length: u32) -> Rooms {
        let mut rooms = self.clone();
        let all = rooms.writes.iter_mut().chain(&mut rooms.reply).flatten();
        if let Some(place) = all.into_iter().nth(segment as usize - 1) {
            *place = length;
        }
        rooms
    }
}

fn lists(message: &[u8]) -> ChunkLists<'_> {
    match parse(message, &Limits::default())
        .expect("a good Call")
        .body
    {
        Body::Msg(lists) => lists,
        other => panic!("{other:?}"),
    }
}

const LIMIT: u32 = 1024;

fn fits(rooms: &Rooms, parts: &[Part]) -> bool {
    deliver(Version::Two, LIMIT, parts, lists(&rooms.message())).is_ok()
}

fn rooms() -> impl Strategy<Value = Rooms> {
    let chunk = || prop::collection::vec(0_u32..60, 0..4);
    let writes = prop::collection::vec(chunk(), 0..4);
    let reply = prop::option::of(prop::collection::vec(0_u32..900, 0..3));
    (writes, reply).prop_map(|(writes, reply)| Rooms { writes, reply })
}

/// A head, items with padding and something behind each, and maybe a long tail.
fn parts() -> impl Strategy<Value = Vec<Part>> {
    let items = prop::collection::vec(0_u32..120, 0..3);
    (items, prop_oneof![Just(0_u32), 0_u32..1600]).prop_map(|(items, tail)| {
        let mut offset = 0;
        let mut part = |len: u32, item: bool| {
            let span = Span { offset, len };
            offset += u64::from(len);
            Part { span, item }
        };
        let mut parts = vec![part(24, false)];
        for len in items {
            parts.push(part(len, true));
            parts.push(part(pad(len) + 4, false));
        }
        parts.push(part(tail & !3, false));
        parts
    })
}

proptest! {
    /// V2-11: the one segment whose length alone is to blame, and the least length that helps.
    #[test]
    fn what_is_missing_is_what_trying_finds(rooms in rooms(), parts in parts()) {
        let message = rooms.message();
        let verdict = deliver(Version::Two, LIMIT, &parts, lists(&message));
        let cures: Vec<u32> = rooms
            .last_segments()
            .into_iter()
            .filter(|&segment| fits(&rooms.with(segment, 10_000), &parts))
            .collect();
        match verdict {
            Ok(_) => prop_assert!(fits(&rooms, &parts)),
            Err(TooSmall { segment: 0, length }) => {
                prop_assert_eq!(length, 0);
                prop_assert!(cures.is_empty(), "segment {:?} would do", cures);
            }
            Err(TooSmall { segment, length }) => {
                prop_assert_eq!(cures, vec![segment]);
                prop_assert!(fits(&rooms.with(segment, length), &parts));
                prop_assert!(!fits(&rooms.with(segment, length - 1), &parts));
            }
        }
    }

    /// What is spread over a chunk is all of it, in order, within each segment; and what the
    /// header says was written is what was written.
    #[test]
    fn what_is_spread_is_what_the_header_says(
        lengths in prop::collection::vec(0_u32..40, 0..6),
        spans in prop::collection::vec(0_u32..50, 0..4),
    ) {
        let room: u32 = lengths.iter().sum();
        let total: u32 = spans.iter().sum();
        prop_assume!(total <= room);
        let rooms = Rooms { writes: vec![lengths.clone()], reply: None };
        let message = rooms.message();
        let chunk = lists(&message).writes.iter().next().expect("a chunk");
        let mut offset = 0;
        let data: Vec<Span> = spans.iter().map(|&len| {
            let span = Span { offset, len };
            offset += u64::from(len);
            span
        }).collect();
        let mut written = vec![0; lengths.len()];
        let mut next = 0;
        let posted = spread(data.into_iter(), chunk, |from, to| {
            let (n, at) = ((to.offset >> 32) as usize, to.offset as u32);
            assert_eq!((from.offset, from.len), (next, to.length));
            assert_eq!(at, written[n], "a gap in segment {n}");
            assert!(to.length > 0);
            written[n] += to.length;
            next += u64::from(to.length);
            Ok(())
        });
        prop_assert_eq!(posted, Ok(()));
        prop_assert_eq!(next, u64::from(total));
        prop_assert!(written.iter().zip(&lengths).all(|(written, length)| written <= length));
        let said: Vec<u32> = filled(chunk, total).map(|segment| segment.length).collect();
        prop_assert_eq!(said, written);
    }

    /// What does not go by Write chunk is the rest, without the padding of what does.
    #[test]
    fn the_rest_is_what_was_not_reduced(rooms in rooms(), parts in parts()) {
        let message = rooms.message();
        let Ok(delivery) = deliver(Version::Two, LIMIT, &parts, lists(&message)) else {
            return Ok(());
        };
        let left: u32 = rest(&parts, delivery.reduced).map(|span| span.len).sum();
        prop_assert_eq!(left, delivery.body);
        let gone: u32 = written_parts(&parts, &delivery)
            .map(|(part, _)| part.span.len + pad(part.span.len))
            .sum();
        let all: u32 = parts.iter().map(|part| part.span.len).sum();
        prop_assert_eq!(left + gone, all);
        prop_assert_eq!(delivery.long, delivery.header_bytes as u32 + delivery.body > LIMIT);
    }
}

#[test]
fn one_distinct_handle_or_none() {
    let mut rooms = Rooms {
        writes: vec![vec![5, 5], vec![5]],
        reply: Some(vec![5]),
    };
    assert_eq!(only_handle(&lists(&rooms.message())), Some(Handle(1)));
    rooms.writes.clear();
    rooms.reply = None;
    assert_eq!(only_handle(&lists(&rooms.message())), None);
}
