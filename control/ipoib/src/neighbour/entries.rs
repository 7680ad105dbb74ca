//! The neighbours that are known: a bounded number of them.
//!
//! Who gives way is chosen as in the cache of a station on Ethernet (`rpcrdma-ether`, `cache.rs`). That one is for an lcore:
//! of fixed size, without what waits, and with no second step in which the way to a hardware address is found.

use super::kinds::FIRST;
use super::state::{Event, State};
use crate::gid::Gid;
use crate::group::{Queue, Waiting};
use crate::time::Moment;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// A neighbour.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) state: State,
    /// What waits for the way to it.
    pub(super) waiting: Queue,
    /// When its time has come.
    due: Moment,
    /// Something was sent to it since it was last moved.
    used: bool,
    /// When something was sent to it last, as a number that only grows.
    turn: u64,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Entries {
    by_address: BTreeMap<IpAddr, Entry>,
    most: usize,
    turns: u64,
}

impl Entries {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            by_address: BTreeMap::new(),
            most,
            turns: 0,
        }
    }

    /// A neighbour that something is sent to; whether it is new, and how many frames were lost with one that gave way. Only
    /// what was sent for somebody's sake makes it `used`: two that did no more than answer each other's questions would never
    /// forget each other.
    pub(super) fn find(&mut self, ip: IpAddr, now: Moment, used: bool) -> (&mut Entry, bool, u64) {
        self.turns += 1;
        let turn = self.turns;
        let fresh = !self.by_address.contains_key(&ip);
        let evicted = if fresh { self.make_room() } else { 0 };
        let entry = self.by_address.entry(ip).or_insert_with(|| Entry {
            state: FIRST,
            waiting: Queue::default(),
            due: now.after(FIRST.patience_ms()),
            used,
            turn,
        });
        entry.used |= used;
        entry.turn = turn;
        (entry, fresh, evicted)
    }

    /// Forgets the neighbour that is worth least, if there are as many as may be: of equal ones that which was sent to
    /// longest ago. How many frames were lost.
    fn make_room(&mut self) -> u64 {
        if self.by_address.len() < self.most {
            return 0;
        }
        let worth = |(_, entry): &(&IpAddr, &Entry)| (entry.state.worth(), entry.turn);
        let least = self.by_address.iter().min_by_key(worth);
        least.map(|(ip, _)| *ip).map_or(0, |ip| self.remove(ip))
    }

    pub(super) fn peek(&self, ip: IpAddr) -> Option<&Entry> {
        self.by_address.get(&ip)
    }

    pub(super) fn peek_mut(&mut self, ip: IpAddr) -> Option<&mut Entry> {
        self.by_address.get_mut(&ip)
    }

    /// Moves a neighbour. An answer counts anew from now on, even where it says what was known; what changes nothing else
    /// does not.
    pub(super) fn set(&mut self, ip: IpAddr, state: State, event: Event, now: Moment) {
        let Some(entry) = self.by_address.get_mut(&ip) else {
            return;
        };
        if state == entry.state && !matches!(event, Event::Told(_) | Event::Reroute) {
            return;
        }
        entry.state = state;
        entry.due = now.after(state.patience_ms());
        entry.used &= !entry.waiting.is_empty();
    }

    /// Forgets a neighbour; how many frames waited for it.
    pub(super) fn remove(&mut self, ip: IpAddr) -> u64 {
        let entry = self.by_address.remove(&ip);
        entry.map_or(0, |entry| entry.waiting.len() as u64)
    }

    /// The frames that waited for the way to a neighbour.
    pub(super) fn release(&mut self, ip: IpAddr) -> VecDeque<Waiting> {
        let entry = self.by_address.get_mut(&ip);
        entry.map_or_else(VecDeque::new, |entry| entry.waiting.take())
    }

    /// Drops the frames that have waited too long; how many.
    pub(super) fn expire(&mut self, now: Moment) -> u64 {
        let mut frames = 0;
        for entry in self.by_address.values_mut() {
            while entry.waiting.expired(now).is_some() {
                frames += 1;
            }
        }
        frames
    }

    /// A neighbour whose time has come, and whether something was sent to it. To be moved by who asks: its time is put off
    /// as long as its state lasts, or this would give it again.
    pub(super) fn due(&mut self, now: Moment) -> Option<(IpAddr, bool)> {
        let mut entries = self.by_address.iter_mut();
        let (ip, entry) = entries.find(|(_, entry)| entry.due <= now)?;
        entry.due = now.after(entry.state.patience_ms());
        Some((*ip, entry.used))
    }

    /// When something is due, or has waited too long.
    pub(super) fn wake(&self) -> Option<Moment> {
        let entries = self.by_address.values();
        let times = entries.flat_map(|entry| [Some(entry.due), entry.waiting.wake()]);
        times.flatten().min()
    }

    /// Octets that wait for all together.
    pub(super) fn waiting_octets(&self) -> usize {
        self.by_address
            .values()
            .map(|entry| entry.waiting.octets())
            .sum()
    }

    /// The addresses whose path to one port is asked for.
    pub(super) fn on_the_way_to(&self, gid: Gid) -> Vec<IpAddr> {
        let asked = |entry: &Entry| match entry.state {
            State::Routing { hardware, .. } => hardware.gid == gid,
            _ => false,
        };
        let of = self.by_address.iter().filter(|(_, entry)| asked(entry));
        of.map(|(ip, _)| *ip).collect()
    }

    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.by_address.keys().copied().collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (IpAddr, State)> + '_ {
        self.by_address.iter().map(|(ip, entry)| (*ip, entry.state))
    }
}
