//! What the port counts.
//!
//! Each association counts its own chunks, and what its peer did wrong on it; what is counted here
//! are ends, and those associations that are no more. Both are added up when somebody asks.

use super::IwarpPort;
use rpcrdma_fabric::{PortCounts, PortRejects};
use rpcrdma_iwarp::session::Counts;
use rpcrdma_iwarp::{End, Refusal, Reject};
use rpcrdma_sctp::{DISCARDS, Discards, Frames, Llp};

/// What is found wrong here, and not by a session: behind [`Reject`]'s names and [`Refusal`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// One request more than [`Settings::requests_max`](crate::Settings::requests_max), or than
    /// control, which is gone, will ever hear of.
    RequestsMany,
    /// A request on an association that this side has opened, where it is not listening.
    RequestUninvited,
}

impl Wrong {
    const NAMES: [&'static str; 2] = ["requests-many", "request-uninvited"];
}

const REFUSALS: usize = Reject::COUNT;
const WRONGS: usize = REFUSALS + Refusal::NAMES.len();
const DISCARDED: usize = WRONGS + Wrong::NAMES.len();
const COUNT: usize = DISCARDED + DISCARDS.len();

const NAMES: [&str; COUNT] = {
    let mut names = [""; COUNT];
    let mut place = 0;
    while place < COUNT {
        names[place] = if place < REFUSALS {
            Reject::ALL[place].name()
        } else if place < WRONGS {
            Refusal::NAMES[place - REFUSALS]
        } else if place < DISCARDED {
            Wrong::NAMES[place - WRONGS]
        } else {
            DISCARDS[place - DISCARDED]
        };
        place += 1;
    }
    names
};

const NOTHING: PortRejects = PortRejects::new(&NAMES);

/// Ends, and what was counted on associations that are no more.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) counts: PortCounts,
    pub(super) rejects: PortRejects,
}

impl Tally {
    pub(super) fn new() -> Tally {
        Tally {
            counts: PortCounts::default(),
            rejects: NOTHING,
        }
    }

    /// An association that is of no use.
    #[cold]
    pub(super) fn refuse(&mut self, refusal: &Refusal) {
        self.rejects.add(REFUSALS + refusal.index(), 1);
    }

    /// What no session finds.
    #[cold]
    pub(super) fn blame(&mut self, wrong: Wrong) {
        self.rejects.add(WRONGS + wrong as usize, 1);
    }

    /// What an association has counted: it is gone, or this is a sum of its own.
    pub(super) fn absorb(&mut self, counts: &Counts) {
        let sum = &mut self.counts;
        sum.chunks_in += counts.chunks_in;
        sum.chunks_out += counts.chunks_out;
        sum.chunks_dropped += counts.dropped;
        for (place, &count) in counts.rejects.iter().enumerate() {
            if count > 0 {
                self.rejects.add(place, count);
            }
        }
    }

    /// What never got as far as an association.
    fn note(&mut self, discards: &Discards) {
        for (place, &count) in discards.iter().enumerate() {
            self.rejects.add(DISCARDED + place, count);
        }
    }

    /// What the port of DPDK below has counted.
    fn add_frames(&mut self, frames: &Frames) {
        let sum = &mut self.counts;
        sum.frames_in += frames.came;
        sum.frame_bytes_in += frames.came_bytes;
        sum.frames_out += frames.sent;
        sum.frame_bytes_out += frames.sent_bytes;
        sum.frames_missed += frames.missed;
        sum.frames_no_buffer += frames.no_buffer;
        sum.frames_damaged += frames.damaged;
        sum.frames_unsent += frames.unsent;
        sum.frames_crowded += frames.crowded;
        sum.packets_no_way += frames.no_way;
        sum.packets_unanswered += frames.unanswered;
        sum.neighbour_requests += frames.requests;
        sum.neighbour_answers += frames.answers;
    }

    /// A session is over.
    #[cold]
    pub(super) fn end(&mut self, end: End) {
        let counts = &mut self.counts;
        match end {
            End::Lost => {
                counts.transport += 1;
                counts.sessions_lost += 1;
            }
            End::Rejected => counts.sessions_rejected += 1,
            End::TurnedAway => counts.sessions_turned_away += 1,
            End::Terminated(said) => {
                counts.sessions_terminated += 1;
                match (said.code.layer, said.code.error_type) {
                    (0 | 1, 1) => counts.remote_access += 1,
                    (1, 2) => counts.remote_invalid += 1,
                    _ => {}
                }
            }
            End::Reject(Reject::MessageLong) => counts.local_length += 1,
            End::Local | End::Peer | End::Reject(_) => {}
        }
    }
}

impl<L: Llp> IwarpPort<L> {
    /// All that was counted, that of associations that are there included.
    #[cold]
    pub(super) fn sum(&self) -> Tally {
        let mut sum = Tally {
            counts: self.desk.tally.counts,
            rejects: self.desk.tally.rejects,
        };
        for association in self.sites.associations() {
            sum.absorb(association.counts());
        }
        for llp in self.sites.llps() {
            sum.note(&llp.discards());
            sum.add_frames(&llp.frames());
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_name_is_one_counters() {
        let names: BTreeSet<&str> = NAMES.into_iter().collect();
        assert_eq!(names.len(), COUNT);
        let word = |name: &&str| name.bytes().all(|it| it.is_ascii_lowercase() || it == b'-');
        assert!(names.iter().all(word), "{names:?}");
    }

    /// Each counter of frames has one of the port's to itself.
    #[test]
    fn frames_are_counted_by_their_names() {
        let mut tally = Tally::new();
        tally.add_frames(&Frames {
            came: 1,
            came_bytes: 2,
            sent: 3,
            sent_bytes: 4,
            missed: 5,
            no_buffer: 6,
            damaged: 7,
            unsent: 8,
            crowded: 9,
            no_way: 10,
            unanswered: 11,
            requests: 12,
            answers: 13,
        });
        let counted = tally.counts.named().filter(|(.., count)| *count > 0);
        let found: Vec<_> = counted.map(|(name, _, count)| (name, count)).collect();
        let expected = [
            ("frames_in", 1),
            ("frame_bytes_in", 2),
            ("frames_out", 3),
            ("frame_bytes_out", 4),
            ("frames_missed", 5),
            ("frames_no_buffer", 6),
            ("frames_damaged", 7),
            ("frames_unsent", 8),
            ("frames_crowded", 9),
            ("packets_no_way", 10),
            ("packets_unanswered", 11),
            ("neighbour_requests", 12),
            ("neighbour_answers", 13),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_wrong_is_counted_by_its_name() {
        let mut tally = Tally::new();
        tally.refuse(&Refusal::OtherAdaptation(7));
        tally.blame(Wrong::RequestUninvited);
        let mut counts = Counts::default();
        counts.rejects[Reject::TooFewReads.index()] = 3;
        tally.absorb(&counts);
        let rejects = tally.rejects;
        let found: Vec<_> = rejects.iter().filter(|&(_, count)| count > 0).collect();
        let expected = [
            ("too-few-reads", 3),
            ("other-adaptation", 1),
            ("request-uninvited", 1),
        ];
        assert_eq!(found, expected);
    }
}
