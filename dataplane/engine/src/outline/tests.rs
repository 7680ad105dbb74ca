//! The shape of Calls, held against what is counted by hand.

use super::*;
use proptest::prelude::*;

/// Parts one after the other in memory, with or without gaps; what follows an item begins with
/// its padding.
fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = (
        0_u32..3000,
        any::<bool>(),
        prop_oneof![Just(0_u64), Just(64)],
    );
    prop::collection::vec(part, 1..MAX_PARTS).prop_map(|parts| {
        let (mut offset, mut position, mut owed) = (0, 0, 0);
        let mut laid: Vec<Part> = Vec::new();
        for (len, item, gap) in parts {
            // Two items with nothing between them have no padding between them either.
            let item = item && owed == 0 && position % 4 == 0 && position > 0;
            let len = match (item, position % 4) {
                (true, _) => len,
                (false, _) => (len & !3) + (4 - position % 4) % 4,
            };
            owed = if item { pad(len) } else { 0 };
            offset += gap;
            let span = Span { offset, len };
            laid.push(Part { span, item });
            offset += u64::from(len);
            position += len;
        }
        laid
    })
}

/// The whole message: the octets of a span are those of its offset.
fn whole(parts: &[Part]) -> Vec<u8> {
    let mut message: Vec<u8> = Vec::new();
    for (part, before) in parts
        .iter()
        .zip([None].into_iter().chain(parts.iter().map(Some)))
    {
        let padding = before
            .filter(|before| before.item)
            .map_or(0, |before| pad(before.span.len));
        let octets = octets(part.span);
        message.extend(vec![0; (padding as usize).min(octets.len())]);
        message.extend(octets.iter().skip(padding as usize));
    }
    message.resize(message.len() + tail(parts) as usize, 0);
    message
}

fn octets(span: Span) -> Vec<u8> {
    (span.offset..span.offset + u64::from(span.len))
        .map(|at| at as u8 | 1)
        .collect()
}

proptest! {
    #[test]
    fn runs_stand_where_they_stood(parts in parts()) {
        let whole = whole(&parts);
        let mut found = vec![0; whole.len()];
        let mut stood = vec![false; whole.len()];
        let runs = runs(&parts, true);
        for run in &runs {
            let at = run.position as usize..(run.position + run.span.len) as usize;
            prop_assert!(!stood[at.clone()].contains(&true), "two runs of one place");
            stood[at.clone()].fill(true);
            found[at].copy_from_slice(&octets(run.span));
        }
        prop_assert_eq!(&found, &whole);
        // What is left out is the padding of items, and nothing else.
        let items = || parts.iter().filter(|part| part.item);
        let left_out: usize = items().map(|part| pad(part.span.len) as usize).sum();
        prop_assert_eq!(stood.iter().filter(|stood| !**stood).count(), left_out);
        let runs_of_items = runs.iter().filter(|run| run.item).count();
        prop_assert_eq!(runs_of_items, items().filter(|part| part.span.len > 0).count());
    }

    #[test]
    fn without_reduction_nothing_is_left_out(parts in parts()) {
        let total: u32 = parts.iter().map(|part| part.span.len).sum();
        let runs = runs(&parts, false);
        prop_assert!(runs.iter().all(|run| !run.item));
        prop_assert_eq!(runs.iter().map(|run| run.span.len).sum::<u32>(), total);
    }

    #[test]
    fn the_shortest_way_that_fits_is_taken(
        parts in parts(),
        limit in 1024_u32..5000,
        segment_bytes in prop_oneof![Just(1_u32 << 30), Just(700)],
        results in prop::collection::vec(0_u32..2000, 0..3),
        reply in prop::option::of(0_u32..3000),
    ) {
        let span = |&len: &u32| Span { offset: 1 << 20, len };
        let results: Vec<Span> = results.iter().map(span).collect();
        let reply = reply.as_ref().map(span);
        let outline = Outline::of(Version::Two, limit, segment_bytes, &parts, &results, reply);

        let count = |len: u32| len.div_ceil(segment_bytes) as usize;
        let writes: usize = results.iter().map(|span| count(span.len)).sum();
        let replies = reply.map(|span| count(span.len));
        let header = |reads| 24 + 24 * reads + 4 + 8 * results.len() + 16 * writes + 4 + 4
            + replies.map_or(0, |segments| 4 + 16 * segments);
        let reduced = runs(&parts, true);
        let reads = |item| reduced.iter().filter(move |run| run.item == item)
            .map(|run| count(run.span.len)).sum::<usize>();
        let body: usize = reduced.iter().filter(|run| !run.item)
            .map(|run| run.span.len as usize).sum();
        let items = reads(true);
        let (shape, reads) = if header(0) + whole(&parts).len() <= limit as usize {
            (Shape::Inline, 0)
        } else if items > 0 && header(items) + body <= limit as usize {
            (Shape::Reduced, items)
        } else {
            (Shape::Long, items + reads(false))
        };
        let segments = reads + writes + replies.unwrap_or(0);
        let header_bytes = header(reads);
        let possible = segments <= MAX_SEGMENTS && header_bytes <= HEADER_BYTES.min(limit as usize);
        let expected = Outline { shape, header_bytes, segments };
        prop_assert_eq!(outline, possible.then_some(expected));
    }

    #[test]
    fn pieces_are_the_span(len in 0_u32..5000, segment_bytes in 1_u32..2000) {
        let span = Span { offset: 77, len };
        let all: Vec<Span> = pieces(span, segment_bytes).collect();
        prop_assert_eq!(all.len(), segments(len, segment_bytes));
        let joined: Vec<u8> = all.iter().flat_map(|piece| octets(*piece)).collect();
        prop_assert_eq!(joined, octets(span));
        prop_assert!(all.iter().all(|piece| (1..=segment_bytes).contains(&piece.len)));
    }
}

#[test]
fn padding_is_up_to_the_next_multiple_of_four() {
    let pads: Vec<u32> = (0..9).map(pad).collect();
    assert_eq!(pads, [0, 3, 2, 1, 0, 3, 2, 1, 0]);
    assert_eq!((round_up(0), round_up(5), round_up(8)), (0, 8, 8));
}
