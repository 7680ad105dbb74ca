//! The link: what comes is told apart, what goes finds its way.

use crate::arrive::{self, Arrival, Found};
use crate::cache::{Cache, Known};
use crate::depart;
use crate::neighbour::{Event, Question};
use crate::refused::Counts;
use crate::short::Short;
use crate::station::{Mac, Station, Unfit};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

/// Packets that wait for neighbours, at most; of one neighbour at most so many. RFC 1122 section
/// 2.3.2.2 has one as the least.
const WAITING: usize = 64;
const WAITING_EACH: usize = 8;
/// Requests of one neighbour's, and all others, that wait to be sent.
const REQUESTS: usize = 64;

/// The way to a peer, as far as this link is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Who takes the frame.
    pub mac: Mac,
    /// Who takes the datagram.
    pub to: SocketAddr,
}

/// What becomes of a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Dispatch<T> {
    /// It goes this way.
    Go(Way, T),
    /// The neighbour is being asked for: the packet is kept, or dropped, which is counted.
    Kept,
}

#[derive(Debug)]
struct Waiting<T> {
    hop: IpAddr,
    to: SocketAddr,
    packet: T,
}

/// A station's link. `T` is what a packet is to its owner: it is kept while its neighbour is asked
/// for, and not looked at.
#[derive(Debug)]
pub struct Link<T> {
    station: Station,
    cache: Cache,
    waiting: VecDeque<Waiting<T>>,
    /// One that packets may wait for was heard of.
    released: bool,
    requests: VecDeque<Short>,
    counts: Counts,
}

impl<T> Link<T> {
    /// A link of this station's, on which nobody is known yet.
    ///
    /// # Errors
    ///
    /// There can be no such station.
    pub fn new(station: Station) -> Result<Link<T>, Unfit> {
        station.check()?;
        Ok(Link {
            station,
            cache: Cache::new(),
            waiting: VecDeque::with_capacity(WAITING),
            released: false,
            requests: VecDeque::with_capacity(REQUESTS),
            counts: Counts::default(),
        })
    }

    /// Who the station is.
    #[must_use]
    pub fn station(&self) -> &Station {
        &self.station
    }

    /// What has happened here.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Looks at a frame that has come.
    pub fn take(&mut self, frame: &[u8], now: Instant) -> Arrival {
        let found = match arrive::examine(&self.station, frame) {
            Ok(found) => found,
            Err(why) => {
                self.counts.refuse(why);
                return Arrival::Nothing;
            }
        };
        let answer = match found {
            Found::Datagram(datagram) => {
                self.counts.datagrams += 1;
                return Arrival::Datagram(datagram);
            }
            Found::Nothing => None,
            Found::Neighbour {
                ip,
                mac,
                asked,
                sure,
            } => {
                let event = if asked {
                    Event::Told(mac)
                } else {
                    Event::Hinted(mac, sure)
                };
                self.hear(ip, event, now);
                None
            }
            Found::Wanted { by } => {
                // Who asks can be reached where it asked from (RFC 826).
                self.hear(by.1, Event::Hinted(by.0, true), now);
                match by {
                    (mac, IpAddr::V4(ip)) => Short::arp_reply(&self.station, (mac, ip)),
                    (mac, IpAddr::V6(ip)) => Short::advertisement(&self.station, (mac, ip)),
                }
            }
            Found::Echo { by, request } => Short::echo(&self.station, by, request),
        };
        match answer {
            Some(answer) => {
                self.counts.answers += 1;
                Arrival::Answer(answer)
            }
            None => Arrival::Nothing,
        }
    }

    fn hear(&mut self, ip: IpAddr, event: Event, now: Instant) {
        if let Some(question) = self.cache.hear(ip, event, now) {
            self.ask(ip, question);
        }
        self.released |= !self.waiting.is_empty();
    }

    fn ask(&mut self, ip: IpAddr, question: Question) {
        let itself = match question {
            Question::Everybody => None,
            Question::Itself(mac) => Some(mac),
        };
        let request = match ip {
            IpAddr::V4(ip) => Short::arp_request(&self.station, ip, itself),
            IpAddr::V6(ip) => Short::solicitation(&self.station, ip, itself),
        };
        // What has no room is asked again when its time has come.
        if let Some(request) = request
            && self.requests.len() < REQUESTS
        {
            self.requests.push_back(request);
        }
    }

    /// Finds the way for a packet.
    pub fn dispatch(&mut self, to: SocketAddr, packet: T, now: Instant) -> Dispatch<T> {
        if to.ip() == self.station.ip() {
            let mac = self.station.mac;
            return Dispatch::Go(Way { mac, to }, packet);
        }
        let Some(hop) = self.station.next_hop(to.ip()) else {
            self.counts.no_way += 1;
            return Dispatch::Kept;
        };
        match self.cache.find(hop, now) {
            Known::At(mac) => return Dispatch::Go(Way { mac, to }, packet),
            Known::Unheard { forgotten } => {
                if let Some(forgotten) = forgotten {
                    self.give_up(forgotten);
                }
                self.ask(hop, Question::Everybody);
            }
            Known::Asked => {}
        }
        self.keep(Waiting { hop, to, packet });
        Dispatch::Kept
    }

    /// Keeps a packet; the one that waits longest gives way.
    fn keep(&mut self, packet: Waiting<T>) {
        let same = |it: &Waiting<T>| it.hop == packet.hop;
        let crowded = self.waiting.iter().filter(|it| same(it)).count() == WAITING_EACH;
        let oldest = if crowded {
            self.waiting.iter().position(same)
        } else {
            (self.waiting.len() == WAITING).then_some(0)
        };
        if let Some(oldest) = oldest {
            self.waiting.remove(oldest);
            self.counts.unanswered += 1;
        }
        self.waiting.push_back(packet);
    }

    /// A packet that has waited, and can go. To be called until there is none.
    pub fn release(&mut self) -> Option<(Way, T)> {
        if !self.released {
            return None;
        }
        let known = |it: &Waiting<T>| self.cache.peek(it.hop).is_some();
        let Some(at) = self.waiting.iter().position(known) else {
            self.released = false;
            return None;
        };
        let Waiting { hop, to, packet } = self.waiting.remove(at)?;
        let mac = self.cache.peek(hop)?;
        Some((Way { mac, to }, packet))
    }

    /// A request to be sent now. To be called until there is none.
    pub fn request(&mut self, now: Instant) -> Option<Short> {
        while let Some((ip, question)) = self.cache.fall_due(now) {
            match question {
                Some(question) => self.ask(ip, question),
                None if !self.cache.has(ip) => self.give_up(ip),
                None => {}
            }
        }
        let request = self.requests.pop_front()?;
        self.counts.requests += 1;
        Some(request)
    }

    /// Nobody answers, or nobody is asked for any more: what waited for that is dropped.
    fn give_up(&mut self, hop: IpAddr) {
        let before = self.waiting.len();
        self.waiting.retain(|it| it.hop != hop);
        self.counts.unanswered += (before - self.waiting.len()) as u64;
    }

    /// When [`Link::request`] has to be called, whatever comes.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.cache.deadline()
    }

    /// Octets that a frame needs in front of its datagram.
    #[must_use]
    pub fn head_len(&self) -> usize {
        depart::head_len(&self.station)
    }

    /// Writes the headers of a frame, [`Link::head_len`] octets, in front of the datagram that is
    /// in it, which is from this port. False where it cannot be: too short, too long, or a way of
    /// another version of IP.
    #[must_use]
    pub fn write_head(&self, way: &Way, from: u16, frame: &mut [u8]) -> bool {
        depart::write_head(&self.station, way, from, frame)
    }
}
