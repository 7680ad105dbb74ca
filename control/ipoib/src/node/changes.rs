//! News of the port, and what of what was believed they put in doubt.

use super::answers::interrupt;
use super::groups::{advance, hurry};
use super::timers::Timer;
use super::{LinkId, Node, Purpose};
use crate::group::{Group, Knowledge};
use crate::join::JoinState;
use crate::link::{Event, Phase, QueuePair};
use crate::port::PortFacts;
use crate::time::Moment;
use crate::trouble::Refusal;

impl Node {
    /// The port as it is now; to be told whenever it was read, changed or not.
    pub fn port_is(&mut self, now: Moment, facts: PortFacts) {
        if self.closed {
            return;
        }
        let old = self.port.replace(facts);
        let (Some(new), same) = (self.port.as_ref(), old == self.port) else {
            return;
        };
        if same {
            return;
        }
        let other_gid = old.as_ref().is_some_and(|old| old.gid != new.gid);
        let smaller = old.as_ref().is_some_and(|old| old.mtu > new.mtu);
        if other_gid {
            self.forget_identity(now);
        }
        for id in self.link_ids() {
            self.check_link(now, id);
            if smaller {
                self.check_mtu(now, id);
            }
        }
        if other_gid {
            for id in self.link_ids() {
                self.drop_address(id);
            }
        }
        self.start_over(now);
        self.raise_links(now);
        self.settle(now);
    }

    /// The SA asks every port to register anew: it has forgotten, or may have (IBA's client-reregister event).
    pub fn reregister(&mut self, now: Moment) {
        self.start_over(now);
        self.settle(now);
    }

    /// Nothing that the SA held for this port is sure: everything is joined and subscribed again, and what was being asked
    /// is asked anew.
    pub(super) fn start_over(&mut self, now: Moment) {
        self.sa.forget(|_| true);
        let linger = self.linger(now);
        for key in self.keys() {
            self.change(now, key, |group| {
                group.doubt_all();
                interrupt(group, linger);
                hurry(group, now);
                if group.phase.is_still() {
                    advance(group, group.still());
                }
            });
        }
        for id in self.link_ids() {
            match self.link(id).map(|link| link.phase) {
                Some(Phase::Seeking) => self.seek_broadcast(now, id),
                Some(Phase::Resting) => self.arm_link(id, now),
                Some(_) => self.move_link(id, Event::Doubt),
                None => {}
            }
        }
        self.reroute(now);
        self.subscribe_again();
        self.ask_capabilities();
        for key in self.keys() {
            self.drive(now, key);
        }
        if self.census.is_wanted() {
            self.arm(Timer::Census, now);
        }
    }

    /// The port has another GID: what was joined by the old one cannot be left any more, and is the subnet manager's affair.
    fn forget_identity(&mut self, now: Moment) {
        self.sa.forget(|_| true);
        let linger = self.linger(now);
        for key in self.keys() {
            self.change(now, key, |group| {
                interrupt(group, linger);
                disown(group);
                if group.phase.is_still() {
                    advance(group, group.still());
                }
            });
        }
    }

    /// Brings a link down that may not be up any more, and anew where its P_Key is elsewhere in the table.
    fn check_link(&mut self, now: Moment, id: LinkId) {
        let Some(link) = self.link(id) else {
            return;
        };
        let made_with = match link.queue {
            QueuePair::None => None,
            QueuePair::Opening(made) | QueuePair::Open(made, _) => Some(made.p_key_index),
        };
        let down = link.phase == Phase::Down;
        match link.permitted(self.port.as_ref()) {
            // the queue pair is good for when the port comes back
            Err(Refusal::PortInactive) if !down => self.fall(now, id, Refusal::PortInactive),
            Err(Refusal::PortInactive) => {}
            Err(refusal) => {
                self.fall(now, id, refusal);
                self.discard_queue(now, id);
            }
            Ok(index) if made_with.is_some_and(|made| made != index) => {
                self.fall(now, id, Refusal::OutsidePartition);
                self.discard_queue(now, id);
            }
            Ok(_) => {}
        }
    }

    /// The port does less than it did: a link that needs more cannot stay (link section 7).
    fn check_mtu(&mut self, now: Moment, id: LinkId) {
        let (Some(link), Some(port)) = (self.link(id), self.port.as_ref()) else {
            return;
        };
        let beyond = link.attributes.is_some_and(|link| link.mtu > port.mtu);
        let up = !matches!(link.phase, Phase::Down | Phase::Seeking | Phase::Resting);
        if beyond && up {
            self.move_link(id, Event::Lost);
            self.seek_broadcast(now, id);
        }
    }

    /// Asks what the SA can do, where that decides anything; again with each renewal of a subscription, until it says.
    pub(super) fn ask_capabilities(&mut self) {
        self.send_only_full = None;
        if self.settings.send_only_full && self.can_ask() && self.closing.is_none() {
            let purpose = Purpose::Capabilities;
            self.sa.forget(|other| *other == purpose);
            let request = crate::sa::Request::Capabilities;
            self.sa.ask(super::lane(&purpose), purpose, request);
        }
    }
}

/// Nothing is held in this port's name.
fn disown(group: &mut Group) {
    group.held = JoinState::NONE;
    group.doubt = JoinState::NONE;
    group.ever = JoinState::NONE;
    group.asked = JoinState::NONE;
    group.dirty = false;
    group.proven = false;
    group.knowledge = Knowledge::Unknown;
}
