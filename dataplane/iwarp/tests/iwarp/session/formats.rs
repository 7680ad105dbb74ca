//! What chunks look like, and how long they are: sections 5 and 9.

use super::{TERMINATE, out};
use crate::support::*;
use rpcrdma_fabric::{WorkError, WorkId};
use rpcrdma_iwarp::session::PRIVATE_DATA_BYTES;
use rpcrdma_iwarp::{End, Indication, Misstep, Phase, Reject, SegmentBytes, Settings};

#[test]
fn section_5_1_adaptation_indication_is_1() {
    assert_eq!(rpcrdma_iwarp::session::ADAPTATION_DDP, 1);
    assert_eq!(Indication::of(Some(1)), Indication::Ddp);
    assert_eq!(Indication::of(Some(2)), Indication::Other(2));
    assert_eq!(Indication::of(None), Indication::None);
}

#[test]
fn section_5_2_two_ppids() {
    let mut pair = Pair::open();
    pair.b.post(1, span(0, 100));
    pair.a
        .endpoint()
        .send(&[span(0, 9)], None, false, WorkId(1))
        .unwrap();
    assert_eq!(out(&mut pair.a)[0].ppid, 16);
    pair.a.end(S);
    assert_eq!(out(&mut pair.a)[0].ppid, 17);
}

#[test]
fn section_5_2_any_other_ppid_ends_the_session() {
    for ppid in [0, 15, 18, 46, u32::MAX, 16 << 24, 17 << 24] {
        let mut pair = Pair::open();
        pair.b.receive(&chunk(ppid, 1, &[0x41; 20]));
        assert_eq!(pair.b.heard(), [Told::Ended(End::Reject(Reject::Ppid))]);
        assert_eq!(pair.b.rejects(Reject::Ppid), 1);
    }
}

#[test]
fn section_5_2_1_ssn_counts_what_was_submitted() {
    let mut pair = Pair::open();
    let window = pair.b.open(span(0, 5000), rpcrdma_fabric::Access::Write);
    pair.a
        .endpoint()
        .write(span(0, 5000), window, WorkId(1))
        .unwrap();
    let ssns: Vec<u16> = out(&mut pair.a).iter().map(Chunk::ssn).collect();
    // Number 0 was the Initiate.
    assert_eq!(ssns, (1..=10).collect::<Vec<_>>());
}

#[test]
fn section_5_2_2_a_segment_is_behind_its_ssn() {
    let mut pair = Pair::open();
    pair.a
        .endpoint()
        .send(&[span(0, 3)], None, false, WorkId(1))
        .unwrap();
    let sent = out(&mut pair.a);
    let payload = pair.a.ram.at(span(0, 3)).to_vec();
    assert_eq!(sent, [untagged(1, 3, true, (0, 1, 0), &payload)]);
}

#[test]
fn section_5_2_3_function_codes() {
    let mut pair = Pair::new();
    pair.a.bind(S);
    pair.a.association.initiate(S, b"hello", false).unwrap();
    let initiate = out(&mut pair.a);
    assert_eq!(initiate, [control(0, 1, b"hello")]);
    pair.b.receive(&initiate[0]);
    pair.b.bind(S);
    pair.b.association.accept(S, b"").unwrap();
    let accept = out(&mut pair.b);
    assert_eq!(accept, [control(0, 2, b"")]);
    pair.a.receive(&accept[0]);
    assert_eq!(pair.a.heard(), [Told::Accepted(Vec::new(), None)]);
    pair.a.end(S);
    assert_eq!(out(&mut pair.a), [control(1, 4, b"")]);

    let mut pair = Pair::new();
    pair.a.receive(&initiate[0]);
    pair.a.reject(S, b"no");
    assert_eq!(out(&mut pair.a), [control(0, 3, b"no")]);
}

#[test]
fn section_5_2_3_unknown_function_codes_end_the_session() {
    for code in [0, 8, 9, 0x0100, 0x0400, 0xFFFF] {
        let mut pair = Pair::open();
        pair.b.receive(&control(1, code, b""));
        let ended = [Told::Ended(End::Reject(Reject::FunctionCode))];
        assert_eq!(pair.b.heard(), ended);
        let sent = out(&mut pair.b);
        assert_eq!(sent.last().unwrap().body(), TERMINATE);
    }
}

#[test]
fn section_5_2_3_private_data_of_0_to_512_octets() {
    for (len, enhanced) in [(0, false), (512, false), (0, true), (508, true)] {
        let data = vec![0xA5; len];
        let mut pair = Pair::new();
        pair.a.bind(S);
        pair.a.association.initiate(S, &data, enhanced).unwrap();
        pair.exchange();
        let depths = enhanced.then_some(DEPTHS);
        assert_eq!(pair.b.heard(), [Told::Requested(data.clone(), depths)]);
        pair.b.bind(S);
        pair.b.association.accept(S, &data).unwrap();
        pair.exchange();
        assert_eq!(pair.a.heard(), [Told::Accepted(data.clone(), depths)]);

        let mut pair = Pair::new();
        pair.a.bind(S);
        pair.a.association.initiate(S, b"", enhanced).unwrap();
        pair.exchange();
        pair.b.reject(S, &data);
        pair.exchange();
        let told = [Told::Rejected(data), Told::Ended(End::Rejected)];
        assert_eq!(pair.a.heard(), told);
    }
}

#[test]
fn section_5_2_3_no_more_private_data_than_512_octets() {
    let mut pair = Pair::new();
    pair.a.bind(S);
    let long = [0; PRIVATE_DATA_BYTES + 1];
    let refused = Err(Misstep::PrivateData);
    assert_eq!(pair.a.association.initiate(S, &long, false), refused);
    assert_eq!(pair.a.association.initiate(S, &long[..509], true), refused);
    assert_eq!(pair.a.phase(), Phase::Idle);
    for function in [1, 2, 3, 5, 6, 7] {
        let mut pair = Pair::new();
        pair.b.receive(&control(0, function, &long));
        assert_eq!(pair.b.rejects(Reject::PrivateDataLong), 1);
        assert_eq!(out(&mut pair.b), [control(0, 4, b"")]);
    }
}

#[test]
fn section_5_2_3_no_private_data_with_terminate() {
    let mut pair = Pair::open();
    pair.b.receive(&control(1, 4, b"x"));
    let ended = [Told::Ended(End::Reject(Reject::PrivateDataInTerminate))];
    assert_eq!(pair.b.heard(), ended);
}

#[test]
fn section_9_the_maximum_is_at_least_516_octets() {
    assert_eq!(SegmentBytes::new(515), None);
    assert_eq!(SegmentBytes::new(516), Some(SegmentBytes::LEAST));
    assert_eq!(
        SegmentBytes::new(65_533).map(SegmentBytes::octets),
        Some(65_533)
    );
    assert_eq!(SegmentBytes::new(65_534), None);
    assert_eq!(SegmentBytes::of_chunk(100), SegmentBytes::LEAST);
    assert_eq!(SegmentBytes::of_chunk(1400).octets(), 1398);
    assert_eq!(SegmentBytes::of_chunk(1 << 20).octets(), 65_533);
    // The longest control message fits.
    assert!(2 + PRIVATE_DATA_BYTES <= SegmentBytes::LEAST.octets());
}

#[test]
fn section_9_longer_chunks_are_refused() {
    let settings = Settings {
        chunk_bytes: 600,
        ..Settings::default()
    };
    let mut side = Side::unsettled(1, 1, settings);
    side.indication(Indication::Ddp).unwrap();
    side.receive(&control(0, 1, b""));
    side.bind(S);
    side.association.accept(S, b"").unwrap();
    side.post(1, span(0, 1000));
    side.receive(&untagged(1, 3, false, (0, 1, 0), &[0; 600 - 20]));
    assert_eq!(side.heard().len(), 1);
    side.receive(&untagged(2, 3, true, (0, 1, 580), &[0; 600 - 19]));
    let told = [
        Told::Failed(1, WorkError::Flushed),
        Told::Ended(End::Reject(Reject::ChunkLong)),
    ];
    assert_eq!(side.heard(), told);
}

#[test]
fn a_short_chunk_ends_the_session() {
    for (ppid, len) in [
        (CONTROL, 0),
        (CONTROL, 1),
        (CONTROL, 3),
        (SEGMENT, 0),
        (SEGMENT, 1),
    ] {
        let mut pair = Pair::open();
        pair.b.receive_octets(S, ppid, &[0, 1, 0][..len]);
        let ended = [Told::Ended(End::Reject(Reject::ChunkShort))];
        assert_eq!(pair.b.heard(), ended);
    }
}
