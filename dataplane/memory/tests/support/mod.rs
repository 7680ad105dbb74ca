//! Two ports, a connection between them, and short words for what tests do with them.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unsafe_code, reason = "tests look at arenas that are theirs alone")]

use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::connect::{ConnectionId, Event, Fabric, PortId};
use rpcrdma_fabric::{
    Completion, Octets, Outcome, Port, Posted, QueuePair, Refused, Segment, Span, Token, WorkError,
    WorkId,
};
use rpcrdma_memory::{Endpoint, MemoryFabric, MemoryPort, Settings};
use std::sync::Arc;

pub(crate) const NOTHING: Completion = Completion {
    token: Token(0),
    id: WorkId(0),
    outcome: Outcome::Disconnected,
};

/// Small, so that limits are near.
pub(crate) fn settings() -> Settings {
    Settings {
        queue_pairs: 64,
        send_depth: 8,
        receive_depth: 16,
        windows: 16,
        message_bytes: 4096,
        ring_bytes: 16 << 10,
        parking_bytes: 256 << 10,
        seed: Some(7),
        ..Settings::default()
    }
}

pub(crate) fn span(offset: u64, len: u32) -> Span {
    Span { offset, len }
}

/// A port with its arena.
pub(crate) struct Node {
    pub(crate) id: PortId,
    pub(crate) port: MemoryPort,
    pub(crate) arena: Arc<Arena>,
}

impl Node {
    pub(crate) fn new(fabric: &MemoryFabric, settings: &Settings) -> Node {
        let arena = Arc::new(Arena::map(1 << 20, Hugepages::Off).expect("memory"));
        let (id, port) = fabric
            .open_port_with(Arc::clone(&arena), settings)
            .expect("a port");
        Node { id, port, arena }
    }

    pub(crate) fn put(&self, span: Span, octets: &[u8]) {
        // SAFETY: tests touch a span from one side at a time.
        assert!(unsafe { self.arena.fill(span, octets) });
    }

    pub(crate) fn see(&self, span: Span) -> Vec<u8> {
        // SAFETY: as above.
        unsafe { self.arena.octets(span) }.to_vec()
    }

    /// Everything that comes in a few reaps.
    pub(crate) fn reap(&mut self) -> Vec<Completion> {
        let mut all = Vec::new();
        let mut batch = [NOTHING; 8];
        for _ in 0..64 {
            let count = self.port.reap(&mut batch);
            all.extend_from_slice(&batch[..count]);
            self.port.ring();
        }
        all
    }

    /// Outcomes with ids.
    pub(crate) fn outcomes(&mut self) -> Vec<(u64, Outcome)> {
        self.reap()
            .into_iter()
            .map(|it| (it.id.0, it.outcome))
            .collect()
    }

    pub(crate) fn receive(&mut self, qp: QueuePair, memory: Span, id: u64) -> Result<(), Refused> {
        self.port.post_receive(qp, memory, WorkId(id))
    }

    pub(crate) fn send(
        &mut self,
        qp: QueuePair,
        octets: &[u8],
        id: u64,
    ) -> Result<Posted, Refused> {
        self.port
            .send(qp, &[Octets::Bytes(octets)], None, WorkId(id))
    }

    pub(crate) fn write(
        &mut self,
        qp: QueuePair,
        from: Span,
        to: Segment,
        id: u64,
    ) -> Result<Posted, Refused> {
        self.port.write(qp, from, to, WorkId(id))
    }
}

pub(crate) fn received(len: u32) -> Outcome {
    Outcome::Received {
        len,
        invalidated: None,
    }
}

pub(crate) const FLUSHED: Outcome = Outcome::Failed(WorkError::Flushed);

/// Two ports with one established connection.
pub(crate) struct Two {
    pub(crate) fabric: MemoryFabric,
    pub(crate) a: Node,
    pub(crate) b: Node,
    pub(crate) qa: QueuePair,
    pub(crate) qb: QueuePair,
    pub(crate) ca: ConnectionId,
    pub(crate) cb: ConnectionId,
}

impl Two {
    pub(crate) fn new() -> Two {
        Two::with(
            &settings(),
            &Settings {
                seed: Some(8),
                ..settings()
            },
        )
    }

    pub(crate) fn with(a: &Settings, b: &Settings) -> Two {
        let mut fabric = MemoryFabric::new();
        fabric.listen("b").expect("free");
        let mut a = Node::new(&fabric, a);
        let mut b = Node::new(&fabric, b);
        let ((qa, ca), (qb, cb)) = connect(&mut fabric, &mut a, Token(1), &mut b, Token(2));
        Two {
            fabric,
            a,
            b,
            qa,
            qb,
            ca,
            cb,
        }
    }

    /// One more connection.
    pub(crate) fn more(&mut self, tokens: (u32, u32)) -> (QueuePair, QueuePair) {
        let Two { fabric, a, b, .. } = self;
        // Losses of earlier connections.
        while fabric.poll().is_some() {}
        let ((qa, _), (qb, _)) = connect(fabric, a, Token(tokens.0), b, Token(tokens.1));
        (qa, qb)
    }
}

impl Two {
    /// Connects `a` with a third port, to which it had no lane.
    pub(crate) fn more_lanes(&mut self) -> Node {
        let mut third = Node::new(&self.fabric, &settings());
        connect(
            &mut self.fabric,
            &mut self.a,
            Token(31),
            &mut third,
            Token(32),
        );
        third
    }
}

/// A queue pair on `port` for a connection to `address`.
pub(crate) fn open(
    fabric: &mut MemoryFabric,
    port: PortId,
    address: &str,
) -> (ConnectionId, Endpoint) {
    let connection = fabric.resolve(address).expect("an address");
    assert_eq!(fabric.poll(), Some(Event::Resolved { connection }));
    let endpoint = fabric.take(connection, port).expect("resolved");
    (connection, endpoint)
}

type Side = (QueuePair, ConnectionId);

/// Makes a connection from `a` to the listener "b", answered on `b`.
pub(crate) fn connect(
    fabric: &mut MemoryFabric,
    a: &mut Node,
    a_token: Token,
    b: &mut Node,
    b_token: Token,
) -> (Side, Side) {
    let (ca, endpoint) = open(fabric, a.id, "b");
    let qa = a.port.adopt(endpoint, a_token).expect("room");
    fabric.connect(ca, b"hello").expect("adopted");
    let Some(Event::Request {
        connection: cb,
        private_data,
        ..
    }) = fabric.poll()
    else {
        panic!("a request");
    };
    assert_eq!(private_data, b"hello");
    let endpoint = fabric.take(cb, b.id).expect("requested");
    let qb = b.port.adopt(endpoint, b_token).expect("room");
    fabric.accept(cb, b"welcome").expect("taken");
    let mut established = [fabric.poll(), fabric.poll()];
    established.sort_by_key(|event| format!("{event:?}").len());
    assert_eq!(
        established[0],
        Some(Event::Established {
            connection: cb,
            private_data: Vec::new()
        })
    );
    let private_data = b"welcome".to_vec();
    assert_eq!(
        established[1],
        Some(Event::Established {
            connection: ca,
            private_data
        })
    );
    ((qa, ca), (qb, cb))
}

/// Both ends of a connection of a port with itself.
pub(crate) fn connect_to_itself(
    fabric: &mut MemoryFabric,
    node: &mut Node,
) -> (QueuePair, QueuePair) {
    let (ca, endpoint) = open(fabric, node.id, "b");
    let qa = node.port.adopt(endpoint, Token(1)).expect("room");
    fabric.connect(ca, &[]).expect("adopted");
    let Some(Event::Request { connection: cb, .. }) = fabric.poll() else {
        panic!("a request")
    };
    let endpoint = fabric.take(cb, node.id).expect("requested");
    let qb = node.port.adopt(endpoint, Token(2)).expect("room");
    fabric.accept(cb, &[]).expect("taken");
    while fabric.poll().is_some() {}
    (qa, qb)
}
