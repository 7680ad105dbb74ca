//! What control has to know, told when there is room for it.
//!
//! News stays where it arose until control's ring has room: as a flag on the seat, in the upper
//! layer, in the engine, or as a departed connection that keeps its seat. So a full ring loses
//! nothing, keeps nobody waiting and needs no memory: there is at most one of each per seat.

use crate::counters::count;
use crate::ring::Notice;
use crate::seats::{Occupant, State};
use crate::snapshot::{Row, Snapshot};
use crate::turn::{Lcore, Mode};
use rpcrdma_fabric::Port;
use rpcrdma_upper::Upper;

/// Rows of a snapshot gathered in one turn.
const ROWS: usize = 32;
/// Notices sent in one turn.
const NOTICES: usize = 32;

/// A snapshot being taken.
pub(crate) struct Survey<U: Upper> {
    snapshot: Box<Snapshot<U>>,
    /// The place to go on from.
    place: usize,
}

impl<U: Upper> Survey<U> {
    pub(crate) fn new(mut snapshot: Box<Snapshot<U>>) -> Survey<U> {
        snapshot.connections.clear();
        snapshot.left_out = 0;
        Survey { snapshot, place: 0 }
    }
}

impl<U: Upper> Occupant<U> {
    /// True when there is something to tell control.
    #[inline]
    pub(crate) fn owes(&self) -> bool {
        self.owes_adopted || self.owes_property || self.session.upper.has_notice()
    }
}

impl<P: Port, U: Upper> Lcore<P, U> {
    /// Tells control what there is to tell, as far as there is room.
    #[inline]
    pub(crate) fn report(&mut self) -> usize {
        let mut told = 0;
        if !self.owing.is_empty() || self.mode == Mode::Draining {
            told += self.tell_news();
        }
        if self.survey.is_some() {
            told += self.go_on_with_survey();
        }
        self.link.ring();
        told
    }

    #[cold]
    fn tell_news(&mut self) -> usize {
        let mut told = 0;
        while told < NOTICES
            && let Some(place) = self.owing.peek()
        {
            if !self.link.has_room() {
                count(&mut self.counts.notices_deferred);
                return told;
            }
            match self.news_of(place) {
                Some(notice) => {
                    self.link.send(notice);
                    told += 1;
                }
                None => {
                    self.owing.pop();
                }
            }
        }
        if self.mode == Mode::Draining && self.seats.all_free() && self.link.has_room() {
            self.link.send(Notice::Drained);
            self.mode = Mode::Drained;
            told += 1;
        }
        told
    }

    /// The next thing to tell about a place.
    fn news_of(&mut self, place: usize) -> Option<Notice<U>> {
        let (seat, state) = self.seats.at(place)?;
        let occupant = match state {
            State::Free => return None,
            State::Taken(occupant) => occupant,
            State::Leaving(_) => {
                let departure = self.seats.clear(place)?;
                return Some(Notice::Closed {
                    seat,
                    number: departure.number,
                    ending: departure.ending,
                    session: departure.session,
                });
            }
        };
        let number = occupant.number;
        if std::mem::take(&mut occupant.owes_adopted) {
            return Some(Notice::Adopted { seat, number });
        }
        if std::mem::take(&mut occupant.owes_property)
            && let Some(event) = occupant.session.connection.take_property_event()
        {
            return Some(Notice::Property {
                seat,
                number,
                event,
            });
        }
        let notice = occupant.session.upper.take_notice()?;
        Some(Notice::Upper {
            seat,
            number,
            notice,
        })
    }

    /// Adds some rows to the snapshot; sends it when it is whole and there is room.
    #[cold]
    fn go_on_with_survey(&mut self) -> usize {
        let Some(survey) = &mut self.survey else {
            return 0;
        };
        let end = self.seats.len().min(survey.place + ROWS);
        let looked = end - survey.place;
        for place in survey.place..end {
            if let Some((seat, State::Taken(occupant))) = self.seats.at(place) {
                occupant.session.upper.count(&mut self.sums);
                let row = Row::new(occupant.number, seat, &occupant.session.connection);
                survey.snapshot.add(row);
            }
        }
        survey.place = end;
        if end < self.seats.len() || !self.link.has_room() {
            return looked;
        }
        if let Some(Survey { mut snapshot, .. }) = self.survey.take() {
            snapshot.counters.clone_from(&self.bench.counters);
            snapshot.turns = self.counts;
            snapshot.port = self.bench.port.counts();
            snapshot.port_rejects = self.bench.port.rejects();
            snapshot.upper.clone_from(&self.sums);
            snapshot.memory = self.bench.regions.usage();
            snapshot.refusals.clone_from(&self.bench.refusals);
            self.link.send(Notice::Snapshot(snapshot));
        }
        looked + 1
    }
}
