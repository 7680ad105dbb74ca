//! What is known of the neighbours on a link: where a host of an IP address is, and the way there (RFC 4391 section 9,
//! RFC 826, RFC 4861 section 7).
//!
//! A neighbour is found in two steps. Its hardware address is asked for on the link, by ARP or by neighbour discovery: that
//! is a queue pair and a GID. The GID's LID, service level and rate are then asked of the SA, as a PathRecord. Only with both
//! is there a [`Way`], and datagrams that came meanwhile go.
//!
//! ```text
//!  send ──► Neighbours ──► Everybody: a question to the link's group      ◄── heard: ARP, discovery
//!               │     └──► Path: a question to the SA                     ◄── routed
//!               └────────► One: what was to be sent, an answer, a question to one
//! ```
//!
//! **How to drive it.** As a [`Node`](crate::node::Node): after every call drain [`Neighbours::take`], and call
//! [`Neighbours::pass`] when [`Neighbours::wake`] says so. A path that was asked for is answered once by
//! [`Neighbours::routed`], found or not. Word that paths may be others (the subnet manager moved, a client-reregister event)
//! is [`Neighbours::reroute`]; another queue pair or GID of this port makes another `Neighbours`.
//!
//! **What is believed.** An answer to a question of ours; and, of a neighbour that matters, that it asks or says so itself:
//! then it is asked in turn, soon. Who speaks with another's hardware address is not believed, nor who says that our address
//! is its own: that is told, [`Output::Conflict`]. Queue pairs change when a host restarts (RFC 4391 section 9.4), so what
//! is known is asked again after half a minute if it is used, and forgotten if not.
//!
//! **Bounds.** So many neighbours, so many questions and answers a second, so many frames and octets that wait. A stranger can
//! make this node learn of any address, because questions are answered; so those of which nothing was proven give way
//! first, and never to be answered means to be forgotten in seconds. Each question is asked three times at most, and
//! once at a time, however many frames wait for the answer; one path is asked for once, however many addresses are at its
//! end. All that is lost is counted ([`Lost`]), as is all that is not taken ([`Unheard`]).

mod entries;
mod hear;
mod kinds;
mod questions;
mod state;
mod way;

pub use kinds::{Bounds, Counts, Fate, Lost, Output, Station, Unheard};
pub use state::{Ask, Event, State, TRIES};
pub use way::{Route, Way};

use crate::gid::Gid;
use crate::group::Waiting;
use crate::time::{Bucket, Moment};
use entries::Entries;
use rpcrdma_unicast::is_of_a_host;
use std::collections::VecDeque;
use std::net::IpAddr;

/// The neighbours of a station.
#[derive(Debug)]
pub struct Neighbours {
    station: Station,
    bounds: Bounds,
    entries: Entries,
    asked: Bucket,
    answered: Bucket,
    counts: Counts,
    outputs: VecDeque<Output>,
}

impl Neighbours {
    /// None known.
    #[must_use]
    pub fn new(station: Station, bounds: Bounds) -> Self {
        Self {
            entries: Entries::new(bounds.neighbours),
            asked: Bucket::new(bounds.asked),
            answered: Bucket::new(bounds.answered),
            counts: Counts::default(),
            outputs: VecDeque::new(),
            station,
            bounds,
        }
    }

    /// Sends a frame, from its encapsulation header on, to a host on the link: now, or when the way to it is known.
    pub fn send(&mut self, now: Moment, ip: IpAddr, frame: Vec<u8>) -> Fate {
        self.forward(now, ip, frame, true)
    }

    /// Sends a frame; `used` of one that is not an answer.
    fn forward(&mut self, now: Moment, ip: IpAddr, frame: Vec<u8>, used: bool) -> Fate {
        if ip.is_ipv4() != self.station.ip.is_ipv4() || !is_of_a_host(ip) || ip == self.station.ip {
            return self.lose(Lost::NotANeighbour, 1);
        }
        let (entry, fresh, evicted) = self.entries.find(ip, now, used);
        if let Some(way) = entry.state.way() {
            self.outputs.push_back(Output::One { way, frame });
            return Fate::Sent;
        }
        self.lose(Lost::Evicted, evicted);
        let fate = self.hold(now, ip, frame);
        if fresh {
            self.ask(now, ip, Ask::Everybody);
        }
        fate
    }

    fn hold(&mut self, now: Moment, ip: IpAddr, bytes: Vec<u8>) -> Fate {
        let all = self.entries.waiting_octets();
        let until = now.after(self.bounds.wait_ms);
        let limits = self.bounds.waiting;
        let entry = self.entries.peek_mut(ip);
        let held = entry.map(|entry| entry.waiting.add(Waiting { until, bytes }, &limits, all));
        match held {
            Some(Ok(())) => Fate::Waiting,
            _ => self.lose(Lost::Full, 1),
        }
    }

    /// The SA's answer about the path to a port; `None` where it has none, or has not answered.
    pub fn routed(&mut self, now: Moment, gid: Gid, route: Option<Route>) {
        let event = route.map_or(Event::Unrouted, Event::Routed);
        for ip in self.entries.on_the_way_to(gid) {
            self.on(now, ip, event);
        }
    }

    /// Paths may be others by now: all are asked for again.
    pub fn reroute(&mut self, now: Moment) {
        for ip in self.entries.addresses() {
            self.on(now, ip, Event::Reroute);
        }
    }

    /// Does what is due.
    pub fn pass(&mut self, now: Moment) {
        let expired = self.entries.expire(now);
        self.lose(Lost::WaitedTooLong, expired);
        while let Some((ip, used)) = self.entries.due(now) {
            self.on(now, ip, Event::Due { used });
        }
    }

    /// When [`Neighbours::pass`] is to be called next; `None` while nothing depends on time.
    #[must_use]
    pub fn wake(&self) -> Option<Moment> {
        self.entries.wake()
    }

    /// What is to be done next, if anything is.
    pub fn take(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// What is known of a neighbour.
    #[must_use]
    pub fn state(&self, ip: IpAddr) -> Option<State> {
        self.entries.peek(ip).map(|entry| entry.state)
    }

    /// Every neighbour, by address.
    pub fn iter(&self) -> impl Iterator<Item = (IpAddr, State)> + '_ {
        self.entries.iter()
    }

    /// What was lost and not taken so far.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Moves a neighbour, asks what is to be asked, and sends what waited for the way.
    fn on(&mut self, now: Moment, ip: IpAddr, event: Event) {
        let Some(entry) = self.entries.peek(ip) else {
            return;
        };
        let (next, ask) = entry.state.next(event);
        let Some(state) = next else {
            let why = Lost::of(entry.state);
            let frames = self.entries.remove(ip);
            self.lose(why, frames);
            return;
        };
        self.entries.set(ip, state, event, now);
        if let Some(ask) = ask {
            self.ask(now, ip, ask);
        }
        let Some(way) = state.way() else {
            return;
        };
        for Waiting { bytes, .. } in self.entries.release(ip) {
            self.outputs.push_back(Output::One { way, frame: bytes });
        }
    }

    fn lose(&mut self, why: Lost, frames: u64) -> Fate {
        self.counts.lost.add_many(why, frames);
        Fate::Dropped(why)
    }
}
