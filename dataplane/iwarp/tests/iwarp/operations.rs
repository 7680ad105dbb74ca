//! What RDMAP offers, and in which order it happens (RFC 5040 section 5).

use crate::support::*;
use rpcrdma_fabric::{Access, Refused, Segment, WorkError, WorkId};
use rpcrdma_iwarp::{End, Flow, SegmentBytes, Stag};

/// A segment that nobody exposes.
fn segment(length: u32) -> Segment {
    Segment {
        handle: rpcrdma_fabric::Handle(0xBAD),
        length,
        offset: 0,
    }
}

#[test]
fn section_5_3_send_in_one_segment_and_in_many() {
    for len in [0, 1, 498, 499, 5000] {
        let mut pair = Pair::open();
        pair.b.post(1, span(0x8000, 5000));
        let message = [span(10, len / 3), span(3000, len - len / 3)];
        pair.a
            .endpoint()
            .send(&message, None, false, WorkId(7))
            .unwrap();
        pair.exchange();
        assert_eq!(pair.a.heard(), [Told::Done(7)]);
        assert_eq!(pair.b.heard(), [received(1, len)]);
        let sent = [pair.a.ram.at(message[0]), pair.a.ram.at(message[1])].concat();
        assert_eq!(pair.b.ram.at(span(0x8000, len)), sent);
    }
}

#[test]
fn section_5_3_invalidation_and_solicited_events() {
    let mut pair = Pair::open();
    let window = pair.b.open(span(0, 64), Access::Write);
    let other = pair.b.open(span(64, 64), Access::Write);
    for id in 0..4 {
        pair.b.post(id, span(0x8000, 16));
    }
    let stag = |segment: Segment| Some(Stag(segment.handle.0));
    let wanted = [
        (None, false),
        (None, true),
        (stag(window), false),
        (stag(other), true),
    ];
    for (id, (invalidate, solicited)) in (0..).zip(wanted) {
        let endpoint = pair.a.endpoint();
        endpoint
            .send(&[span(0, 3)], invalidate, solicited, WorkId(id))
            .unwrap();
    }
    pair.exchange();
    let told: Vec<Told> = (0..)
        .zip(wanted)
        .map(|(id, (invalidate, solicited))| Told::Received {
            id,
            len: 3,
            invalidated: invalidate.map(|stag: Stag| stag.0),
            solicited,
        })
        .collect();
    assert_eq!(pair.b.heard(), told);
    let owner = party(0).owner;
    assert!(pair.b.stags.close(owner, window.handle.into()).is_err());
    assert!(pair.b.stags.reclaim(owner, window.handle.into()).is_ok());
}

#[test]
fn section_5_1_write_is_not_told_of_but_is_there_before_a_later_send() {
    let mut pair = Pair::open();
    let window = pair.b.open(span(100, 3000), Access::Write);
    pair.b.post(1, span(0x8000, 16));
    let endpoint = pair.a.endpoint();
    endpoint.write(span(5, 3000), window, WorkId(1)).unwrap();
    endpoint.write(span(5, 0), window, WorkId(2)).unwrap();
    endpoint
        .send(&[span(0, 4)], None, false, WorkId(3))
        .unwrap();
    pair.exchange();
    assert_eq!(
        pair.a.heard(),
        [Told::Done(1), Told::Done(2), Told::Done(3)]
    );
    assert_eq!(pair.b.heard(), [received(1, 4)]);
    let written = pair.a.ram.at(span(5, 3000)).to_vec();
    assert_eq!(pair.b.ram.at(span(100, 3000)), written);
}

#[test]
fn section_5_2_read_of_any_length() {
    for len in [0, 1, 502, 503, 9000] {
        let mut pair = Pair::open();
        let source = pair.b.open(span(77, len), Access::Read);
        pair.a
            .endpoint()
            .read(span(0x4000, 9000), source, WorkId(9))
            .unwrap();
        pair.exchange();
        assert_eq!(pair.a.heard(), [Told::Done(9)]);
        assert_eq!(pair.b.heard(), []);
        let read = pair.b.ram.at(span(77, len)).to_vec();
        assert_eq!(pair.a.ram.at(span(0x4000, len)), read);
    }
}

/// A Read of no octets asks for nothing that has to be there.
#[test]
fn section_5_2_1_zero_length_read_is_not_validated() {
    let mut pair = Pair::open();
    let nowhere = segment(0);
    pair.a
        .endpoint()
        .read(span(0, 0), nowhere, WorkId(1))
        .unwrap();
    pair.exchange();
    assert_eq!(pair.a.heard(), [Told::Done(1)]);
}

#[test]
fn section_6_1_outstanding_reads_are_limited() {
    let mut pair = Pair::open();
    let source = pair.b.open(span(0, 8), Access::Read);
    for id in 0..7 {
        pair.a
            .endpoint()
            .read(span(id * 8, 8), source, WorkId(id))
            .unwrap();
    }
    pair.a.endpoint().send(&[], None, false, WorkId(7)).unwrap();
    pair.b.post(1, span(0, 0));
    assert_eq!(pair.a.pump(), Flow::Idle);
    assert_eq!(pair.a.out.chunks.len(), usize::from(DEPTHS.ord));
    pair.exchange();
    let done: Vec<Told> = (0..8).map(Told::Done).collect();
    assert_eq!(pair.a.heard(), done);
    assert_eq!(pair.b.heard(), [received(1, 0)]);
}

/// Rule 15: what was posted behind a Read is told of behind it.
#[test]
fn section_5_5_rule_15_work_completes_in_order() {
    let mut pair = Pair::open();
    let source = pair.b.open(span(0, 8), Access::Read);
    pair.b.post(1, span(0, 8));
    pair.a
        .endpoint()
        .read(span(0, 8), source, WorkId(1))
        .unwrap();
    pair.a
        .endpoint()
        .send(&[span(0, 8)], None, false, WorkId(2))
        .unwrap();
    pair.a.pump();
    assert_eq!(pair.a.out.chunks.len(), 2);
    assert_eq!(pair.a.heard(), []);
    pair.exchange();
    assert_eq!(pair.a.heard(), [Told::Done(1), Told::Done(2)]);
}

/// Rule 12: a Read that overtakes a Write reads what was written all the same.
#[test]
fn section_5_5_rule_12_read_request_waits_for_its_turn() {
    let mut pair = Pair::open();
    let window = pair.b.open(span(0, 8), Access::Write);
    let source = pair.b.open(span(0, 8), Access::Read);
    pair.a
        .endpoint()
        .write(span(0x5000, 8), window, WorkId(1))
        .unwrap();
    pair.a
        .endpoint()
        .read(span(0x6000, 8), source, WorkId(2))
        .unwrap();
    pair.a.pump();
    let chunks = std::mem::take(&mut pair.a.out.chunks);
    pair.b.receive(&chunks[1]);
    pair.b.pump();
    assert_eq!(pair.b.out.chunks, []);
    pair.b.receive(&chunks[0]);
    pair.exchange();
    assert_eq!(pair.a.heard(), [Told::Done(1), Told::Done(2)]);
    assert_eq!(
        pair.a.ram.at(span(0x5000, 8)),
        pair.a.ram.at(span(0x6000, 8))
    );
}

/// Rules 10 and 16, and DDP's own: placement as it comes, delivery as it was submitted.
#[test]
fn section_5_5_rule_10_sends_are_delivered_in_order() {
    let mut pair = Pair::open();
    for id in 0..3 {
        pair.b.post(id, span(0x8000 + id * 1000, 1000));
        let message = [span(id * 900, 900)];
        pair.a
            .endpoint()
            .send(&message, None, false, WorkId(id))
            .unwrap();
    }
    pair.a.pump();
    let chunks = std::mem::take(&mut pair.a.out.chunks);
    assert_eq!(chunks.len(), 6);
    for chunk in chunks[1..].iter().rev() {
        pair.b.receive(chunk);
        assert_eq!(pair.b.heard(), []);
    }
    // Placed, all but the first segment.
    let third = pair.a.ram.at(span(1800, 900)).to_vec();
    assert_eq!(pair.b.ram.at(span(0x8000 + 2000, 900)), third);
    pair.b.receive(&chunks[0]);
    let told: Vec<Told> = (0..3).map(|id| received(id, 900)).collect();
    assert_eq!(pair.b.heard(), told);
}

/// Rule 20: answers in the order of requests, also when these came the other way round.
#[test]
fn section_5_5_rule_20_responses_are_in_the_order_of_requests() {
    let mut pair = Pair::open();
    let source = pair.b.open(span(0, 4000), Access::Read);
    for id in 0..3 {
        let into = span(0x8000 + id * 2000, 700 + id as u32);
        let from = Segment {
            length: into.len,
            ..source
        };
        pair.a.endpoint().read(into, from, WorkId(id)).unwrap();
    }
    pair.a.pump();
    let requests = std::mem::take(&mut pair.a.out.chunks);
    requests
        .iter()
        .rev()
        .for_each(|chunk| pair.b.receive(chunk));
    pair.b.pump();
    let mut responses = std::mem::take(&mut pair.b.out.chunks);
    assert_eq!(responses.len(), 6);
    responses.reverse();
    responses.iter().for_each(|chunk| pair.a.receive(chunk));
    assert_eq!(
        pair.a.heard(),
        [Told::Done(0), Told::Done(1), Told::Done(2)]
    );
}

/// An STag is invalidated when the message is delivered, not when it arrives: a Write that was
/// sent before it is placed.
#[test]
fn section_5_3_invalidation_is_at_delivery() {
    let mut pair = Pair::open();
    let window = pair.b.open(span(0, 8), Access::Write);
    pair.b.post(1, span(0x8000, 8));
    let stag = Some(Stag(window.handle.0));
    pair.a
        .endpoint()
        .write(span(0x7000, 8), window, WorkId(1))
        .unwrap();
    pair.a.endpoint().send(&[], stag, false, WorkId(2)).unwrap();
    pair.a
        .endpoint()
        .write(span(0x7000, 8), window, WorkId(3))
        .unwrap();
    pair.a.pump();
    let chunks = std::mem::take(&mut pair.a.out.chunks);
    pair.b.receive(&chunks[1]);
    assert_eq!(pair.b.heard(), []);
    pair.b.receive(&chunks[0]);
    let told = pair.b.heard();
    assert!(matches!(
        told[..],
        [Told::Received {
            invalidated: Some(_),
            ..
        }]
    ));
    // And from then on nothing is.
    pair.b.receive(&chunks[2]);
    assert!(matches!(pair.b.heard()[..], [Told::Ended(End::Reject(_))]));
}

/// Messages go whole, one after the other, but answers and own work take turns.
#[test]
fn section_5_2_2_answers_and_own_work_take_turns() {
    let mut pair = Pair::open();
    let source = pair.b.open(span(0, 2000), Access::Read);
    let window = pair.a.open(span(0x4000, 2000), Access::Write);
    for id in 0..2 {
        pair.a
            .endpoint()
            .read(span(0x8000, 2000), source, WorkId(id))
            .unwrap();
        pair.b
            .endpoint()
            .write(span(0, 2000), window, WorkId(id))
            .unwrap();
    }
    pair.a.pump();
    for chunk in std::mem::take(&mut pair.a.out.chunks) {
        pair.b.receive(&chunk);
    }
    pair.b.pump();
    let opcodes: Vec<u8> = pair
        .b
        .out
        .chunks
        .iter()
        .map(|it| it.octets[3] & 0xF)
        .collect();
    assert_eq!(opcodes, [0, 0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0, 2, 2, 2, 2]);
}

/// Whatever the layer below refuses is offered again, and nothing of it is lost or sent twice.
#[test]
fn a_busy_layer_below_changes_nothing() {
    let mut pair = Pair::open();
    pair.b.post(1, span(0x8000, 5000));
    let source = pair.b.open(span(0, 100), Access::Read);
    pair.a
        .endpoint()
        .send(&[span(0, 5000)], None, false, WorkId(1))
        .unwrap();
    pair.a
        .endpoint()
        .read(span(0x7000, 100), source, WorkId(2))
        .unwrap();
    for sent in 1..=12 {
        pair.a.out.room = sent;
        let flow = pair.a.pump();
        assert_eq!(flow == Flow::Idle, sent == 12, "{sent}");
    }
    pair.a.out.room = usize::MAX;
    pair.exchange();
    assert_eq!(pair.a.heard(), [Told::Done(1), Told::Done(2)]);
    assert_eq!(pair.b.heard(), [received(1, 5000)]);
}

/// RFC 5041 section 3: the maximum may change between two segments of a message.
#[test]
fn section_3_segments_follow_a_changing_maximum() {
    let mut pair = Pair::open();
    pair.b.post(1, span(0x8000, 5000));
    pair.a
        .endpoint()
        .send(&[span(0, 5000)], None, false, WorkId(1))
        .unwrap();
    for (bytes, sent) in [(516, 1), (1400, 2), (516, 3)] {
        pair.a.out.segment_bytes = SegmentBytes::new(bytes).unwrap();
        pair.a.transmit(S, 1);
        assert_eq!(pair.a.out.chunks.len(), sent);
        assert_eq!(pair.a.out.chunks[sent - 1].octets.len(), bytes + 2);
    }
    pair.a.out.segment_bytes = SegmentBytes::new(9000).unwrap();
    pair.exchange();
    assert_eq!(pair.b.heard(), [received(1, 5000)]);
    let sent = pair.a.ram.at(span(0, 5000)).to_vec();
    assert_eq!(pair.b.ram.at(span(0x8000, 5000)), sent);
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut pair = Pair::open();
    let segment = segment(4);
    let endpoint = pair.a.endpoint();
    let unsupported = Err(Refused::Unsupported);
    assert_eq!(
        endpoint.send(
            &[span(0, 1); rpcrdma_iwarp::rdmap::GATHER + 1],
            None,
            false,
            WorkId(1)
        ),
        unsupported
    );
    assert_eq!(endpoint.write(span(0, 5), segment, WorkId(1)), unsupported);
    assert_eq!(endpoint.read(span(0, 3), segment, WorkId(1)), unsupported);
    for id in 0..16 {
        endpoint.send(&[], None, false, WorkId(id)).unwrap();
    }
    assert_eq!(
        endpoint.send(&[], None, false, WorkId(16)),
        Err(Refused::Busy)
    );
    for id in 0..8 {
        endpoint.post_receive(span(0, 0), WorkId(id)).unwrap();
    }
    assert_eq!(
        endpoint.post_receive(span(0, 0), WorkId(8)),
        Err(Refused::Busy)
    );
    assert_eq!(endpoint.receives_posted(), 8);
}

/// The end: each piece of work is told of once, in order, and then nothing.
#[test]
fn section_5_4_outstanding_work_completes_in_error() {
    let mut pair = Pair::open();
    let source = pair.b.open(span(0, 8), Access::Read);
    pair.a.post(1, span(0, 8));
    pair.a.post(2, span(0, 8));
    pair.a
        .endpoint()
        .read(span(0, 8), source, WorkId(3))
        .unwrap();
    pair.a.endpoint().send(&[], None, false, WorkId(4)).unwrap();
    pair.a.pump();
    pair.a.end(S);
    let flushed = |id| Told::Failed(id, WorkError::Flushed);
    let told = [
        flushed(3),
        flushed(4),
        flushed(1),
        flushed(2),
        Told::Ended(End::Local),
    ];
    assert_eq!(pair.a.heard(), told);
    let endpoint = pair.a.endpoint();
    assert_eq!(
        endpoint.post_receive(span(0, 0), WorkId(1)),
        Err(Refused::Broken)
    );
    assert_eq!(
        endpoint.send(&[], None, false, WorkId(1)),
        Err(Refused::Broken)
    );
    pair.exchange();
    assert_eq!(pair.a.heard(), []);
}

/// A buffer that is closed is not read any further, in the middle of a response neither.
#[test]
fn section_6_2_2_of_rfc_5042_nothing_is_reached_after_a_close() {
    let mut pair = Pair::open();
    let source = pair.b.open(span(0, 5000), Access::Read);
    pair.a
        .endpoint()
        .read(span(0x8000, 5000), source, WorkId(1))
        .unwrap();
    pair.a.pump();
    for chunk in std::mem::take(&mut pair.a.out.chunks) {
        pair.b.receive(&chunk);
    }
    assert_eq!(pair.b.transmit(S, 3), Flow::More);
    pair.b
        .stags
        .close(party(0).owner, source.handle.into())
        .unwrap();
    pair.b.pump();
    let terminate = &pair.b.out.chunks[3];
    // Layer 0, type 1, code 0; the Read Request shown, as far as it had come; no segment.
    assert_eq!(terminate.octets[20..24], [0x01, 0x00, 0x20, 0x00]);
    let request: &[u8; 28] = terminate.octets[24..].try_into().unwrap();
    let request = rpcrdma_iwarp::rdmap::ReadRequest::parse(request);
    let done = 3 * (516 - 14);
    assert_eq!(request.size, 5000 - done);
    assert_eq!(request.sink_to, u64::from(done));
    assert_eq!(request.source_to, source.offset + u64::from(done));
    pair.exchange();
    assert_eq!(pair.a.heard()[0], Told::Failed(1, WorkError::RemoteAccess));
}
