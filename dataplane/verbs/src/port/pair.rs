//! One queue pair, as the lcore that owns it keeps its books.
//!
//! ```text
//!   Free --adopt--> Open --disconnect--> Draining --all sent, or too late--> Failing --flushed--> Over
//!                    '------------work failed, or the peer is gone------------^
//! ```
//!
//! `destroy` may come at any time from Failing on; the pair is Free again once the device has
//! given back what it was given.

use super::fifo::Fifo;
use super::outbox::Outbox;
use super::rail::Rail;
use super::ticket::Place;
use crate::endpoint::Endpoint;
use rpcrdma_fabric::{Token, WorkId};
use std::time::Instant;

/// Send-queue entries that only the end of a connection may take: the one that tells when all
/// before it is done.
pub(crate) const RESERVED: u32 = 1;

/// Where a queue pair is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// There is none.
    Free,
    /// Work is taken.
    Open,
    /// No more work is taken, and what was taken is still being sent.
    Draining,
    /// In error: the device is flushing.
    Failing,
    /// Everything has been reported, the end included.
    Over,
}

impl Phase {
    /// The peer can still reach what is exposed to it.
    #[inline]
    pub(crate) fn is_live(self) -> bool {
        matches!(self, Phase::Open | Phase::Draining)
    }
}

/// What is to happen when a send-queue entry is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing: the engine was told that it is done, or never knew of it.
    #[default]
    Nothing,
    /// The engine is told.
    Tell,
    /// The engine is told, and the window in this slot is free.
    Release(u32),
}

/// No outbox run.
const NO_RUN: u32 = u32::MAX;

/// A send-queue entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) id: WorkId,
    pub(crate) then: Then,
    /// Where the outbox's tail is once this is done.
    run_end: u32,
}

impl Default for Entry {
    fn default() -> Entry {
        Entry::new(WorkId(0), Then::Nothing)
    }
}

impl Entry {
    #[inline]
    pub(crate) fn new(id: WorkId, then: Then) -> Entry {
        Entry {
            id,
            then,
            run_end: NO_RUN,
        }
    }

    /// The same, with a run of the outbox that is out until it is done.
    #[inline]
    pub(crate) fn with_run(self, end: u32) -> Entry {
        Entry {
            run_end: end,
            ..self
        }
    }

    /// Somebody waits for it to be done.
    #[inline]
    fn matters(self) -> bool {
        self.then != Then::Nothing || self.run_end != NO_RUN
    }
}

/// The memory that a queue pair's books take; made by control, so that adopting one allocates
/// nothing.
#[derive(Debug)]
pub(crate) struct Books {
    sends: Fifo<Entry>,
    receives: Fifo<WorkId>,
}

impl Books {
    /// Books for queues of these depths.
    pub(crate) fn new(send_depth: u32, receive_depth: u32) -> Books {
        Books {
            sends: Fifo::new(send_depth),
            receives: Fifo::new(receive_depth),
        }
    }
}

/// A queue pair.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) phase: Phase,
    /// While draining: until then at the latest.
    pub(crate) until: Option<Instant>,
    pub(crate) place: Place,
    pub(crate) token: Token,
    /// What came from control, and goes back to it.
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) rail: Option<Rail>,
    pub(crate) sends: Fifo<Entry>,
    pub(crate) receives: Fifo<WorkId>,
    /// Longest message that goes inline, octets.
    pub(crate) inline_bytes: u32,
    pub(crate) outbox: Outbox,
    /// Entries since the last that will have a completion, and how many there may be.
    silent: u32,
    quarter: u32,
    /// One of those matters, so the last of a run is to have a completion.
    uncovered: bool,
    /// Something was refused for want of room.
    pub(crate) starved: bool,
    /// Entries that the engine will be told of.
    pub(crate) told: u32,
    /// The engine has forgotten this queue pair: nothing more is reported.
    pub(crate) forgotten: bool,
    /// Sends posted, wrapping: who was told of what.
    pub(crate) messages: u32,
}

impl Pair {
    pub(crate) fn free(place: Place) -> Pair {
        Pair {
            phase: Phase::Free,
            until: None,
            place,
            token: Token(0),
            endpoint: None,
            rail: None,
            sends: Fifo::new(0),
            receives: Fifo::new(0),
            inline_bytes: 0,
            outbox: Outbox::default(),
            silent: 0,
            quarter: 1,
            uncovered: false,
            starved: false,
            told: 0,
            forgotten: false,
            messages: 0,
        }
    }

    /// Begins a new use of this place.
    pub(crate) fn adopt(
        &mut self,
        rail: Rail,
        books: Books,
        inline_bytes: u32,
        outbox: Outbox,
        token: Token,
    ) {
        *self = Pair {
            phase: Phase::Open,
            token,
            rail: Some(rail),
            quarter: (books.sends.room() / 4).max(1),
            sends: books.sends,
            receives: books.receives,
            inline_bytes,
            outbox,
            ..Pair::free(self.place)
        };
    }

    /// Ends this use: completions that name it are late from now on.
    pub(crate) fn release(&mut self) {
        *self = Pair::free(self.place.next());
    }

    /// Whether another send-queue entry can be taken; notes that one was wanted where not.
    #[inline]
    pub(crate) fn has_room(&mut self) -> bool {
        let room = self.sends.room() > RESERVED;
        self.starved |= !room;
        room
    }

    /// Enters a request into the send queue's books. Its number, and whether it must have a
    /// completion: because `signalled` says so, or because a quarter of the queue has passed
    /// without one. `None` when there is no room.
    #[inline]
    pub(crate) fn book(&mut self, entry: Entry, signalled: bool) -> Option<(u32, bool)> {
        let number = self.sends.push(entry)?;
        self.told += u32::from(entry.then != Then::Nothing);
        self.silent += 1;
        self.uncovered |= entry.matters();
        let signalled = signalled || self.silent >= self.quarter;
        if signalled {
            self.covered();
        }
        Some((number, signalled))
    }

    /// Whether the last of a run that is about to be posted must have a completion.
    #[inline]
    pub(crate) fn wants_cover(&self) -> bool {
        self.silent > 0 && (self.uncovered || self.starved || self.phase != Phase::Open)
    }

    /// The newest entry will have a completion.
    #[inline]
    pub(crate) fn covered(&mut self) {
        self.silent = 0;
        self.uncovered = false;
    }

    /// Entries behind the last that will have a completion.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent > 0
    }

    /// Takes the oldest send-queue entry, which is done or never will be.
    #[inline]
    pub(crate) fn settle_one(&mut self) -> Option<Entry> {
        let entry = self.sends.pop()?;
        self.forget(entry);
        Some(entry)
    }

    /// Takes the newest, which was not posted.
    pub(crate) fn unbook(&mut self) -> Option<Entry> {
        let entry = self.sends.pop_back()?;
        self.told -= u32::from(entry.then != Then::Nothing);
        Some(entry)
    }

    #[inline]
    fn forget(&mut self, entry: Entry) {
        self.told -= u32::from(entry.then != Then::Nothing);
        if entry.run_end != NO_RUN {
            self.outbox.give_back(entry.run_end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(depth: u32) -> Pair {
        let mut pair = Pair::free(Place::first(0));
        let rail = Rail::Plain(std::ptr::null_mut());
        pair.adopt(rail, Books::new(depth, 4), 64, Outbox::new(0, 64), Token(9));
        pair
    }

    const SILENT: Entry = Entry {
        id: WorkId(0),
        then: Then::Nothing,
        run_end: NO_RUN,
    };

    #[test]
    fn a_full_queue_always_waits_for_a_completion() {
        for depth in 4..40 {
            let mut pair = pair(depth);
            let mut signalled = Vec::new();
            while pair.has_room() {
                let (number, with) = pair.book(SILENT, false).expect("room");
                signalled.extend(with.then_some(number));
            }
            assert_eq!(pair.sends.room(), RESERVED);
            assert!(pair.starved);
            // Whichever completions have come: what is left still has one, or there is room.
            assert!(!signalled.is_empty(), "depth {depth}");
            let last = *signalled.last().expect("one");
            assert!(pair.sends.next_number() - last <= depth / 4 + 1);
        }
    }

    #[test]
    fn what_matters_is_covered_by_the_last_of_its_run() {
        let mut pair = pair(64);
        pair.book(SILENT, false);
        assert!(!pair.wants_cover());
        pair.book(Entry::new(WorkId(1), Then::Tell), false);
        assert!(pair.wants_cover());
        pair.book(SILENT, false);
        assert!(pair.wants_cover());
        pair.covered();
        assert!(!pair.wants_cover() && !pair.is_silent());
        pair.book(SILENT.with_run(8), false);
        assert!(pair.wants_cover(), "its run has to come back");
        pair.book(Entry::new(WorkId(2), Then::Tell), true);
        assert!(!pair.wants_cover());
        assert_eq!(pair.told, 2);
    }

    #[test]
    fn what_was_not_posted_is_taken_back_newest_first() {
        let mut pair = pair(64);
        for id in 0..3 {
            pair.book(Entry::new(WorkId(id), Then::Tell), false);
        }
        assert_eq!(pair.unbook().map(|entry| entry.id), Some(WorkId(2)));
        assert_eq!(pair.settle_one().map(|entry| entry.id), Some(WorkId(0)));
        assert_eq!(pair.told, 1);
    }
}
