//! Takes the SA's word: what became of each request, and what follows for whom it was made.

use super::groups::{advance, hurry, join_operation};
use super::{Key, LinkId, Node, Purpose};
use crate::group::{Attributes, Group, Knowledge, Phase};
use crate::join::JoinState;
use crate::link;
use crate::mad::{McMember, Status};
use crate::sa::{Answer, Outcome, Settled};
use crate::time::Moment;
use crate::trouble::{Cause, Failure, Operation, Trouble};

/// Why a request failed, and the SA's status.
pub(super) fn cause(outcome: &Outcome) -> (Cause, i32) {
    match *outcome {
        Outcome::Answered(_) | Outcome::Malformed => (Cause::Malformed, 0),
        Outcome::Silent => (Cause::Silent, 0),
        Outcome::Busy(Status::NoResources) => (Cause::NoResources, code(Status::NoResources)),
        Outcome::Busy(status) => (Cause::Busy, code(status)),
        Outcome::Refused(Status::NoRecords) => (Cause::NoRecord, code(Status::NoRecords)),
        Outcome::Refused(status) => (Cause::Denied, code(status)),
    }
}

fn code(status: Status) -> i32 {
    i32::from(status.word())
}

impl Node {
    /// A request is over.
    pub(super) fn outcome(&mut self, now: Moment, settled: Settled<Purpose>) {
        let Settled {
            purpose,
            outcome,
            tries,
        } = settled;
        match purpose {
            Purpose::Broadcast(id) => self.sought_broadcast(now, id, &outcome),
            Purpose::Group(key) => self.group_outcome(now, key, &outcome, tries),
            Purpose::Census => self.census_came(now, outcome),
            Purpose::Subscription(index) => self.subscription_outcome(now, index, &outcome),
            Purpose::Path(id, gid) => self.path_came(now, id, gid, &outcome),
            Purpose::Capabilities => self.capabilities_came(now, &outcome),
        }
    }

    fn sought_broadcast(&mut self, now: Moment, id: LinkId, outcome: &Outcome) {
        let seeking = |link: &link::Link| link.phase == link::Phase::Seeking;
        if !self.link(id).is_some_and(seeking) {
            return;
        }
        match outcome {
            Outcome::Answered(Answer::Member(record)) => match Attributes::of_record(record) {
                Some(attributes) => {
                    let knowledge = Knowledge::Exists(attributes, now);
                    self.found(now, id, record.mgid, attributes, knowledge);
                }
                None => self.seeking_failed(now, id, &Outcome::Malformed),
            },
            Outcome::Refused(Status::NoRecords) => self.not_in_scope(now, id),
            other => self.seeking_failed(now, id, other),
        }
    }

    fn seeking_failed(&mut self, now: Moment, id: LinkId, outcome: &Outcome) {
        let (cause, code) = cause(outcome);
        self.failed(
            now,
            Failure {
                operation: Operation::Query,
                cause,
                refusal: None,
                code,
                link: Some(id),
                mgid: self.link(id).and_then(link::Link::sought),
                background: false,
            },
        );
        self.rest_link(now, id);
    }

    fn group_outcome(&mut self, now: Moment, key: Key, outcome: &Outcome, tries: u8) {
        let linger = self.linger(now);
        self.change(now, key, |group| {
            if matches!(group.phase, Phase::Joining | Phase::Leaving) {
                group.quiet = linger;
            }
        });
        match self.groups.get(&key).map(|group| group.phase) {
            Some(Phase::Seeking) => self.sought(now, key, outcome),
            Some(Phase::Joining) => self.joined(now, key, outcome, tries),
            Some(Phase::Checking) => self.checked(now, key, outcome),
            Some(Phase::Leaving) => self.left(now, key, outcome),
            _ => return,
        }
        self.drive(now, key);
    }

    fn sought(&mut self, now: Moment, key: Key, outcome: &Outcome) {
        let known = match outcome {
            Outcome::Answered(Answer::Member(record)) => {
                Attributes::of_record(record).map(|attributes| Knowledge::Exists(attributes, now))
            }
            Outcome::Refused(Status::NoRecords) => Some(Knowledge::Missing(now)),
            _ => None,
        };
        let Some(known) = known else {
            self.sa_failed(now, key, Operation::Query, outcome);
            return;
        };
        self.change(now, key, |group| {
            group.knowledge = known;
            // the group that a router was to listen to is gone
            group.routed &= matches!(known, Knowledge::Exists(..));
            advance(group, group.still());
        });
        let missing = matches!(known, Knowledge::Missing(_));
        if missing && self.groups.get(&key).is_some_and(|group| group.broadcast) {
            self.lose_broadcast(now, key.link);
        }
    }

    fn joined(&mut self, now: Moment, key: Key, outcome: &Outcome, tries: u8) {
        let asked = self
            .groups
            .get(&key)
            .map_or(JoinState::NONE, |group| group.asked);
        let granted = match outcome {
            Outcome::Answered(Answer::Member(record)) if record.join_state.has(asked) => {
                Attributes::of_record(record)
            }
            _ => None,
        };
        match (granted, outcome) {
            (Some(attributes), _) => self.granted(now, key, attributes),
            (None, Outcome::Refused(_)) => self.join_refused(now, key, outcome, tries),
            (None, _) => {
                let operation = self.joining(key);
                self.change(now, key, |group| group.doubt = group.doubt.with(asked));
                self.sa_failed(now, key, operation, outcome);
            }
        }
    }

    /// What the join that is on its way is called.
    fn joining(&self, key: Key) -> Operation {
        let group = self.groups.get(&key);
        group.map_or(Operation::Join, |group| {
            join_operation(group.asked, group.creating)
        })
    }

    fn granted(&mut self, now: Moment, key: Key, attributes: Attributes) {
        let check = self.next_check(now);
        self.change(now, key, |group| {
            group.knowledge = Knowledge::Exists(attributes, now);
            group.held = group.held.with(group.asked);
            group.doubt = group.doubt.without(group.asked);
            group.proven = true;
            group.failures = 0;
            group.check = check;
            advance(group, group.still());
        });
    }

    /// The SA refused a join: perhaps the group came or went since it was looked up, so the first time it is looked up
    /// again at once.
    fn join_refused(&mut self, now: Moment, key: Key, outcome: &Outcome, tries: u8) {
        let operation = self.joining(key);
        let linger = self.linger(now);
        let first = self
            .groups
            .get(&key)
            .is_some_and(|group| group.failures == 0);
        self.change(now, key, |group| {
            group.knowledge = Knowledge::Unknown;
            // an earlier try may have been granted, and its answer lost
            let kept = if tries > 1 {
                group.asked
            } else {
                JoinState::NONE
            };
            group.doubt = group.doubt.without(group.asked).with(kept);
            group.proven &= !group.held.is_none();
            group.check = linger;
        });
        self.sa_failed(now, key, operation, outcome);
        if first {
            self.change(now, key, |group| hurry(group, now));
        }
        if self.groups.get(&key).is_some_and(|group| group.broadcast) {
            self.broadcast_refused(now, key.link);
        }
    }

    /// The broadcast group could not be joined. A link that was up looks for it anew: it may be another one by now.
    fn broadcast_refused(&mut self, now: Moment, id: LinkId) {
        match self.link(id).map(|link| link.phase) {
            Some(link::Phase::Joining) => self.rest_link(now, id),
            Some(phase) if phase != link::Phase::Down => self.lose_broadcast(now, id),
            _ => {}
        }
    }

    /// The broadcast group is gone: the link begins anew.
    fn lose_broadcast(&mut self, now: Moment, id: LinkId) {
        use link::Phase::{Attaching, Degraded, Joining, Opening, Up};
        let phase = self.link(id).map(|link| link.phase);
        if matches!(phase, Some(Joining | Opening | Attaching | Up | Degraded)) {
            self.move_link(id, link::Event::Lost);
            self.seek_broadcast(now, id);
        }
    }

    fn checked(&mut self, now: Moment, key: Key, outcome: &Outcome) {
        let found = match outcome {
            Outcome::Answered(Answer::Member(record)) => Some(Some(record)),
            Outcome::Refused(Status::NoRecords) => Some(None),
            _ => None,
        };
        match found {
            Some(record) => self.record_found(now, key, record),
            // asked again after a pause: what cannot be verified is not sure
            None => self.sa_failed(now, key, Operation::Verify, outcome),
        }
    }

    /// This port's own record, or that there is none. It is blamed only with what this node has asked for.
    fn record_found(&mut self, now: Moment, key: Key, record: Option<&McMember>) {
        let next = self.next_check(now);
        let linger = self.linger(now);
        let lost = self.change(now, key, |group| {
            let held = group.held;
            let (kept, untold) = match record.map(|record| record.join_state) {
                None => (JoinState::NONE, JoinState::NONE),
                Some(JoinState::NONE) => untold_kinds(group, now),
                Some(says) => (says.both(group.ever), JoinState::NONE),
            };
            let known = record.and_then(Attributes::of_record);
            group.knowledge = known.map_or(Knowledge::Unknown, |it| Knowledge::Exists(it, now));
            group.held = kept;
            group.doubt = untold;
            group.proven &= record.is_some() && known.is_some();
            group.proven &= !kept.with(untold).is_none();
            group.check = if kept.is_none() { linger } else { next };
            group.failures = 0;
            if held.is_none() && kept.is_none() && untold.is_none() {
                group.dirty = false;
                group.ever = JoinState::NONE;
            }
            advance(group, group.still());
            held.without(kept.with(untold)).has(JoinState::FULL)
        });
        if lost == Some(true) {
            // a group does not end while it has a full member: the SA has forgotten this port
            let mgid = Some(key.mgid);
            self.tell(now, Trouble::Forgotten { mgid });
            self.start_over(now);
        }
    }

    fn left(&mut self, now: Moment, key: Key, outcome: &Outcome) {
        let over = match outcome {
            Outcome::Answered(Answer::Left(_)) => true,
            // what is not held need not be left: so it is of a group that ended with its last full member
            Outcome::Refused(Status::RequestInvalid | Status::NoRecords) => {
                if self.groups.get(&key).is_some_and(|group| group.certain) {
                    let (cause, code) = cause(outcome);
                    self.group_failed(now, key, Operation::Leave, cause, None, code);
                }
                true
            }
            _ => false,
        };
        if !over {
            self.sa_failed(now, key, Operation::Leave, outcome);
            return;
        }
        let linger = self.linger(now);
        self.change(now, key, |group| {
            group.doubt = group.doubt.without(group.asked);
            group.failures = 0;
            if group.held.is_none() {
                group.check = linger;
            }
            advance(group, group.still());
        });
    }

    /// Counts a failure that the SA made, and has the group rest.
    fn sa_failed(&mut self, now: Moment, key: Key, operation: Operation, outcome: &Outcome) {
        let (cause, code) = cause(outcome);
        self.group_failed(now, key, operation, cause, None, code);
        self.rest_group(now, key);
    }

    /// When a membership is confirmed next: spread, so that a thousand joined at once are not asked about at once.
    fn next_check(&mut self, now: Moment) -> Moment {
        let verify_ms = self.settings.timing.verify_ms;
        let early = self.chance.below(verify_ms / 4 + 1);
        now.after(verify_ms - early)
    }

    /// When no request that was sent by now can be on its way any more.
    pub(super) fn linger(&self, now: Moment) -> Moment {
        now.after(self.settings.timing.linger_ms)
    }

    /// Counts a failure that belongs to no link.
    pub(super) fn port_failed(&mut self, now: Moment, operation: Operation, outcome: &Outcome) {
        let (cause, code) = cause(outcome);
        self.failed(
            now,
            Failure {
                operation,
                cause,
                refusal: None,
                code,
                link: None,
                mgid: None,
                background: true,
            },
        );
    }
}

/// A record that tells no kinds: OpenSM tells them to the trusted alone. It says that the port was not forgotten, and no more.
/// Where nothing should be held, each kind that ever was may be. Where several were, or one was left, a late duplicate may
/// have taken a kind away or brought one back: once none can come any more, what is wanted is joined and what is not is
/// left again. What is held, and what is doubted.
fn untold_kinds(group: &mut Group, now: Moment) -> (JoinState, JoinState) {
    if group.held.is_none() {
        return (JoinState::NONE, group.ever);
    }
    let mixed = group.left || group.ever != group.ever.first();
    if !mixed || now < group.quiet {
        return (group.held, group.doubt);
    }
    group.left = false;
    let doubt = std::mem::replace(&mut group.ever, group.held);
    (JoinState::NONE, doubt)
}

/// A group that was interrupted stands still, and what it asked for may have come to pass.
pub(super) fn interrupt(group: &mut Group, linger: Moment) {
    if group.phase.awaits_sa() {
        if group.phase == Phase::Joining {
            group.doubt = group.doubt.with(group.asked);
        }
        group.check = linger;
        group.quiet = linger;
        advance(group, group.still());
    }
}
