//! What is known of the neighbours: a bounded number of them.
//!
//! Strangers that send can make this station ask for any neighbour, because their packets are
//! answered. So those that never answered give way to others first, and those that did only to one
//! that there is a packet for, the one sent to longest ago before the rest.
//!
//! The IPoIB node of the control thread has a cache with the same rule for giving way
//! (`rpcrdma-ipoib`, `neighbour/entries.rs`), and nothing else in common: there a neighbour is found
//! in two steps and keeps what waits for it, in memory that is allocated; here an lcore looks for one
//! with each datagram, and nothing is allocated after the start.

use crate::neighbour::{Event, Neighbour, Question};
use crate::station::Mac;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

/// Neighbours at once.
pub(crate) const MOST: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Entry {
    neighbour: Neighbour,
    /// When its time has come.
    due: Instant,
    /// Something was sent to it since the last time.
    used: bool,
    /// When something was sent to it last, as a number that only grows.
    turn: u64,
}

/// What is known of a neighbour that something is to be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It is here.
    At(Mac),
    /// It is being asked for.
    Asked,
    /// Nothing: it has to be asked for now. Another one may have had to give way to it.
    Unheard { forgotten: Option<IpAddr> },
}

/// The neighbours.
#[derive(Debug)]
pub(crate) struct Cache {
    entries: HashMap<IpAddr, Entry>,
    /// No entry is due before; `None`: there is no entry.
    next_due: Option<Instant>,
    turns: u64,
}

impl Cache {
    pub(crate) fn new() -> Cache {
        Cache {
            entries: HashMap::with_capacity(MOST),
            next_due: None,
            turns: 0,
        }
    }

    /// Where to send what goes to a neighbour, which is kept in mind from now on.
    pub(crate) fn find(&mut self, ip: IpAddr, now: Instant) -> Known {
        self.turns += 1;
        if let Some(entry) = self.entries.get_mut(&ip) {
            entry.used = true;
            entry.turn = self.turns;
            return entry.neighbour.mac().map_or(Known::Asked, Known::At);
        }
        let forgotten = self.make_room();
        let neighbour = Neighbour::Asked(1);
        let due = now + neighbour.patience();
        let entry = Entry {
            neighbour,
            due,
            used: true,
            turn: self.turns,
        };
        self.entries.insert(ip, entry);
        self.note(due);
        Known::Unheard { forgotten }
    }

    /// Where to send what goes to a neighbour, as far as that is known.
    pub(crate) fn peek(&self, ip: IpAddr) -> Option<Mac> {
        self.entries.get(&ip)?.neighbour.mac()
    }

    /// It is there, or asked for.
    pub(crate) fn has(&self, ip: IpAddr) -> bool {
        self.entries.contains_key(&ip)
    }

    /// Something was heard of a neighbour. Of one that nobody wants to know of, nothing is kept.
    pub(crate) fn hear(&mut self, ip: IpAddr, event: Event, now: Instant) -> Option<Question> {
        let entry = self.entries.get_mut(&ip)?;
        let before = entry.neighbour;
        let (next, question) = before.next(event);
        let neighbour = next?;
        let fresh = matches!(event, Event::Told(_)) || neighbour != before;
        entry.neighbour = neighbour;
        if fresh {
            entry.due = now + neighbour.patience();
            entry.used = false;
            let due = entry.due;
            self.note(due);
        }
        question
    }

    /// A neighbour whose time has come, and what is to be asked, if anything; `None` when none is
    /// left. To be called until then.
    pub(crate) fn fall_due(&mut self, now: Instant) -> Option<(IpAddr, Option<Question>)> {
        if self.next_due.is_none_or(|due| now < due) {
            return None;
        }
        let mut due = self.entries.iter().filter(|(_, entry)| entry.due <= now);
        let Some((&ip, &entry)) = due.next() else {
            self.next_due = self.entries.values().map(|entry| entry.due).min();
            return None;
        };
        let (next, question) = entry.neighbour.next(Event::Due(entry.used));
        match (next, self.entries.get_mut(&ip)) {
            (Some(neighbour), Some(entry)) => {
                entry.neighbour = neighbour;
                entry.due = now + neighbour.patience();
            }
            _ => {
                self.entries.remove(&ip);
            }
        }
        Some((ip, question))
    }

    /// When something will be due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.next_due
    }

    fn note(&mut self, due: Instant) {
        self.next_due = Some(self.next_due.map_or(due, |other| other.min(due)));
    }

    /// Sees to it that one more has room; who had to give way.
    fn make_room(&mut self) -> Option<IpAddr> {
        if self.entries.len() < MOST {
            return None;
        }
        let worth = |(_, entry): &(&IpAddr, &Entry)| (entry.neighbour.mac().is_some(), entry.turn);
        let least = self.entries.iter().min_by_key(worth).map(|(&ip, _)| ip)?;
        self.entries.remove(&least);
        Some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neighbour::{BELIEVED, RETRY, TRIES};
    use std::net::Ipv4Addr;
    use std::time::Duration;

    const MAC: Mac = Mac([2, 0, 0, 0, 0, 9]);
    const UNHEARD: Known = Known::Unheard { forgotten: None };

    fn ip(number: u32) -> IpAddr {
        Ipv4Addr::from(0x0a00_0000 + number).into()
    }

    fn due(cache: &mut Cache, now: Instant) -> Vec<(IpAddr, Option<Question>)> {
        std::iter::from_fn(|| cache.fall_due(now)).collect()
    }

    #[test]
    fn who_does_not_answer_is_asked_for_a_few_times_and_forgotten() {
        let (mut cache, mut now) = (Cache::new(), Instant::now());
        assert_eq!(cache.find(ip(1), now), UNHEARD);
        assert_eq!(cache.find(ip(1), now), Known::Asked);
        assert_eq!(due(&mut cache, now), []);
        for _ in 1..TRIES {
            now += RETRY;
            assert_eq!(due(&mut cache, now), [(ip(1), Some(Question::Everybody))]);
            assert_eq!(due(&mut cache, now), []);
        }
        now += RETRY;
        assert_eq!(due(&mut cache, now), [(ip(1), None)]);
        assert!(!cache.has(ip(1)));
        assert_eq!(due(&mut cache, now), []);
        assert_eq!(cache.deadline(), None);
    }

    #[test]
    fn who_is_sent_to_is_asked_again_and_who_is_not_is_forgotten() {
        let (mut cache, mut now) = (Cache::new(), Instant::now());
        for number in [1, 2] {
            let _ = cache.find(ip(number), now);
            assert_eq!(cache.hear(ip(number), Event::Told(MAC), now), None);
        }
        assert_eq!(cache.find(ip(1), now), Known::At(MAC));
        assert_eq!(due(&mut cache, now + RETRY), []);
        now += BELIEVED;
        let mut found = due(&mut cache, now);
        found.sort_by_key(|(ip, _)| *ip);
        assert_eq!(found, [(ip(1), Some(Question::Itself(MAC))), (ip(2), None)]);
        assert_eq!(cache.find(ip(1), now), Known::At(MAC), "it may be there");
        assert!(!cache.has(ip(2)));
    }

    #[test]
    fn strangers_are_not_kept() {
        let (mut cache, now) = (Cache::new(), Instant::now());
        assert_eq!(cache.hear(ip(1), Event::Told(MAC), now), None);
        assert!(!cache.has(ip(1)));
    }

    /// A flood of addresses that never answer replaces none that did.
    #[test]
    fn those_who_answered_stay() {
        let (mut cache, now) = (Cache::new(), Instant::now());
        let known = u32::try_from(MOST).expect("few") / 2;
        for number in 0..known {
            let _ = cache.find(ip(number), now);
            cache.hear(ip(number), Event::Told(MAC), now);
        }
        for number in 0..10_000_u32 {
            let later = now + Duration::from_micros(number.into());
            let kept = u32::try_from(MOST).expect("few") - known;
            // Of those who never answered, the one sent to longest ago.
            let forgotten = number.checked_sub(kept).map(|first| ip(known + first));
            let found = cache.find(ip(known + number), later);
            assert_eq!(found, Known::Unheard { forgotten });
        }
        assert_eq!(cache.entries.len(), MOST);
        assert!((0..known).all(|number| cache.peek(ip(number)) == Some(MAC)));
    }
}
