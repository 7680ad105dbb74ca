//! A port that a test plays, an upper layer that tells what it is called for, and an lcore of
//! both.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(unreachable_pub, reason = "shared by test files, each a crate")]

use rpcrdma_engine::{CloseReason, Connection, Event, Io, Setup, Side};
use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::pool::Pool;
use rpcrdma_fabric::{
    Access, Capabilities, Completion, Handle, Octets, Outcome, Port, Posted, QueuePair, Refused,
    Segment, Span, Token, WorkError, WorkId,
};
use rpcrdma_lcore::{
    Bell, ConnectionNumber, Idle, Lcore, Line, Link, Notice, Places, SeatId, SeatOrder, Session,
    Snapshot, line,
};
use rpcrdma_upper::{Upper, Watch};
use std::collections::VecDeque;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// What a test sees of a [`PlayedPort`], and what it puts in.
#[derive(Default)]
pub struct Stage {
    /// To be reaped.
    pub completions: VecDeque<Completion>,
    /// By number of queue pair: the token, until it is destroyed.
    pub tokens: Vec<Option<Token>>,
    /// Receives that are posted.
    pub receives: Vec<(QueuePair, Span, WorkId)>,
    /// Messages sent.
    pub sends: usize,
    /// Refuse the next adoption.
    pub refuse_adoption: bool,
    /// Do not flush on disconnect.
    pub hang: bool,
    /// The port was dropped.
    pub dropped: bool,
}

/// A port whose other side is the test.
pub struct PlayedPort {
    stage: Arc<Mutex<Stage>>,
    waker: Arc<Bell>,
}

impl PlayedPort {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().expect("no test holds it in a panic")
    }
}

impl Drop for PlayedPort {
    fn drop(&mut self) {
        self.stage().dropped = true;
    }
}

impl Port for PlayedPort {
    type Endpoint = ();

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            gather: 8,
            send_depth: 64,
            receive_depth: 64,
            transfer_bytes: 1 << 30,
            windows: 64,
            remote_invalidate: true,
        }
    }

    fn adopt(&mut self, (): (), token: Token) -> Result<QueuePair, Refused> {
        let mut stage = self.stage();
        if std::mem::take(&mut stage.refuse_adoption) {
            return Err(Refused::Unsupported);
        }
        stage.tokens.push(Some(token));
        Ok(QueuePair(stage.tokens.len() as u32 - 1))
    }

    fn disconnect(&mut self, qp: QueuePair) {
        let mut stage = self.stage();
        let token = stage.tokens[qp.0 as usize].expect("not destroyed");
        if stage.hang {
            return;
        }
        let posted = std::mem::take(&mut stage.receives);
        let (flushed, kept) = posted.into_iter().partition(|(of, ..)| *of == qp);
        let flushed: Vec<(QueuePair, Span, WorkId)> = flushed;
        stage.receives = kept;
        for (_, _, id) in flushed {
            stage.completions.push_back(Completion {
                token,
                id,
                outcome: Outcome::Failed(WorkError::Flushed),
            });
        }
        stage.completions.push_back(Completion {
            token,
            id: WorkId(0),
            outcome: Outcome::Disconnected,
        });
    }

    fn destroy(&mut self, qp: QueuePair) {
        self.stage().tokens[qp.0 as usize] = None;
    }

    fn post_receive(&mut self, qp: QueuePair, memory: Span, id: WorkId) -> Result<(), Refused> {
        self.stage().receives.push((qp, memory, id));
        Ok(())
    }

    fn send(
        &mut self,
        _: QueuePair,
        _: &[Octets<'_>],
        _: Option<Handle>,
        _: WorkId,
    ) -> Result<Posted, Refused> {
        self.stage().sends += 1;
        Ok(Posted::Done)
    }

    fn read(&mut self, _: QueuePair, _: Span, _: Segment, _: WorkId) -> Result<Posted, Refused> {
        Err(Refused::Unsupported)
    }

    fn write(&mut self, _: QueuePair, _: Span, _: Segment, _: WorkId) -> Result<Posted, Refused> {
        Err(Refused::Unsupported)
    }

    fn expose(&mut self, _: QueuePair, _: Span, _: Access) -> Result<Segment, Refused> {
        Err(Refused::Unsupported)
    }

    fn retire(&mut self, _: QueuePair, _: Handle, _: WorkId) -> Result<Posted, Refused> {
        Err(Refused::Unsupported)
    }

    fn retired_by_peer(&mut self, _: QueuePair, _: Handle) {}

    fn reap(&mut self, completions: &mut [Completion]) -> usize {
        let mut stage = self.stage();
        let count = stage.completions.len().min(completions.len());
        for (place, completion) in completions.iter_mut().zip(stage.completions.drain(..count)) {
            *place = completion;
        }
        count
    }

    fn ring(&mut self) {}

    fn arm(&mut self) -> bool {
        self.waker.doze();
        self.stage().completions.is_empty()
    }

    fn waker(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

/// What a [`Probe`] is told to do.
pub enum Do {
    /// Give these notices.
    Say(Vec<u32>),
    /// Watch this socket: say 1000 in the first `turn`, and in each that finds something to read.
    Watch(UnixStream),
    /// Hold that much memory, asked for again in each `turn` until it is there: then say the
    /// connection's own word.
    Hold {
        /// Octets.
        bytes: u32,
        /// The word.
        word: u32,
    },
    /// Give back what is held.
    LetGo,
    /// Ask for this many more turns, and say 2000 in each.
    Again(u32),
    /// Panic.
    Panic,
}

/// An upper layer that does as it is told.
#[derive(Default)]
pub struct Probe {
    pub notices: VecDeque<u32>,
    pub established: bool,
    pub lost: Option<CloseReason>,
    socket: Option<UnixStream>,
    fresh: bool,
    wanted: Option<(u32, u32)>,
    held: Option<Span>,
    again: u32,
    counted: u64,
}

impl Probe {
    fn try_to_hold<'m>(&mut self, io: &mut impl Io<'m>) {
        if let Some((bytes, word)) = self.wanted
            && let Some(span) = io.reserve(bytes)
        {
            self.wanted = None;
            self.held = Some(span);
            self.notices.push_back(word);
        }
    }

    fn let_go<'m>(&mut self, io: &mut impl Io<'m>) {
        if let Some(span) = self.held.take() {
            io.release(span);
        }
    }
}

impl Upper for Probe {
    type Order = Do;
    type Notice = u32;
    type Counters = u64;

    fn established<'m>(
        &mut self,
        _: &mut Connection,
        _: &mut impl Io<'m>,
        _: &mut impl Watch,
        _: Instant,
    ) {
        self.established = true;
    }

    fn event<'m>(&mut self, _: &mut Connection, _: &mut impl Io<'m>, _: Event, _: Instant) {}

    fn order<'m>(
        &mut self,
        _: &mut Connection,
        io: &mut impl Io<'m>,
        watch: &mut impl Watch,
        order: Do,
        _: Instant,
    ) {
        self.counted += 1;
        match order {
            Do::Say(words) => self.notices.extend(words),
            Do::Watch(socket) => {
                socket.set_nonblocking(true).expect("a socket can be");
                watch.watch(socket.as_fd()).expect("watched");
                self.socket = Some(socket);
                self.fresh = true;
            }
            Do::Hold { bytes, word } => {
                self.wanted = Some((bytes, word));
                self.try_to_hold(io);
            }
            Do::LetGo => self.let_go(io),
            Do::Again(turns) => self.again = turns,
            Do::Panic => panic!("as told"),
        }
    }

    fn turn<'m>(&mut self, _: &mut Connection, io: &mut impl Io<'m>, _: Instant) -> bool {
        self.try_to_hold(io);
        if let Some(socket) = &mut self.socket
            && (std::mem::take(&mut self.fresh) || socket.read(&mut [0; 16]).is_ok())
        {
            self.notices.push_back(1000);
        }
        if self.again > 0 {
            self.again -= 1;
            self.notices.push_back(2000);
        }
        self.again > 0
    }

    fn lost<'m>(&mut self, _: &mut Connection, io: &mut impl Io<'m>, reason: CloseReason) {
        assert_eq!(self.lost, None, "said once");
        self.lost = Some(reason);
        self.wanted = None;
        self.let_go(io);
    }

    fn has_notice(&self) -> bool {
        !self.notices.is_empty()
    }

    fn take_notice(&mut self) -> Option<u32> {
        self.notices.pop_front()
    }

    fn count(&mut self, sum: &mut u64) {
        *sum += std::mem::take(&mut self.counted);
    }
}

/// Octets of a connection's receives.
pub const RECEIVE_BYTES: u32 = 1024;
/// Receives of a connection.
pub const RECEIVES: usize = 4;

/// A server's connection with few receives.
pub fn session() -> Box<Session<Probe>> {
    let setup = Setup {
        credits: 2,
        backward_credits: 0,
        receive_bytes: RECEIVE_BYTES,
        announced_bytes: RECEIVE_BYTES,
        ..Setup::new(Side::Server)
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
        let taken = self.line.adopt(ConnectionNumber(number), (), session());
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

    /// What the lcore says of itself, with as many rows.
    pub fn survey(&mut self, rows: usize) -> Box<Snapshot<Probe>> {
        let asked = self.line.survey(Box::new(Snapshot::with_room(rows)));
        asked.map_err(|_| "not asked").expect("room");
        let snapshots = self.settle().into_iter().filter_map(|notice| match notice {
            Notice::Snapshot(snapshot) => Some(snapshot),
            _ => None,
        });
        snapshots.last().expect("one")
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
