//! A peer without manners on one stream, and an honest session on another of the same
//! association, all from a seed: whatever the first does, the second notices nothing, and no
//! memory is written but where its streams may write.

use crate::ledger::Ledger;
use crate::support::*;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rpcrdma_fabric::{Access, Segment, Span, WorkId};
use rpcrdma_iwarp::rdmap::ReadRequest;
use rpcrdma_iwarp::{Phase, Reject, Scope, Stag, StreamId};
use std::collections::HashSet;

/// The honest stream; the tests' own is the hostile one.
const HONEST: StreamId = StreamId(1);

/// Where the hostile stream may write, at most.
const HOSTILE: [Span; 3] = [span(0x8000, 200), span(0x9000, 64), span(0xA000, 300)];
/// Where the honest one does.
const MESSAGE: Span = span(0xC000, 500);

struct Scene {
    /// The honest half of the peer.
    peer: Side,
    victim: Side,
    ledger: Ledger,
    random: Xoshiro256PlusPlus,
    /// What the hostile half knows: tags of every kind.
    tags: Vec<(u32, u64)>,
    ssn: u16,
    id: u64,
    heard: HashSet<Reject>,
}

impl Scene {
    fn new(seed: u64) -> Scene {
        let mut scene = Scene {
            peer: Side::new(seed, 2),
            victim: Side::new(!seed, 2),
            ledger: Ledger::default(),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            tags: Vec::new(),
            ssn: 0,
            id: 0,
            heard: HashSet::new(),
        };
        scene.peer.bind(HONEST);
        scene.peer.association.initiate(HONEST, b"", true).unwrap();
        scene.exchange();
        scene.victim.bind(HONEST);
        scene.victim.association.accept(HONEST, b"").unwrap();
        scene.exchange();
        // The honest stream's buffers, which are not for the hostile one.
        for (memory, access) in [
            (span(0xD000, 100), Access::Write),
            (span(0, 100), Access::Read),
        ] {
            let stags = &mut scene.victim.stags;
            let opened = stags.open(party(1), Scope::Stream, memory, access);
            scene.know(opened.unwrap());
        }
        scene
    }

    fn know(&mut self, segment: Segment) {
        self.tags.push((segment.handle.0, segment.offset));
    }

    fn below(&mut self, n: u32) -> u32 {
        self.random.random_range(0..n)
    }

    fn number(&mut self) -> u64 {
        self.id += 1;
        self.id
    }

    /// The chunks of the honest stream; those to the hostile one are not read.
    fn exchange(&mut self) {
        loop {
            self.peer.pump();
            self.victim.pump();
            let out = std::mem::take(&mut self.peer.out.chunks);
            let mut back = std::mem::take(&mut self.victim.out.chunks);
            back.retain(|chunk| chunk.stream == HONEST);
            if out.is_empty() && back.is_empty() {
                break;
            }
            out.iter().for_each(|chunk| self.victim.receive(chunk));
            back.iter().for_each(|chunk| self.peer.receive(chunk));
        }
        self.peer.association.dry();
        self.victim.association.dry();
        self.audit();
    }

    /// What the victim was told.
    fn audit(&mut self) {
        for (id, told) in std::mem::take(&mut self.victim.told) {
            if id == S && matches!(told, Told::Requested(..)) {
                self.ledger.told(id, &told);
                self.accept();
                continue;
            }
            self.ledger.told(id, &told);
            if id == HONEST {
                let fine = matches!(told, Told::Requested(..) | Told::Received { .. });
                assert!(fine, "{told:?}");
            }
        }
        for reject in Reject::ALL {
            if self.victim.rejects(*reject) > 0 {
                self.heard.insert(*reject);
            }
        }
    }

    /// The hostile half has asked for a session, and gets one, with all that belongs to it.
    fn accept(&mut self) {
        self.ssn = 1;
        // Those of the honest stream, and of the session before.
        let kept = self.tags.len().min(5);
        self.tags.drain(2..kept);
        self.victim.association.unbind(S);
        self.victim.stags.close_all(party(0).owner);
        self.victim.bind(S);
        self.victim.association.accept(S, b"").unwrap();
        for _ in 0..2 {
            let id = self.number();
            self.victim.post(id, HOSTILE[0]);
            self.ledger.receive(S, id);
        }
        let window = self.victim.open(HOSTILE[1], Access::Write);
        let source = self.victim.open(span(0x100, 900), Access::Read);
        self.know(window);
        self.know(source);
        let far = Segment {
            length: HOSTILE[2].len,
            ..source
        };
        let id = self.number();
        self.victim
            .endpoint()
            .read(HOSTILE[2], far, WorkId(id))
            .unwrap();
        self.ledger.work(S, id);
        self.victim.association.dry();
        self.victim.pump();
        for chunk in &self.victim.out.chunks {
            // The sink of a Read Request.
            if chunk.ppid == SEGMENT && chunk.octets[3] == 0x41 && chunk.stream == S {
                let sink = chunk.octets[20..24].try_into().unwrap();
                self.tags.push((u32::from_be_bytes(sink), 0));
            }
        }
        self.victim
            .out
            .chunks
            .retain(|chunk| chunk.stream == HONEST);
    }

    /// One chunk, wrong or right.
    fn attack(&mut self) {
        let phase = self.victim.phase();
        if phase != Phase::Open && phase != Phase::Accepting && self.below(3) > 0 {
            let enhanced = self.below(2) == 0;
            let chunk = if enhanced {
                control(0, 5, &[0, 9, 0, 9])
            } else {
                control(0, 1, b"")
            };
            self.victim.receive(&chunk);
        } else {
            let chunk = self.compose();
            self.victim.receive(&chunk);
        }
        self.victim.transmit(S, 10);
        self.audit();
        let transmitted = &mut self.victim.out.chunks;
        transmitted.retain(|chunk| chunk.stream == HONEST);
    }

    fn compose(&mut self) -> Chunk {
        let jump = match self.below(30) {
            0 => self.random.random(),
            1 if self.below(4) == 0 => 32767,
            1..=3 => self.below(4) as u16,
            _ => 0,
        };
        let ssn = self.ssn.wrapping_add(jump);
        self.ssn = self.ssn.wrapping_add(u16::from(jump < 4));
        let last = self.below(3) > 0;
        let which = self.below(self.tags.len() as u32) as usize;
        let (mut stag, base) = self.tags[which];
        if self.below(20) == 0 {
            stag ^= 1 << self.below(32);
        }
        let to = match self.below(20) {
            0 => self.random.random(),
            1 => u64::MAX,
            2 => base.wrapping_sub(1),
            _ => base + u64::from(self.below(40)),
        };
        let payload = vec![0xBD; self.below(70) as usize];
        let msn = self.below(4);
        let mo = if self.below(2) == 0 {
            0
        } else {
            self.below(220)
        };
        match self.below(24) {
            0..=5 => tagged(ssn, 0, last, (stag, to), &payload),
            6..=8 => tagged(ssn, 2, last, (stag, to), &payload),
            9..=13 => untagged(ssn, 3, last, (0, msn, mo), &payload),
            14..=15 => {
                let mut chunk = untagged(ssn, 4, last, (0, msn, mo), &payload);
                chunk.octets[4..8].copy_from_slice(&stag.to_be_bytes());
                chunk
            }
            16..=18 => {
                let request = ReadRequest {
                    sink: Stag(1),
                    sink_to: 0,
                    size: self.below(1000),
                    source: Stag(stag),
                    source_to: to,
                };
                let octets = request.octets();
                let len = if self.below(9) == 0 { 27 } else { 28 };
                untagged(ssn, 1, last, (1, msn, 0), &octets[..len])
            }
            19 => untagged(ssn, 7, last, (2, 1, 0), &payload),
            20 => control(ssn, self.below(9) as u16, &payload),
            21 => {
                let (opcode, queue) = (self.below(16) as u8, self.below(4));
                untagged(ssn, opcode, last, (queue, msn, mo), &payload)
            }
            22 => {
                let mut chunk = tagged(ssn, 0, last, (stag, to), &payload);
                let at = 2 + self.below(2) as usize;
                chunk.octets[at] = self.random.random();
                chunk.octets.truncate(2 + self.below(20) as usize);
                chunk
            }
            _ => chunk(SEGMENT + self.below(3), ssn, &payload),
        }
    }

    /// One honest message, there and well.
    fn honest(&mut self) {
        let (id, from) = (
            self.number(),
            span(u64::from(self.below(0x7000)), MESSAGE.len),
        );
        let victim = self.victim.association.endpoint(HONEST).unwrap();
        victim.post_receive(MESSAGE, WorkId(id)).unwrap();
        self.ledger.receive(HONEST, id);
        let peer = self.peer.association.endpoint(HONEST).unwrap();
        peer.send(&[from], None, false, WorkId(id)).unwrap();
        self.peer.told.clear();
        self.exchange();
        assert_eq!(self.peer.told, [(HONEST, Told::Done(id))]);
        assert_eq!(self.victim.ram.at(MESSAGE), self.peer.ram.at(from));
    }
}

#[test]
fn a_hostile_stream_beside_an_honest_one() {
    let mut heard = HashSet::new();
    for seed in 0..60 {
        println!("seed {seed}");
        let mut scene = Scene::new(seed);
        let before = scene.victim.ram.0.clone();
        for _ in 0..60 {
            for _ in 0..20 {
                scene.attack();
            }
            scene.honest();
        }
        let after = &mut scene.victim.ram;
        for open in HOSTILE.into_iter().chain([MESSAGE]) {
            let was = before[open.offset as usize..][..open.len as usize].to_vec();
            after.at_mut(open).copy_from_slice(&was);
        }
        assert!(after.0 == before, "written where nobody may write");
        heard.extend(scene.heard);
    }
    // Nearly everything that can be done wrong was.
    let missing: Vec<_> = Reject::ALL
        .iter()
        .filter(|it| !heard.contains(it))
        .collect();
    let never = [
        // These need another set-up: see `session`.
        Reject::ChunkLong,
        Reject::PrivateDataLong,
        Reject::CrossedInitiates,
        Reject::TooManyPending,
        Reject::TooFewReads,
    ];
    assert!(missing.iter().all(|it| never.contains(it)), "{missing:?}");
}
