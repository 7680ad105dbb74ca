//! Carries out what each group's next step is, and keeps account of it.

use super::timers::Timer;
use super::{Attachment, Key, Node, Output, Purpose, lane};
use crate::gid::{Gid, Lid};
use crate::group::{Attributes, Event, Group, Knowledge, Phase, Step, Surroundings, naming};
use crate::join::JoinState;
use crate::link;
use crate::mad::McMemberTemplate;
use crate::sa::Request;
use crate::time::Moment;
use crate::trouble::{Cause, Failure, Operation, Refusal};
use rpcrdma_listed::Illegal;

/// Moves a group; a step that is none is our own mistake, which a release survives.
pub(super) fn advance(group: &mut Group, event: Event) {
    match group.phase.next(event) {
        Ok(phase) => group.phase = phase,
        Err(Illegal) => debug_assert!(false, "{:?} on {event:?}", group.phase),
    }
}

/// What a group counts for in the accounts.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Account {
    member: bool,
    attached: bool,
    /// It was asked for, and could not be joined.
    failing: bool,
    octets: usize,
}

impl Account {
    fn of(group: &Group) -> Self {
        Self {
            member: !group.held.is_none(),
            attached: group.attached.is_some(),
            failing: group.addresses > 0 && group.failures > 0 && !group.announced,
            octets: group.waiting.octets(),
        }
    }
}

impl Node {
    /// Changes a group, and the accounts with it: the only way to change one.
    pub(super) fn change<R>(
        &mut self,
        now: Moment,
        key: Key,
        change: impl FnOnce(&mut Group) -> R,
    ) -> Option<R> {
        let group = self.groups.get_mut(&key)?;
        let before = Account::of(group);
        let result = change(group);
        let after = Account::of(group);
        if before != after {
            self.settle_accounts(now, key, before, after);
        }
        Some(result)
    }

    fn settle_accounts(&mut self, now: Moment, key: Key, before: Account, after: Account) {
        let octets = self.waiting_octets + after.octets;
        self.waiting_octets = octets.saturating_sub(before.octets);
        let mut troubles = [None; 3];
        match (before.member, after.member) {
            (false, true) => troubles[0] = self.gauges.memberships.take(),
            (true, false) => self.gauges.memberships.give(),
            _ => {}
        }
        match (before.attached, after.attached) {
            (false, true) => [troubles[1], troubles[2]] = self.gauges.attach(key.mgid),
            (true, false) => self.gauges.detach(key.mgid),
            _ => {}
        }
        for trouble in troubles.into_iter().flatten() {
            self.tell(now, trouble);
        }
        let Some(link) = self.link_mut(key.link) else {
            return;
        };
        match (before.failing, after.failing) {
            (false, true) => link.failing += 1,
            (true, false) => link.failing = link.failing.saturating_sub(1),
            _ => return,
        }
        self.tell_state(key.link);
    }

    /// The entry of a group, made if there is room; an old one that is only remembered makes room.
    pub(super) fn entry(&mut self, now: Moment, key: Key) -> Result<(), Refusal> {
        if self.groups.contains_key(&key) {
            return Ok(());
        }
        if self.groups.is_empty() {
            let due = now.after(self.settings.timing.cache_ms);
            self.arm(Timer::Sweep, due);
        }
        if self.groups.len() >= self.settings.limits.groups {
            let idle = self.groups.iter().filter(|(_, group)| group.is_idle());
            let oldest = idle
                .min_by_key(|(_, group)| group.sent)
                .map(|(key, _)| *key);
            self.remove(oldest.ok_or(Refusal::GroupsFull)?);
        }
        self.groups.insert(key, Group::new(now));
        Ok(())
    }

    /// So many addresses more are joined which map to a group.
    pub(super) fn command(&mut self, now: Moment, key: Key, addresses: u16) -> Result<(), Refusal> {
        self.entry(now, key)?;
        self.change(now, key, |group| {
            group.addresses = group.addresses.saturating_add(addresses);
            group.retired = false;
            hurry(group, now);
        });
        self.drive(now, key);
        Ok(())
    }

    /// Does the next thing about a group, as long as there is one that need not be waited for.
    pub(super) fn drive(&mut self, now: Moment, key: Key) {
        loop {
            let around = self.surroundings(now, key);
            let step = match self.groups.get(&key) {
                None => return,
                Some(group) if group.phase.is_still() => group.next_step(&around),
                Some(_) => break,
            };
            if !self.take_step(now, key, step) {
                break;
            }
        }
        self.release_waiting(now, key);
        self.announce(now, key);
        let around = self.surroundings(now, key);
        if let Some(due) = self.groups.get(&key).map(|group| group.rest(&around)) {
            self.arm_group(key, due);
        }
        if self.groups.get(&key).is_some_and(|group| group.broadcast) {
            self.watch_broadcast(now, key.link);
        }
    }

    /// The world around a group.
    pub(super) fn surroundings(&self, now: Moment, key: Key) -> Surroundings<'_> {
        let link = self.link(key.link);
        let broadcast = self.groups.get(&key).is_some_and(|group| group.broadcast);
        let usable = link.is_some_and(|link| match link.phase {
            link::Phase::Up | link::Phase::Degraded => true,
            link::Phase::Joining | link::Phase::Opening | link::Phase::Attaching => broadcast,
            link::Phase::Down | link::Phase::Seeking | link::Phase::Resting => false,
        });
        Surroundings {
            now,
            timing: &self.settings.timing,
            reachable: self.can_ask(),
            usable,
            queue: link.is_some_and(|link| link.has_queue() && link.phase.may_attach()),
            send_only: self.send_only(),
            closing: self.closing.is_some(),
        }
    }

    /// The kind of membership that senders take (link section 9 B).
    fn send_only(&self) -> JoinState {
        if self.settings.send_only_full && self.send_only_full == Some(true) {
            JoinState::SEND_ONLY_FULL
        } else {
            JoinState::SEND_ONLY_NON
        }
    }

    /// Takes a step; whether another may follow at once.
    fn take_step(&mut self, now: Moment, key: Key, step: Step) -> bool {
        match step {
            Step::Rest(_) | Step::Empty => {
                self.stand_still(now, key, step);
                false
            }
            Step::Seek => {
                let template = McMemberTemplate {
                    mgid: Some(key.mgid),
                    ..McMemberTemplate::default()
                };
                self.begin(now, key, Event::Seek, Request::Record(template));
                false
            }
            Step::Join(state) => self.begin_join(now, key, state, false),
            Step::Create(state) => self.begin_join(now, key, state, true),
            Step::Leave(state) => {
                self.begin_leave(now, key, state);
                false
            }
            Step::Check => {
                let Some(port_gid) = self.port_gid() else {
                    return false;
                };
                let request = Request::Record(naming(key.mgid, port_gid));
                self.begin(now, key, Event::Check, request);
                false
            }
            Step::Attach(mlid) => self.begin_attach(now, key, mlid),
            Step::Detach(mlid) => self.begin_detach(now, key, mlid),
        }
    }

    fn stand_still(&mut self, now: Moment, key: Key, step: Step) {
        self.change(now, key, |group| {
            let pausing = group.phase == Phase::Resting && now < group.retry;
            if !pausing {
                let event = group.still();
                advance(group, event);
            }
        });
        let retired = |group: &Group| group.retired && group.is_idle();
        if step == Step::Empty && self.groups.get(&key).is_some_and(retired) {
            self.remove(key);
        }
    }

    /// Asks the SA something about a group.
    fn begin(&mut self, now: Moment, key: Key, event: Event, request: Request) {
        self.change(now, key, |group| advance(group, event));
        let purpose = Purpose::Group(key);
        self.sa.ask(lane(&purpose), purpose, request);
    }

    fn begin_join(&mut self, now: Moment, key: Key, state: JoinState, creating: bool) -> bool {
        let Some(port_gid) = self.port_gid() else {
            return false;
        };
        let request = match self.join_request(key, port_gid, creating) {
            Ok(request) => request,
            Err(refusal) => {
                self.refuse(now, key, state, creating, refusal);
                return false;
            }
        };
        self.change(now, key, |group| {
            group.asked = state;
            group.ever = group.ever.with(state);
            group.creating = creating;
            group.dirty = true;
        });
        let join_state = Some(state);
        let request = Request::Join(McMemberTemplate {
            join_state,
            ..request
        });
        self.begin(now, key, Event::Join, request);
        false
    }

    /// What names the group: itself and this port alone, or everything that creating one needs (link sections 4 and 9).
    fn join_request(
        &self,
        key: Key,
        port_gid: Gid,
        creating: bool,
    ) -> Result<McMemberTemplate, Refusal> {
        let link = self.link(key.link).ok_or(Refusal::UnknownLink)?;
        let group = self.groups.get(&key).ok_or(Refusal::UnknownLink)?;
        if creating && group.broadcast {
            let creation = link.spec.create.ok_or(Refusal::NoBroadcastGroup)?;
            let attributes = Attributes::of_creation(&creation, link.spec.p_key);
            return Ok(attributes.creating(key.mgid, port_gid));
        }
        let attributes = link.attributes.ok_or(Refusal::NoBroadcastGroup)?;
        if creating {
            return Ok(attributes.creating(key.mgid, port_gid));
        }
        let port = self.port.as_ref().ok_or(Refusal::PortInactive)?;
        group.fits(&attributes, port.mtu)?;
        Ok(naming(key.mgid, port_gid))
    }

    /// A rule is against joining: the SA is asked about the group again after a while, since it may become another one.
    fn refuse(&mut self, now: Moment, key: Key, state: JoinState, creating: bool, why: Refusal) {
        let operation = join_operation(state, creating);
        self.group_failed(now, key, operation, Cause::Rule, Some(why), 0);
        let pause = self.chance.about(self.settings.timing.verify_ms);
        self.change(now, key, |group| {
            group.knowledge = Knowledge::Unknown;
            group.failures = group.failures.saturating_add(1);
            group.retry = now.after(pause);
            advance(group, Event::Fail);
        });
    }

    fn begin_leave(&mut self, now: Moment, key: Key, state: JoinState) {
        let Some(port_gid) = self.port_gid() else {
            return;
        };
        self.change(now, key, |group| {
            group.left = true;
            group.certain = group.held.has(state) && state.keeps_alive();
            group.held = group.held.without(state);
            group.doubt = group.doubt.with(state);
            group.proven &= !group.held.is_none();
            group.asked = state;
        });
        let request = Request::Leave(McMemberTemplate {
            join_state: Some(state),
            ..naming(key.mgid, port_gid)
        });
        self.begin(now, key, Event::Leave, request);
    }

    fn begin_attach(&mut self, now: Moment, key: Key, mlid: Lid) -> bool {
        self.change(now, key, |group| advance(group, Event::Attach));
        let attachment = Attachment {
            link: key.link,
            mgid: key.mgid,
            mlid,
        };
        self.outputs.push_back(Output::Attach(attachment));
        false
    }

    fn begin_detach(&mut self, now: Moment, key: Key, mlid: Lid) -> bool {
        self.change(now, key, |group| advance(group, Event::Detach));
        let attachment = Attachment {
            link: key.link,
            mgid: key.mgid,
            mlid,
        };
        self.outputs.push_back(Output::Detach(attachment));
        false
    }

    /// Tells whoever joined a group when it becomes joined, and when it is so no longer.
    fn announce(&mut self, now: Moment, key: Key) {
        let Some(group) = self.groups.get(&key) else {
            return;
        };
        let joined = group.addresses > 0 && group.proven && group.attached.is_some();
        if group.announced != joined {
            self.change(now, key, |group| group.announced = joined);
            let (link, mgid) = (key.link, key.mgid);
            self.outputs
                .push_back(Output::Member { link, mgid, joined });
        }
    }

    /// Counts and tells a failure about a group.
    pub(super) fn group_failed(
        &mut self,
        now: Moment,
        key: Key,
        operation: Operation,
        cause: Cause,
        refusal: Option<Refusal>,
        code: i32,
    ) {
        let waited_for = |group: &Group| group.addresses > 0 || !group.waiting.is_empty();
        let background = !self.groups.get(&key).is_some_and(waited_for);
        self.failed(
            now,
            Failure {
                operation,
                cause,
                refusal,
                code,
                link: Some(key.link),
                mgid: Some(key.mgid),
                background,
            },
        );
    }

    /// Counts and tells a failure.
    pub(super) fn failed(&mut self, now: Moment, failure: Failure) {
        if let Some(link) = failure.link.and_then(|id| self.link_mut(id)) {
            link.failure = Some(failure);
        }
        let told = self.ledger.failed(now, failure);
        self.outputs.extend(told.map(Output::Trouble));
    }

    /// After a failure: the next attempt after a pause.
    pub(super) fn rest_group(&mut self, now: Moment, key: Key) {
        let timing = self.settings.timing;
        let failures = self.groups.get(&key).map_or(0, |group| group.failures);
        let pause = self
            .chance
            .pause(timing.reply_ms, timing.pause_ms, failures);
        self.change(now, key, |group| {
            group.failures = group.failures.saturating_add(1);
            group.retry = now.after(pause);
            advance(group, Event::Fail);
        });
    }

    /// This port's GID.
    pub(super) fn port_gid(&self) -> Option<Gid> {
        self.port.as_ref().map(|port| port.gid)
    }
}

/// A group that rests makes its next attempt now: something is different.
pub(super) fn hurry(group: &mut Group, now: Moment) {
    group.retry = group.retry.min(now);
}

/// What an attempt to join is called where it fails.
pub(super) const fn join_operation(state: JoinState, creating: bool) -> Operation {
    if creating {
        Operation::Create
    } else if state.receives() {
        Operation::Join
    } else {
        Operation::SendOnlyJoin
    }
}
