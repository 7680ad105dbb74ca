//! Once a session stands, nothing is allocated: not for a message, a segment or a chunk, sent or
//! received, in whatever order, nor for its end.
#![allow(
    clippy::cast_possible_truncation,
    dead_code,
    reason = "what the tests count is small; the support is shared"
)]

#[path = "../iwarp/support.rs"]
mod support;

use rpcrdma_fabric::{Access, WorkId};
use rpcrdma_iwarp::{Busy, Event, Local, Lower, Ppid, SegmentBytes, Stag, StreamId};
use rpcrdma_proof::counting::{Counting, allocations};
use support::*;

#[global_allocator]
static COUNTING: Counting = Counting;

const MOST: usize = 64;
const BYTES: usize = 600;

/// A layer below with memory of its own, had once.
struct Flight {
    chunks: Box<[[u8; BYTES]; MOST]>,
    lens: [(u32, usize); MOST],
    count: usize,
}

impl Flight {
    fn new() -> Flight {
        Flight {
            chunks: Box::new([[0; BYTES]; MOST]),
            lens: [(0, 0); MOST],
            count: 0,
        }
    }
}

impl Lower for Flight {
    fn segment_bytes(&self) -> SegmentBytes {
        SegmentBytes::LEAST
    }

    fn send(
        &mut self,
        _: StreamId,
        ppid: Ppid,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Busy> {
        let chunk = self.chunks.get_mut(self.count).ok_or(Busy)?;
        fill(&mut chunk[..len]);
        self.lens[self.count] = (ppid as u32, len);
        self.count += 1;
        Ok(())
    }
}

/// Sends what one side has, last chunk first; how many events the other had of it.
fn fly(from: &mut Side, to: &mut Side, flight: &mut Flight) -> u32 {
    let mut events = 0;
    let mut local = Local {
        memory: &mut from.ram,
        stags: &mut from.stags,
    };
    let association = &mut from.association;
    association.transmit(S, 100, &mut local, flight, &mut |_, _| events += 1);
    association.dry();
    let mut local = Local {
        memory: &mut to.ram,
        stags: &mut to.stags,
    };
    for at in (0..flight.count).rev() {
        let (ppid, len) = flight.lens[at];
        let chunk = &flight.chunks[at][..len];
        let told = &mut |_, _: Event<'_>| events += 1;
        to.association.receive(S, ppid, chunk, &mut local, told);
    }
    flight.count = 0;
    events
}

#[test]
fn a_session_allocates_nothing() {
    let mut pair = Pair::open();
    let mut flight = Flight::new();
    let source = pair.b.open(span(0, 3000), Access::Read);
    let mut events = 0;
    let before = allocations();
    for round in 0..2000 {
        let window = pair.b.open(span(0x4000, 3000), Access::Write);
        let stag = Stag(window.handle.0);
        pair.b.post(1, span(0x8000, 2000));
        let endpoint = pair.a.endpoint();
        endpoint.write(span(0, 3000), window, WorkId(1)).unwrap();
        endpoint
            .read(span(0xA000, 3000), source, WorkId(2))
            .unwrap();
        let message = [span(0, 900), span(5000, 1000)];
        endpoint
            .send(&message, Some(stag), true, WorkId(3))
            .unwrap();
        events += fly(&mut pair.a, &mut pair.b, &mut flight);
        events += fly(&mut pair.b, &mut pair.a, &mut flight);
        pair.b.stags.reclaim(party(0).owner, stag).unwrap();
        assert_eq!(events, (round + 1) * 4);
    }
    // The end, with work outstanding and a peer in the wrong.
    pair.b.post(1, span(0x8000, 2000));
    pair.a
        .endpoint()
        .write(span(0, 8), source, WorkId(1))
        .unwrap();
    events = fly(&mut pair.a, &mut pair.b, &mut flight);
    assert_eq!(events, 3);
    assert_eq!(allocations() - before, 0);
}
