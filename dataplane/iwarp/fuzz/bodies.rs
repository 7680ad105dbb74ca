//! What is asked of any octets at all. The fuzz targets and the ordinary tests share this file,
//! so a corpus replayed by one means what it meant to the other.

use crate::describe::describe;
use crate::ledger::Ledger;
use crate::oracle::consult;
use crate::support::*;
use rpcrdma_fabric::{Access, Span, WorkId};
use rpcrdma_iwarp::{Indication, Phase, Settings, Stag, StreamId};

/// One chunk, its payload protocol identifier first: the crate and the oracle must be of one
/// mind.
pub(crate) fn segment(octets: &[u8]) {
    let Some((&ppid, chunk)) = octets.split_first() else {
        return;
    };
    let ppid = u32::from(ppid);
    let found = describe(ppid, chunk).map_err(|reject| reject.name());
    assert_eq!(found, consult(ppid, chunk));
}

/// A source of choices that ends.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn take(&mut self) -> Option<u8> {
        let (&octet, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(octet)
    }

    fn octets(&mut self, len: usize) -> &[u8] {
        let (octets, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        octets
    }
}

/// Streams of the session target.
const STREAMS: u16 = 2;

/// One end of an association, its own upper layer and a peer without manners, all following the
/// script: whatever they do, each session ends once, work is told of once, and what is sent is
/// well formed and numbered without a gap.
pub(crate) fn session(octets: &[u8]) {
    let mut script = Script(octets);
    let settings = Settings {
        pending: 1,
        chunk_bytes: 600,
    };
    let mut actor = Actor {
        side: Side::unsettled(7, STREAMS, settings),
        ledger: Ledger::default(),
        next: [0; STREAMS as usize],
        id: 0,
    };
    while let Some(step) = script.take() {
        let stream = StreamId(u16::from(step >> 7));
        actor.step(step & 0x7F, stream, &mut script);
        actor.audit();
    }
    actor.side.lost();
    actor.audit();
    actor.ledger.close();
}

struct Actor {
    side: Side,
    ledger: Ledger,
    /// The number that the next chunk of a stream has, unless it is a session's first.
    next: [u16; STREAMS as usize],
    id: u64,
}

impl Actor {
    fn step(&mut self, step: u8, stream: StreamId, script: &mut Script<'_>) {
        let side = &mut self.side;
        match step {
            0 => {
                let _ = side.indication(Indication::Ddp);
            }
            1 => {
                let other = script.take().filter(|it| *it > 200).map(u32::from);
                let _ = other.map(|value| side.indication(Indication::Other(value)));
            }
            2 => {
                if side.association.endpoint(stream).is_none() {
                    let bindable = matches!(
                        side.association.phase(stream),
                        Some(Phase::Idle | Phase::Pending)
                    );
                    if bindable {
                        side.bind(stream);
                    }
                }
            }
            3 | 4 => {
                let data = [0xDD; 8];
                if side.association.initiate(stream, &data, step == 3).is_ok() {
                    self.ledger.initiated(stream);
                }
            }
            5 => {
                let _ = side.association.accept(stream, b"accept");
            }
            6 | 7 => {
                let told = &mut side.told;
                let tell =
                    &mut |id, event: rpcrdma_iwarp::Event<'_>| told.push((id, Told::of(event)));
                let _ = if step == 6 {
                    side.association.reject(stream, b"reject", tell)
                } else {
                    side.association.turn_away(stream, tell)
                };
            }
            8 => side.end(stream),
            9 | 10 => side.association.dry(),
            11 => {
                side.transmit(stream, 4);
            }
            12 => {
                if side.association.unbind(stream).is_some() {
                    self.ledger.unbound(stream);
                }
            }
            13..=16 => self.post(step, stream),
            17 => side.lost(),
            18..=63 => {
                // A control message that is nearly right.
                let ssn = u16::from(script.take().unwrap_or(0));
                let mut chunk = control(ssn, u16::from(step % 8), script.octets(4));
                chunk.stream = stream;
                side.receive(&chunk);
            }
            64..=111 => {
                // A Send that is nearly right.
                let ssn = u16::from(script.take().unwrap_or(0));
                let msn = u32::from(script.take().unwrap_or(0));
                let mut chunk = untagged(ssn, 3, true, (0, msn, 0), b"payload");
                chunk.stream = stream;
                side.receive(&chunk);
            }
            _ => {
                let ppid = u32::from(script.take().unwrap_or(0));
                let len = usize::from(script.take().unwrap_or(0));
                side.receive_octets(stream, ppid, script.octets(len));
            }
        }
    }

    fn post(&mut self, step: u8, stream: StreamId) {
        self.id += 1;
        let id = WorkId(self.id);
        let Some(endpoint) = self.side.association.endpoint(stream) else {
            return;
        };
        if step == 13 {
            if endpoint.post_receive(span(0x8000, 64), id).is_ok() {
                self.ledger.receive(stream, id.0);
            }
            return;
        }
        let segment = rpcrdma_fabric::Segment {
            handle: rpcrdma_fabric::Handle(9),
            length: 64,
            offset: 0,
        };
        let posted = match step {
            14 => endpoint.send(&[span(0, 700)], Some(Stag(3)), false, id),
            15 => endpoint.write(span(0, 64), segment, id),
            _ => endpoint.read(span(0x9000, 64), segment, id),
        };
        if posted.is_ok() {
            self.ledger.work(stream, id.0);
        }
    }

    /// What was told and what was sent.
    fn audit(&mut self) {
        for (id, told) in std::mem::take(&mut self.side.told) {
            self.ledger.told(id, &told);
        }
        for chunk in std::mem::take(&mut self.side.out.chunks) {
            consult(chunk.ppid, &chunk.octets).expect("what is sent is well formed");
            let next = &mut self.next[usize::from(chunk.stream.0)];
            let first = chunk.ppid == CONTROL && chunk.ssn() == 0;
            assert!(first || chunk.ssn() == *next, "{chunk:?}");
            *next = chunk.ssn().wrapping_add(1);
        }
    }
}

/// Where the peer of the receive target may write: two receives, a window, the sink of a Read.
const OPEN_TO_WRITING: [Span; 4] = [
    span(0x8000, 100),
    span(0x9000, 700),
    span(0xA000, 64),
    span(0xB000, 900),
];

/// A session that stands, and chunks as the script says: whole octets, or segments whose fields
/// are near those that are right. No octet is written but where the peer may write.
pub(crate) fn receive(octets: &[u8]) {
    let mut script = Script(octets);
    let mut pair = Pair::open();
    let mut ledger = Ledger::default();
    ledger.initiated(S);
    for (id, at) in [(1, 0), (2, 1)] {
        pair.b.post(id, OPEN_TO_WRITING[at]);
        ledger.receive(S, id);
    }
    let window = pair.b.open(OPEN_TO_WRITING[2], Access::Write);
    let source = pair.b.open(span(0x1000, 2000), Access::Read);
    let far = pair.a.open(span(0, 900), Access::Read);
    pair.b
        .endpoint()
        .read(OPEN_TO_WRITING[3], far, WorkId(3))
        .unwrap();
    ledger.work(S, 3);
    pair.b.pump();
    let request = pair.b.out.chunks.pop().unwrap();
    let sink = u32::from_be_bytes(request.octets[20..24].try_into().unwrap());
    let tags = [
        (window.handle.0, window.offset),
        (source.handle.0, source.offset),
        (sink, 0),
    ];
    let before = pair.b.ram.0.clone();
    let mut ssn = 1;
    while let Some(kind) = script.take() {
        let chunk = compose(kind, &mut ssn, tags, &mut script);
        pair.b.receive(&chunk);
        pair.b.transmit(S, 3);
        for (id, told) in std::mem::take(&mut pair.b.told) {
            ledger.told(id, &told);
        }
        for chunk in std::mem::take(&mut pair.b.out.chunks) {
            consult(chunk.ppid, &chunk.octets).expect("what is sent is well formed");
        }
    }
    pair.b.lost();
    for (id, told) in std::mem::take(&mut pair.b.told) {
        ledger.told(id, &told);
    }
    ledger.close();
    let mut after = pair.b.ram;
    for open in OPEN_TO_WRITING {
        let was = &before[open.offset as usize..][..open.len as usize];
        after.at_mut(open).copy_from_slice(was);
    }
    assert!(after.0 == before, "written where nobody may write");
}

/// A chunk with the next number, mostly.
fn compose(kind: u8, ssn: &mut u16, tags: [(u32, u64); 3], script: &mut Script<'_>) -> Chunk {
    if kind & 0x80 != 0 {
        // The next one is missing, for now.
        *ssn = ssn.wrapping_add(u16::from(script.take().unwrap_or(0)) % 4);
    }
    let number = *ssn;
    *ssn = ssn.wrapping_add(1);
    let (last, offset) = (kind & 0x40 != 0, u64::from(script.take().unwrap_or(0)));
    let len = usize::from(script.take().unwrap_or(0)) * 4;
    let payload = vec![0xEE; len];
    let (stag, base) = tags[usize::from(kind >> 3 & 3) % 3];
    match kind & 7 {
        0 => tagged(number, 0, last, (stag, base.wrapping_add(offset)), &payload),
        1 => tagged(
            number,
            2,
            last,
            (stag, base.wrapping_add(offset * 4)),
            &payload,
        ),
        2 => {
            let msn = u32::from(kind >> 3 & 7);
            untagged(number, 3, last, (0, msn, offset as u32 * 4), &payload)
        }
        3 => {
            let mut chunk = untagged(number, 4, last, (0, 1, offset as u32 * 4), &payload);
            chunk.octets[4..8].copy_from_slice(&stag.to_be_bytes());
            chunk
        }
        4 => {
            let request = rpcrdma_iwarp::rdmap::ReadRequest {
                sink: Stag(5),
                sink_to: 6,
                size: len as u32 * 2,
                source: Stag(stag),
                source_to: base.wrapping_add(offset),
            };
            let msn = u32::from(kind >> 3 & 7);
            untagged(number, 1, last, (1, msn, 0), &request.octets())
        }
        5 => untagged(number, 7, last, (2, 1, 0), &payload[..len.min(60)]),
        6 => control(number, u16::from(kind >> 3 & 7), b""),
        _ => Chunk {
            stream: S,
            ppid: 16 + u32::from(offset as u8 & 1),
            octets: [&number.to_be_bytes()[..], script.octets(len)].concat(),
        },
    }
}
