//! One port, its link, and the queues of its endpoints.

use crate::discards::{self, Discards};
use crate::frames::Frames;
use crate::udp::Address;
use dpdk_sys::{BURST, Frame, Port};
use rpcrdma_ether::{Arrival, Datagram, Dispatch, Link, Refused, Short, Station, Unfit, Way};
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Instant;

/// Frames that wait for the port, at most.
const OUTGOING: usize = 1024;
/// Packets that wait for an endpoint's turn, at most.
pub(super) const QUEUE: usize = 1024;
/// Ports that nobody has a claim to (RFC 6335 section 6).
const DYNAMIC: Range<u16> = 49_152..65_535;

/// A packet that has come, for one endpoint.
#[derive(Debug)]
pub(super) struct Packet {
    frame: Frame,
    from: Address,
    octets: Range<usize>,
}

impl Packet {
    pub(super) fn from(&self) -> Address {
        self.from
    }

    pub(super) fn octets(&self) -> Option<&[u8]> {
        self.frame.octets().get(self.octets.clone())
    }

    pub(super) fn into_frame(self) -> Frame {
        self.frame
    }
}

/// A datagram that is to go: its frame, without headers, and the port that it is from.
#[derive(Debug)]
pub(super) struct Parting {
    pub(super) frame: Frame,
    pub(super) from: u16,
}

/// An endpoint's place.
#[derive(Debug)]
struct Place {
    port: u16,
    queue: Vec<Packet>,
}

/// What has been counted between the link and the endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HubCounts {
    /// Datagrams for ports that nobody hears.
    no_port: u64,
    /// Datagrams whose endpoint had too many waiting.
    overrun: u64,
    /// Frames longer than the MTU.
    chained: u64,
    /// Frames whose checksum the port found wrong.
    damaged: u64,
    /// Frames that found no room to wait for the port, or no buffer.
    crowded: u64,
}

/// A port with all that belongs to it.
#[derive(Debug)]
pub(super) struct Hub {
    port: Port,
    link: Link<Parting>,
    places: Vec<Option<Place>>,
    /// What has just come.
    burst: Vec<Frame>,
    /// What is done with.
    spent: Vec<Frame>,
    /// Whole frames that the port has not taken yet.
    outgoing: Vec<Frame>,
    /// Empty frames, for what the link has to say.
    blanks: Vec<Frame>,
    now: Instant,
    counts: HubCounts,
}

impl Hub {
    pub(super) fn new(port: Port, station: Station) -> Result<Hub, Unfit> {
        Ok(Hub {
            port,
            link: Link::new(station)?,
            places: Vec::new(),
            burst: Vec::with_capacity(BURST),
            spent: Vec::with_capacity(BURST),
            outgoing: Vec::with_capacity(OUTGOING),
            blanks: Vec::with_capacity(BURST),
            now: Instant::now(),
            counts: HubCounts::default(),
        })
    }

    pub(super) fn is_up(&self) -> bool {
        self.port.is_up()
    }

    pub(super) fn driver(&self) -> String {
        self.port.driver()
    }

    /// One endpoint tells for all what is counted here, or it would be told by each.
    fn is_teller(&self, index: usize) -> bool {
        self.places.iter().position(Option::is_some) == Some(index)
    }

    /// What the port has counted, and what was lost between it and the endpoints on its way out.
    pub(super) fn frames(&self, index: usize) -> Frames {
        if !self.is_teller(index) {
            return Frames::default();
        }
        let (port, link) = (self.port.counts(), self.link.counts());
        Frames {
            came: port.frames_in,
            came_bytes: port.bytes_in,
            sent: port.frames_out,
            sent_bytes: port.bytes_out,
            missed: port.missed,
            no_buffer: port.no_buffer,
            damaged: port.errors_in,
            unsent: port.errors_out,
            crowded: self.counts.crowded,
            no_way: link.no_way,
            unanswered: link.unanswered,
            requests: link.requests,
            answers: link.answers,
        }
    }

    /// What has come and was not taken.
    pub(super) fn discards(&self, index: usize) -> Discards {
        let mut discards = discards::NONE;
        if !self.is_teller(index) {
            return discards;
        }
        let link = self.link.counts();
        let frames = Refused::ALL.iter().map(|why| link.refused(*why));
        let HubCounts {
            no_port,
            overrun,
            chained,
            damaged,
            ..
        } = self.counts;
        let all = frames.chain([chained, damaged, no_port, overrun]);
        for (count, value) in discards.iter_mut().skip(1).zip(all) {
            *count = value;
        }
        discards
    }

    pub(super) fn pool(&self) -> dpdk_sys::Pool {
        self.port.pool()
    }

    /// A place for an endpoint at that UDP port; port 0 takes any. `None`: somebody has it.
    pub(super) fn seat(&mut self, port: u16) -> Option<(usize, u16)> {
        let port = match port {
            0 => self.free_port()?,
            port if self.place_of(port).is_none() => port,
            _ => return None,
        };
        let queue = Vec::with_capacity(QUEUE);
        let place = Some(Place { port, queue });
        match self.places.iter_mut().position(|it| it.is_none()) {
            Some(index) => self.places[index] = place,
            None => self.places.push(place),
        }
        Some((self.place_of(port)?, port))
    }

    /// Gives a place back.
    pub(super) fn leave(&mut self, index: usize) {
        if let Some(place) = self.places.get_mut(index) {
            *place = None;
        }
    }

    /// One that others cannot guess (RFC 6056).
    fn free_port(&self) -> Option<u16> {
        let random = RandomState::new().hash_one(self.places.len());
        let count = u64::from(DYNAMIC.end - DYNAMIC.start);
        let first = u16::try_from(random % count).ok()?;
        let ports =
            (DYNAMIC.start + first..DYNAMIC.end).chain(DYNAMIC.start..DYNAMIC.start + first);
        let mut free = ports.filter(|port| self.place_of(*port).is_none());
        free.next()
    }

    #[inline]
    fn place_of(&self, port: u16) -> Option<usize> {
        let is_it = |place: &Option<Place>| place.as_ref().is_some_and(|it| it.port == port);
        self.places.iter().position(is_it)
    }

    /// Receives one burst, for all endpoints, and hands over what is this one's; whether the port
    /// may have more.
    pub(super) fn receive(&mut self, index: usize, into: &mut Vec<Packet>, now: Instant) -> bool {
        self.now = now;
        let count = self.port.receive(&mut self.burst);
        let mut burst = std::mem::take(&mut self.burst);
        for frame in burst.drain(..) {
            self.take(frame);
        }
        self.burst = burst;
        Frame::free_all(&mut self.spent);
        self.speak();
        if let Some(Some(place)) = self.places.get_mut(index) {
            std::mem::swap(&mut place.queue, into);
        }
        count == BURST
    }

    fn take(&mut self, frame: Frame) {
        if frame.is_chained() {
            self.counts.chained += 1;
        } else if frame.is_damaged() {
            self.counts.damaged += 1;
        } else {
            match self.link.take(frame.octets(), self.now) {
                Arrival::Datagram(datagram) => return self.deliver(frame, datagram),
                Arrival::Answer(answer) => self.say(&answer),
                Arrival::Nothing => {}
            }
        }
        self.spent.push(frame);
    }

    fn deliver(&mut self, frame: Frame, datagram: Datagram) {
        let place = self.place_of(datagram.port);
        let Some(Some(place)) = place.and_then(|index| self.places.get_mut(index)) else {
            self.counts.no_port += 1;
            return self.spent.push(frame);
        };
        if place.queue.len() == QUEUE {
            self.counts.overrun += 1;
            return self.spent.push(frame);
        }
        place.queue.push(Packet {
            frame,
            from: datagram.from.into(),
            octets: datagram.octets,
        });
    }

    /// Sends what the link has to ask, and packets that have waited for an answer.
    fn speak(&mut self) {
        while let Some(request) = self.link.request(self.now) {
            self.say(&request);
        }
        while let Some((way, packet)) = self.link.release() {
            self.part(&way, packet);
        }
        self.transmit();
    }

    fn say(&mut self, short: &Short) {
        let octets = short.as_ref();
        if self.blanks.is_empty() {
            // Where there is none, the frame is dropped, below.
            let _ = self.port.pool().take(&mut self.blanks);
        }
        let blank = self.blanks.pop();
        let Some(mut frame) = blank.filter(|_| self.outgoing.len() < OUTGOING) else {
            self.counts.crowded += 1;
            return;
        };
        if let Some(room) = frame.lay_out(octets.len()) {
            room.copy_from_slice(octets);
            self.outgoing.push(frame);
        }
    }

    /// Sends a datagram, or keeps it until its neighbour is known.
    #[inline]
    pub(super) fn send(&mut self, to: SocketAddr, packet: Parting) {
        if let Dispatch::Go(way, packet) = self.link.dispatch(to, packet, self.now) {
            self.part(&way, packet);
        }
    }

    fn part(&mut self, way: &Way, packet: Parting) {
        let Parting { mut frame, from } = packet;
        if self.outgoing.len() == OUTGOING {
            self.counts.crowded += 1;
            return;
        }
        let written = frame
            .prepend(self.link.head_len())
            .is_some_and(|octets| self.link.write_head(way, from, octets));
        debug_assert!(written, "room for headers is in front of every frame");
        if written {
            self.outgoing.push(frame);
        }
    }

    /// Gives the port what it takes; whether that was all.
    pub(super) fn transmit(&mut self) -> bool {
        self.outgoing.is_empty() || self.port.send(&mut self.outgoing)
    }

    /// Asks what the link has to ask, of what was just sent, and sends it.
    pub(super) fn push(&mut self) -> bool {
        while let Some(request) = self.link.request(self.now) {
            self.say(&request);
        }
        self.transmit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discards::DISCARDS;

    /// The names of what is refused stand where its numbers are put.
    #[test]
    fn numbers_have_their_names() {
        for (name, why) in DISCARDS.iter().skip(1).zip(Refused::ALL) {
            assert_eq!(*name, format!("frame-{}", why.name().replace('_', "-")));
        }
        assert_eq!(DISCARDS.len(), 1 + Refused::COUNT + 4);
    }
}
