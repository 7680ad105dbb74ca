//! Seats: the fixed places of an lcore's connections.
//!
//! Control chooses the seat (see [`crate::Line`]) and with it a [`SeatId`], which is a place and
//! a generation. The same id is the fabric's token, the key of the connection's sockets and the
//! address of control's orders: each of these can be stale by the time it is looked at, and
//! each is told from a current one by one comparison.

use crate::regions::Claims;
use crate::ring::{Ending, Session};
use rpcrdma_engine::CloseReason;
use rpcrdma_fabric::{QueuePair, Token};
use rpcrdma_upper::Upper;
use rpcrdma_wire::private_data::PrivateData;

/// Bits of a seat's place.
const PLACE_BITS: u32 = 20;
/// Most seats of one lcore.
pub const MAX_SEATS: usize = 1 << PLACE_BITS;

/// A seat, and which of its successive occupants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SeatId(u32);

impl SeatId {
    /// Place `place`, below [`MAX_SEATS`]; only the lower 12 bits of the generation count.
    pub(crate) fn new(place: u32, generation: u32) -> SeatId {
        debug_assert!((place as usize) < MAX_SEATS, "place {place}");
        SeatId(generation << PLACE_BITS | place)
    }

    /// The same place for its next occupant.
    pub(crate) fn next(self) -> SeatId {
        SeatId(self.0.wrapping_add(1 << PLACE_BITS))
    }

    #[inline]
    pub(crate) fn from_raw(raw: u32) -> SeatId {
        SeatId(raw)
    }

    #[inline]
    pub(crate) fn raw(self) -> u32 {
        self.0
    }

    /// Below the lcore's number of seats: good as an index.
    #[inline]
    #[must_use]
    pub fn place(self) -> usize {
        (self.0 as usize) & (MAX_SEATS - 1)
    }

    #[inline]
    pub(crate) fn token(self) -> Token {
        Token(self.0)
    }
}

/// What control calls a connection, for people: in snapshots and refused headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionNumber(pub u64);

/// One place.
pub(crate) struct Seat<U: Upper> {
    /// The id of the present or last occupant.
    id: SeatId,
    pub(crate) state: State<U>,
}

impl<U: Upper> Seat<U> {
    /// The connection on it.
    #[inline]
    pub(crate) fn occupant(&self) -> Option<&Occupant<U>> {
        match &self.state {
            State::Taken(occupant) => Some(occupant),
            _ => None,
        }
    }
}

/// Who is on a seat.
pub(crate) enum State<U: Upper> {
    /// Nobody.
    Free,
    /// A connection with a queue pair.
    Taken(Occupant<U>),
    /// One that is over, which control has not been told yet.
    Leaving(Departure<U>),
}

/// A connection on its seat.
pub(crate) struct Occupant<U: Upper> {
    pub(crate) number: ConnectionNumber,
    pub(crate) qp: QueuePair,
    pub(crate) claims: Claims,
    /// What the peer's private data said, as far as it is known.
    pub(crate) peer: Option<PrivateData>,
    pub(crate) session: Box<Session<U>>,
    /// Control has not been told yet that its receives are posted.
    pub(crate) owes_adopted: bool,
    /// The engine has a property event for control.
    pub(crate) owes_property: bool,
    /// The upper layer has sockets.
    pub(crate) watching: bool,
    /// Why the connection is being torn down, once it is.
    pub(crate) lost: Option<CloseReason>,
}

impl<U: Upper> Occupant<U> {
    pub(crate) fn new(
        number: ConnectionNumber,
        qp: QueuePair,
        peer: Option<PrivateData>,
        session: Box<Session<U>>,
    ) -> Occupant<U> {
        Occupant {
            number,
            qp,
            claims: Claims::of(session.connection.side()),
            peer,
            session,
            owes_adopted: false,
            owes_property: false,
            watching: false,
            lost: None,
        }
    }
}

/// What control is to be told about a connection that is over.
pub(crate) struct Departure<U: Upper> {
    pub(crate) number: ConnectionNumber,
    pub(crate) session: Box<Session<U>>,
    pub(crate) ending: Ending,
}

/// All seats of an lcore.
pub(crate) struct Seats<U: Upper> {
    seats: Box<[Seat<U>]>,
    taken: usize,
    leaving: usize,
}

impl<U: Upper> Seats<U> {
    /// `seats` free seats.
    pub(crate) fn new(seats: usize) -> Seats<U> {
        let seat = |place| Seat {
            id: SeatId::from_raw(place),
            state: State::Free,
        };
        let places = u32::try_from(seats.min(MAX_SEATS)).unwrap_or(0);
        Seats {
            seats: (0..places).map(seat).collect(),
            taken: 0,
            leaving: 0,
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.seats.len()
    }

    /// True when no connection is left, and control has been told of each.
    pub(crate) fn all_free(&self) -> bool {
        self.taken == 0 && self.leaving == 0
    }

    /// The connection with this very id, if it is still there.
    #[inline]
    pub(crate) fn occupant(&mut self, id: SeatId) -> Option<&mut Occupant<U>> {
        match self.seats.get_mut(id.place()) {
            Some(Seat {
                id: current,
                state: State::Taken(occupant),
            }) if *current == id => Some(occupant),
            _ => None,
        }
    }

    /// How many have a connection.
    #[inline]
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    /// The place that an id names, whoever is there.
    #[inline]
    pub(crate) fn at_place(&self, id: SeatId) -> Option<&Seat<U>> {
        self.seats.get(id.place())
    }

    /// The id of the connection on a place, if there is one.
    #[inline]
    pub(crate) fn id_at(&self, place: usize) -> Option<SeatId> {
        match self.seats.get(place) {
            Some(Seat {
                id,
                state: State::Taken(_),
            }) => Some(*id),
            _ => None,
        }
    }

    /// The place itself, with the id of its present or last occupant.
    pub(crate) fn at(&mut self, place: usize) -> Option<(SeatId, &mut State<U>)> {
        let seat = self.seats.get_mut(place)?;
        Some((seat.id, &mut seat.state))
    }

    /// True when nobody is on the seat that `id` names.
    pub(crate) fn is_free(&self, id: SeatId) -> bool {
        let seat = self.seats.get(id.place());
        seat.is_some_and(|seat| matches!(seat.state, State::Free))
    }

    /// Puts a connection on a free seat.
    pub(crate) fn take(&mut self, id: SeatId, occupant: Occupant<U>) {
        debug_assert!(self.is_free(id), "{id:?} is taken");
        if let Some(seat) = self.seats.get_mut(id.place()) {
            *seat = Seat {
                id,
                state: State::Taken(occupant),
            };
            self.taken += 1;
        }
    }

    /// Puts the news of a connection that never began on a free seat.
    pub(crate) fn decline(&mut self, id: SeatId, departure: Departure<U>) {
        debug_assert!(self.is_free(id), "{id:?} is taken");
        if let Some(seat) = self.seats.get_mut(id.place()) {
            *seat = Seat {
                id,
                state: State::Leaving(departure),
            };
            self.leaving += 1;
        }
    }

    /// The connection is over: from now on its id finds nothing. Gives its queue pair.
    pub(crate) fn end(&mut self, id: SeatId) -> Option<(QueuePair, bool)> {
        let seat = self.seats.get_mut(id.place())?;
        if seat.id != id {
            return None;
        }
        match std::mem::replace(&mut seat.state, State::Free) {
            State::Taken(occupant) => {
                seat.state = State::Leaving(Departure {
                    number: occupant.number,
                    session: occupant.session,
                    ending: Ending::Closed(occupant.lost.unwrap_or(CloseReason::Peer)),
                });
                self.taken -= 1;
                self.leaving += 1;
                Some((occupant.qp, occupant.watching))
            }
            other => {
                seat.state = other;
                None
            }
        }
    }

    /// Takes the news of a departure, which frees the seat.
    pub(crate) fn clear(&mut self, place: usize) -> Option<Departure<U>> {
        let seat = self.seats.get_mut(place)?;
        match std::mem::replace(&mut seat.state, State::Free) {
            State::Leaving(departure) => {
                self.leaving -= 1;
                Some(departure)
            }
            other => {
                seat.state = other;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_place_and_generation_apart() {
        let last = u32::try_from(MAX_SEATS - 1).expect("fits");
        let id = SeatId::new(last, 4095);
        assert_eq!(id.place(), MAX_SEATS - 1);
        assert_eq!(
            id.next(),
            SeatId::new(last, 0),
            "generations wrap, places stay"
        );
        assert_ne!(id.next(), id);
        assert_eq!(SeatId::from_raw(id.token().0), id);
    }
}
