//! Records split and joined in every way a stream can split and join them.

use super::*;
use crate::fake::{Fake, Script};
use proptest::prelude::*;
use reader::MAX_FRAGMENTS;
use rpcrdma_engine::{Io, Span};
use std::io::ErrorKind;

const LIMIT: u32 = 4096;

fn marker(len: usize, last: bool) -> [u8; 4] {
    let len = u32::try_from(len).unwrap();
    (len | if last { LAST } else { 0 }).to_be_bytes()
}

/// One record in fragments of these lengths, the last of them marked.
fn fragments(record: &[u8], lengths: &[usize]) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut rest = record;
    for &len in lengths {
        let (fragment, behind) = rest.split_at(len.min(rest.len()));
        octets.extend(marker(fragment.len(), false));
        octets.extend(fragment);
        rest = behind;
    }
    octets.extend(marker(rest.len(), true));
    octets.extend(rest);
    octets
}

fn record(len: usize, seed: u8) -> Vec<u8> {
    (0..=250_u8)
        .cycle()
        .take(len)
        .map(|octet| octet ^ seed)
        .collect()
}

/// Reads everything, each record into memory of `room` octets (or its exact length, if that
/// is less), and gives back whole records as `Some`, skipped ones as `None`.
fn read_all(
    stream: &mut Script,
    io: &mut Fake,
    reader: &mut RecordReader,
    room: u32,
) -> (Vec<Option<Vec<u8>>>, Result<Step, Refusal>) {
    let mut records = Vec::new();
    loop {
        match reader.step(stream, io) {
            Ok(Step::Head(head)) => {
                let len = head.len.unwrap_or(room);
                if len > room {
                    reader.skip();
                } else {
                    let into = io.reserve(len).unwrap();
                    reader.accept(io, into);
                }
            }
            Ok(Step::Record(span)) => records.push(Some(io.octets(span).to_vec())),
            Ok(Step::Skipped(_)) => records.push(None),
            Ok(Step::Blocked) if !stream.spent() => {}
            end => return (records, end),
        }
    }
}

#[test]
fn several_records_come_in_one_read() {
    let records = [
        record(28, 1),
        record(100, 2),
        record(4, 3),
        record(0, 4),
        record(60, 5),
    ];
    let octets: Vec<u8> = records
        .iter()
        .flat_map(|record| fragments(record, &[]))
        .collect();
    let mut stream = Script::new(octets, &[]);
    let (read, end) = read_all(
        &mut stream,
        &mut Fake::new(),
        &mut RecordReader::new(256, LIMIT),
        LIMIT,
    );
    assert_eq!(read, records.map(Some));
    assert_eq!(end, Ok(Step::Ended { midway: false }));
    assert!(
        stream.reads() <= 3,
        "one read, and one that finds the end: {}",
        stream.reads()
    );
}

#[test]
fn one_octet_at_a_time_is_enough() {
    let records = [record(28, 1), record(700, 2)];
    let octets: Vec<u8> = records
        .iter()
        .flat_map(|record| fragments(record, &[3, 0, 1, 0, 20]))
        .collect();
    let mut stream = Script::new(octets, &[1]);
    let (read, end) = read_all(
        &mut stream,
        &mut Fake::new(),
        &mut RecordReader::new(40, LIMIT),
        LIMIT,
    );
    assert_eq!(read, records.map(Some));
    assert_eq!(end, Ok(Step::Ended { midway: false }));
}

#[test]
fn a_large_payload_is_read_into_its_place() {
    let (before, large, after) = (record(28, 1), record(1 << 20, 2), record(28, 3));
    let octets: Vec<u8> = [&before, &large, &after]
        .iter()
        .flat_map(|record| fragments(record, &[]))
        .collect();
    let mut stream = Script::new(octets, &[]);
    let mut reader = RecordReader::new(256, 1 << 21);
    let (read, _) = read_all(&mut stream, &mut Fake::new(), &mut reader, 1 << 21);
    assert_eq!(read, [before, large, after].map(Some));
    assert!(
        reader.copied() <= 28 + 260 + 28,
        "copied {}",
        reader.copied()
    );
}

#[test]
fn the_head_is_shown_before_the_body_is_read() {
    let body = record(1000, 9);
    let mut stream = Script::new(fragments(&body, &[]), &[]);
    let mut io = Fake::new();
    let mut reader = RecordReader::new(64, LIMIT);
    assert_eq!(
        reader.step(&mut stream, &mut io),
        Ok(Step::Head(Head { len: Some(1000) }))
    );
    assert_eq!(reader.head(), &body[..64]);
    let reads = stream.reads();
    for _ in 0..3 {
        assert_eq!(
            reader.step(&mut stream, &mut io),
            Ok(Step::Head(Head { len: Some(1000) }))
        );
        assert!(reader.undecided());
    }
    assert_eq!(
        stream.reads(),
        reads,
        "an undecided record holds the stream back"
    );
    let into = io.reserve(1000).unwrap();
    reader.accept(&mut io, into);
    assert_eq!(reader.destination(), Some(into));
    assert_eq!(reader.step(&mut stream, &mut io), Ok(Step::Record(into)));
    assert_eq!(io.octets(into), body);
    assert_eq!(reader.destination(), None);
}

#[test]
fn a_length_is_known_once_the_last_fragment_has_begun() {
    let body = record(1000, 9);
    let mut io = Fake::new();
    let mut stream = Script::new(fragments(&body, &[500]), &[]);
    let step = RecordReader::new(64, LIMIT).step(&mut stream, &mut io);
    assert_eq!(step, Ok(Step::Head(Head { len: None })));
    let mut stream = Script::new(fragments(&body, &[20, 0]), &[]);
    let step = RecordReader::new(64, LIMIT).step(&mut stream, &mut io);
    assert_eq!(step, Ok(Step::Head(Head { len: Some(1000) })));
}

#[test]
fn a_record_that_outgrows_its_memory_is_read_to_its_end() {
    let (large, after) = (record(1000, 1), record(40, 2));
    for lengths in [&[][..], &[300, 300], &[10, 500], &[999]] {
        let mut octets = fragments(&large, lengths);
        octets.extend(fragments(&after, &[]));
        let mut stream = Script::new(octets, &[7, 100, 3]);
        let mut io = Fake::new();
        let mut reader = RecordReader::new(64, LIMIT);
        let mut seen = Vec::new();
        let into = io.reserve(700).unwrap();
        let end = loop {
            match reader.step(&mut stream, &mut io) {
                Ok(Step::Head(_)) => reader.accept(&mut io, into),
                Ok(Step::Skipped(memory)) => seen.push(memory),
                Ok(Step::Record(span)) => assert_eq!(io.octets(span), after),
                Ok(Step::Blocked) => {}
                end => break end,
            }
        };
        assert_eq!(end, Ok(Step::Ended { midway: false }));
        assert_eq!(seen, [Some(into)], "{lengths:?}");
    }
}

#[test]
fn oversized_records_are_refused_before_they_are_read() {
    for octets in [
        marker(4097, true).to_vec(),
        marker(0x7FFF_FFFF, false).to_vec(),
        [
            &marker(4000, false)[..],
            &record(4000, 1),
            &marker(97, true),
        ]
        .concat(),
    ] {
        let mut stream = Script::new(octets, &[]);
        let (mut io, mut reader) = (Fake::new(), RecordReader::new(64, LIMIT));
        let (read, end) = read_all(&mut stream, &mut io, &mut reader, LIMIT);
        assert_eq!((read.len(), end), (0, Err(Refusal::TooLong)));
        assert_eq!(
            reader.step(&mut stream, &mut io),
            Err(Refusal::TooLong),
            "for good"
        );
    }
}

#[test]
fn fragments_without_end_are_refused() {
    let octets = marker(0, false).repeat(MAX_FRAGMENTS as usize + 1);
    let mut reader = RecordReader::new(64, LIMIT);
    let (read, end) = read_all(
        &mut Script::new(octets, &[]),
        &mut Fake::new(),
        &mut reader,
        LIMIT,
    );
    assert_eq!((read.len(), end), (0, Err(Refusal::TooManyFragments)));

    let mut most = marker(0, false).repeat(MAX_FRAGMENTS as usize - 1);
    most.extend(fragments(&record(8, 1), &[]));
    let mut reader = RecordReader::new(64, LIMIT);
    let (read, _) = read_all(
        &mut Script::new(most, &[]),
        &mut Fake::new(),
        &mut reader,
        LIMIT,
    );
    assert_eq!(read, [Some(record(8, 1))]);
}

#[test]
fn an_end_inside_a_record_is_told_from_one_between() {
    let octets = fragments(&record(300, 1), &[100, 0, 50]);
    for end in 0..=octets.len() {
        let mut stream = Script::new(octets[..end].to_vec(), &[]);
        let mut reader = RecordReader::new(64, LIMIT);
        let (_, last) = read_all(&mut stream, &mut Fake::new(), &mut reader, LIMIT);
        let midway = end != 0 && end != octets.len();
        assert_eq!(last, Ok(Step::Ended { midway }), "at {end}");
    }
}

#[test]
fn a_broken_stream_is_refused() {
    let mut stream = Script::failing(ErrorKind::ConnectionReset);
    let step = RecordReader::new(64, LIMIT).step(&mut stream, &mut Fake::new());
    assert_eq!(step, Err(Refusal::Stream(ErrorKind::ConnectionReset)));
}

proptest! {
    #[test]
    fn any_split_gives_the_same_records(
        shapes in proptest::collection::vec(
            (0..600_usize, proptest::collection::vec(0..200_usize, 0..5), any::<u8>()),
            1..8,
        ),
        reads in proptest::collection::vec(0..90_usize, 1..20),
        head_bytes in 1..300_usize,
        room in 0..600_u32,
    ) {
        let mut octets = Vec::new();
        for (len, lengths, seed) in &shapes {
            octets.extend(fragments(&record(*len, *seed), lengths));
        }
        let mut stream = Script::new(octets, &reads);
        let mut reader = RecordReader::new(head_bytes, 600);
        let (read, end) = read_all(&mut stream, &mut Fake::new(), &mut reader, room);
        prop_assert_eq!(end, Ok(Step::Ended { midway: false }));
        prop_assert_eq!(read.len(), shapes.len());
        for (read, (len, _, seed)) in read.iter().zip(&shapes) {
            let fits = *len <= room as usize;
            prop_assert_eq!(read, &fits.then(|| record(*len, *seed)));
        }
    }

    #[test]
    fn what_is_written_is_what_is_read(
        shapes in proptest::collection::vec(
            (0..MAX_LEAD_BYTES, proptest::collection::vec(0..300_usize, 0..8)),
            1..40,
        ),
        writes in proptest::collection::vec(0..200_usize, 1..20),
    ) {
        let mut io = Fake::new();
        let mut writer = RecordWriter::new(shapes.len());
        let mut expected = Vec::new();
        for (tag, (lead, spans)) in shapes.iter().enumerate() {
            let lead = record(*lead, 7);
            let mut whole = lead.clone();
            let spans: Vec<Span> = spans.iter().map(|&len| {
                let octets = record(len, 5);
                whole.extend(&octets);
                io.hold(&octets)
            }).collect();
            writer.push(&lead, &spans, tag).unwrap();
            expected.push(Some(whole));
        }
        prop_assert_eq!(writer.push(&[], &[], 0), Err(Full(0)));
        let mut sink = Script::new(Vec::new(), &writes);
        let mut tags = Vec::new();
        while !writer.idle() {
            prop_assert!(writer.flush(&mut sink, &io).is_ok());
            tags.extend(std::iter::from_fn(|| writer.take_written()));
        }
        prop_assert_eq!(tags, (0..shapes.len()).collect::<Vec<_>>());
        let mut reader = RecordReader::new(64, 1 << 20);
        let mut stream = Script::new(sink.taken().to_vec(), &[]);
        let (read, _) = read_all(&mut stream, &mut io, &mut reader, 1 << 20);
        prop_assert_eq!(read, expected);
    }
}

#[test]
fn many_small_records_go_out_by_one_write() {
    let io = Fake::new();
    let mut writer = RecordWriter::new(60);
    for tag in 0..60 {
        writer.push(&[1; 24], &[], tag).unwrap();
    }
    let mut sink = Script::new(Vec::new(), &[]);
    assert_eq!(writer.flush(&mut sink, &io), Ok(Progress::Idle));
    assert_eq!(sink.writes(), 1);
}

#[test]
fn a_queue_given_up_gives_every_tag_back_once() {
    let io = Fake::new();
    let mut writer = RecordWriter::new(4);
    for tag in 0..4 {
        writer.push(&[1; 24], &[], tag).unwrap();
    }
    let mut sink = Script::new(Vec::new(), &[28 + 10, 0]);
    assert_eq!(writer.flush(&mut sink, &io), Ok(Progress::Blocked));
    assert!(
        !writer.has_place(),
        "written records keep their place until they are taken"
    );
    let given: Vec<i32> = std::iter::from_fn(|| writer.take_any()).collect();
    assert_eq!(given, [0, 1, 2, 3]);
    assert!(writer.idle() && writer.has_place());
    assert_eq!(writer.take_written(), None);
}

#[test]
fn too_much_for_one_record_is_not_taken() {
    let mut writer = RecordWriter::new(4);
    let span = |len| Span { offset: 0, len };
    assert_eq!(writer.push(&[0; MAX_LEAD_BYTES + 1], &[], 0), Err(Full(0)));
    assert_eq!(
        writer.push(&[], &[span(MAX_FRAGMENT_BYTES), span(1)], 0),
        Err(Full(0))
    );
    assert_eq!(writer.push(&[], &[span(1); 9], 0), Err(Full(0)));
    assert!(writer.idle());
}
