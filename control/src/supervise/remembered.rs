//! What outlives a connection: which peers know version one alone, and whose Calls were ended
//! by an access error of their own handles.

use rpcrdma_wire::Xid;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Parties remembered of either kind; the oldest are forgotten first.
const PARTIES: usize = 256;

/// The memory.
#[derive(Default)]
pub(super) struct Remembered {
    version_one: HashMap<String, Instant>,
    suspects: HashMap<String, (Instant, Vec<Xid>)>,
}

impl Remembered {
    /// The upstream did not answer version two: speak version one to it for `time` (V2-09).
    pub(super) fn version_one(&mut self, upstream: &str, now: Instant, time: Duration) {
        make_room(&mut self.version_one, |&until| until);
        self.version_one.insert(upstream.to_owned(), now + time);
    }

    /// Whether version one is to be spoken to the upstream from the start.
    pub(super) fn is_version_one(&mut self, upstream: &str, now: Instant) -> bool {
        self.version_one.retain(|_, until| *until > now);
        self.version_one.contains_key(upstream)
    }

    /// Calls of this party failed on their own handles (V1-10).
    pub(super) fn suspect(&mut self, party: &str, xids: &[Xid], now: Instant) {
        if !xids.is_empty() {
            make_room(&mut self.suspects, |&(since, _)| since);
            self.suspects.insert(party.to_owned(), (now, xids.to_vec()));
        }
    }

    /// Those Calls; asked for once, by the party's next connection.
    pub(super) fn take_suspects(&mut self, party: &str) -> Vec<Xid> {
        let found = self.suspects.remove(party);
        found.map(|(_, xids)| xids).unwrap_or_default()
    }
}

fn make_room<T>(map: &mut HashMap<String, T>, age: impl Fn(&T) -> Instant) {
    if map.len() >= PARTIES
        && let Some(oldest) = map.iter().min_by_key(|(_, value)| age(value))
    {
        let oldest = oldest.0.clone();
        map.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_one_is_remembered_for_its_time() {
        let (mut remembered, now) = (Remembered::default(), Instant::now());
        remembered.version_one("a", now, Duration::from_secs(10));
        assert!(remembered.is_version_one("a", now + Duration::from_secs(9)));
        assert!(!remembered.is_version_one("b", now));
        assert!(!remembered.is_version_one("a", now + Duration::from_secs(10)));
    }

    #[test]
    fn suspects_are_told_once_and_bounded() {
        let (mut remembered, now) = (Remembered::default(), Instant::now());
        for n in 0..=PARTIES {
            let later = now + Duration::from_secs(n as u64);
            remembered.suspect(&n.to_string(), &[Xid(7)], later);
        }
        assert_eq!(remembered.suspects.len(), PARTIES);
        assert_eq!(remembered.take_suspects("0"), []);
        assert_eq!(remembered.take_suspects("1"), [Xid(7)]);
        assert_eq!(remembered.take_suspects("1"), []);
    }
}
