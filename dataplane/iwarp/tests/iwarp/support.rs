//! Two ends without anything between them but what the test puts there.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rpcrdma_fabric::{Access, Segment, Span, WorkError, WorkId};
use rpcrdma_iwarp::{
    Association, Busy, Depths, Domain, End, Endpoint, Event, Flow, Indication, Local, Lower,
    Memory, Outfit, Owner, Party, Phase, Ppid, Scope, SegmentBytes, Settings, StagTable, StreamId,
};
use std::sync::LazyLock;

/// The stream that most tests use.
pub(crate) const S: StreamId = StreamId(0);
/// Its payload protocol identifiers.
pub(crate) const SEGMENT: u32 = 16;
pub(crate) const CONTROL: u32 = 17;

/// What memory holds at first.
static PATTERN: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..1 << 16).map(|n: u32| (n * 7 + n / 256) as u8).collect());

/// Octets.
#[derive(Debug)]
pub(crate) struct Ram(pub(crate) Vec<u8>);

impl Ram {
    pub(crate) fn at(&self, span: Span) -> &[u8] {
        &self.0[span.offset as usize..][..span.len as usize]
    }

    pub(crate) fn at_mut(&mut self, span: Span) -> &mut [u8] {
        &mut self.0[span.offset as usize..][..span.len as usize]
    }
}

impl Memory for Ram {
    fn place(&mut self, to: Span, octets: &[u8]) {
        assert_eq!(to.len as usize, octets.len());
        self.at_mut(to).copy_from_slice(octets);
    }

    fn fetch(&self, from: Span, into: &mut [u8]) {
        assert_eq!(from.len as usize, into.len());
        into.copy_from_slice(self.at(from));
    }
}

pub(crate) const fn span(offset: u64, len: u32) -> Span {
    Span { offset, len }
}

/// A chunk on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) stream: StreamId,
    pub(crate) ppid: u32,
    pub(crate) octets: Vec<u8>,
}

impl Chunk {
    pub(crate) fn ssn(&self) -> u16 {
        u16::from_be_bytes([self.octets[0], self.octets[1]])
    }

    /// What is behind the DDP-SSN.
    pub(crate) fn body(&self) -> &[u8] {
        &self.octets[2..]
    }
}

/// A layer below that keeps what it is given.
#[derive(Debug)]
pub(crate) struct Outbox {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) segment_bytes: SegmentBytes,
    pub(crate) room: usize,
}

impl Lower for Outbox {
    fn segment_bytes(&self) -> SegmentBytes {
        self.segment_bytes
    }

    fn send(
        &mut self,
        stream: StreamId,
        ppid: Ppid,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Busy> {
        assert!(len <= self.segment_bytes.octets() + 2);
        let mut octets = vec![0xDB; len];
        fill(&mut octets);
        if self.chunks.len() >= self.room {
            return Err(Busy);
        }
        self.chunks.push(Chunk {
            stream,
            ppid: ppid as u32,
            octets,
        });
        Ok(())
    }
}

/// An event that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Requested(Vec<u8>, Option<Depths>),
    Accepted(Vec<u8>, Option<Depths>),
    Rejected(Vec<u8>),
    Received {
        id: u64,
        len: u32,
        invalidated: Option<u32>,
        solicited: bool,
    },
    Done(u64),
    Failed(u64, WorkError),
    Ended(End),
}

impl Told {
    pub(crate) fn of(event: Event<'_>) -> Told {
        match event {
            Event::Requested {
                private_data,
                depths,
            } => Told::Requested(private_data.to_vec(), depths),
            Event::Accepted {
                private_data,
                depths,
            } => Told::Accepted(private_data.to_vec(), depths),
            Event::Rejected { private_data } => Told::Rejected(private_data.to_vec()),
            Event::Received {
                id,
                len,
                invalidated,
                solicited,
            } => Told::Received {
                id: id.0,
                len,
                invalidated: invalidated.map(|stag| stag.0),
                solicited,
            },
            Event::Done { id } => Told::Done(id.0),
            Event::Failed { id, error } => Told::Failed(id.0, error),
            Event::Ended(end) => Told::Ended(end),
        }
    }
}

/// A receive, told of in short.
pub(crate) fn received(id: u64, len: u32) -> Told {
    Told::Received {
        id,
        len,
        invalidated: None,
        solicited: false,
    }
}

/// How the endpoints of tests are.
pub(crate) const DEPTHS: Depths = Depths { ird: 4, ord: 4 };

pub(crate) fn party(owner: u64) -> Party {
    Party {
        owner: Owner(owner),
        domain: Domain(1),
    }
}

pub(crate) fn outfit(owner: u64) -> Outfit {
    Outfit {
        party: party(owner),
        receive_depth: 8,
        send_depth: 16,
        depths: DEPTHS,
    }
}

/// One end.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) association: Association,
    pub(crate) stags: StagTable,
    pub(crate) ram: Ram,
    pub(crate) out: Outbox,
    pub(crate) told: Vec<(StreamId, Told)>,
}

impl Side {
    /// With so many streams, not knowing what the peer speaks.
    pub(crate) fn unsettled(seed: u64, streams: u16, settings: Settings) -> Side {
        Side {
            association: Association::new(settings, streams, streams).unwrap(),
            stags: StagTable::new(64, StdRng::seed_from_u64(seed)),
            ram: Ram(PATTERN.clone()),
            out: Outbox {
                chunks: Vec::new(),
                segment_bytes: SegmentBytes::LEAST,
                room: usize::MAX,
            },
            told: Vec::new(),
        }
    }

    pub(crate) fn new(seed: u64, streams: u16) -> Side {
        let mut side = Side::unsettled(seed, streams, Settings::default());
        side.indication(Indication::Ddp).unwrap();
        side
    }

    pub(crate) fn indication(
        &mut self,
        indication: Indication,
    ) -> Result<(), rpcrdma_iwarp::Refusal> {
        let told = &mut self.told;
        self.association.indication(indication, &mut |id, event| {
            told.push((id, Told::of(event)))
        })
    }

    /// Binds an endpoint to a stream; its number is also the stream's.
    pub(crate) fn bind(&mut self, id: StreamId) {
        self.bind_outfit(id, outfit(u64::from(id.0)));
    }

    pub(crate) fn bind_outfit(&mut self, id: StreamId, outfit: Outfit) {
        let endpoint = Box::new(Endpoint::new(outfit, &mut self.stags));
        self.association.bind(id, endpoint).unwrap();
    }

    pub(crate) fn receive(&mut self, chunk: &Chunk) {
        self.receive_octets(chunk.stream, chunk.ppid, &chunk.octets);
    }

    pub(crate) fn receive_octets(&mut self, id: StreamId, ppid: u32, octets: &[u8]) {
        let told = &mut self.told;
        let mut local = Local {
            memory: &mut self.ram,
            stags: &mut self.stags,
        };
        self.association
            .receive(id, ppid, octets, &mut local, &mut |id, event| {
                told.push((id, Told::of(event)));
            });
    }

    /// Sends what can be sent.
    pub(crate) fn pump(&mut self) -> Flow {
        let mut flow = Flow::Idle;
        for id in 0..self.association.streams() {
            let id = StreamId(id as u16);
            flow = self.transmit(id, u32::MAX);
            if flow != Flow::Idle {
                break;
            }
        }
        flow
    }

    pub(crate) fn transmit(&mut self, id: StreamId, budget: u32) -> Flow {
        let told = &mut self.told;
        let mut local = Local {
            memory: &mut self.ram,
            stags: &mut self.stags,
        };
        let tell = &mut |id, event: Event<'_>| told.push((id, Told::of(event)));
        self.association
            .transmit(id, budget, &mut local, &mut self.out, tell)
    }

    pub(crate) fn end(&mut self, id: StreamId) {
        let told = &mut self.told;
        self.association
            .end(id, &mut |id, event| told.push((id, Told::of(event))));
    }

    pub(crate) fn reject(&mut self, id: StreamId, data: &[u8]) {
        let told = &mut self.told;
        self.association
            .reject(id, data, &mut |id, event| told.push((id, Told::of(event))))
            .unwrap();
    }

    pub(crate) fn lost(&mut self) {
        let told = &mut self.told;
        self.association
            .lost(&mut |id, event| told.push((id, Told::of(event))));
    }

    pub(crate) fn endpoint(&mut self) -> &mut Endpoint {
        self.association.endpoint(S).unwrap()
    }

    pub(crate) fn phase(&self) -> Phase {
        self.association.phase(S).unwrap()
    }

    /// Posts a receive on the tests' stream.
    pub(crate) fn post(&mut self, id: u64, memory: Span) {
        self.endpoint().post_receive(memory, WorkId(id)).unwrap();
    }

    /// Opens a buffer for the peer of the tests' stream.
    pub(crate) fn open(&mut self, memory: Span, access: Access) -> Segment {
        self.stags
            .open(party(0), Scope::Stream, memory, access)
            .unwrap()
    }

    /// What the tests' stream has been told since the last time.
    pub(crate) fn heard(&mut self) -> Vec<Told> {
        let told = std::mem::take(&mut self.told);
        told.into_iter()
            .map(|(id, told)| {
                assert_eq!(id, S);
                told
            })
            .collect()
    }

    pub(crate) fn rejects(&self, reject: rpcrdma_iwarp::Reject) -> u64 {
        self.association.counts().rejects[reject.index()]
    }
}

/// The two ends of an association, or of none: chunks go from one to the other in order.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) a: Side,
    pub(crate) b: Side,
}

impl Pair {
    /// Nothing has been said.
    pub(crate) fn new() -> Pair {
        Pair {
            a: Side::new(1, 4),
            b: Side::new(2, 4),
        }
    }

    /// A session stands on the tests' stream, which `a` asked for. Nobody has been told anything.
    pub(crate) fn open() -> Pair {
        let mut pair = Pair::new();
        pair.a.bind(S);
        pair.a.association.initiate(S, b"ask", true).unwrap();
        pair.exchange();
        pair.b.bind(S);
        pair.b.association.accept(S, b"yes").unwrap();
        pair.exchange();
        pair.b.association.dry();
        pair.a.association.dry();
        assert_eq!(pair.a.phase(), Phase::Open);
        assert_eq!(pair.b.phase(), Phase::Open);
        pair.a.told.clear();
        pair.b.told.clear();
        pair
    }

    /// Until both have nothing to send.
    pub(crate) fn exchange(&mut self) {
        loop {
            self.a.pump();
            self.b.pump();
            let (out, back) = (
                std::mem::take(&mut self.a.out.chunks),
                std::mem::take(&mut self.b.out.chunks),
            );
            if out.is_empty() && back.is_empty() {
                return;
            }
            out.iter().for_each(|chunk| self.b.receive(chunk));
            back.iter().for_each(|chunk| self.a.receive(chunk));
        }
    }
}

/// A chunk of the tests' stream.
pub(crate) fn chunk(ppid: u32, ssn: u16, body: &[u8]) -> Chunk {
    Chunk {
        stream: S,
        ppid,
        octets: [&ssn.to_be_bytes()[..], body].concat(),
    }
}

/// A control message.
pub(crate) fn control(ssn: u16, function: u16, data: &[u8]) -> Chunk {
    chunk(CONTROL, ssn, &[&function.to_be_bytes()[..], data].concat())
}

/// An untagged segment with these fields.
pub(crate) fn untagged(
    ssn: u16,
    opcode: u8,
    last: bool,
    (queue, msn, mo): (u32, u32, u32),
    payload: &[u8],
) -> Chunk {
    let control = if last { 0x41 } else { 0x01 };
    let head = [control, 0x40 | opcode, 0, 0, 0, 0];
    let body = [
        &head[..],
        &queue.to_be_bytes(),
        &msn.to_be_bytes(),
        &mo.to_be_bytes(),
        payload,
    ]
    .concat();
    chunk(SEGMENT, ssn, &body)
}

/// A tagged segment with these fields.
pub(crate) fn tagged(
    ssn: u16,
    opcode: u8,
    last: bool,
    (stag, to): (u32, u64),
    payload: &[u8],
) -> Chunk {
    let control = if last { 0xC1 } else { 0x81 };
    let head = [control, 0x40 | opcode];
    let body = [&head[..], &stag.to_be_bytes(), &to.to_be_bytes(), payload].concat();
    chunk(SEGMENT, ssn, &body)
}
