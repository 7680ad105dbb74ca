//! The loop. [`Lcore::turn`] is all of it on one screen; each step is a bounded burst.

use crate::counters::{LoopCounters, count};
use crate::idle::{Clock, Idle};
use crate::line::Link;
use crate::memory::Bench;
use crate::queue::SeatQueue;
use crate::regions::{Claim, Regions};
use crate::report::Survey;
use crate::seats::Seats;
use crate::sockets::{EDGES, Sockets};
use rpcrdma_engine::Event;
use rpcrdma_fabric::Port;
use rpcrdma_fabric::arena::Arena;
use rpcrdma_upper::Upper;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// Completions reaped in one turn.
const BURST: usize = 64;
/// Turns plus completions between two looks at the sockets: a look is a system call, which
/// costs as much as a few completions.
const LOOK_EVERY: usize = 64;
/// Upper layers called in one turn because of sockets or their own wish.
const UPPER_TURNS: usize = 32;
/// Connections given another try in one turn when memory came back.
const RETRIES: usize = 8;

/// What an lcore is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Serving.
    Open,
    /// No connection is taken any more; control is told when none is left.
    Draining,
    /// The same, and control was told.
    Drained,
    /// Everything was closed; the loop ends when all is over, at the latest then, if ever.
    Stopping(Option<Instant>),
}

/// One lcore: a port, a pool, and connections with upper layers `U`.
///
/// Dropping it drops the port, which disconnects whatever is still connected.
pub struct Lcore<P: Port, U: Upper> {
    /// First, so that the fabric lets go of the arena before anything else ends.
    pub(crate) bench: Bench<P>,
    pub(crate) arena: Arc<Arena>,
    pub(crate) seats: Seats<U>,
    /// Who has sockets to look at, or more to do.
    pub(crate) eager: SeatQueue,
    /// Who waits for memory or windows, one queue for each of [`Claim::WAITING`].
    pub(crate) hungry: [SeatQueue; 3],
    /// Who has something to tell control.
    pub(crate) owing: SeatQueue,
    pub(crate) link: Link<P::Endpoint, U>,
    pub(crate) sockets: Sockets,
    pub(crate) clock: Clock,
    pub(crate) counts: LoopCounters,
    /// What the upper layers counted.
    pub(crate) sums: U::Counters,
    pub(crate) survey: Option<Survey<U>>,
    pub(crate) mode: Mode,
    idle: Idle,
    /// Turns and completions since the sockets were looked at.
    since_look: usize,
}

impl<P: Port, U: Upper> Lcore<P, U> {
    /// An lcore without connections. `memory` is of the arena that `port` works in: regions, or
    /// a pool for everything. Allocates all it will ever need.
    ///
    /// # Errors
    ///
    /// The system has no epoll instance or watch left for it.
    pub fn new(
        link: Link<P::Endpoint, U>,
        port: P,
        arena: Arc<Arena>,
        memory: impl Into<Regions>,
        idle: Idle,
    ) -> io::Result<Lcore<P, U>> {
        let sockets = Sockets::new()?;
        sockets.watch_waker(port.waker())?;
        sockets.watch_waker(link.bell())?;
        let seats = Seats::new(link.seats());
        let queue = || SeatQueue::new(link.seats());
        Ok(Lcore {
            bench: Bench::new(port, memory.into()),
            arena,
            seats,
            eager: queue(),
            hungry: Claim::WAITING.map(|_| queue()),
            owing: queue(),
            link,
            sockets,
            clock: Clock::new(),
            counts: LoopCounters::default(),
            sums: U::Counters::default(),
            survey: None,
            mode: Mode::Open,
            idle,
            since_look: 0,
        })
    }

    /// Turns until control says stop.
    pub fn run(&mut self) {
        while !self.is_over() {
            if self.turn() == 0 {
                self.sleep_if_idle();
            }
        }
    }

    /// One turn: a burst of everything there is to do, never waiting. How much that was.
    pub fn turn(&mut self) -> usize {
        let mut work = self.obey();
        work += self.reap();
        work += self.look_at_sockets();
        work += self.call_the_eager();
        work += self.feed_the_hungry();
        work += self.report();
        self.bench.port.ring();
        self.account(work);
        work
    }

    /// Reaps completions and settles each, until there are none or a burst of them was settled:
    /// what settling brings about on this very lcore is there at once.
    #[inline]
    fn reap(&mut self) -> usize {
        let mut settled = 0;
        let foresees = self.seats.are_many();
        while settled < BURST
            && let Some(completion) = self.bench.port.reap_one()
        {
            if foresees {
                self.foresee();
            }
            self.settle(completion);
            settled += 1;
        }
        self.counts.completions = self.counts.completions.wrapping_add(settled as u64);
        self.since_look += settled;
        if settled == BURST {
            count(&mut self.counts.full_bursts);
        }
        settled
    }

    /// Every few turns: whose sockets have something.
    #[inline]
    fn look_at_sockets(&mut self) -> usize {
        self.since_look += 1;
        if !self.sockets.any() || self.since_look < LOOK_EVERY {
            return 0;
        }
        self.take_edges(None)
    }

    /// Looks at the sockets for at most `patience` and queues those that had an edge.
    pub(crate) fn take_edges(&mut self, patience: Option<std::time::Duration>) -> usize {
        count(&mut self.counts.socket_looks);
        let (edges, seats) = self.sockets.look(patience);
        for seat in seats {
            if self.seats.id_at(seat.place()) == Some(seat) {
                self.eager.push(seat.place());
            }
            count(&mut self.counts.socket_edges);
        }
        // All places were full: there may be more edges, look again next turn.
        self.since_look = if edges == EDGES { LOOK_EVERY } else { 0 };
        edges
    }

    /// Calls the upper layers that have something to do.
    #[inline]
    fn call_the_eager(&mut self) -> usize {
        let turns = self.eager.len().min(UPPER_TURNS);
        for _ in 0..turns {
            if let Some(place) = self.eager.pop() {
                self.call_upper(place);
            }
        }
        turns
    }

    /// When memory or windows came back: another try for those that wait.
    #[inline]
    fn feed_the_hungry(&mut self) -> usize {
        if !self.bench.freed || self.hungry.iter().all(SeatQueue::is_empty) {
            return 0;
        }
        self.bench.freed = false;
        Claim::WAITING.map(|claim| self.feed(claim)).iter().sum()
    }

    /// Another try for those that wait with this claim, in order. One that still finds too
    /// little keeps its place at the head, so that it is not overtaken for ever by those that
    /// need less. What a vain try takes and gives back itself is no reason for another, or it
    /// would be made for ever; what it gave back beyond that is.
    #[cold]
    fn feed(&mut self, claim: Claim) -> usize {
        let mut retries = 0;
        while let Some(place) = self.hungry[claim.place()].peek() {
            if retries == RETRIES {
                // Those behind get theirs in the next turn.
                self.bench.freed = true;
                break;
            }
            retries += 1;
            count(&mut self.counts.memory_retries);
            let freed = std::mem::take(&mut self.bench.freed);
            let before = self.bench.in_use();
            if self.call_upper(place).has(claim) {
                self.bench.freed = freed || self.bench.in_use().is_below(before);
                break;
            }
            self.bench.freed |= freed;
            self.hungry[claim.place()].pop();
        }
        retries
    }

    /// Counts the turn; at a tick of the clock everybody is called.
    #[inline]
    fn account(&mut self, work: usize) {
        count(&mut self.counts.turns);
        if work == 0 {
            count(&mut self.counts.idle_turns);
        }
        if self.clock.turn(work > 0) {
            self.tick();
        }
    }

    /// Tells every engine that time has passed; every upper layer is called in the next turns,
    /// for its deadlines.
    #[cold]
    fn tick(&mut self) {
        count(&mut self.counts.ticks);
        self.for_each(|lcore, seat| {
            lcore.serve(seat, |occupant, desk, _| {
                occupant.session.connection.tick(desk);
                Event::None
            });
            lcore.eager.push(seat.place());
        });
    }

    /// What the engine counted, for who turns the lcore by hand.
    #[must_use]
    pub fn counters(&self) -> &rpcrdma_engine::Counters {
        &self.bench.counters
    }

    /// True when control said stop, and all is over or the time for it is.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match self.mode {
            Mode::Stopping(deadline) => {
                self.seats.all_free() || deadline.is_some_and(|at| self.clock.now() >= at)
            }
            _ => false,
        }
    }

    /// After a turn without work: sleeps, when the idle policy says so and nothing came in
    /// between, until the port, a socket or control has something, or for a short while.
    #[cold]
    fn sleep_if_idle(&mut self) {
        let stuck = !self.owing.is_empty() || self.survey.is_some();
        let Some(nap) = self.clock.nap(self.idle, stuck) else {
            return;
        };
        if !self.eager.is_empty() {
            return;
        }
        self.link.bell().doze();
        if !self.link.has_order() && self.bench.port.arm() {
            count(&mut self.counts.sleeps);
            if self.take_edges(Some(nap)) > 0 {
                count(&mut self.counts.wakeups);
            }
            if self.clock.read() {
                self.tick();
            }
        }
        self.link.bell().rise();
    }
}
