//! An lcore of a played port and upper layers that do as they are told.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unreachable_pub, reason = "shared by test files, each a crate")]

mod port;
mod probe;
pub mod threaded;

pub use port::{PlayedPort, Stage};
pub use probe::{Do, Probe};

use rpcrdma_engine::{Connection, Setup, Side};
use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::pool::Pool;
use rpcrdma_fabric::{Completion, Outcome};
use rpcrdma_lcore::{
    Bell, ConnectionNumber, Idle, Lcore, Line, Link, Notice, Places, SeatId, SeatOrder, Session,
    Snapshot, line,
};
use std::sync::{Arc, Mutex, MutexGuard};

/// Octets of a connection's receives.
pub const RECEIVE_BYTES: u32 = 1024;
/// Receives of a connection.
pub const RECEIVES: usize = 4;

/// A server's connection with few receives.
pub fn session() -> Box<Session<Probe>> {
    session_of(Side::Server)
}

/// A connection with few receives.
pub fn session_of(side: Side) -> Box<Session<Probe>> {
    let setup = Setup {
        credits: 2,
        backward_credits: 0,
        receive_bytes: RECEIVE_BYTES,
        announced_bytes: RECEIVE_BYTES,
        ..Setup::new(side)
    };
    assert_eq!(usize::from(setup.receives()), RECEIVES);
    Box::new(Session {
        connection: Connection::new(setup),
        upper: Probe::default(),
    })
}

/// An lcore, control's line to it, and the stage of its port.
pub struct House {
    pub lcore: Lcore<PlayedPort, Probe>,
    pub line: Line<(), Probe>,
    pub stage: Arc<Mutex<Stage>>,
    pub arena: Arc<Arena>,
    pub control: Arc<Bell>,
}

/// What an lcore is made of, for a thread to make it.
pub struct Parts {
    pub link: Link<(), Probe>,
    pub line: Line<(), Probe>,
    pub stage: Arc<Mutex<Stage>>,
    pub waker: Arc<Bell>,
    pub control: Arc<Bell>,
}

impl Parts {
    pub fn new(places: Places) -> Parts {
        let control = Arc::new(Bell::new().expect("a bell"));
        let (line, link) = line(places, Arc::clone(&control)).expect("a line");
        Parts {
            link,
            line,
            stage: Arc::default(),
            waker: Arc::new(Bell::new().expect("a bell")),
            control,
        }
    }
}

pub fn arena(bytes: u64) -> Arc<Arena> {
    Arc::new(Arena::map(bytes, Hugepages::Off).expect("an arena"))
}

/// An lcore over all of `arena`.
pub fn lcore(
    link: Link<(), Probe>,
    stage: Arc<Mutex<Stage>>,
    waker: Arc<Bell>,
    arena: Arc<Arena>,
    idle: Idle,
) -> Lcore<PlayedPort, Probe> {
    let pool = Pool::new(0, arena.len());
    Lcore::new(link, PlayedPort { stage, waker }, arena, pool, idle).expect("an lcore")
}

impl House {
    pub fn new(places: Places, arena_bytes: u64) -> House {
        let parts = Parts::new(places);
        let arena = arena(arena_bytes);
        let lcore = lcore(
            parts.link,
            Arc::clone(&parts.stage),
            parts.waker,
            Arc::clone(&arena),
            Idle::Spin,
        );
        House {
            lcore,
            line: parts.line,
            stage: parts.stage,
            arena,
            control: parts.control,
        }
    }

    /// With eight seats, roomy rings and half a megabyte.
    pub fn usual() -> House {
        let places = Places {
            seats: 8,
            orders: 16,
            notices: 16,
        };
        House::new(places, 512 << 10)
    }

    pub fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().expect("no test holds it in a panic")
    }

    /// Turns until nothing happens, and gives all notices.
    pub fn settle(&mut self) -> Vec<Notice<Probe>> {
        let mut notices = Vec::new();
        while self.lcore.turn() > 0 {
            notices.extend(std::iter::from_fn(|| self.line.poll()));
        }
        notices
    }

    /// Adopts a connection, not yet established.
    pub fn adopt(&mut self, number: u64) -> SeatId {
        let taken = self
            .line
            .adopt(ConnectionNumber(number), (), None, session());
        taken.map_err(|_| "not taken").expect("a seat and room")
    }

    /// Adopts and establishes one; its notices are taken.
    pub fn connect(&mut self, number: u64) -> SeatId {
        let seat = self.adopt(number);
        let notices = self.settle();
        assert_eq!(said(&notices), [format!("adopted {number}")]);
        self.tell(seat, SeatOrder::Established { peer: None });
        assert_eq!(said(&self.settle()), [""; 0]);
        seat
    }

    pub fn tell(&mut self, seat: SeatId, order: SeatOrder<Probe>) {
        let told = self.line.tell(seat, order);
        told.map_err(|_| "full").expect("room");
    }

    pub fn order(&mut self, seat: SeatId, order: Do) {
        self.tell(seat, SeatOrder::Upper(order));
    }

    /// Has a message arrive in the oldest receive that is posted.
    pub fn deliver(&mut self, message: &[u8]) {
        let (qp, span, id) = self.stage().receives.remove(0);
        let len = u32::try_from(message.len()).expect("short");
        // SAFETY: the test is the fabric: the span is posted, so nobody looks at it.
        assert!(unsafe { self.arena.fill(span, message) });
        let token = self.stage().tokens[qp.0 as usize].expect("not destroyed");
        let outcome = Outcome::Received {
            len,
            invalidated: None,
        };
        let arrived = Completion { token, id, outcome };
        self.stage().completions.push_back(arrived);
    }

    /// What the lcore says of itself, with as many rows.
    pub fn survey(&mut self, rows: usize) -> Box<Snapshot<Probe>> {
        let asked = self.line.survey(Box::new(Snapshot::with_room(rows)));
        asked.map_err(|_| "not asked").expect("room");
        let mut snapshots = self.settle().into_iter().filter_map(|notice| match notice {
            Notice::Snapshot(snapshot) => Some(snapshot),
            _ => None,
        });
        snapshots.next_back().expect("one")
    }
}

/// Notices in short.
pub fn said(notices: &[Notice<Probe>]) -> Vec<String> {
    let words = |notice: &Notice<Probe>| match notice {
        Notice::Adopted { number, .. } => format!("adopted {}", number.0),
        Notice::Closed { number, ending, .. } => format!("{ending:?} {}", number.0),
        Notice::Property { number, event, .. } => format!("{event:?} {}", number.0),
        Notice::Upper { number, notice, .. } => format!("{notice} {}", number.0),
        Notice::Drained => "drained".to_owned(),
        Notice::Snapshot(_) => "snapshot".to_owned(),
    };
    notices.iter().map(words).collect()
}
