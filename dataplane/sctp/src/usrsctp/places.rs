//! The associations of an endpoint, each in a place.

use super::parcel::{Parcel, PathToken};
use crate::llp::{AssociationId, Event, Reason};
use std::net::SocketAddr;

/// Messages that may come before an association is known to be up. They come in the packet of
/// the COOKIE-ECHO, or right after it.
const HELD: usize = 512;

/// Where an association is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
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
pub(super) struct Place {
    pub(super) id: AssociationId,
    pub(super) state: State,
    pub(super) token: PathToken,
    pub(super) peer: SocketAddr,
    /// What the library calls it; 0 before it is up.
    pub(super) number: u32,
    pub(super) arrived: bool,
    pub(super) inbound: u16,
    pub(super) outbound: u16,
    pub(super) indication: Option<u32>,
    /// Octets of the longest chunk's user data.
    pub(super) segment: u32,
    /// A chunk was refused for want of room.
    pub(super) blocked: bool,
    /// A packet has come since, and may have acknowledged something.
    pub(super) eased: bool,
    /// Messages that came too early.
    pub(super) held: Vec<Parcel>,
}

impl Place {
    /// The first that is told of an association.
    pub(super) fn up(&self) -> Event<'static> {
        Event::Up {
            association: self.id,
            peer: self.peer,
            arrived: self.arrived,
            inbound: self.inbound,
            outbound: self.outbound,
            indication: self.indication,
        }
    }

    /// Keeps a message that came too early; `false` when it is one too many.
    pub(super) fn hold(&mut self, parcel: Parcel) -> bool {
        let room = self.held.len() < HELD;
        if room {
            self.held.push(parcel);
        }
        room
    }
}

/// All places.
#[derive(Debug)]
pub(super) struct Places {
    all: Box<[Place]>,
    free: Vec<u32>,
    /// Places that are rising.
    pub(super) rising: Vec<u32>,
    /// Places that are over or blocked: to be looked at by the end of a turn.
    pub(super) noted: Vec<u32>,
}

impl Places {
    pub(super) fn new(count: u32) -> Places {
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
            held: Vec::new(),
        };
        Places {
            all: (0..count).map(place).collect(),
            free: (0..count).rev().collect(),
            rising: Vec::with_capacity(count as usize),
            noted: Vec::with_capacity(count as usize),
        }
    }

    /// Any association that there is.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.all.len()
    }

    /// The associations that there are.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Place> {
        self.all.iter().filter(|place| place.state != State::Free)
    }

    /// A place for a new association.
    pub(super) fn take(&mut self, token: PathToken, peer: SocketAddr) -> Option<&mut Place> {
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
        Some(place)
    }

    /// Gives a place back.
    pub(super) fn free(&mut self, index: u32) {
        if let Some(place) = self.at(index) {
            place.state = State::Free;
            place.held.clear();
            self.free.push(index);
        }
    }

    /// The association in a place, if there is one.
    pub(super) fn at(&mut self, index: u32) -> Option<&mut Place> {
        let place = self.all.get_mut(index as usize)?;
        (place.state != State::Free).then_some(place)
    }

    /// An association, if it still is.
    #[inline]
    pub(super) fn of(&mut self, id: AssociationId) -> Option<&mut Place> {
        self.at(id.place).filter(|place| place.id == id)
    }

    /// An association, to look at.
    #[inline]
    pub(super) fn peek(&self, id: AssociationId) -> Option<&Place> {
        let place = self.all.get(id.place as usize)?;
        (place.state != State::Free && place.id == id).then_some(place)
    }

    /// Has a place looked at by the end of the turn.
    pub(super) fn note(&mut self, index: u32) {
        if !self.noted.contains(&index) {
            self.noted.push(index);
        }
    }
}
