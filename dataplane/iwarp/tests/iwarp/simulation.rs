//! Two honest ends, several streams, and a network that delivers in any order, all from a seed.
//!
//! Checked: what is received is what was sent, in order; an invalidated window holds what was
//! written to it; a Read brings what was there; work is told of once; streams are used for one
//! session after another and no chunk of one is taken for another's; when the association is lost
//! everybody is told, and nobody says that the other broke a rule.

mod works;

use crate::ledger::Ledger;
use crate::support::*;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rpcrdma_fabric::{Access, Segment, Span};
use rpcrdma_iwarp::{Depths, End, Outfit, Phase, Reject, Scope, SegmentBytes, Stag, StreamId};
use std::collections::{BTreeMap, VecDeque};

const STREAMS: u16 = 3;
/// The lower half of memory is constant, the upper half is had in slots.
const SLOT: u32 = 1024;
const FIRST_SLOT: u32 = 32;
const SLOTS: u32 = 64;

/// A message that is to be received.
struct Expected {
    octets: Vec<u8>,
    solicited: bool,
    /// The window that it invalidates, and what has to be in it.
    window: Option<(u32, Window)>,
}

#[derive(Clone)]
struct Window {
    segment: Segment,
    memory: Span,
    /// What was written to it, or was there.
    model: Vec<u8>,
}

/// What one end's upper layer knows of one session.
#[derive(Default)]
struct Session {
    owner: u64,
    receives: BTreeMap<u64, Span>,
    /// Reads, and what they have to bring.
    reads: BTreeMap<u64, (Span, Vec<u8>)>,
    windows: Vec<Window>,
    /// Invalidated by a message on its way.
    leaving: Vec<Span>,
    /// Where the other end may read.
    source: Option<Segment>,
    expected: VecDeque<Expected>,
    /// Receives of the other end that no message of this one will meet.
    credits: usize,
}

struct End2 {
    side: Side,
    ledger: Ledger,
    sessions: Vec<Session>,
    free: Vec<u32>,
}

struct World {
    ends: [End2; 2],
    /// Chunks on their way from each end.
    flying: [Vec<Chunk>; 2],
    random: Xoshiro256PlusPlus,
    id: u64,
    ended: u64,
    received: u64,
}

impl End2 {
    fn new(seed: u64) -> End2 {
        End2 {
            side: Side::new(seed, STREAMS),
            ledger: Ledger::default(),
            sessions: (0..STREAMS).map(|_| Session::default()).collect(),
            free: (FIRST_SLOT..SLOTS).collect(),
        }
    }

    fn slot(&mut self, len: u32) -> Option<Span> {
        assert!(len <= SLOT);
        let slot = self.free.pop()?;
        Some(span(u64::from(slot * SLOT), len))
    }

    fn give_back(&mut self, memory: Span) {
        self.free.push(memory.offset as u32 / SLOT);
    }

    /// A session is over here: all its memory is free.
    fn clear(&mut self, stream: usize) {
        let session = std::mem::take(&mut self.sessions[stream]);
        self.side.stags.close_all(party(session.owner).owner);
        let reads = session.reads.into_values().map(|(memory, _)| memory);
        let windows = session.windows.into_iter().map(|window| window.memory);
        let all = session.receives.into_values().chain(reads).chain(windows);
        for memory in all.chain(session.leaving) {
            self.give_back(memory);
        }
    }
}

impl World {
    fn new(seed: u64) -> World {
        World {
            ends: [End2::new(seed), End2::new(!seed)],
            flying: [Vec::new(), Vec::new()],
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            id: 0,
            ended: 0,
            received: 0,
        }
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.random_range(0..n)
    }

    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            let at = self.below(2);
            match self.below(10) {
                0..=3 => self.deliver(at),
                4..=5 => self.transmit(at),
                6 => self.acknowledge(at),
                _ => {
                    let stream = self.below(usize::from(STREAMS));
                    self.act(at, stream);
                }
            }
            self.hear();
        }
    }

    /// Any one of the chunks on their way arrives.
    fn deliver(&mut self, from: usize) {
        let flying = self.flying[from].len();
        if flying > 0 {
            let which = self.below(flying);
            let chunk = self.flying[from].swap_remove(which);
            self.ends[1 - from].side.receive(&chunk);
        }
    }

    fn transmit(&mut self, at: usize) {
        let stream = StreamId(self.below(usize::from(STREAMS)) as u16);
        let budget = 1 + self.below(8) as u32;
        let bytes = 516 + self.below(900);
        let side = &mut self.ends[at].side;
        side.out.segment_bytes = SegmentBytes::new(bytes).unwrap();
        side.transmit(stream, budget);
        self.flying[at].append(&mut side.out.chunks);
    }

    /// The layer below says so when it knows.
    fn acknowledge(&mut self, at: usize) {
        if self.flying[at].is_empty() {
            self.ends[at].side.association.dry();
        }
    }

    /// The upper layer of one end does something with a stream.
    fn act(&mut self, at: usize, stream: usize) {
        let id = StreamId(stream as u16);
        match self.ends[at].side.association.phase(id).unwrap() {
            Phase::Idle => self.ask(at, id),
            Phase::Pending => self.answer(at, id),
            Phase::Initiating if self.below(200) == 0 => self.end(at, id),
            Phase::Open | Phase::Accepting => match self.below(120) {
                0 => self.end(at, id),
                1..=40 => self.post_receive(at, stream),
                41..=70 => self.send(at, stream),
                71..=80 => self.expose(at, stream),
                81..=100 => self.write(at, stream),
                _ => self.read(at, stream),
            },
            _ => {}
        }
    }

    fn bind(&mut self, at: usize, id: StreamId) {
        self.id += 1;
        let owner = self.id;
        let depths = Depths {
            ird: self.below(4) as u16,
            ord: self.below(4) as u16,
        };
        let end = &mut self.ends[at];
        end.side.association.unbind(id);
        let outfit = Outfit {
            party: party(owner),
            receive_depth: 6,
            send_depth: 5,
            depths,
        };
        end.side.bind_outfit(id, outfit);
        let source = end.side.stags.open(
            party(owner),
            Scope::Stream,
            span(0, FIRST_SLOT * SLOT),
            Access::Read,
        );
        let session = &mut end.sessions[usize::from(id.0)];
        session.owner = owner;
        session.source = source;
    }

    fn ask(&mut self, at: usize, id: StreamId) {
        if self.below(20) > 0 {
            return;
        }
        self.bind(at, id);
        let end = &mut self.ends[at];
        end.side.association.initiate(id, b"ask", true).unwrap();
        end.ledger.initiated(id);
    }

    fn answer(&mut self, at: usize, id: StreamId) {
        match self.below(10) {
            0 => self.ends[at].side.reject(id, b"no"),
            1 => {
                let side = &mut self.ends[at].side;
                let told = &mut side.told;
                let tell = &mut |id, event: rpcrdma_iwarp::Event<'_>| {
                    told.push((id, Told::of(event)));
                };
                side.association.turn_away(id, tell).unwrap();
            }
            _ => {
                self.bind(at, id);
                self.ends[at].side.association.accept(id, b"yes").unwrap();
            }
        }
    }

    fn end(&mut self, at: usize, id: StreamId) {
        self.ends[at].side.end(id);
    }

    fn number(&mut self) -> u64 {
        self.id += 1;
        self.id
    }

    /// What both ends were told.
    fn hear(&mut self) {
        for at in 0..2 {
            for (id, told) in std::mem::take(&mut self.ends[at].side.told) {
                self.ends[at].ledger.told(id, &told);
                self.told(at, usize::from(id.0), &told);
            }
        }
    }

    fn told(&mut self, at: usize, stream: usize, told: &Told) {
        let end = &mut self.ends[at];
        let session = &mut end.sessions[stream];
        match told {
            Told::Received {
                id,
                len,
                invalidated,
                solicited,
            } => {
                self.received += 1;
                let memory = session.receives.remove(id).unwrap();
                let expected = session.expected.pop_front().unwrap();
                assert_eq!(end.side.ram.at(memory.first(*len)), expected.octets);
                assert_eq!(*solicited, expected.solicited);
                let window = expected.window.as_ref();
                assert_eq!(*invalidated, window.map(|(stag, _)| *stag));
                end.give_back(memory);
                if let Some((stag, window)) = expected.window {
                    assert_eq!(end.side.ram.at(window.memory), window.model);
                    let owner = end.sessions[stream].owner;
                    end.side
                        .stags
                        .reclaim(party(owner).owner, Stag(stag))
                        .unwrap();
                    end.sessions[stream]
                        .leaving
                        .retain(|it| *it != window.memory);
                    end.give_back(window.memory);
                }
            }
            Told::Done(id) => {
                if let Some((memory, wanted)) = session.reads.remove(id) {
                    assert_eq!(end.side.ram.at(memory), wanted);
                    end.give_back(memory);
                }
            }
            Told::Accepted(..) => {
                // Receives that were posted before there was anybody to use them.
                let posted = session.receives.len();
                self.ends[1 - at].sessions[stream].credits += posted;
            }
            Told::Ended(end) => {
                let crossed = *end == End::Reject(Reject::CrossedInitiates);
                let blamed = matches!(end, End::Reject(_) | End::Terminated(_));
                assert!(crossed || !blamed, "{end:?}");
                self.ended += 1;
                self.ends[at].clear(stream);
                self.ends[1 - at].sessions[stream].credits = 0;
            }
            Told::Failed(..) | Told::Requested(..) | Told::Rejected(_) => {}
        }
    }

    /// The association is lost.
    fn lose(&mut self) {
        self.flying = [Vec::new(), Vec::new()];
        for end in &mut self.ends {
            end.side.lost();
        }
        self.hear();
        for end in &self.ends {
            end.ledger.close();
            assert_eq!(end.free.len(), (SLOTS - FIRST_SLOT) as usize);
            let mut rejects = end.side.association.counts().rejects;
            // Both may ask at once: nobody's fault.
            rejects[Reject::CrossedInitiates.index()] = 0;
            assert_eq!(rejects, [0; Reject::COUNT]);
        }
    }
}

#[test]
fn two_ends_and_a_network_that_reorders() {
    let (mut ended, mut received) = (0, 0);
    for seed in 0..40 {
        println!("seed {seed}");
        let mut world = World::new(seed);
        world.run(4000);
        world.lose();
        ended += world.ended;
        received += world.received;
    }
    // Else nothing would have been shown.
    assert!(ended > 400 && received > 3000, "{ended} {received}");
}
