//! A turn: datagrams in, time, events, datagrams out.

use super::desk::Path;
use super::endpoint::Usrsctp;
use super::notice::{self, Notice};
use super::parcel::{Parcel, PathToken};
use super::places::State;
use crate::checksum::{self, HEADER};
use crate::llp::{Event, Reason};
use crate::settings::milliseconds;
use crate::udp::Address;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use usrsctp_sys::types::SCTP_ABORT;

/// Batches of one turn: a flood must not keep an lcore from its other work.
const BATCHES: usize = 4;

/// The type of a COOKIE-ECHO chunk (RFC 9260 section 3.2).
const COOKIE_ECHO: u8 = 10;

impl Usrsctp {
    /// See [`crate::Llp::turn`].
    pub(super) fn work(&mut self, now: Instant, events: &mut impl FnMut(Event<'_>)) {
        self.stack.desk().flush();
        for _ in 0..BATCHES {
            self.read_batch(events);
            if self.inbox.is_short() {
                break;
            }
        }
        self.pass_time(now);
        self.drain(events);
        self.settle(events);
        self.stack.desk().flush();
    }

    fn read_batch(&mut self, events: &mut impl FnMut(Event<'_>)) {
        let count = self.inbox.fill(self.stack.peek().socket.as_fd());
        self.counts.packets_in += count as u64;
        for index in 0..count {
            self.take(index);
            self.drain(events);
            self.rise(events);
        }
    }

    /// Takes a datagram of the last batch.
    fn take(&mut self, index: usize) {
        let Some((from, packet)) = self.inbox.datagram(index) else {
            return;
        };
        if !checksum::is_good(packet) {
            self.counts.damaged += 1;
            return;
        }
        let echoes = packet.get(HEADER) == Some(&COOKIE_ECHO);
        let token = self.token_of(&from);
        match self.stack.peek().paths.get(&token) {
            // Two addresses with one hash: the first has it.
            Some(path) if path.address != from => return,
            Some(path) => {
                let place = path.place;
                // What it acknowledges makes room.
                if let Some(place) = self.places.at(place) {
                    place.eased = true;
                }
            }
            None if echoes => {
                let packet_bytes = self.packet_bytes_to(from.to_socket_addr());
                // Where it cannot be set the association has the limit of the one before.
                let _ = self.limit_packets(packet_bytes);
            }
            None => {}
        }
        self.input(token, from, index);
    }

    fn input(&mut self, token: PathToken, from: Address, index: usize) {
        self.stack.desk().visitor = Some((token, from));
        if let Some((_, packet)) = self.inbox.datagram(index) {
            self.stack.input(token, packet);
        }
    }

    fn pass_time(&mut self, now: Instant) {
        let told = *self.told.get_or_insert(now);
        let passed = milliseconds(now.saturating_duration_since(told));
        if passed > 0 {
            self.told = told.checked_add(Duration::from_millis(passed.into()));
            self.stack.elapse(passed);
        }
    }

    /// Looks through what the library put on the desk.
    fn drain(&mut self, events: &mut impl FnMut(Event<'_>)) {
        while let Some(parcel) = self.stack.desk().parcels.pop_front() {
            if parcel.label.notification {
                self.heed(parcel.token, notice::parse(parcel.octets()), events);
            } else {
                self.deliver(parcel, events);
            }
        }
    }

    fn deliver(&mut self, parcel: Parcel, events: &mut impl FnMut(Event<'_>)) {
        let Some(index) = self.place_of(parcel.token) else {
            return;
        };
        let Some(place) = self.places.at(index) else {
            return;
        };
        let borne = match place.state {
            State::Up | State::Closing if parcel.label.complete => {
                events(Event::Message {
                    association: place.id,
                    stream: parcel.label.stream,
                    ppid: parcel.label.ppid,
                    unordered: parcel.label.unordered,
                    octets: parcel.octets(),
                });
                true
            }
            State::Asking | State::Rising if parcel.label.complete => place.hold(parcel),
            State::Over(_) | State::Free => true,
            _ => false,
        };
        if !borne {
            self.cut(index, Reason::Breach);
        }
    }

    fn place_of(&self, token: PathToken) -> Option<u32> {
        self.stack.peek().paths.get(&token).map(|path| path.place)
    }

    fn heed(&mut self, token: PathToken, notice: Notice, events: &mut impl FnMut(Event<'_>)) {
        if let Notice::Up {
            number,
            inbound,
            outbound,
        } = notice
        {
            self.begin(token, number, (inbound, outbound), events);
            return;
        }
        let Some(index) = self.place_of(token) else {
            return;
        };
        let Some(place) = self.places.at(index) else {
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

    /// An association is there: one that was asked for, or that a peer asked for.
    fn begin(
        &mut self,
        token: PathToken,
        number: u32,
        (inbound, outbound): (u16, u16),
        events: &mut impl FnMut(Event<'_>),
    ) {
        let mut index = self.place_of(token);
        if let Some(old) = index
            && let Some(place) = self.places.at(old)
            && matches!(place.state, State::Over(_))
        {
            self.finish(old, Reason::Aborted, events);
            index = None;
        }
        let Some(index) = index.or_else(|| self.admit(token)) else {
            self.counts.turned_away += 1;
            // Fails where the library has given it up already.
            let _ = self.stack.end(number, SCTP_ABORT);
            return;
        };
        if let Some(place) = self.places.at(index)
            && place.state == State::Asking
        {
            place.state = State::Rising;
            place.number = number;
            place.inbound = inbound;
            place.outbound = outbound;
            self.places.rising.push(index);
        }
    }

    /// Finds a place for the association of the peer whose packet is being worked off.
    fn admit(&mut self, token: PathToken) -> Option<u32> {
        let (visitor, address) = self.stack.peek().visitor?;
        if visitor != token {
            return None;
        }
        let segment = self.segment();
        let place = self.places.take(token, address.to_socket_addr())?;
        place.arrived = true;
        place.segment = segment;
        let index = place.id.place;
        let path = Path {
            place: index,
            address,
        };
        self.stack.open_path(token, path);
        Some(index)
    }

    /// Tells of an end, and frees the place.
    fn finish(&mut self, index: u32, reason: Reason, events: &mut impl FnMut(Event<'_>)) {
        let Some(place) = self.places.at(index) else {
            return;
        };
        let reason = match place.state {
            State::Over(ours) => ours,
            State::Asking => Reason::Refused,
            _ => reason,
        };
        let association = place.id;
        self.forget(index);
        events(Event::Down {
            association,
            reason,
        });
    }

    /// The packet that brought associations up has been worked off: what it said of the peer's
    /// adaptation is known, and what it brought along is told of after them.
    fn rise(&mut self, events: &mut impl FnMut(Event<'_>)) {
        while let Some(index) = self.places.rising.pop() {
            let Some(place) = self.places.at(index) else {
                continue;
            };
            if place.state != State::Rising {
                continue;
            }
            place.state = State::Up;
            let held = std::mem::take(&mut place.held);
            events(place.up());
            for parcel in held {
                self.deliver(parcel, events);
            }
        }
    }

    /// Tells of what was done here: ends, and room where there was none.
    fn settle(&mut self, events: &mut impl FnMut(Event<'_>)) {
        let mut at = 0;
        while let Some(&index) = self.places.noted.get(at) {
            if self.is_settled(index, events) {
                self.places.noted.swap_remove(at);
            } else {
                at += 1;
            }
        }
    }

    fn is_settled(&mut self, index: u32, events: &mut impl FnMut(Event<'_>)) -> bool {
        let Some(place) = self.places.at(index) else {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usrsctp::parcel::Label;
    use crate::{AssociationId, Llp, Settings, Usrsctp};
    use usrsctp_sys::types as sys;

    const MESSAGE: Label = Label {
        stream: 3,
        ppid: 16,
        unordered: true,
        notification: false,
        complete: true,
    };
    const NOTIFICATION: Label = Label {
        notification: true,
        ..MESSAGE
    };

    /// An endpoint that asks for an association which will not come.
    fn asking() -> Option<(Usrsctp, AssociationId)> {
        let here = ([127, 0, 0, 1], 0).into();
        let mut end = match Usrsctp::connector(here, Settings::default()) {
            Ok(end) => end,
            Err(error) => {
                println!("SKIPPED: {error}");
                return None;
            }
        };
        let to = end.local_address();
        let id = end.associate(to, Instant::now()).expect("asked for");
        // What it sends to itself stays where it is: only the desk is looked at here.
        Some((end, id))
    }

    fn put(end: &mut Usrsctp, id: AssociationId, label: Label, octets: &[u8]) {
        let token = end.places.at(id.place).expect("there").token;
        let parcel = Parcel::copy_of(octets, token, label);
        end.stack.desk().parcels.push_back(parcel);
    }

    fn words(fields: &[u16]) -> Vec<u8> {
        fields
            .iter()
            .flat_map(|field| field.to_ne_bytes())
            .collect()
    }

    fn up() -> Vec<u8> {
        let mut octets = words(&[sys::SCTP_ASSOC_CHANGE, 0, 20, 0, sys::SCTP_COMM_UP, 0, 5, 5]);
        octets.extend_from_slice(&1_u32.to_ne_bytes());
        octets
    }

    fn adaptation(value: u32) -> Vec<u8> {
        let mut octets = words(&[sys::SCTP_ADAPTATION_INDICATION, 0, 16, 0]);
        octets.extend_from_slice(&value.to_ne_bytes());
        octets.extend_from_slice(&1_u32.to_ne_bytes());
        octets
    }

    fn told(end: &mut Usrsctp) -> Vec<String> {
        let mut told = Vec::new();
        let mut note = |event: Event<'_>| {
            told.push(match event {
                Event::Up { indication, .. } => format!("up {indication:?}"),
                Event::Message { octets, .. } => format!("message {octets:?}"),
                Event::Down { reason, .. } => format!("down {reason:?}"),
                other => format!("{other:?}"),
            });
        };
        end.drain(&mut note);
        end.rise(&mut note);
        end.settle(&mut note);
        told
    }

    /// RFC 5043 section 11.1: no message is looked at before the adaptation is known.
    #[test]
    fn messages_wait_for_the_indication_wherever_they_come() {
        let up_first = [
            (NOTIFICATION, up()),
            (MESSAGE, vec![7]),
            (NOTIFICATION, adaptation(1)),
        ];
        let data_first = [
            (MESSAGE, vec![7]),
            (NOTIFICATION, up()),
            (NOTIFICATION, adaptation(1)),
        ];
        for order in [up_first, data_first] {
            let Some((mut end, id)) = asking() else {
                return;
            };
            for (label, octets) in &order {
                put(&mut end, id, *label, octets);
            }
            assert_eq!(told(&mut end), ["up Some(1)", "message [7]"]);
        }
    }

    #[test]
    fn messages_before_the_association_are_held_up_to_a_number() {
        let Some((mut end, id)) = asking() else {
            return;
        };
        for _ in 0..10_000 {
            put(&mut end, id, MESSAGE, &[7]);
        }
        assert_eq!(told(&mut end), ["down Breach"]);
        assert!(end.places.is_empty());
    }

    #[test]
    fn part_of_a_message_is_a_breach() {
        let Some((mut end, id)) = asking() else {
            return;
        };
        put(&mut end, id, NOTIFICATION, &up());
        assert_eq!(told(&mut end), ["up None"]);
        let part = Label {
            complete: false,
            ..MESSAGE
        };
        put(&mut end, id, part, &[1, 2, 3]);
        put(&mut end, id, MESSAGE, &[4]);
        assert_eq!(told(&mut end), ["down Breach"]);
    }

    #[test]
    fn an_association_that_begins_anew_is_over() {
        let Some((mut end, id)) = asking() else {
            return;
        };
        put(&mut end, id, NOTIFICATION, &up());
        let mut restart = up();
        restart[8..10].copy_from_slice(&sys::SCTP_RESTART.to_ne_bytes());
        put(&mut end, id, NOTIFICATION, &restart);
        assert_eq!(told(&mut end), ["down Restarted"]);
    }
}
