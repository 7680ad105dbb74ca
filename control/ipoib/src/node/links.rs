//! Moves links: up step by step, down at once.

use super::groups::hurry;
use super::{Key, LinkId, Node, Output, Purpose, lane};
use crate::gid::Gid;
use crate::group::{Attributes, Group, Knowledge};
use crate::join::JoinState;
use crate::link::{Event, Link, Phase, QueuePair};
use crate::mad::McMemberTemplate;
use crate::mgid;
use crate::sa::Request;
use crate::time::Moment;
use crate::trouble::{Cause, Failure, Operation, Refusal, Trouble};
use rpcrdma_listed::Illegal;

impl Node {
    /// Moves a link; a step that is none is our own mistake, which a release survives.
    pub(super) fn move_link(&mut self, id: LinkId, event: Event) {
        let Some(link) = self.link_mut(id) else {
            return;
        };
        if link.on(event) == Err(Illegal) {
            debug_assert!(false, "{:?} on {event:?}", link.phase);
        }
        self.tell_state(id);
    }

    /// Tells a link's state where it is another.
    pub(super) fn tell_state(&mut self, id: LinkId) {
        let Some(link) = self.link_mut(id) else {
            return;
        };
        let state = link.state();
        if std::mem::replace(&mut link.told, state) != state {
            let error = link.error;
            self.outputs.push_back(Output::Link {
                link: id,
                state,
                error,
            });
        }
    }

    /// Begins to bring up every link that is down and need not be.
    pub(super) fn raise_links(&mut self, now: Moment) {
        if self.closing.is_some() {
            return;
        }
        for id in self.link_ids() {
            let port = self.port.as_ref();
            let Some(link) = self.links.get(usize::from(id.0)) else {
                continue;
            };
            let permitted = link.permitted(port);
            match (link.phase, permitted) {
                (Phase::Down, Ok(_)) => {
                    // nothing of the port is against it any more, whatever may be found on the way
                    if let Some(link) = self.link_mut(id) {
                        link.error = None;
                    }
                    self.move_link(id, Event::Raise);
                    self.seek_broadcast(now, id);
                }
                (Phase::Down, Err(refusal)) => self.note(id, refusal),
                _ => {}
            }
        }
    }

    fn note(&mut self, id: LinkId, refusal: Refusal) {
        if let Some(link) = self.link_mut(id) {
            link.error = Some(refusal);
        }
    }

    /// Looks for the broadcast group from the narrowest scope on (link section 7).
    pub(super) fn seek_broadcast(&mut self, now: Moment, id: LinkId) {
        if let Some(link) = self.link_mut(id) {
            link.searched = 0;
        }
        self.sa.forget(|purpose| *purpose == Purpose::Broadcast(id));
        self.seek_scope(now, id);
    }

    fn seek_scope(&mut self, now: Moment, id: LinkId) {
        let Some(link) = self.link(id) else {
            return;
        };
        match (link.sought(), link.spec.create) {
            (Some(mgid), _) => {
                let request = Request::Record(McMemberTemplate {
                    mgid: Some(mgid),
                    ..McMemberTemplate::default()
                });
                let purpose = Purpose::Broadcast(id);
                self.sa.ask(lane(&purpose), purpose, request);
            }
            (None, Some(creation)) => {
                let mgid = mgid::broadcast(link.spec.family, creation.scope, link.spec.p_key);
                let attributes = Attributes::of_creation(&creation, link.spec.p_key);
                self.found(now, id, mgid, attributes, Knowledge::Missing(now));
            }
            (None, None) => {
                self.refuse_link(now, id, Operation::Query, Refusal::NoBroadcastGroup);
            }
        }
    }

    /// There is no broadcast group of the scope that was asked for.
    pub(super) fn not_in_scope(&mut self, now: Moment, id: LinkId) {
        if let Some(link) = self.link_mut(id) {
            link.searched += 1;
        }
        self.seek_scope(now, id);
    }

    /// The broadcast group is known, or what it will be: if it fits it is joined.
    pub(super) fn found(
        &mut self,
        now: Moment,
        id: LinkId,
        mgid: Gid,
        attributes: Attributes,
        knowledge: Knowledge,
    ) {
        let operation = match knowledge {
            Knowledge::Missing(_) => Operation::Create,
            _ => Operation::Join,
        };
        if let Err(refusal) = self.fits_port(id, &attributes) {
            self.refuse_link(now, id, operation, refusal);
            return;
        }
        let key = Key { link: id, mgid };
        if self.link(id).and_then(|link| link.broadcast) != Some(mgid) {
            self.retire_groups(now, id);
        }
        if let Err(refusal) = self.entry(now, key) {
            self.refuse_link(now, id, operation, refusal);
            return;
        }
        if let Some(link) = self.link_mut(id) {
            link.broadcast = Some(mgid);
            link.attributes = Some(attributes);
        }
        self.change(now, key, |group| {
            group.broadcast = true;
            group.retired = false;
            group.knowledge = knowledge;
            hurry(group, now);
        });
        self.move_link(id, Event::Found);
        self.drive(now, key);
    }

    /// Whether a port can be on the link of a broadcast group.
    fn fits_port(&self, id: LinkId, attributes: &Attributes) -> Result<(), Refusal> {
        let link = self.link(id).ok_or(Refusal::UnknownLink)?;
        let port = self.port.as_ref().ok_or(Refusal::PortInactive)?;
        attributes.fit_link(link.spec.p_key, port.mtu)
    }

    /// A rule is against the link: it rests.
    pub(super) fn refuse_link(
        &mut self,
        now: Moment,
        id: LinkId,
        operation: Operation,
        refusal: Refusal,
    ) {
        self.note(id, refusal);
        self.failed(
            now,
            Failure {
                operation,
                cause: Cause::Rule,
                refusal: Some(refusal),
                code: 0,
                link: Some(id),
                mgid: self
                    .link(id)
                    .and_then(|link| link.sought().or(link.broadcast)),
                background: false,
            },
        );
        self.rest_link(now, id);
    }

    /// An attempt has failed: another one after a pause.
    pub(super) fn rest_link(&mut self, now: Moment, id: LinkId) {
        self.move_link(id, Event::Fail);
        let timing = self.settings.timing;
        let failures = self.link(id).map_or(0, |link| link.failures);
        let pause = self
            .chance
            .pause(timing.reply_ms, timing.pause_ms, failures);
        let due = now.after(pause);
        if let Some(link) = self.link_mut(id) {
            link.failures = link.failures.saturating_add(1);
            link.retry = due;
        }
        self.arm_link(id, due);
    }

    /// The pause is over.
    pub(super) fn retry_link(&mut self, now: Moment, id: LinkId) {
        let resting = self
            .link(id)
            .is_some_and(|link| link.phase == Phase::Resting);
        if resting && self.closing.is_none() && self.can_ask() {
            self.move_link(id, Event::Retry);
            self.seek_broadcast(now, id);
        }
    }

    /// Takes every group of a link out of it: its scope is another, so all its MGIDs are.
    fn retire_groups(&mut self, now: Moment, id: LinkId) {
        for key in self.keys_of(id) {
            self.change(now, key, |group| {
                group.addresses = 0;
                group.routed = false;
                group.broadcast = false;
                group.retired = true;
            });
            self.drive(now, key);
        }
    }

    /// Looks at the broadcast group's membership, and moves the link by it.
    pub(super) fn watch_broadcast(&mut self, now: Moment, id: LinkId) {
        let Some((link, group)) = self.broadcast(id) else {
            return;
        };
        let member = group.held.has(JoinState::FULL);
        let sure = member && group.failures == 0;
        let attached = group.attached.is_some();
        let changed = has_changed(link, group);
        let refreshed = group.knowledge.attributes().copied();
        let phase = link.phase;
        match phase {
            Phase::Joining if member => {
                self.adopt_attributes(now, id);
            }
            Phase::Opening | Phase::Attaching | Phase::Up | Phase::Degraded if changed => {
                self.move_link(id, Event::Lost);
                self.seek_broadcast(now, id);
            }
            Phase::Attaching if member && attached => self.come_up(now, id),
            Phase::Degraded if sure && attached => {
                self.move_link(id, Event::Proven);
                if let Some(link) = self.link_mut(id) {
                    link.attributes = refreshed.or(link.attributes);
                }
            }
            Phase::Up if !sure => self.move_link(id, Event::Doubt),
            _ => {}
        }
    }

    /// A link and its broadcast group.
    fn broadcast(&self, id: LinkId) -> Option<(&Link, &Group)> {
        let link = self.link(id)?;
        let mgid = link.broadcast?;
        Some((link, self.groups.get(&Key { link: id, mgid })?))
    }

    /// This port is a full member: the group's attributes become the link's (link section 7), if they still fit.
    fn adopt_attributes(&mut self, now: Moment, id: LinkId) {
        let attributes = self
            .broadcast(id)
            .and_then(|(_, group)| group.knowledge.attributes().copied());
        let Some(attributes) = attributes else {
            return;
        };
        if let Err(refusal) = self.fits_port(id, &attributes) {
            self.refuse_link(now, id, Operation::Join, refusal);
            return;
        }
        if let Some(link) = self.link_mut(id) {
            link.attributes = Some(attributes);
        }
        if !attributes.q_key.is_controlled() {
            self.tell(now, Trouble::OpenQKey { link: id });
        }
        self.move_link(id, Event::Granted);
        self.open_queue(now, id);
    }

    /// The queue pair is attached to the broadcast group: the link is up, and everything else may be joined.
    fn come_up(&mut self, now: Moment, id: LinkId) {
        self.move_link(id, Event::Proven);
        if let Some(link) = self.link_mut(id) {
            link.error = None;
            link.failures = 0;
        }
        self.enlist(now, id);
        for key in self.keys_of(id) {
            self.drive(now, key);
        }
        if self.link(id).is_some_and(|link| link.spec.router) {
            self.take_census(now);
        }
    }

    /// Counts anew for each group the addresses that were joined and map to it.
    fn enlist(&mut self, now: Moment, id: LinkId) {
        for key in self.keys_of(id) {
            self.change(now, key, |group| group.addresses = 0);
        }
        let Some(link) = self.link(id) else {
            return;
        };
        let group_of = |address: &_| link.group_of(*address).ok().flatten();
        let groups: Vec<Gid> = link.addresses.iter().filter_map(group_of).collect();
        for mgid in groups {
            let key = Key { link: id, mgid };
            if let Err(refusal) = self.command(now, key, 1) {
                self.group_failed(now, key, Operation::Join, Cause::Limit, Some(refusal), 0);
            }
        }
    }

    /// Brings a link down: the port, or its place in the partition, is gone.
    pub(super) fn fall(&mut self, now: Moment, id: LinkId, refusal: Refusal) {
        self.note(id, refusal);
        self.move_link(id, Event::Fall);
        self.sa.forget(|purpose| *purpose == Purpose::Broadcast(id));
        for key in self.keys_of(id) {
            self.change(now, key, |group| group.proven = false);
            self.drive(now, key);
        }
    }

    /// Destroys a link's queue pair, and with it all attachments. Not while it is being made: its answer is awaited.
    pub(super) fn discard_queue(&mut self, now: Moment, id: LinkId) {
        let Some(link) = self.link_mut(id) else {
            return;
        };
        if !matches!(link.queue, QueuePair::Open(..)) {
            return;
        }
        link.queue = QueuePair::None;
        link.forget_neighbours();
        self.outputs.push_back(Output::Close { link: id });
        for key in self.keys_of(id) {
            self.change(now, key, super::device::queue_is_gone);
        }
    }
}

/// The broadcast group is another than the one that the link was built on.
fn has_changed(link: &Link, group: &Group) -> bool {
    match (&link.attributes, group.knowledge.attributes()) {
        (Some(ours), Some(theirs)) => {
            (ours.q_key, ours.mtu, ours.p_key) != (theirs.q_key, theirs.mtu, theirs.p_key)
        }
        _ => false,
    }
}
