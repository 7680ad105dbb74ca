//! Short-lived regions: what a requester exposes where the device has no windows.
//!
//! Registering memory is a system call that pins pages, and so is ending it: tens of microseconds
//! that an lcore does not have. So it asks the [`super::registrar`] and says [`Refused::Busy`];
//! when the region is there the connection hears [`Outcome::Room`], asks for the same again, and
//! gets it. Meanwhile the lcore serves others.
//!
//! ```text
//!   Free --expose--> Asked --registered--> Ready --expose--> Open --retire, the peer, the end--> Ending --> Free
//!                      '------failed-----> Failed --expose, says why--> Free
//! ```
//!
//! A Call with several segments is exposed one by one, and takes back what it has when one is
//! not there yet. If that ended the regions, it would begin from nothing each time. But a handle
//! that was never sent is known to nobody: so a region that is taken back before its connection
//! has sent anything is simply ready again.
//!
//! What is ready and never fetched, because its Call was cancelled, is ended when nobody has come
//! for it for some time ([`left`]), when its slot is needed, or with its connection.
//!
//! [`Outcome::Room`]: rpcrdma_fabric::Outcome::Room

mod left;

use super::directory::Directory;
use super::registrar::{Answer, Request};
use crate::port::{Place, refused};
use rpcrdma_fabric::{Access, Handle, Posted, Refused, Segment, Span, WorkId};
use std::thread::Thread;

/// What a region is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Purpose {
    owner: Place,
    memory: Span,
    access: Access,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// Being registered; unless `wanted`, to be ended when it is there.
    Asked {
        purpose: Purpose,
        wanted: bool,
    },
    /// The owner knew of it, or of another of its own, in the turn `since`.
    Ready {
        purpose: Purpose,
        handle: Handle,
        since: u32,
    },
    Failed {
        purpose: Purpose,
        why: Refused,
    },
    /// The peer may know of it once the owner has sent more messages than these.
    Open {
        purpose: Purpose,
        handle: Handle,
        messages: u32,
    },
    /// Being ended; who is to be told.
    Ending {
        report: Option<(Place, WorkId)>,
    },
}

/// What the registrar's answer means to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// What was refused may be tried again.
    Room(Place),
    /// A retirement is done.
    Retired(Place, WorkId),
    /// Nothing to anybody.
    Nothing,
}

/// The regions of one port.
#[derive(Debug)]
pub(crate) struct Regions {
    slots: Box<[State]>,
    free: Vec<u32>,
    /// Slots in `Asked`, `Ready` or `Failed`: those an exposure may be waiting for, oldest first.
    coming: Vec<u32>,
    /// Slots in `Open`, by handle.
    directory: Directory,
    requests: rtrb::Producer<Request>,
    answers: rtrb::Consumer<Answer>,
    registrar: Thread,
    /// The registrar is to be woken with the turn's end.
    asked: bool,
    /// The last connection that found no slot.
    seeker: Option<Place>,
    /// Turns so far, wrapping.
    turns: u32,
    /// Where the arena begins, as the peer has it.
    address: u64,
}

impl Regions {
    /// Room for `count` regions at once; the rings have as much.
    pub(super) fn new(
        count: u32,
        address: u64,
        requests: rtrb::Producer<Request>,
        answers: rtrb::Consumer<Answer>,
        registrar: Thread,
    ) -> Regions {
        Regions {
            slots: vec![State::Free; count as usize].into_boxed_slice(),
            free: (0..count).rev().collect(),
            coming: Vec::with_capacity(count as usize),
            directory: Directory::new(count),
            requests,
            answers,
            registrar,
            asked: false,
            seeker: None,
            turns: 0,
            address,
        }
    }

    fn state(&self, slot: u32) -> State {
        self.slots
            .get(slot as usize)
            .copied()
            .unwrap_or(State::Free)
    }

    fn set(&mut self, slot: u32, state: State) {
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = state;
        }
    }

    /// Asks the registrar. Its ring has room: a slot has one request out at a time.
    fn ask(&mut self, request: Request) {
        let asked = self.requests.push(request);
        debug_assert!(asked.is_ok(), "one request a slot");
        self.asked = true;
    }

    /// Exposes `memory`, of which the peer may know once `owner` has sent more than `messages`.
    pub(crate) fn expose(
        &mut self,
        owner: Place,
        memory: Span,
        access: Access,
        messages: u32,
    ) -> Result<Segment, Refused> {
        if memory.len == 0 {
            return Err(Refused::Unsupported);
        }
        let purpose = Purpose {
            owner,
            memory,
            access,
        };
        for (at, &slot) in self.coming.iter().enumerate() {
            match self.state(slot) {
                State::Ready {
                    purpose: of,
                    handle,
                    ..
                } if of == purpose => {
                    self.coming.remove(at);
                    self.directory.insert(handle.0, slot);
                    self.set(
                        slot,
                        State::Open {
                            purpose,
                            handle,
                            messages,
                        },
                    );
                    return Ok(Segment {
                        handle,
                        length: memory.len,
                        offset: self.address.wrapping_add(memory.offset),
                    });
                }
                State::Failed { purpose: of, why } if of == purpose => {
                    self.coming.remove(at);
                    self.release(slot);
                    return Err(why);
                }
                State::Asked {
                    purpose: of,
                    wanted: true,
                } if of == purpose => {
                    return Err(Refused::Busy);
                }
                _ => {}
            }
        }
        self.register(purpose);
        Err(Refused::Busy)
    }

    /// Asks for a region, in a slot that is free or that nobody fetches.
    fn register(&mut self, purpose: Purpose) {
        let Some(slot) = self.free.pop() else {
            self.seeker = Some(purpose.owner);
            self.end_oldest();
            return;
        };
        self.set(
            slot,
            State::Asked {
                purpose,
                wanted: true,
            },
        );
        self.coming.push(slot);
        self.ask(Request::Register {
            slot,
            offset: purpose.memory.offset,
            len: purpose.memory.len,
            access: purpose.access,
        });
    }

    fn make_ready(&mut self, slot: u32, purpose: Purpose, handle: Handle) {
        let since = self.turns;
        self.set(
            slot,
            State::Ready {
                purpose,
                handle,
                since,
            },
        );
    }

    /// Ends the region that has been ready longest.
    fn end_oldest(&mut self) {
        let ready = |&slot: &u32| !matches!(self.state(slot), State::Asked { .. });
        if let Some(at) = self.coming.iter().position(ready) {
            let slot = self.coming.remove(at);
            self.end(slot, None);
        }
    }

    /// Has a slot's region ended, if it has one.
    fn end(&mut self, slot: u32, report: Option<(Place, WorkId)>) {
        match self.state(slot) {
            State::Failed { .. } => self.release(slot),
            State::Ready { .. } | State::Open { .. } => {
                if let State::Open { handle, .. } = self.state(slot) {
                    self.directory.remove(handle.0);
                }
                self.set(slot, State::Ending { report });
                self.ask(Request::End { slot });
            }
            State::Free | State::Asked { .. } | State::Ending { .. } => {}
        }
    }

    fn release(&mut self, slot: u32) {
        self.set(slot, State::Free);
        self.free.push(slot);
    }

    /// The slot of an open region of this owner.
    fn find(&self, owner: Place, handle: Handle) -> Option<(u32, Purpose, u32)> {
        let slot = self.directory.find(handle.0)?;
        match self.state(slot) {
            State::Open {
                purpose,
                handle: its,
                messages,
            } if purpose.owner == owner && its == handle => Some((slot, purpose, messages)),
            _ => None,
        }
    }

    /// Ends an exposure of an owner that has sent `messages` by now. Also when the connection is
    /// over: a region is there for others too, until it is ended.
    pub(crate) fn retire(
        &mut self,
        owner: Place,
        handle: Handle,
        messages: u32,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        let (slot, purpose, before) = self.find(owner, handle).ok_or(Refused::Broken)?;
        if messages == before {
            self.directory.remove(handle.0);
            self.make_ready(slot, purpose, handle);
            self.coming.push(slot);
            return Ok(Posted::Done);
        }
        self.end(slot, Some((owner, id)));
        Ok(Posted::Pending)
    }

    /// The peer has taken a region away; what is left of it goes too.
    pub(crate) fn retired_by_peer(&mut self, owner: Place, handle: Handle) {
        if let Some((slot, ..)) = self.find(owner, handle) {
            self.end(slot, None);
        }
    }

    /// A connection is over: nothing of it stays.
    pub(crate) fn forget(&mut self, owner: Place) {
        let count = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        for slot in 0..count {
            match self.state(slot) {
                State::Asked { purpose, .. } if purpose.owner == owner => self.set(
                    slot,
                    State::Asked {
                        purpose,
                        wanted: false,
                    },
                ),
                State::Ready { purpose, .. }
                | State::Failed { purpose, .. }
                | State::Open { purpose, .. }
                    if purpose.owner == owner =>
                {
                    self.coming.retain(|&other| other != slot);
                    self.end(slot, None);
                }
                State::Ending {
                    report: Some((whose, _)),
                } if whose == owner => self.set(slot, State::Ending { report: None }),
                _ => {}
            }
        }
    }

    #[inline]
    pub(crate) fn has_answer(&self) -> bool {
        !self.answers.is_empty()
    }

    /// The registrar's next answer, and what it means.
    pub(crate) fn next(&mut self) -> Option<Told> {
        let answer = self.answers.pop().ok()?;
        let told = match (self.state(answer.slot()), answer) {
            (State::Asked { purpose, wanted }, Answer::Registered { slot, handle }) => {
                self.make_ready(slot, purpose, handle);
                if wanted {
                    self.refresh(purpose.owner);
                    Told::Room(purpose.owner)
                } else {
                    self.coming.retain(|&other| other != slot);
                    self.end(slot, None);
                    Told::Nothing
                }
            }
            (State::Asked { purpose, wanted }, Answer::Failed { slot, errno }) => {
                let why = refused(errno);
                self.set(slot, State::Failed { purpose, why });
                if wanted {
                    Told::Room(purpose.owner)
                } else {
                    self.coming.retain(|&other| other != slot);
                    self.release(slot);
                    Told::Nothing
                }
            }
            (State::Ending { report }, Answer::Ended { slot }) => {
                self.release(slot);
                // Who hears of a retirement looks for those that wait, too.
                let room = self.seeker.take().map_or(Told::Nothing, Told::Room);
                report.map_or(room, |(owner, id)| Told::Retired(owner, id))
            }
            (state, answer) => {
                debug_assert!(false, "{answer:?} in {state:?}");
                Told::Nothing
            }
        };
        Some(told)
    }

    /// Once a turn.
    #[inline]
    pub(crate) fn ring(&mut self) {
        self.pass_turn();
        self.wake();
    }

    /// Wakes the registrar if it was asked something.
    #[inline]
    pub(crate) fn wake(&mut self) {
        if std::mem::take(&mut self.asked) {
            self.registrar.unpark();
        }
    }
}

impl Drop for Regions {
    /// The registrar ends what is left once it sees that nobody asks any more.
    fn drop(&mut self) {
        // The ring itself goes only after this call: the registrar looks again by itself soon.
        self.registrar.unpark();
    }
}

#[cfg(test)]
mod tests;
