//! The associations of an endpoint, each in a place, and what is told of them.
//!
//! Everything that both kinds of SCTP have in common: the order of events, what is held back,
//! what an association may not do. It calls nothing; what is to be done about an association is
//! left in [`Roster::aborts`] and [`Roster::gone`] for the endpoint to carry out.

use crate::llp::{AssociationId, Event, Reason, Refused};
use crate::notice::Notice;
use std::net::SocketAddr;

/// What the layer below knows the peer of an association by.
pub(crate) type Token = u64;

/// Messages that may come before an association is known to be up. They come in the packet of
/// the COOKIE-ECHO, or right after it.
const HELD: usize = 512;

/// Where an association is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The place is free.
    Free,
    /// INIT is out.
    Asking,
    /// It is up, and the peer's adaptation is being waited for until the packet has been worked
    /// off.
    Rising,
    /// Open for sending.
    Up,
    /// Being shut down, by either end.
    Closing,
    /// Over; its end is to be told of.
    Over(Reason),
}

/// One association.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) id: AssociationId,
    pub(crate) state: State,
    pub(crate) token: Token,
    pub(crate) peer: SocketAddr,
    /// What the library calls it; 0 before it is up.
    pub(crate) number: u32,
    pub(crate) arrived: bool,
    pub(crate) inbound: u16,
    pub(crate) outbound: u16,
    pub(crate) indication: Option<u32>,
    /// Octets of the longest chunk's user data.
    pub(crate) segment: u32,
    /// A chunk was refused for want of room.
    pub(crate) blocked: bool,
    /// A packet has come since, and may have acknowledged something.
    pub(crate) eased: bool,
    /// Somebody waits for [`Event::Dry`].
    pub(crate) awaits_dry: bool,
    /// Messages that came too early.
    held: Vec<(Label, Box<[u8]>)>,
}

impl Place {
    /// The first that is told of an association.
    pub(crate) fn up(&self) -> Event<'static> {
        Event::Up {
            association: self.id,
            peer: self.peer,
            arrived: self.arrived,
            inbound: self.inbound,
            outbound: self.outbound,
            indication: self.indication,
        }
    }

    /// Whether a chunk may be tried.
    #[inline]
    pub(crate) fn admits(&self, stream: u16, len: usize) -> Result<(), Refused> {
        if self.state != State::Up {
            return Err(Refused::Gone);
        }
        if stream >= self.outbound {
            return Err(Refused::Stream);
        }
        if len == 0 || len > self.segment as usize {
            return Err(Refused::Length);
        }
        if self.blocked {
            return Err(Refused::Full);
        }
        Ok(())
    }
}

/// What comes with a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label {
    pub(crate) stream: u16,
    /// Host order.
    pub(crate) ppid: u32,
    pub(crate) unordered: bool,
    /// All of a message, or its end.
    pub(crate) complete: bool,
}

impl Label {
    fn event(self, association: AssociationId, octets: &[u8]) -> Event<'_> {
        Event::Message {
            association,
            stream: self.stream,
            ppid: self.ppid,
            unordered: self.unordered,
            octets,
        }
    }
}

/// All places.
#[derive(Debug)]
pub(crate) struct Roster {
    all: Box<[Place]>,
    free: Vec<u32>,
    /// Roster that are rising.
    rising: Vec<u32>,
    /// Roster that are over or blocked: to be looked at by the end of a turn.
    noted: Vec<u32>,
    /// Associations to be aborted: the peer, and the number if it is known.
    pub(crate) aborts: Vec<(Token, Option<u32>)>,
    /// Peers whose association is over.
    pub(crate) gone: Vec<Token>,
}

impl Roster {
    pub(crate) fn new(count: u32) -> Roster {
        let nowhere: SocketAddr = ([0, 0, 0, 0], 0).into();
        let place = |index| Place {
            id: AssociationId {
                place: index,
                generation: 0,
            },
            state: State::Free,
            token: 0,
            peer: nowhere,
            number: 0,
            arrived: false,
            inbound: 0,
            outbound: 0,
            indication: None,
            segment: 0,
            blocked: false,
            eased: false,
            awaits_dry: false,
            held: Vec::new(),
        };
        Roster {
            all: (0..count).map(place).collect(),
            free: (0..count).rev().collect(),
            rising: Vec::with_capacity(count as usize),
            noted: Vec::with_capacity(count as usize),
            aborts: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Any association that there is.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.all.len()
    }

    /// The associations that there are.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Place> {
        self.all.iter().filter(|place| place.state != State::Free)
    }

    /// A place for a new association.
    pub(crate) fn take(&mut self, token: Token, peer: SocketAddr) -> Option<&mut Place> {
        let index = self.free.pop()?;
        let place = self.all.get_mut(index as usize)?;
        place.id.generation = place.id.generation.wrapping_add(1);
        place.state = State::Asking;
        place.token = token;
        place.peer = peer;
        place.number = 0;
        place.arrived = false;
        place.indication = None;
        place.blocked = false;
        place.eased = false;
        place.awaits_dry = false;
        Some(place)
    }

    /// Gives a place back, with nothing told.
    pub(crate) fn free(&mut self, index: u32) {
        if let Some(place) = self.at(index) {
            place.state = State::Free;
            place.held.clear();
            let token = place.token;
            self.free.push(index);
            self.gone.push(token);
        }
    }

    /// The association in a place, if there is one.
    pub(crate) fn at(&mut self, index: u32) -> Option<&mut Place> {
        let place = self.all.get_mut(index as usize)?;
        (place.state != State::Free).then_some(place)
    }

    /// An association, if it still is.
    #[inline]
    pub(crate) fn of(&mut self, id: AssociationId) -> Option<&mut Place> {
        self.at(id.place).filter(|place| place.id == id)
    }

    /// An association, to look at.
    #[inline]
    pub(crate) fn peek(&self, id: AssociationId) -> Option<&Place> {
        let place = self.all.get(id.place as usize)?;
        (place.state != State::Free && place.id == id).then_some(place)
    }

    /// Has a place looked at by the end of the turn.
    fn note(&mut self, index: u32) {
        if !self.noted.contains(&index) {
            self.noted.push(index);
        }
    }

    /// Ends or room are to be told of.
    pub(crate) fn is_unsettled(&self) -> bool {
        !self.noted.is_empty()
    }

    /// Ends are to be told of.
    pub(crate) fn has_ended(&self) -> bool {
        let state = |index: &u32| self.all.get(*index as usize).map(|place| place.state);
        let is_over = |index| matches!(state(index), Some(State::Over(_)));
        self.noted.iter().any(is_over)
    }

    /// There is room again, for all.
    pub(crate) fn ease(&mut self) {
        for index in &self.noted {
            if let Some(place) = self.all.get_mut(*index as usize) {
                place.eased = true;
            }
        }
    }

    /// A chunk found no room.
    pub(crate) fn block(&mut self, index: u32) {
        if let Some(place) = self.at(index) {
            place.blocked = true;
            place.eased = false;
            self.note(index);
        }
    }

    /// Has an association aborted; its end is told of by the end of the turn.
    pub(crate) fn cut(&mut self, index: u32, reason: Reason) {
        let Some(place) = self.at(index) else {
            return;
        };
        if matches!(place.state, State::Over(_)) {
            return;
        }
        place.state = State::Over(reason);
        place.held.clear();
        let known = (place.number != 0).then_some(place.number);
        let abort = (place.token, known);
        self.aborts.push(abort);
        self.note(index);
    }

    /// An association that was asked for is there.
    pub(crate) fn begin(&mut self, index: u32, number: u32, (inbound, outbound): (u16, u16)) {
        if let Some(place) = self.at(index)
            && place.state == State::Asking
        {
            place.state = State::Rising;
            place.number = number;
            place.inbound = inbound;
            place.outbound = outbound;
            self.rising.push(index);
        }
    }

    /// Takes a message.
    #[inline]
    pub(crate) fn deliver(
        &mut self,
        index: u32,
        label: Label,
        octets: &[u8],
        events: &mut impl FnMut(Event<'_>),
    ) {
        let Some(place) = self.at(index) else {
            return;
        };
        let borne = match place.state {
            State::Up | State::Closing if label.complete => {
                events(label.event(place.id, octets));
                true
            }
            State::Asking | State::Rising if label.complete && place.held.len() < HELD => {
                place.held.push((label, octets.into()));
                true
            }
            State::Over(_) | State::Free => true,
            _ => false,
        };
        if !borne {
            self.cut(index, Reason::Breach);
        }
    }

    /// Takes a notification, other than that the association is there.
    pub(crate) fn heed(&mut self, index: u32, notice: Notice, events: &mut impl FnMut(Event<'_>)) {
        let Some(place) = self.at(index) else {
            return;
        };
        match notice {
            Notice::Adaptation(value) => place.indication = Some(value),
            Notice::Closing if place.state == State::Up => place.state = State::Closing,
            Notice::Dry if place.state == State::Up => events(Event::Dry {
                association: place.id,
            }),
            Notice::Down(reason) => self.finish(index, reason, events),
            Notice::Restarted { number } => {
                place.number = number;
                self.cut(index, Reason::Restarted);
            }
            Notice::Torn => self.cut(index, Reason::Breach),
            _ => {}
        }
    }

    /// Tells of an end, and frees the place.
    pub(crate) fn finish(
        &mut self,
        index: u32,
        reason: Reason,
        events: &mut impl FnMut(Event<'_>),
    ) {
        let Some(place) = self.at(index) else {
            return;
        };
        let reason = match place.state {
            State::Over(ours) => ours,
            State::Asking => Reason::Refused,
            _ => reason,
        };
        let association = place.id;
        self.free(index);
        events(Event::Down {
            association,
            reason,
        });
    }

    /// What brought associations up has been worked off: what there was to know of the peer's
    /// adaptation is known, and what came along is told of after them.
    pub(crate) fn rise(&mut self, events: &mut impl FnMut(Event<'_>)) {
        while let Some(index) = self.rising.pop() {
            if let Some(place) = self.at(index)
                && place.state == State::Rising
            {
                place.state = State::Up;
                let (id, held) = (place.id, std::mem::take(&mut place.held));
                events(place.up());
                for (label, octets) in held {
                    events(label.event(id, &octets));
                }
            }
        }
    }

    /// Tells of what was done here: ends, and room where there was none.
    pub(crate) fn settle(&mut self, events: &mut impl FnMut(Event<'_>)) {
        let mut at = 0;
        while let Some(&index) = self.noted.get(at) {
            if self.is_settled(index, events) {
                self.noted.swap_remove(at);
            } else {
                at += 1;
            }
        }
    }

    fn is_settled(&mut self, index: u32, events: &mut impl FnMut(Event<'_>)) -> bool {
        let Some(place) = self.at(index) else {
            return true;
        };
        match place.state {
            State::Over(reason) => self.finish(index, reason, events),
            State::Up if place.blocked && !place.eased => return false,
            State::Up if place.blocked => {
                place.blocked = false;
                events(Event::Writable {
                    association: place.id,
                });
            }
            _ => {}
        }
        true
    }
}
