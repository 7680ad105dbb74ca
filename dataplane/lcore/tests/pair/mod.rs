//! Two lcores on one memory fabric, and what the control thread does for each: a server with
//! the built-in program, a client that makes NULL calls.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unreachable_pub, reason = "shared by test files, each a crate")]

mod caller;

pub use caller::{Caller, DEPTH};

use rpcrdma_engine::{CloseReason, Connection, Setup, Side};
use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::connect::{ConnectionId, Event, Fabric, PortId};
use rpcrdma_fabric::pool::Pool;
use rpcrdma_lcore::{
    Bell, ConnectionNumber, Ending, Idle, Lcore, Line, Link, Notice, Places, SeatId, SeatOrder,
    Session, Snapshot, line, stock,
};
use rpcrdma_memory::{Endpoint, MemoryFabric, MemoryPort, Settings};
use rpcrdma_upper::Upper;
use rpcrdma_upper::program::{Service, pattern};
use rpcrdma_wire::Version;
use rpcrdma_wire::private_data::PrivateData;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Where the server listens.
const ADDRESS: &str = "null";
/// Octets of each arena.
const ARENA_BYTES: u64 = 4 << 20;

/// What an lcore is made of, on whatever thread.
pub struct Parts<U: Upper> {
    link: Link<Endpoint, U>,
    port: MemoryPort,
    arena: Arc<Arena>,
    pool: Pool,
}

impl<U: Upper> Parts<U> {
    pub fn lcore(self, idle: Idle) -> Lcore<MemoryPort, U> {
        Lcore::new(self.link, self.port, self.arena, self.pool, idle).expect("an lcore")
    }
}

/// The control thread's side of one lcore.
pub struct Host<U: Upper> {
    fabric: MemoryFabric,
    port: PortId,
    pub line: Line<Endpoint, U>,
    pub control: Arc<Bell>,
    make: Box<dyn Fn() -> Box<Session<U>>>,
    seats: HashMap<ConnectionId, SeatId>,
    /// Connections that a peer asked for.
    asked: HashSet<ConnectionId>,
    private_data: PrivateData,
    /// Words of upper layers.
    pub said: Vec<U::Notice>,
    /// Connections that are over.
    pub ended: Vec<(Ending, Box<Session<U>>)>,
    /// The last one.
    pub snapshot: Option<Box<Snapshot<U>>>,
}

fn session<U: Upper>(setup: Setup, upper: U) -> Box<Session<U>> {
    Box::new(Session {
        connection: Connection::new(setup),
        upper,
    })
}

fn setup(side: Side, version_max: Version) -> Setup {
    Setup {
        credits: DEPTH,
        version_max,
        ..Setup::new(side)
    }
}

/// A server that listens, with the built-in program.
pub fn server(fabric: &MemoryFabric, version: Version) -> (Host<Service>, Parts<Service>) {
    let (arena, mut pool) = memory();
    let source = stock(&mut pool, &arena, 4096, |octets| {
        for (octet, offset) in octets.iter_mut().zip(0..) {
            *octet = pattern(offset);
        }
    });
    let source = source.expect("memory");
    let setup = setup(Side::Server, version);
    let make = move || session(setup, Service::new(source, DEPTH));
    let (mut host, parts) = host(fabric, setup, arena, pool, Box::new(make));
    host.fabric.listen(ADDRESS).expect("a free address");
    (host, parts)
}

/// A client whose connections make `total` NULL calls each.
pub fn client(fabric: &MemoryFabric, total: u32) -> (Host<Caller>, Parts<Caller>) {
    let (arena, pool) = memory();
    let setup = setup(Side::Client, Version::Two);
    let make = move || session(setup, Caller::new(total));
    host(fabric, setup, arena, pool, Box::new(make))
}

fn memory() -> (Arc<Arena>, Pool) {
    let arena = Arena::map(ARENA_BYTES, Hugepages::Off).expect("an arena");
    let pool = Pool::new(0, arena.len());
    (Arc::new(arena), pool)
}

fn host<U: Upper>(
    fabric: &MemoryFabric,
    setup: Setup,
    arena: Arc<Arena>,
    pool: Pool,
    make: Box<dyn Fn() -> Box<Session<U>>>,
) -> (Host<U>, Parts<U>) {
    let fabric = fabric.clone();
    let settings = Settings::default();
    let (id, port) = fabric
        .open_port_with(Arc::clone(&arena), &settings)
        .expect("a port");
    let control = Arc::new(Bell::new().expect("a bell"));
    let (line, link) = line(Places::default(), Arc::clone(&control)).expect("a line");
    let host = Host {
        fabric,
        port: id,
        line,
        control,
        make,
        seats: HashMap::new(),
        asked: HashSet::new(),
        private_data: setup.private_data(),
        said: Vec::new(),
        ended: Vec::new(),
        snapshot: None,
    };
    let parts = Parts {
        link,
        port,
        arena,
        pool,
    };
    (host, parts)
}

impl<U: Upper> Host<U> {
    /// Begins a connection to the server.
    pub fn connect(&mut self) {
        self.fabric.resolve(ADDRESS).expect("an address");
    }

    fn adopt(&mut self, connection: ConnectionId, endpoint: Endpoint, peer: Option<PrivateData>) {
        let number = ConnectionNumber(connection.0);
        let seat = self.line.adopt(number, endpoint, peer, (self.make)());
        self.seats.insert(connection, seat.expect("a seat"));
    }

    /// Does what there is to do now.
    pub fn step(&mut self) {
        while let Some(event) = self.fabric.poll() {
            self.happened(event);
        }
        while let Some(notice) = self.line.poll() {
            self.told(notice);
        }
    }

    fn happened(&mut self, event: Event) {
        match event {
            Event::Resolved { connection } => {
                let endpoint = self.fabric.take(connection, self.port);
                self.adopt(connection, endpoint.expect("resolved"), None);
            }
            Event::Request {
                connection,
                private_data,
                ..
            } => {
                // Who asked may be gone by now.
                if let Ok(endpoint) = self.fabric.take(connection, self.port) {
                    let peer = PrivateData::find(&private_data);
                    assert!(peer.is_some());
                    self.asked.insert(connection);
                    self.adopt(connection, endpoint, peer);
                }
            }
            Event::Established {
                connection,
                private_data,
            } => {
                let peer = PrivateData::find(&private_data);
                assert!(peer.is_some() || self.asked.contains(&connection));
                self.tell(connection, SeatOrder::Established { peer });
            }
            Event::Rejected { connection, .. } => self.tell(connection, SeatOrder::Fail),
            Event::Disconnected { .. } | Event::Device { .. } => {}
        }
    }

    fn tell(&mut self, connection: ConnectionId, order: SeatOrder<U>) {
        let told = self.line.tell(self.seats[&connection], order);
        assert!(told.is_ok(), "room");
    }

    fn told(&mut self, notice: Notice<U>) {
        match notice {
            Notice::Adopted { number, .. } => {
                let connection = ConnectionId(number.0);
                let private_data = self.private_data.emit();
                match self.asked.contains(&connection) {
                    // As above: then the lcore hears it from its port.
                    true => drop(self.fabric.accept(connection, &private_data)),
                    false => self
                        .fabric
                        .connect(connection, &private_data)
                        .expect("the server listens"),
                }
            }
            Notice::Closed {
                ending, session, ..
            } => self.ended.push((ending, session)),
            Notice::Upper { notice, .. } => self.said.push(notice),
            Notice::Snapshot(snapshot) => self.snapshot = Some(snapshot),
            Notice::Property { .. } | Notice::Drained => {}
        }
    }

    /// Closes every connection now.
    pub fn close_all(&mut self) {
        for connection in self.seats.keys().copied().collect::<Vec<_>>() {
            self.tell(connection, SeatOrder::Close(CloseReason::Local));
        }
    }

    /// Asks the lcore about itself.
    pub fn survey(&mut self) {
        let asked = self.line.survey(Box::new(Snapshot::with_room(16)));
        assert!(asked.is_ok());
    }
}
