//! One SCTP endpoint of the stand-in.

use super::{Hub, Mailbox, Manner, Packet, lock};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rpcrdma_sctp::{AbortCause, AssociationId, Error, Event, Llp, Reason, Refused};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

#[derive(Debug)]
enum State {
    Free,
    Asked(SocketAddr),
    Up {
        peer: Arc<Mailbox>,
        theirs: AssociationId,
        outbound: u16,
        /// Chunks that the peer has not taken yet.
        out: u32,
        blocked: bool,
        awaits_dry: bool,
    },
}

#[derive(Debug)]
struct Place {
    generation: u32,
    state: State,
}

/// An SCTP endpoint.
#[derive(Debug)]
pub struct Wire {
    hub: Hub,
    mailbox: Arc<Mailbox>,
    manner: Manner,
    places: Vec<Place>,
    random: Option<StdRng>,
    /// Of this side's own doing, to be told in the next turn.
    late: Vec<(AssociationId, Reason)>,
    /// What is being delivered.
    packets: VecDeque<Packet>,
    /// Of the whole network.
    ends: Arc<AtomicUsize>,
    spare: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Wire {
    pub(super) fn new(hub: Hub, mailbox: Arc<Mailbox>, manner: Manner) -> Wire {
        Wire {
            packets: VecDeque::new(),
            ends: hub.ends(),
            spare: hub.spare(),
            hub,
            mailbox,
            manner,
            places: Vec::new(),
            random: manner.seed.map(StdRng::seed_from_u64),
            late: Vec::new(),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.mailbox.address
    }

    /// Aborts every association.
    pub fn abort_all(&mut self) {
        for id in self.ids() {
            self.abort(id);
        }
    }

    fn take_place(&mut self, state: State) -> Option<AssociationId> {
        let free = |place: &Place| matches!(place.state, State::Free);
        let place = match self.places.iter().position(free) {
            Some(place) => place,
            None if self.places.len() < self.manner.associations as usize => {
                self.places.push(Place {
                    generation: 0,
                    state: State::Free,
                });
                self.places.len() - 1
            }
            None => return None,
        };
        let taken = &mut self.places[place];
        taken.generation += 1;
        self.ends.fetch_add(1, Ordering::AcqRel);
        taken.state = state;
        Some(AssociationId {
            place: u32::try_from(place).unwrap_or(u32::MAX),
            generation: taken.generation,
        })
    }

    fn place(&mut self, id: AssociationId) -> Option<&mut State> {
        let place = self.places.get_mut(id.place as usize)?;
        (place.generation == id.generation).then_some(&mut place.state)
    }

    fn deliver(&mut self, packet: Packet, events: &mut impl FnMut(Event<'_>)) {
        match packet {
            Packet::Init {
                from,
                asking,
                manner,
            } => self.answer(from, asking, manner, events),
            Packet::InitAck {
                to,
                from,
                manner,
                mailbox,
            } => self.stand(to, from, manner, mailbox, events),
            Packet::Data {
                to,
                stream,
                ppid,
                octets,
            } => {
                let Some(State::Up { peer, theirs, .. }) = self.place(to) else {
                    return;
                };
                let sack = Packet::Sack {
                    to: *theirs,
                    chunks: 1,
                };
                peer.put(sack);
                events(Event::Message {
                    association: to,
                    stream,
                    ppid,
                    unordered: true,
                    octets: &octets,
                });
                lock(&self.spare).push(octets);
            }
            Packet::Sack { to, chunks } => self.acknowledge(to, chunks, events),
            Packet::Abort { to, reason } => self.over(to, reason, events),
            Packet::Cut => {
                for id in self.ids() {
                    self.over(id, Reason::Unreachable, events);
                }
            }
        }
    }

    fn ids(&self) -> Vec<AssociationId> {
        let places = (0..).zip(&self.places);
        let used = places.filter(|(_, place)| !matches!(place.state, State::Free));
        used.map(|(number, place)| AssociationId {
            place: number,
            generation: place.generation,
        })
        .collect()
    }

    fn answer(
        &mut self,
        from: Arc<Mailbox>,
        asking: AssociationId,
        theirs: Manner,
        events: &mut impl FnMut(Event<'_>),
    ) {
        let state = State::Up {
            peer: Arc::clone(&from),
            theirs: asking,
            outbound: self.manner.streams,
            out: 0,
            blocked: false,
            awaits_dry: false,
        };
        let Some(id) = self.take_place(state) else {
            return from.put(Packet::Abort {
                to: asking,
                reason: Reason::Refused,
            });
        };
        events(Event::Up {
            association: id,
            peer: from.address,
            arrived: true,
            inbound: theirs.streams,
            outbound: self.manner.streams,
            indication: theirs.indication,
        });
        from.put(Packet::InitAck {
            to: asking,
            from: id,
            manner: self.manner,
            mailbox: Arc::clone(&self.mailbox),
        });
    }

    fn stand(
        &mut self,
        id: AssociationId,
        theirs: AssociationId,
        manner: Manner,
        peer: Arc<Mailbox>,
        events: &mut impl FnMut(Event<'_>),
    ) {
        let outbound = self.manner.streams;
        let address = peer.address;
        let Some(state) = self.place(id) else {
            return peer.put(Packet::Abort {
                to: theirs,
                reason: Reason::AbortedByPeer(AbortCause::USER),
            });
        };
        *state = State::Up {
            peer,
            theirs,
            outbound,
            out: 0,
            blocked: false,
            awaits_dry: false,
        };
        events(Event::Up {
            association: id,
            peer: address,
            arrived: false,
            inbound: manner.streams,
            outbound,
            indication: manner.indication,
        });
    }

    fn acknowledge(&mut self, id: AssociationId, chunks: u32, events: &mut impl FnMut(Event<'_>)) {
        let Some(State::Up {
            out,
            blocked,
            awaits_dry,
            ..
        }) = self.place(id)
        else {
            return;
        };
        *out = out.saturating_sub(chunks);
        let dry = *out == 0 && std::mem::take(awaits_dry);
        let room = std::mem::take(blocked);
        if dry {
            events(Event::Dry { association: id });
        }
        if room {
            events(Event::Writable { association: id });
        }
    }

    fn over(&mut self, id: AssociationId, reason: Reason, events: &mut impl FnMut(Event<'_>)) {
        let Some(state) = self.place(id) else { return };
        if matches!(std::mem::replace(state, State::Free), State::Free) {
            return;
        }
        self.ends.fetch_sub(1, Ordering::AcqRel);
        events(Event::Down {
            association: id,
            reason,
        });
    }

    fn end(&mut self, id: AssociationId, here: Reason, there: Reason) {
        if let Some(State::Up { peer, theirs, .. }) = self.place(id) {
            peer.put(Packet::Abort {
                to: *theirs,
                reason: there,
            });
        }
        self.late.push((id, here));
    }

    /// Mixes up what has come where that is the manner: chunks that no other packet is between.
    fn mix_up(&mut self, packets: &mut [Packet]) {
        let Some(random) = &mut self.random else {
            return;
        };
        let is_data = |packet: &Packet| matches!(packet, Packet::Data { .. });
        for run in packets.chunk_by_mut(|a, b| is_data(a) && is_data(b)) {
            for last in (1..run.len()).rev() {
                run.swap(last, random.random_range(0..=last));
            }
        }
    }
}

impl Llp for Wire {
    fn associate(&mut self, to: SocketAddr, _now: Instant) -> Result<AssociationId, Error> {
        for id in self.ids() {
            let here = match &self.places[id.place as usize].state {
                State::Asked(asked) => *asked == to,
                State::Up { peer, .. } => peer.address == to,
                State::Free => false,
            };
            if here {
                return Err(Error::Associated(id));
            }
        }
        let asking = self.take_place(State::Asked(to)).ok_or(Error::Exhausted)?;
        match self.hub.find(to, self.mailbox.address) {
            Some(mailbox) => mailbox.put(Packet::Init {
                from: Arc::clone(&self.mailbox),
                asking,
                manner: self.manner,
            }),
            None => self.late.push((asking, Reason::Refused)),
        }
        Ok(asking)
    }

    fn send(
        &mut self,
        association: AssociationId,
        stream: u16,
        ppid: u32,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Refused> {
        let most = self.max_segment(association) as usize;
        let window = self.manner.window;
        let spare = Arc::clone(&self.spare);
        let Some(State::Up {
            peer,
            theirs,
            outbound,
            out,
            blocked,
            ..
        }) = self.place(association)
        else {
            return Err(Refused::Gone);
        };
        if stream >= *outbound {
            return Err(Refused::Stream);
        }
        if len == 0 || len > most {
            return Err(Refused::Length);
        }
        if *out >= window {
            *blocked = true;
            return Err(Refused::Full);
        }
        *out += 1;
        let mut octets = lock(&spare).pop().unwrap_or_default();
        octets.clear();
        octets.resize(len, 0);
        fill(&mut octets);
        peer.put(Packet::Data {
            to: *theirs,
            stream,
            ppid,
            octets,
        });
        Ok(())
    }

    fn max_segment(&self, _association: AssociationId) -> u32 {
        self.manner.chunk_bytes
    }

    fn await_dry(&mut self, association: AssociationId) {
        if let Some(State::Up {
            out, awaits_dry, ..
        }) = self.place(association)
        {
            *awaits_dry = true;
            if *out == 0 {
                // There is no packet to come that would tell.
                self.mailbox.put(Packet::Sack {
                    to: association,
                    chunks: 0,
                });
            }
        }
    }

    fn turn(&mut self, _now: Instant, events: &mut impl FnMut(Event<'_>)) {
        for (id, reason) in std::mem::take(&mut self.late) {
            self.over(id, reason, events);
        }
        let mut packets = std::mem::take(&mut self.packets);
        self.mailbox.take(&mut packets);
        self.mix_up(packets.make_contiguous());
        for packet in packets.drain(..) {
            self.deliver(packet, events);
        }
        self.packets = packets;
    }

    fn flush(&mut self) {
        // What was sent has arrived.
    }

    fn shut_down(&mut self, association: AssociationId) {
        self.end(association, Reason::ShutDown, Reason::ShutDown);
    }

    fn abort(&mut self, association: AssociationId) {
        self.end(
            association,
            Reason::Aborted,
            Reason::AbortedByPeer(AbortCause::USER),
        );
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.mailbox.bell.as_fd()
    }
}

impl Drop for Wire {
    /// Peers see their associations aborted.
    fn drop(&mut self) {
        for id in self.ids() {
            self.end(id, Reason::Aborted, Reason::AbortedByPeer(AbortCause::USER));
        }
    }
}
