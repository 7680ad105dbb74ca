//! The places that are known, and whose turn it is.

use super::KNOWN;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// One that was answered with.
#[derive(Clone, Copy, Debug)]
struct Place {
    address: SocketAddr,
    heard: Instant,
    failed: Option<Instant>,
}

impl Place {
    fn is_unheard_for(&self, time: Duration, now: Instant) -> bool {
        now.saturating_duration_since(self.heard) >= time
    }
}

/// At most [`KNOWN`] of them, each once, in the order in which they were first heard of.
pub(super) struct Places(Vec<Place>);

impl Places {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Somebody has answered with this place. False: it is not known, and none makes room for it. `in_use` never does;
    /// who has not been heard of for the time of `overdue` may.
    pub(super) fn hear(
        &mut self,
        address: SocketAddr,
        in_use: Option<SocketAddr>,
        overdue: Duration,
        now: Instant,
    ) -> bool {
        if let Some(place) = self.0.iter_mut().find(|it| it.address == address) {
            place.heard = now;
            return true;
        }
        if self.0.len() >= KNOWN && !self.make_room(in_use, overdue, now) {
            return false;
        }
        self.0.push(Place {
            address,
            heard: now,
            failed: None,
        });
        true
    }

    /// Who failed the longest ago goes; where nobody did, who is overdue the longest.
    fn make_room(&mut self, in_use: Option<SocketAddr>, overdue: Duration, now: Instant) -> bool {
        let idle = || {
            (0..)
                .zip(&self.0)
                .filter(|(_, it)| Some(it.address) != in_use)
        };
        let failed = idle().filter_map(|(at, it)| Some((it.failed?, at))).min();
        let late = idle().filter(|(_, it)| it.is_unheard_for(overdue, now));
        let late = || late.map(|(at, it)| (it.heard, at)).min();
        let Some((_, at)) = failed.or_else(late) else {
            return false;
        };
        // Not swapped: the others keep their order.
        self.0.remove(at);
        true
    }

    /// Forgets who has not been heard of for so long.
    pub(super) fn forget(&mut self, time: Duration, now: Instant) {
        self.0.retain(|it| !it.is_unheard_for(time, now));
    }

    /// A connection there could not be made, or is gone.
    pub(super) fn failed(&mut self, address: SocketAddr, now: Instant) {
        if let Some(place) = self.0.iter_mut().find(|it| it.address == address) {
            place.failed = Some(now);
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, address: SocketAddr) -> bool {
        self.all().any(|it| it == address)
    }

    /// In the order of which to try: who never failed, then who failed the longest ago; among equals who was heard of first.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = SocketAddr> {
        let mut places: Vec<&Place> = self.0.iter().collect();
        // `None` is before every instant, and the sort is stable.
        places.sort_by_key(|place| place.failed);
        places.into_iter().map(|place| place.address)
    }

    /// All, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().map(|place| place.address)
    }
}
