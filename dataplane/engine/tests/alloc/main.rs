//! After [`Connection::new`] an engine allocates nothing: counted over thousands of RPCs of each
//! shape, between two engines on a fabric that allocates nothing either.

mod fabric;

use bumpalo::Bump;
use fabric::{Fabric, SPANS};
use rpcrdma_engine::{Call, Connection, Event, Io, Part, Reply, Setup, Side, Span};
use rpcrdma_proof::counting::{self, Counting};
use rpcrdma_wire::rpc::{emit_call, emit_reply};
use rpcrdma_wire::{Version, Xid};

#[global_allocator]
static COUNTING: Counting = Counting;

const CLIENT: usize = 0;
const SERVER: usize = 1;
const ROUNDS: u32 = 1500;
const ITEM_BYTES: u32 = 4096;

/// What an RPC of a round is like.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Nothing but heads.
    Null,
    /// A result by Write chunk.
    Read,
    /// An argument by Read chunk.
    Write,
    /// A Call in a position-zero chunk, a Reply in the Reply chunk.
    Long,
}

struct Pair<'m> {
    fabric: Fabric<'m>,
    ends: [Connection; 2],
    shape: Shape,
    answered: u32,
    /// An item at the server.
    source: Span,
}

impl Pair<'_> {
    /// Carries every message and every word of the engines until there is none.
    fn play(&mut self) {
        loop {
            let mut quiet = true;
            for end in [CLIENT, SERVER] {
                while let Some((id, len, invalidated)) = self.fabric.arrived(end) {
                    let io = &mut self.fabric.desk(end);
                    let event = self.ends[end].receive(io, id, len, invalidated);
                    self.hear(end, event);
                    quiet = false;
                }
                while self.ends[end].runnable() {
                    let event = self.ends[end].resume(&mut self.fabric.desk(end));
                    self.hear(end, event);
                    quiet = false;
                }
            }
            if quiet {
                return;
            }
        }
    }

    fn hear(&mut self, end: usize, event: Event) {
        let io = &mut self.fabric.desk(end);
        let engine = &mut self.ends[end];
        match event {
            Event::Call(slot) => {
                let call = engine.call(io, slot).expect("here");
                let mut head = [0; 24];
                emit_reply(&mut head, call.xid).expect("room");
                let item = matches!(self.shape, Shape::Read);
                let part = Part {
                    span: self.source,
                    item,
                };
                let with = matches!(self.shape, Shape::Read | Shape::Long);
                let reply = Reply {
                    head: &head,
                    parts: if with {
                        std::slice::from_ref(&part)
                    } else {
                        &[]
                    },
                    memory: None,
                };
                engine.answer(io, slot, reply);
            }
            Event::Reply(slot) => {
                engine.finish(io, slot);
                self.answered += 1;
            }
            Event::None => {}
            Event::Property => while engine.take_property_event().is_some() {},
            other => panic!("{other:?}"),
        }
    }

    fn round(&mut self, xid: u32, message: Span, item: Span, room: Span) {
        let io = &mut self.fabric.desk(CLIENT);
        let mut head = [0; 40];
        emit_call(&mut head, Xid(xid), 1, 1, 1).expect("room");
        io.fill(message, &head);
        let plain = |span| Part { span, item: false };
        let parts = [
            plain(message),
            Part {
                span: item,
                item: matches!(self.shape, Shape::Write),
            },
        ];
        let results = [room];
        let call = Call {
            xid: Xid(xid),
            parts: match self.shape {
                Shape::Null | Shape::Read => &parts[..1],
                Shape::Write | Shape::Long => &parts,
            },
            results: match self.shape {
                Shape::Read => &results,
                _ => &[],
            },
            reply: matches!(self.shape, Shape::Long).then_some(room),
        };
        self.ends[CLIENT].submit(io, call).expect("a slot");
        self.play();
    }
}

/// Allocations of `ROUNDS` RPCs of a shape.
fn allocations(version: Version, shape: Shape) -> u64 {
    let snapshots = Bump::with_capacity(96 << 20);
    let setup = |side| Setup {
        version_max: version,
        ..Setup::new(side)
    };
    let mut pair = Pair {
        fabric: Fabric::new(&snapshots),
        ends: [
            Connection::new(setup(Side::Client)),
            Connection::new(setup(Side::Server)),
        ],
        shape,
        answered: 0,
        source: Span::default(),
    };
    for end in [CLIENT, SERVER] {
        pair.ends[end]
            .adopt(&mut pair.fabric.desk(end))
            .expect("memory");
    }
    for (end, side) in [(SERVER, Side::Client), (CLIENT, Side::Server)] {
        let private = Some(setup(side).private_data());
        pair.ends[end].established(&mut pair.fabric.desk(end), private);
    }
    pair.play();
    let mut take = |end, len| pair.fabric.desk(end).reserve(len).expect("memory");
    let (message, item, room) = (
        take(CLIENT, 40),
        take(CLIENT, ITEM_BYTES),
        take(CLIENT, SPANS),
    );
    pair.source = take(SERVER, ITEM_BYTES);
    let before = counting::allocations();
    for xid in 0..ROUNDS {
        pair.round(xid, message, item, room);
    }
    let allocated = counting::allocations() - before;
    assert_eq!(pair.answered, ROUNDS, "{shape:?}");
    let counters = &pair.fabric.counters[SERVER];
    match shape {
        Shape::Null => assert_eq!((counters.reads, counters.writes), (0, 0)),
        Shape::Read => assert_eq!((counters.reads, counters.writes), (0, u64::from(ROUNDS))),
        Shape::Write => assert_eq!((counters.reads, counters.writes), (u64::from(ROUNDS), 0)),
        Shape::Long => assert!(counters.reads >= ROUNDS.into() && counters.writes >= ROUNDS.into()),
    }
    allocated
}

/// Both ends are turned by this thread, whose allocations alone are counted.
#[test]
fn an_engine_allocates_nothing_for_a_message() {
    // The counter counts.
    let before = counting::allocations();
    drop(std::hint::black_box(vec![0_u8; 100]));
    assert!(counting::allocations() > before);
    for version in [Version::One, Version::Two] {
        for shape in [Shape::Null, Shape::Read, Shape::Write, Shape::Long] {
            assert_eq!(allocations(version, shape), 0, "{version:?}, {shape:?}");
        }
    }
}
