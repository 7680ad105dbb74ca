//! The states of a neighbour (RFC 4861 section 7.3.2, and the same for ARP).
//!
//! A neighbour is asked for when somebody has a packet for it, and asked again, itself, when it has
//! not been heard of for a while: so a station that went away, or has another adapter now, is
//! found out, and one that nobody sends to is forgotten.

use crate::station::Mac;
use std::time::Duration;

/// Times that one question is asked.
pub(crate) const TRIES: u8 = 3;
/// Between two questions: what RFC 1122 section 2.3.2.1 allows, and RetransTimer of RFC 4861.
pub(crate) const RETRY: Duration = Duration::from_secs(1);
/// How long an answer is believed: ReachableTime of RFC 4861.
pub(crate) const BELIEVED: Duration = Duration::from_secs(30);

/// What is known of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Neighbour {
    /// Nothing yet: everybody was asked, so many times.
    Asked(u8),
    /// Its address, and that it is there.
    Known(Mac),
    /// Its address of a while ago: it was asked itself, so many times.
    Doubted(Mac, u8),
}

/// What happens to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It answered a question.
    Told(Mac),
    /// It was said to have this address without being asked; whether it is sure that this
    /// replaces another one (the override flag of RFC 4861 section 4.4).
    Hinted(Mac, bool),
    /// Its time has come; whether anything was sent to it since the last time.
    Due(bool),
}

/// A question to be put on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// To all.
    Everybody,
    /// To the one that had this address.
    Itself(Mac),
}

impl Neighbour {
    /// What becomes of it, and what is to be asked; `None`: it is forgotten.
    pub(crate) fn next(self, event: Event) -> (Option<Neighbour>, Option<Question>) {
        use Neighbour::{Asked, Doubted, Known};
        let doubt = |mac, tries| (Some(Doubted(mac, tries)), Some(Question::Itself(mac)));
        match (self, event) {
            (_, Event::Told(mac)) => (Some(Known(mac)), None),
            (Asked(_), Event::Hinted(mac, _)) => doubt(mac, 1),
            (Known(had) | Doubted(had, _), Event::Hinted(mac, _)) if had == mac => {
                (Some(self), None)
            }
            (Known(_) | Doubted(..), Event::Hinted(mac, true)) => doubt(mac, 1),
            (Known(had), Event::Hinted(_, false)) => doubt(had, 1),
            (Doubted(..), Event::Hinted(_, false)) => (Some(self), None),
            (Asked(tries), Event::Due(_)) if tries < TRIES => {
                (Some(Asked(tries + 1)), Some(Question::Everybody))
            }
            (Asked(_), Event::Due(_)) => (None, None),
            (Known(_), Event::Due(false)) => (None, None),
            (Known(mac), Event::Due(true)) => doubt(mac, 1),
            (Doubted(mac, tries), Event::Due(_)) if tries < TRIES => doubt(mac, tries + 1),
            (Doubted(..), Event::Due(_)) => (Some(Asked(1)), Some(Question::Everybody)),
        }
    }

    /// How long it stays so by itself.
    pub(crate) fn patience(self) -> Duration {
        match self {
            Neighbour::Asked(_) | Neighbour::Doubted(..) => RETRY,
            Neighbour::Known(_) => BELIEVED,
        }
    }

    /// Where to send.
    pub(crate) fn mac(self) -> Option<Mac> {
        match self {
            Neighbour::Asked(_) => None,
            Neighbour::Known(mac) | Neighbour::Doubted(mac, _) => Some(mac),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// Every state with every event: `neighbour.txt` is the documentation.
    #[test]
    fn every_state_with_every_event() {
        let (old, new) = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]));
        let states = [
            Neighbour::Asked(1),
            Neighbour::Asked(TRIES),
            Neighbour::Known(old),
            Neighbour::Doubted(old, 1),
            Neighbour::Doubted(old, TRIES),
        ];
        let events = [
            Event::Told(old),
            Event::Told(new),
            Event::Hinted(old, false),
            Event::Hinted(new, false),
            Event::Hinted(new, true),
            Event::Due(false),
            Event::Due(true),
        ];
        let mut table = String::new();
        for state in states {
            for event in events {
                let (next, question) = state.next(event);
                let next = next.map_or("forgotten".to_owned(), |it| format!("{it:?}"));
                let question = question.map_or(String::new(), |it| format!(", ask {it:?}"));
                let _ = writeln!(table, "{state:?} + {event:?} -> {next}{question}");
            }
        }
        let table = table
            .replace("02-00-00-00-00-01", "old")
            .replace("02-00-00-00-00-02", "new");
        assert_eq!(table, include_str!("neighbour.txt"), "{table}");
    }
}
