//! How connections end, and what control says meanwhile.
//!
//! # A connection that this side ends
//!
//! Its last message may just have been posted: an error, or the last Reply of a drained
//! connection. Moving to error would throw away what has not left yet. So the queue pair first
//! goes on sending, and takes nothing new, until a completion says that all is done; where the
//! last request would have none, an RDMA Write of nothing is posted behind it that has. A peer
//! that takes nothing any more is waited for no longer than [`LINGER`].
//!
//! # A connection that is over
//!
//! Whoever noticed it, the queue pair is moved to error here and now, so that nothing is carried
//! out for the peer any more, and control is told, which says goodbye to the peer. The device then
//! gives back every request with a completion, those excepted that were done long ago in silence.
//! When nothing is left that the engine waits for, it hears [`Outcome::Disconnected`].
//!
//! # What goes back to control
//!
//! After `destroy`, and once flushed: first the windows that are still bound, then the endpoint.
//! Control destroys them in this order, and sends new windows.
//!
//! # A device or a completion queue that is gone
//!
//! A device that was pulled flushes nothing, and of one whose completion queue is broken nothing
//! is heard; but such a device may still write memory, and its peers may still reach it. So the
//! order is another: as soon as control says that it is [`Notice::Gone`], every queue pair is
//! moved to error, and windows and endpoints go back. Control destroys them, and says
//! [`Notice::Ended`]. Only then is what was outstanding given back to the engine, which has the
//! memory used for something else.

use super::VerbsPort;
use super::pair::{Phase, Then};
use super::ticket::Place;
use crate::expose::Means;
use crate::inbox::{Notice, Word};
use rpcrdma_fabric::{Completion, Handle, Outcome, WorkError, WorkId};
use std::time::{Duration, Instant};

/// How long a connection goes on sending after this side has ended it.
pub(super) const LINGER: Duration = Duration::from_secs(2);
/// Notices taken in one go.
const NOTICES: usize = 64;

impl VerbsPort {
    /// Ends a connection in an orderly way.
    #[cold]
    pub(super) fn end(&mut self, qp: u32) {
        let Some(pair) = self.pairs.get_mut(qp as usize) else {
            return;
        };
        if pair.phase != Phase::Open {
            return;
        }
        pair.phase = Phase::Draining;
        pair.until = Some(Instant::now() + LINGER);
        let place = pair.place;
        self.ending.push(place);
        if self.batch.owner() == Some(qp) {
            self.post_batch();
        }
        let silent = self
            .pairs
            .get(qp as usize)
            .is_some_and(|pair| pair.is_silent());
        if silent {
            self.put_marker(qp);
            self.post_batch();
        }
        self.look_after(place);
    }

    /// The engine has no more to do with a queue pair.
    #[cold]
    pub(super) fn forget(&mut self, qp: u32) {
        let Some(pair) = self.pairs.get_mut(qp as usize) else {
            return;
        };
        if pair.phase == Phase::Free {
            return;
        }
        pair.forgotten = true;
        let (place, token) = (pair.place, pair.token);
        self.late.retain(|completion| completion.token != token);
        self.fail(place);
        self.look_after(place);
    }

    /// Moves a queue pair to error.
    #[cold]
    pub(super) fn fail(&mut self, place: Place) {
        let index = usize::from(place.index);
        let Some(pair) = self.pairs.get_mut(index).filter(|pair| pair.place == place) else {
            return;
        };
        match pair.phase {
            Phase::Open => self.ending.push(place),
            Phase::Draining => {}
            Phase::Free | Phase::Failing | Phase::Over => return,
        }
        pair.phase = Phase::Failing;
        if let Some(rail) = pair.rail {
            self.fail_on_device(rail);
        }
        let pair = self.pairs.get(index);
        if let Some(endpoint) = pair.and_then(|pair| pair.endpoint.as_ref()) {
            self.inbox.tell(Word::Broken(endpoint.connection()));
        }
        if self.batch.owner() == Some(u32::from(place.index)) {
            let (sends, receives) = self.batch.len();
            self.batch.clear();
            self.take_back(place, (sends, WorkError::Flushed), receives);
        }
    }

    /// The newest `sends` and `receives` entries of the books were not posted. `error` is that of
    /// the oldest of them.
    #[cold]
    pub(super) fn take_back(
        &mut self,
        place: Place,
        (sends, mut error): (usize, WorkError),
        receives: usize,
    ) {
        let Some(pair) = self.pairs.get_mut(usize::from(place.index)) else {
            return;
        };
        let at = self.late.len();
        let mut report = |token, id, error| {
            self.late.insert(
                at,
                Completion {
                    token,
                    id,
                    outcome: Outcome::Failed(error),
                },
            );
        };
        for left in (0..sends).rev() {
            let Some(entry) = pair.unbook() else { break };
            if left > 0 {
                if entry.then != Then::Nothing && !pair.forgotten {
                    report(pair.token, entry.id, WorkError::Flushed);
                }
            } else if entry.then != Then::Nothing && !pair.forgotten {
                report(
                    pair.token,
                    entry.id,
                    std::mem::replace(&mut error, WorkError::Flushed),
                );
            }
        }
        for _ in 0..receives {
            let Some(id) = pair.receives.pop_back() else {
                break;
            };
            if !pair.forgotten {
                report(pair.token, id, WorkError::Flushed);
            }
        }
    }

    /// What is not about completions of the device: notices, and connections that end.
    #[cold]
    pub(super) fn do_chores(&mut self) {
        // Finding the inbox empty takes a system call, and a connection that ends may have chores
        // with each completion of all the others.
        if self.inbox.has_notice() || self.means.has_answer() {
            self.hear_control();
            self.take_answers();
        }
        let mut next = 0;
        while let Some(&place) = self.ending.get(next) {
            if self.look_after(place) {
                next += 1;
            }
        }
    }

    fn hear_control(&mut self) {
        for _ in 0..NOTICES {
            let Some(notice) = self.inbox.next() else {
                break;
            };
            self.heed(notice);
        }
    }

    fn heed(&mut self, notice: Notice) {
        match notice {
            Notice::Lost(connection) => {
                let lost = self.pairs.iter().find(|pair| {
                    let endpoint = pair.endpoint.as_ref();
                    endpoint.is_some_and(|endpoint| endpoint.connection() == connection)
                });
                if let Some(place) = lost.map(|pair| pair.place) {
                    self.fail(place);
                }
            }
            Notice::Window(window) => {
                if let Means::Windows(windows) = &mut self.means
                    && windows.put(window)
                {
                    self.tell_seeker();
                }
            }
            Notice::Gone => {
                self.poller.close();
                for place in self.live() {
                    self.fail(place);
                    self.surrender(place);
                }
                self.gone = true;
            }
            Notice::Ended => {
                self.ended = true;
                for place in self.live() {
                    self.sweep(place);
                }
                self.let_go_if_done();
            }
        }
    }

    fn live(&self) -> Vec<Place> {
        let live = self.pairs.iter().filter(|pair| pair.phase != Phase::Free);
        live.map(|pair| pair.place).collect()
    }

    /// Whether the device may still reach memory, though nothing is heard of it.
    pub(super) fn is_dangling(&self) -> bool {
        self.gone && !self.ended
    }

    /// Gives back to control what stands at the device for a queue pair, first what peers reach.
    fn surrender(&mut self, place: Place) {
        if let Means::Windows(windows) = &mut self.means {
            windows.take_away(place, |window| self.inbox.tell(Word::Window(window)));
        }
        let Some(pair) = self.pairs.get_mut(usize::from(place.index)) else {
            return;
        };
        pair.rail = None;
        if let Some(endpoint) = pair.endpoint.take() {
            self.inbox.tell(Word::Over(endpoint));
        }
    }

    /// Room has come that some connection was refused.
    pub(super) fn tell_seeker(&mut self) {
        if let Some(token) = self.seeker.take() {
            self.late.push_back(Completion {
                token,
                id: WorkId(0),
                outcome: Outcome::Room,
            });
        }
    }

    /// Gives back all that a device that is gone was given.
    fn sweep(&mut self, place: Place) {
        let Some(pair) = self.pairs.get_mut(usize::from(place.index)) else {
            return;
        };
        if std::mem::take(&mut pair.starved) && !pair.forgotten {
            self.late.push_back(Completion {
                token: pair.token,
                id: WorkId(0),
                outcome: Outcome::Room,
            });
        }
        let (sends, receives) = (pair.sends.len() as usize, pair.receives.len() as usize);
        self.take_back(place, (sends, WorkError::Flushed), receives);
    }

    /// Takes one step with a connection that ends, if it is time. False when it is on the list no
    /// more.
    fn look_after(&mut self, place: Place) -> bool {
        let index = usize::from(place.index);
        let Some(pair) = self.pairs.get(index).filter(|pair| pair.place == place) else {
            self.ending.retain(|&other| other != place);
            return false;
        };
        let late = || pair.until.is_none_or(|until| Instant::now() >= until);
        if pair.phase == Phase::Draining && (pair.sends.is_empty() || late()) {
            self.fail(place);
        }
        if self.is_flushed(place) && self.settled(place) && !self.is_dangling() {
            self.conclude(place);
        }
        let Some(pair) = self.pairs.get(index) else {
            return false;
        };
        if pair.phase == Phase::Over && pair.forgotten {
            self.hand_back(place);
            return false;
        }
        true
    }

    /// Nothing of this queue pair is half told.
    fn settled(&self, place: Place) -> bool {
        self.settling.is_none_or(|settling| settling.place != place)
    }

    /// All has been reported but the end.
    fn conclude(&mut self, place: Place) {
        let Some(pair) = self.pairs.get_mut(usize::from(place.index)) else {
            return;
        };
        pair.phase = Phase::Over;
        if !pair.forgotten {
            self.late.push_back(Completion {
                token: pair.token,
                id: WorkId(0),
                outcome: Outcome::Disconnected,
            });
        }
    }

    /// Gives a queue pair's parts back to control, and its place to the next.
    fn hand_back(&mut self, place: Place) {
        self.ending.retain(|&other| other != place);
        if let Means::Regions(regions) = &mut self.means {
            regions.forget(place);
        }
        self.surrender(place);
        let Some(pair) = self.pairs.get_mut(usize::from(place.index)) else {
            return;
        };
        pair.release();
        self.free.push(place.index);
        self.let_go_if_done();
    }

    /// A device that is gone is let go with its last queue pair.
    fn let_go_if_done(&mut self) {
        if self.ended && self.free.len() == self.pairs.len() {
            // The registrar has a share of the device for as long as there are regions. Nothing is
            // exposed here any more, by whatever means.
            self.means = Means::Arena(Handle(0));
            self.inbox.let_go();
        }
    }
}

impl Drop for VerbsPort {
    /// Ends all connections.
    fn drop(&mut self) {
        let places: Vec<Place> = self.pairs.iter().map(|pair| pair.place).collect();
        for place in places {
            self.fail(place);
            let phase = self
                .pairs
                .get(usize::from(place.index))
                .map(|pair| pair.phase);
            if phase != Some(Phase::Free) {
                self.hand_back(place);
            }
        }
    }
}
