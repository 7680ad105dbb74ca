//! What outlives a connection: which peers know version one alone, and whose Calls were ended
//! by an access error of their own handles.

use rpcrdma_wire::Xid;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Parties remembered of either kind; the oldest are forgotten first.
const PARTIES: usize = 256;
/// How long a first silence is remembered. One machine that was held up for as long as the other's
/// patience looks the same as a server that drops what it does not know.
const FIRST_SILENCE: Duration = Duration::from_secs(10);

/// What is known of an upstream that version one is spoken to.
struct Speaks {
    /// Until then.
    until: Instant,
    /// The next silence after that, up to here, counts for more.
    recalled: Instant,
    /// How long it is spoken.
    time: Duration,
}

/// The memory.
#[derive(Default)]
pub(super) struct Remembered {
    version_one: HashMap<String, Speaks>,
    suspects: HashMap<String, (Instant, Vec<Xid>)>,
}

impl Remembered {
    /// The upstream ended the connection in place of an answer to version two: speak version one
    /// to it for `time` (V2-09).
    pub(super) fn version_one(&mut self, upstream: &str, now: Instant, time: Duration) {
        let until = now + time;
        let recalled = until;
        self.insert(
            upstream,
            Speaks {
                until,
                recalled,
                time,
            },
        );
    }

    /// The upstream did not answer version two in time (V2-09). Version one is spoken to it for the
    /// time that this gives: short at first, twice as long with each silence that follows upon
    /// the last, never longer than `most`.
    pub(super) fn silence(&mut self, upstream: &str, now: Instant, most: Duration) -> Duration {
        let time = match self.version_one.get(upstream) {
            // Several connections met the same one.
            Some(known) if known.until > now => return known.time,
            Some(known) if known.recalled > now => known.time * 2,
            _ => FIRST_SILENCE,
        };
        let time = time.min(most);
        let until = now + time;
        let recalled = until + time;
        self.insert(
            upstream,
            Speaks {
                until,
                recalled,
                time,
            },
        );
        time
    }

    /// The upstream spoke version two: the next silence is a first one.
    pub(super) fn version_two(&mut self, upstream: &str, now: Instant) {
        if self
            .version_one
            .get(upstream)
            .is_some_and(|it| it.until <= now)
        {
            self.version_one.remove(upstream);
        }
    }

    /// Whether version one is to be spoken to the upstream from the start.
    pub(super) fn is_version_one(&self, upstream: &str, now: Instant) -> bool {
        let known = self.version_one.get(upstream);
        known.is_some_and(|known| known.until > now)
    }

    fn insert(&mut self, upstream: &str, speaks: Speaks) {
        if !self.version_one.contains_key(upstream) {
            make_room(&mut self.version_one, |it| it.recalled);
        }
        self.version_one.insert(upstream.to_owned(), speaks);
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
    fn silences_that_follow_one_another_count_for_more() {
        let (mut remembered, start) = (Remembered::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut silence = |seconds| {
            let most = Duration::from_secs(60);
            remembered.silence("a", at(seconds), most).as_secs()
        };
        // Two connections, one silence.
        assert_eq!([silence(0), silence(9)], [10, 10]);
        assert_eq!([silence(10), silence(40)], [20, 40]);
        assert_eq!([silence(90), silence(150)], [60, 60]);
        // Nothing for as long again: a first one.
        assert_eq!(silence(270), 10);
        assert!(remembered.is_version_one("a", at(279)));
        assert!(!remembered.is_version_one("a", at(280)));
    }

    #[test]
    fn an_answer_in_between_makes_a_silence_a_first_one() {
        let (mut remembered, start) = (Remembered::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let most = Duration::from_secs(600);
        remembered.silence("a", at(0), most);
        // Of a connection that stood before.
        remembered.version_two("a", at(5));
        assert!(remembered.is_version_one("a", at(6)));
        remembered.version_two("a", at(10));
        assert_eq!(remembered.silence("a", at(11), most), FIRST_SILENCE);
        // What is not to be remembered is not.
        assert_eq!(
            remembered.silence("b", at(0), Duration::ZERO),
            Duration::ZERO
        );
        assert!(!remembered.is_version_one("b", at(0)));
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
