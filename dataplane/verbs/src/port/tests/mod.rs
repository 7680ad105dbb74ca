//! A port's own logic, on a device that stands in for one.

mod ends;
mod messages;
mod windows;

use super::*;
use crate::expose::Windows;
use crate::inbox::{Notice, Outlet, Word};
use crate::stand_in::{self, StandIn};
use rpcrdma_fabric::WorkError;
use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::connect::ConnectionId;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::AsFd;
use std::sync::Arc;

const SEND_DEPTH: u32 = 16;
const RECEIVE_DEPTH: u32 = 64;
const INLINE: u32 = 64;
const OUTBOX: u32 = 1024;
const LAZY_BYTES: u32 = 4096;
const WINDOWS: u32 = 8;
const PAIRS: u32 = 8;

const FLUSHED: Outcome = Outcome::Failed(WorkError::Flushed);

fn received(len: u32) -> Outcome {
    Outcome::Received {
        len,
        invalidated: None,
    }
}

fn span(offset: u64, len: u32) -> Span {
    Span { offset, len }
}

fn registered(bytes: u64) -> Registered {
    let arena = Arena::map(bytes, Hugepages::Off).expect("memory");
    Registered {
        address: arena.tract().start.as_ptr().expose_provenance() as u64,
        arena: Arc::new(arena),
        lkey: 1,
    }
}

/// One port, and control's side of it.
struct Node {
    port: VerbsPort,
    arena: Arc<Arena>,
    outlet: Outlet,
    queue: usize,
    connections: u64,
}

impl Node {
    fn new(device: &mut StandIn, queue: usize, invalidating: u32) -> Node {
        let control = Arc::new(rpcrdma_fabric::bell::Bell::new().expect("a bell"));
        let (inbox, outlet) = crate::inbox::pair(PAIRS, WINDOWS, control, None).expect("an inbox");
        let arena = registered(1 << 20);
        let windows = (0..WINDOWS).map(|_| device.window()).collect();
        let calls = stand_in::calls();
        let channel = eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor");
        let device_queue = device.queue();
        let parts = Parts {
            poller: Poller::on_stand_in(device_queue, invalidating, calls),
            outbox: registered(u64::from(OUTBOX * PAIRS)),
            limits: Limits {
                queue_pairs: PAIRS,
                send_depth: SEND_DEPTH,
                receive_depth: RECEIVE_DEPTH,
                gather: 4,
                transfer_bytes: 1 << 16,
                outbox_bytes: OUTBOX,
                windows: WINDOWS,
                send_invalidate: true,
                receive_invalidate: true,
                lazy_bytes: LAZY_BYTES,
                fenced: false,
            },
            means: Means::Windows(Windows::new(windows, Raw(std::ptr::null_mut()))),
            arena: Registered {
                arena: Arc::clone(&arena.arena),
                ..arena
            },
        };
        Node {
            port: VerbsPort::new(parts, inbox, calls, channel.as_fd()).expect("a port"),
            arena: arena.arena,
            outlet,
            queue,
            connections: 0,
        }
    }

    /// A queue pair of this port: its number at the device, and at the port.
    fn adopt(&mut self, device: &mut StandIn, token: u32) -> (u32, QueuePair) {
        let (number, rail) = device.pair(self.queue);
        self.connections += 1;
        let books = Books::new(SEND_DEPTH, RECEIVE_DEPTH);
        let endpoint = Endpoint::stand_in(ConnectionId(self.connections), rail, books, INLINE);
        let qp = self.port.adopt(endpoint, Token(token)).expect("free");
        (number, qp)
    }

    fn receive(&mut self, qp: QueuePair, memory: Span, id: u64) -> Result<(), Refused> {
        self.port.post_receive(qp, memory, WorkId(id))
    }

    fn send(&mut self, qp: QueuePair, octets: &[u8], id: u64) -> Result<Posted, Refused> {
        self.port
            .send(qp, &[Octets::Bytes(octets)], None, WorkId(id))
    }

    fn write(
        &mut self,
        qp: QueuePair,
        from: Span,
        to: Segment,
        id: u64,
    ) -> Result<Posted, Refused> {
        self.port.write(qp, from, to, WorkId(id))
    }

    fn read(
        &mut self,
        qp: QueuePair,
        into: Span,
        from: Segment,
        id: u64,
    ) -> Result<Posted, Refused> {
        self.port.read(qp, into, from, WorkId(id))
    }

    fn put(&self, at: Span, octets: &[u8]) {
        poller::tests::fill(&self.arena, at, octets);
    }

    fn see(&self, at: Span) -> Vec<u8> {
        poller::tests::octets(&self.arena, at)
    }

    /// All that happened, by id. Rings first.
    fn outcomes(&mut self) -> Vec<(u64, Outcome)> {
        self.completions()
            .into_iter()
            .map(|completion| (completion.id.0, completion.outcome))
            .collect()
    }

    /// Reaps a few at a time, as an lcore with little room would.
    fn completions(&mut self) -> Vec<Completion> {
        self.port.ring();
        let nothing = Completion {
            token: Token(0),
            id: WorkId(0),
            outcome: Outcome::Done,
        };
        let mut all = Vec::new();
        loop {
            let mut room = [nothing; 3];
            let count = self.port.reap(&mut room);
            if count == 0 {
                return all;
            }
            all.extend_from_slice(&room[..count]);
        }
    }

    /// What the port told control: broken connections, windows, and those that are over.
    fn words(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.outlet.hear())
            .map(|word| match word {
                Word::Broken(connection) => format!("broken {}", connection.0),
                Word::Window(window) => format!("window {:#x}", window.rkey),
                Word::Over(endpoint) => format!("over {}", endpoint.connection().0),
            })
            .collect()
    }
}

/// Two ports on one device, and a connection between them.
struct Two {
    a: Node,
    b: Node,
    qa: QueuePair,
    qb: QueuePair,
    na: u32,
    nb: u32,
    device: StandIn,
}

impl Two {
    fn new() -> Two {
        Two::speaking(invalidating_flags(false))
    }

    fn speaking(invalidating: u32) -> Two {
        let mut device = StandIn::new();
        let mut a = Node::new(&mut device, 0, invalidating);
        let mut b = Node::new(&mut device, 1, invalidating);
        let (na, qa) = a.adopt(&mut device, 1);
        let (nb, qb) = b.adopt(&mut device, 2);
        device.connect(na, nb);
        Two {
            a,
            b,
            qa,
            qb,
            na,
            nb,
            device,
        }
    }

    /// Another connection.
    fn more(&mut self, tokens: (u32, u32)) -> (QueuePair, QueuePair) {
        let (na, qa) = self.a.adopt(&mut self.device, tokens.0);
        let (nb, qb) = self.b.adopt(&mut self.device, tokens.1);
        self.device.connect(na, nb);
        (qa, qb)
    }

    /// Memory of `b`'s that is open to `a`.
    fn open(&mut self, memory: Span, access: Access) -> Segment {
        let exposed = self.b.port.expose(self.qb, memory, access);
        exposed.expect("a window is free")
    }

    /// An endpoint that neither port has.
    fn stranger(&mut self) -> Endpoint {
        let (_, rail) = self.device.pair(0);
        let books = Books::new(SEND_DEPTH, RECEIVE_DEPTH);
        Endpoint::stand_in(ConnectionId(99), rail, books, INLINE)
    }

    /// Control notices that `b`'s connection is lost.
    fn lose_b(&mut self) {
        self.b.outlet.tell(Notice::Lost(ConnectionId(1)));
    }
}
