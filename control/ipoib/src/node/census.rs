//! The list of all groups: what a router starts from (link section 10 A), and what takes the place of reports that were
//! too many to be taken one by one.

use super::timers::Timer;
use super::{Key, LinkId, Node, Purpose, lane};
use crate::gid::Gid;
use crate::group::{Attributes, Group, Knowledge};
use crate::mad::{McMember, McMemberTemplate};
use crate::router;
use crate::sa::{Answer, Outcome, Request};
use crate::time::Moment;
use crate::trouble::{Cause, Operation, Refusal};
use std::collections::BTreeMap;

/// Where the looking at the list is.
#[derive(Debug, Default)]
pub(super) struct Census {
    /// It is asked for.
    asked: bool,
    /// Reports were left out since it was last seen.
    storm: bool,
    /// It was last asked for then.
    last: Option<Moment>,
    failures: u8,
}

impl Census {
    /// Something waits for the list.
    pub(super) const fn is_wanted(&self) -> bool {
        self.asked || self.storm
    }
}

impl Node {
    fn has_router(&self) -> bool {
        let usable = |link: &crate::link::Link| link.spec.router && link.phase.is_usable();
        self.links.iter().any(usable)
    }

    /// Reports were left out: the list will say what they would have. Whether this is news.
    pub(super) fn census_for_storm(&mut self, now: Moment) -> bool {
        if std::mem::replace(&mut self.census.storm, true) {
            return false;
        }
        let timing = self.settings.timing;
        let again = self
            .census
            .last
            .map_or(now, |last| last.after(timing.pause_ms));
        let due = again.max(now.after(timing.reply_ms));
        self.arm(Timer::Census, due);
        true
    }

    /// Asks for the list.
    pub(super) fn take_census(&mut self, now: Moment) {
        let wanted = self.has_router() || self.census.storm;
        if !wanted || !self.can_ask() || self.closing.is_some() {
            return;
        }
        self.census.asked = true;
        self.census.last = Some(now);
        let purpose = Purpose::Census;
        self.sa.forget(|other| *other == purpose);
        let request = Request::Records(McMemberTemplate::default());
        self.sa.ask(lane(&purpose), purpose, request);
    }

    /// The list came, or did not.
    pub(super) fn census_came(&mut self, now: Moment, outcome: Outcome) {
        self.census.asked = false;
        let timing = self.settings.timing;
        let next = match outcome {
            Outcome::Answered(Answer::Members(records)) => {
                self.census.failures = 0;
                let storm = std::mem::take(&mut self.census.storm);
                self.compare(now, &records, storm);
                timing.verify_ms
            }
            other => {
                self.port_failed(now, Operation::List, &other);
                let failures = self.census.failures;
                self.census.failures = failures.saturating_add(1);
                self.chance
                    .pause(timing.reply_ms, timing.pause_ms, failures)
            }
        };
        if self.has_router() || self.census.storm {
            self.arm(Timer::Census, now.after(next));
        }
    }

    /// Compares the list with what is known. A group that is not on it may have been cut off from it, and is asked about.
    fn compare(&mut self, now: Moment, records: &[McMember], storm: bool) {
        let attributes = |record: &McMember| Some((record.mgid, Attributes::of_record(record)?));
        let listed: BTreeMap<Gid, Attributes> = records.iter().filter_map(attributes).collect();
        if storm {
            for key in self.keys() {
                let found = listed.get(&key.mgid);
                self.change(now, key, |group| reconsider(group, now, found));
                self.drive(now, key);
            }
        }
        for (mgid, attributes) in listed {
            self.route_everywhere(now, mgid, Some(attributes));
        }
    }

    /// Has the routers among the links join a group, if it is one of theirs (link section 10 B).
    pub(super) fn route_everywhere(
        &mut self,
        now: Moment,
        mgid: Gid,
        attributes: Option<Attributes>,
    ) {
        for id in self.link_ids() {
            let wants = |link: &crate::link::Link| router::wants(link, mgid);
            if self.link(id).is_some_and(wants) {
                self.route(now, Key { link: id, mgid }, attributes);
            }
        }
    }

    fn route(&mut self, now: Moment, key: Key, attributes: Option<Attributes>) {
        if self.groups.get(&key).is_some_and(|group| group.routed) {
            return;
        }
        let routed = self.groups.values().filter(|group| group.routed).count();
        let room = if routed < self.settings.limits.routed {
            self.entry(now, key)
        } else {
            Err(Refusal::RoutedFull)
        };
        if let Err(refusal) = room {
            let operation = Operation::Join;
            self.group_failed(now, key, operation, Cause::Limit, Some(refusal), 0);
            return;
        }
        self.change(now, key, |group| {
            group.routed = true;
            group.retired = false;
            if let Some(attributes) = attributes
                && !group.proven
            {
                group.knowledge = Knowledge::Exists(attributes, now);
            }
        });
        self.drive(now, key);
    }

    /// A group appeared: for whoever sends to its address, and for routers.
    pub(super) fn group_appeared(&mut self, now: Moment, mgid: Gid) {
        for id in self.link_ids() {
            let key = Key { link: id, mgid };
            self.change(now, key, |group| {
                if !group.proven {
                    group.knowledge = Knowledge::Unknown;
                }
            });
            self.drive(now, key);
            self.retry_for(now, id, mgid);
        }
        self.route_everywhere(now, mgid, None);
    }

    /// A link that rests for want of this very group makes its next attempt now.
    fn retry_for(&mut self, now: Moment, id: LinkId, mgid: Gid) {
        let waits = |link: &crate::link::Link| router::is_broadcast(link, mgid);
        let resting = |link: &crate::link::Link| link.phase == crate::link::Phase::Resting;
        if self
            .link(id)
            .is_some_and(|link| waits(link) && resting(link))
        {
            self.retry_link(now, id);
        }
    }

    /// A group may have ended, which is no more than a reason to ask: one of the administrator's ends with its last member,
    /// and is there all the same.
    pub(super) fn group_ended(&mut self, now: Moment, mgid: Gid) {
        for id in self.link_ids() {
            let key = Key { link: id, mgid };
            self.change(now, key, |group| reconsider(group, now, None));
            self.drive(now, key);
        }
    }
}

/// What was known of a group may be so no longer.
fn reconsider(group: &mut Group, now: Moment, found: Option<&Attributes>) {
    match found {
        Some(attributes) if !group.proven => group.knowledge = Knowledge::Exists(*attributes, now),
        Some(_) => {}
        None if group.proven => group.check = now,
        None => group.knowledge = Knowledge::Unknown,
    }
}
