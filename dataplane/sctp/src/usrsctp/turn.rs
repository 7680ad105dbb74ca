//! A turn: datagrams in, time, events, datagrams out.

use super::desk::Path;
use super::endpoint::{Usrsctp, segment_of};
use crate::checksum::{self, HEADER};
use crate::llp::{Event, Reason};
use crate::notice::{Notice, USRSCTP};
use crate::roster::{State, Token};
use crate::settings::milliseconds;
use crate::udp::Address;
use std::time::{Duration, Instant};

/// Batches of one turn: a flood must not keep an lcore from its other work.
const BATCHES: usize = 4;

/// Every peer's route is looked at once in this time.
const SURVEY: Duration = Duration::from_secs(5);

/// The type of a COOKIE-ECHO chunk (RFC 9260 section 3.2).
const COOKIE_ECHO: u8 = 10;

impl Usrsctp {
    /// See [`crate::Llp::turn`].
    pub(super) fn work(&mut self, now: Instant, events: &mut impl FnMut(Event<'_>)) {
        self.turned = Some(now);
        self.stack.desk().flush();
        for _ in 0..BATCHES {
            self.read_batch(now, events);
            if self.inbox.is_short() {
                break;
            }
        }
        self.pass_time(now);
        self.drain(events);
        self.roster.rise(events);
        self.roster.settle(events);
        self.carry_out();
        self.stack.desk().flush();
    }

    fn read_batch(&mut self, now: Instant, events: &mut impl FnMut(Event<'_>)) {
        let count = self.inbox.fill(&mut self.stack.desk().carriage, now);
        self.counts.packets_in += count as u64;
        for index in 0..count {
            self.take(index);
            self.drain(events);
            self.roster.rise(events);
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
        let source = packet.first_chunk();
        let token = self.token_of(&from, source.map_or(0, |port| u16::from_be_bytes(*port)));
        match self.stack.peek().paths.get(&token) {
            // Two addresses with one hash: the first has it.
            Some(path) if path.address != from => return,
            Some(path) => {
                let place = path.place;
                // What it acknowledges makes room.
                if let Some(place) = self.roster.at(place) {
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

    fn input(&mut self, token: Token, from: Address, index: usize) {
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
            self.survey(now);
        }
    }

    /// Looks, now and then, whether the way to one of the peers has become narrower. What is out
    /// already, or is sent before it is known, IP fragments.
    fn survey(&mut self, now: Instant) {
        let (index, due) = self.survey;
        if due.is_some_and(|due| now < due) {
            return;
        }
        let next = if index + 1 < self.settings.associations {
            index + 1
        } else {
            0
        };
        let interval = SURVEY / self.settings.associations.max(1);
        self.survey = (next, now.checked_add(interval));
        let Some(place) = self.roster.at(index).filter(|it| it.state == State::Up) else {
            return;
        };
        let (peer, number, segment) = (place.peer, place.number, place.segment);
        let packet_bytes = self.packet_bytes_to(peer);
        let narrower = segment_of(packet_bytes);
        if narrower < segment
            && self.stack.narrow(number, packet_bytes).is_ok()
            && let Some(place) = self.roster.at(index)
        {
            place.segment = narrower;
        }
    }

    /// Looks through what the library put on the desk.
    fn drain(&mut self, events: &mut impl FnMut(Event<'_>)) {
        while let Some(parcel) = self.stack.desk().parcels.pop_front() {
            let index = self.place_of(parcel.token);
            match (parcel.label, index) {
                (None, _) => {
                    let notice = USRSCTP.parse(parcel.octets());
                    self.heed(parcel.token, index, notice, events);
                }
                (Some(label), Some(index)) => {
                    self.roster.deliver(index, label, parcel.octets(), events);
                }
                (Some(_), None) => {}
            }
            self.carry_out();
        }
    }

    fn place_of(&self, token: Token) -> Option<u32> {
        self.stack.peek().paths.get(&token).map(|path| path.place)
    }

    fn heed(
        &mut self,
        token: Token,
        index: Option<u32>,
        notice: Notice,
        events: &mut impl FnMut(Event<'_>),
    ) {
        match (notice, index) {
            (
                Notice::Up {
                    number,
                    inbound,
                    outbound,
                },
                _,
            ) => {
                let streams = (inbound, outbound);
                self.begin(token, index, number, streams, events);
            }
            (Notice::Dry, Some(index)) => self.dry(index, events),
            (_, Some(index)) => self.roster.heed(index, notice, events),
            (_, None) => {}
        }
    }

    /// All has been acknowledged: whoever awaited it is told, once.
    fn dry(&mut self, index: u32, events: &mut impl FnMut(Event<'_>)) {
        let place = self.roster.at(index);
        if let Some(place) = place.filter(|place| place.awaits_dry) {
            place.awaits_dry = false;
            let number = place.number;
            // Fails where the association is over, which will be told of.
            let _ = self.stack.tell_dry(number, false);
            self.roster.heed(index, Notice::Dry, events);
        }
    }

    /// An association is there: one that was asked for, or that a peer asked for.
    fn begin(
        &mut self,
        token: Token,
        mut index: Option<u32>,
        number: u32,
        streams: (u16, u16),
        events: &mut impl FnMut(Event<'_>),
    ) {
        if let Some(old) = index
            && let Some(place) = self.roster.at(old)
            && matches!(place.state, State::Over(_))
        {
            self.roster.finish(old, Reason::Aborted, events);
            self.carry_out();
            index = None;
        }
        if let Some(index) = index.or_else(|| self.admit(token)) {
            self.roster.begin(index, number, streams);
        } else {
            self.counts.turned_away += 1;
            self.roster.aborts.push((token, Some(number)));
        }
    }

    /// Finds a place for the association of the peer whose packet is being worked off.
    fn admit(&mut self, token: Token) -> Option<u32> {
        let (visitor, address) = self.stack.peek().visitor?;
        if visitor != token {
            return None;
        }
        let segment = self.segment();
        let place = self.roster.take(token, address.to_socket_addr())?;
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roster::Label;
    use crate::usrsctp::parcel::Parcel;
    use crate::{AssociationId, Llp, Settings, Usrsctp};
    use usrsctp_sys::types as sys;

    const WHOLE: Label = Label {
        stream: 3,
        ppid: 16,
        unordered: true,
        complete: true,
    };
    const MESSAGE: Option<Label> = Some(WHOLE);
    const NOTIFICATION: Option<Label> = None;

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

    fn put(end: &mut Usrsctp, id: AssociationId, label: Option<Label>, octets: &[u8]) {
        let token = end.roster.at(id.place).expect("there").token;
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
        end.roster.rise(&mut note);
        end.roster.settle(&mut note);
        end.carry_out();
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
        assert!(end.roster.is_empty());
    }

    #[test]
    fn part_of_a_message_is_a_breach() {
        let Some((mut end, id)) = asking() else {
            return;
        };
        put(&mut end, id, NOTIFICATION, &up());
        assert_eq!(told(&mut end), ["up None"]);
        let part = Some(Label {
            complete: false,
            ..WHOLE
        });
        put(&mut end, id, part, &[1, 2, 3]);
        put(&mut end, id, MESSAGE, &[4]);
        assert_eq!(told(&mut end), ["down Breach"]);
    }

    /// A route whose MTU shrinks lowers the longest segment, of that association and at once.
    #[test]
    fn a_route_that_narrows_is_noticed() {
        let here = ([127, 0, 0, 1], 0).into();
        let mut ends = match (
            Usrsctp::listen(here, Settings::default()),
            Usrsctp::connector(here, Settings::default()),
        ) {
            (Ok(server), Ok(client)) => [server, client],
            (Err(error), _) | (_, Err(error)) => {
                println!("SKIPPED: {error}");
                return;
            }
        };
        let mut now = Instant::now();
        let to = ends[0].local_address();
        let id = ends[1].associate(to, now).expect("asked for");
        let mut wide = true;
        let mut arrived = 0;
        for _ in 0..100_000 {
            now += Duration::from_millis(1);
            for end in &mut ends {
                end.work(now, &mut |event| {
                    if let Event::Message { octets, .. } = event {
                        arrived = octets.len();
                    }
                });
            }
            let client = &mut ends[1];
            let up = client.roster.peek(id).map(|place| place.state);
            if up == Some(State::Up) && wide {
                assert!(client.max_segment(id) > 2_000);
                client.route = |_, _, _| 1_500;
                wide = false;
            }
            if client.max_segment(id) == 1_444 {
                break;
            }
        }
        assert_eq!(ends[1].max_segment(id), 1_444);
        assert_eq!(ends[1].send(id, 0, 16, 1_444, |_| {}), Ok(()));
        for _ in 0..1_000 {
            now += Duration::from_millis(1);
            for end in &mut ends {
                end.work(now, &mut |event| {
                    if let Event::Message { octets, .. } = event {
                        arrived = octets.len();
                    }
                });
            }
        }
        assert_eq!(arrived, 1_444);
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
