//! One end's side of the connection: what is posted, what has completed, what is exposed.
//!
//! A device never moves by itself: [`Link`](crate::link::Link) carries out the work in front of
//! its send queue, and whoever runs the world decides when a completion is handed over. Until a
//! completion is handed over, the memory of its work is the device's: looking at it, writing
//! it or releasing it is caught here.

use crate::chance::Chance;
use crate::exposures::Exposures;
use crate::memory::{Memory, overlap};
use rpcrdma_engine::{Access, Counters, Span, WorkError, WorkId};
use rpcrdma_wire::{Handle, Reject, Segment};
use std::collections::VecDeque;

/// What goes wrong, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// Of a hundred works, so many complete later; the others are done at once.
    pub pending_percent: u32,
    /// Once in so many times there is no room, where the contract allows it. Zero: never.
    pub busy_one_in: u32,
    /// Exposures at a time.
    pub windows: usize,
    /// Works that have not completed, at a time.
    pub send_depth: usize,
    /// Octets of the arena.
    pub memory_bytes: usize,
    /// The peer invalidates what it was not told to, and when.
    pub hostile_peer: bool,
}

impl Default for Faults {
    fn default() -> Self {
        Faults {
            pending_percent: 50,
            busy_one_in: 0,
            windows: 1 << 10,
            send_depth: 256,
            memory_bytes: 4 << 20,
            hostile_peer: false,
        }
    }
}

/// A piece of a message on its way.
#[derive(Debug)]
pub(crate) enum Piece {
    Copied(Vec<u8>),
    Span(Span),
}

/// What a piece of posted work does.
pub(crate) enum Task {
    Send {
        message: Vec<Piece>,
        invalidate: Option<Handle>,
    },
    Read {
        into: Span,
        from: Segment,
    },
    Write {
        from: Piece,
        to: Segment,
    },
    Retire {
        handle: Handle,
        /// The peer was faster: there is nothing to end any more, which is an error.
        stale: bool,
    },
}

impl Task {
    /// The memory it reads or writes.
    fn spans(&self) -> impl Iterator<Item = Span> + '_ {
        let pieces: &[Piece] = match self {
            Task::Send { message, .. } => message,
            Task::Write { from, .. } => std::slice::from_ref(from),
            Task::Read { .. } | Task::Retire { .. } => &[],
        };
        let read = match self {
            Task::Read { into, .. } => Some(*into),
            _ => None,
        };
        let sources = pieces.iter().filter_map(|piece| match piece {
            Piece::Span(span) => Some(*span),
            Piece::Copied(_) => None,
        });
        sources.chain(read)
    }
}

/// Posted work.
pub(crate) struct Work {
    pub(crate) id: WorkId,
    pub(crate) task: Task,
}

/// Work that was carried out, its completion not yet handed over.
pub(crate) struct Finished {
    pub(crate) work: Work,
    pub(crate) result: Result<(), WorkError>,
}

/// A receive that came back, not yet handed over.
pub(crate) struct Arrival {
    pub(crate) id: WorkId,
    pub(crate) span: Span,
    pub(crate) result: Result<(u32, Option<Handle>), WorkError>,
}

/// Where a queue pair is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Receives can be posted, nothing else.
    Made,
    /// Connected.
    Up,
    /// In error.
    Broken,
}

/// One end's queue pair, arena and windows.
pub struct Device {
    /// The arena.
    pub memory: Memory,
    /// What goes wrong here.
    pub faults: Faults,
    /// The lcore's counters.
    pub counters: Counters,
    /// The refused messages that were shown to the operator.
    pub refused: Vec<(Reject, Vec<u8>)>,
    /// There was no memory or no window when it was asked for.
    pub starved: bool,
    /// Messages that found no receive posted here, by the number of tries.
    pub not_ready: u64,
    pub(crate) chance: Chance,
    pub(crate) exposures: Exposures,
    pub(crate) state: State,
    /// The end of the connection is to be told.
    pub(crate) notice: bool,
    pub(crate) queue: VecDeque<Work>,
    pub(crate) finished: VecDeque<Finished>,
    pub(crate) receives: VecDeque<(WorkId, Span)>,
    pub(crate) arrived: VecDeque<Arrival>,
}

impl Device {
    pub(crate) fn new(chance: Chance, faults: Faults) -> Device {
        Device {
            memory: Memory::new(faults.memory_bytes),
            faults,
            counters: Counters::default(),
            refused: Vec::new(),
            starved: false,
            not_ready: 0,
            chance,
            exposures: Exposures::default(),
            state: State::Made,
            notice: false,
            queue: VecDeque::new(),
            finished: VecDeque::new(),
            receives: VecDeque::new(),
            arrived: VecDeque::new(),
        }
    }

    /// A new queue pair on the same arena, once everything of the last one was handed over.
    pub(crate) fn renew(&mut self) {
        assert!(self.is_quiet(), "a queue pair destroyed with work on it");
        assert_eq!(self.exposures.count(), 0, "exposures left behind");
        self.exposures = Exposures::default();
        self.state = State::Made;
        self.notice = false;
    }

    /// Nothing is posted and nothing is to be handed over, but for the notice.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.queue.is_empty()
            && self.finished.is_empty()
            && self.receives.is_empty()
            && self.arrived.is_empty()
    }

    /// Handles that have not ended.
    #[must_use]
    pub fn exposures(&self) -> usize {
        self.exposures.count()
    }

    /// Receives that are posted.
    #[must_use]
    pub fn receives_posted(&self) -> usize {
        self.receives.len()
    }

    /// Completions that will come, or have come and were not handed over.
    pub(crate) fn completions_due(&self) -> usize {
        self.queue.len() + self.finished.len()
    }

    /// The queue pair goes to error: what is posted is flushed.
    pub(crate) fn break_down(&mut self) {
        if self.state == State::Broken {
            return;
        }
        self.state = State::Broken;
        while let Some(work) = self.queue.pop_front() {
            self.finish(work, Err(WorkError::Flushed));
        }
        while let Some((id, span)) = self.receives.pop_front() {
            let result = Err(WorkError::Flushed);
            self.arrived.push_back(Arrival { id, span, result });
        }
    }

    /// Work was carried out, or failed.
    pub(crate) fn finish(&mut self, work: Work, result: Result<(), WorkError>) {
        if let Task::Retire { handle, .. } = work.task {
            self.exposures.retired(handle);
        }
        self.finished.push_back(Finished { work, result });
    }

    /// The memory that the device may still read or write.
    fn is_busy(&self, span: Span) -> bool {
        let posted = self
            .queue
            .iter()
            .chain(self.finished.iter().map(|f| &f.work));
        let mut spans = posted.flat_map(|work| work.task.spans());
        let receives = self.receives.iter().map(|(_, span)| *span);
        let arrived = self.arrived.iter().map(|arrival| arrival.span);
        spans.any(|busy| overlap(busy, span))
            || receives.chain(arrived).any(|busy| overlap(busy, span))
    }

    /// Memory that the device, or the peer, may still write.
    fn is_written(&self, span: Span) -> bool {
        let posted = self
            .queue
            .iter()
            .chain(self.finished.iter().map(|f| &f.work));
        let mut reads = posted.filter_map(|work| match work.task {
            Task::Read { into, .. } => Some(into),
            _ => None,
        });
        let receives = self.receives.iter().map(|(_, span)| *span);
        let arrived = self.arrived.iter().map(|arrival| arrival.span);
        let exposed = || self.state != State::Broken && self.access_to(span) == Some(Access::Write);
        reads.any(|busy| overlap(busy, span))
            || receives.chain(arrived).any(|busy| overlap(busy, span))
            || exposed()
    }

    fn access_to(&self, span: Span) -> Option<Access> {
        self.exposures.access_to(span)
    }

    /// Nobody but the caller may touch this memory.
    pub fn check_private(&self, span: Span, what: &str) {
        assert!(
            !self.is_busy(span),
            "{what}: {span:?} is in use by a device"
        );
        assert_eq!(self.access_to(span), None, "{what}: {span:?} is exposed");
    }

    /// No peer may write this memory.
    pub(crate) fn check_readable(&self, span: Span) {
        assert!(
            !self.is_written(span),
            "{span:?} is looked at while it is written"
        );
    }
}
