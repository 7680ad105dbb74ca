//! One group as this port knows it: what is wanted of it, what the SA has granted, and the next thing to do about the
//! difference.
//!
//! **Want and hold.** *Wanted* follows from why: an address was joined (FullMember), a router joins all (NonMember, link
//! section 10), datagrams were sent lately (send-only, link section 9). *Held* is what the SA has answered to. *Doubted* is
//! what it may hold without our knowing: a join or leave on its way, everything after a change of the subnet manager. What
//! was joined adds up at the SA, so exactly what is held and not wanted is left, and what is doubted and not wanted is left
//! kind by kind (also what could stay if it were sure), since one wrong kind makes a leave fail as a whole.
//!
//! **One thing at a time.** [`Group::next_step`] looks at both and names one step; until that is over nothing else goes on.
//! There is no list of things to do which could become wrong: after every change the difference is looked at anew. So a
//! join is idempotent, a membership that the SA forgot is joined again, and one that it holds against our will is left.
//!
//! **Order.** The queue pair is attached after the join and detached before the leave. After the last leave the SA is asked
//! once more, when every late duplicate of our joins must have come: a join that overtook its leave would otherwise hold
//! the group, and its LID, for ever.
//!
//! **Existence.** What is known of a group is good for `cache_ms`; reports of its creation or deletion end that at once,
//! and prove nothing: the SA is asked (a preconfigured group survives its deletion).

mod attributes;
mod phase;
mod waiting;

pub use attributes::{Attributes, naming};
pub use phase::{Event, Phase};
pub use waiting::{Queue, Waiting};

use crate::gid::Lid;
use crate::join::JoinState;
use crate::settings::Timing;
use crate::time::Moment;
use crate::trouble::Refusal;

/// What is known of a group's existence, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// Nothing, or nothing that is still good.
    Unknown,
    /// There was none.
    Missing(Moment),
    /// There was one, like this.
    Exists(Attributes, Moment),
}

impl Knowledge {
    /// What of it is still good.
    #[must_use]
    pub fn fresh(self, now: Moment, cache_ms: u64) -> Self {
        match self {
            Self::Missing(since) | Self::Exists(_, since) if now.since(since) >= cache_ms => {
                Self::Unknown
            }
            known => known,
        }
    }

    /// The attributes of a group that exists, fresh or not.
    #[must_use]
    pub const fn attributes(&self) -> Option<&Attributes> {
        match self {
            Self::Exists(attributes, _) => Some(attributes),
            _ => None,
        }
    }
}

/// The world around a group, as far as it matters to its next step.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The time.
    pub now: Moment,
    /// How long things last.
    pub timing: &'a Timing,
    /// The SA can be asked: the port is active.
    pub reachable: bool,
    /// The link is usable, or this is its broadcast group, which is joined first.
    pub usable: bool,
    /// The link's queue pair is there.
    pub queue: bool,
    /// The kind of membership that a sender takes.
    pub send_only: JoinState,
    /// The node is closing: everything is left, and the SA is not asked afterwards.
    pub closing: bool,
}

/// What to do next about a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing before that moment, or before something changes.
    Rest(Moment),
    /// Ask for its record.
    Seek,
    /// Join as this.
    Join(JoinState),
    /// Create it, joining as this.
    Create(JoinState),
    /// Attach the queue pair, with this MLID.
    Attach(Lid),
    /// Detach it.
    Detach(Lid),
    /// Leave as this.
    Leave(JoinState),
    /// Ask for this port's own record.
    Check,
    /// Nothing is held or wanted, and no request of ours can be on its way: the entry is a cached one.
    Empty,
}

/// One group.
#[derive(Debug)]
pub struct Group {
    /// What goes on.
    pub phase: Phase,
    /// Whether it exists.
    pub knowledge: Knowledge,
    /// Addresses that were joined and map to it (of IPv6, two may).
    pub addresses: u16,
    /// A router of this node joins it because it joins all.
    pub routed: bool,
    /// It is the link's broadcast group.
    pub broadcast: bool,
    /// It belongs to a link that is no more, or to another scope: it is to be left.
    pub retired: bool,
    /// What the SA has granted.
    pub held: JoinState,
    /// What the SA may hold besides.
    pub doubt: JoinState,
    /// All that was ever asked for since the entry was made: what an unexpected record can be blamed on.
    pub ever: JoinState,
    /// What the request that is on its way is about.
    pub asked: JoinState,
    /// The request on its way creates the group.
    pub creating: bool,
    /// A join has been sent since the SA last confirmed that nothing is held.
    pub dirty: bool,
    /// A join was granted, and nothing has disproved it since: doubt does not stop who sends and receives.
    pub proven: bool,
    /// What is being left was held for certain, and kept the group alive: a refusal is news.
    pub certain: bool,
    /// A leave was sent since all kinds of membership were made sure.
    pub left: bool,
    /// No late duplicate of a join or leave can come any more from then on.
    pub quiet: Moment,
    /// The queue pair is attached, with this MLID.
    pub attached: Option<Lid>,
    /// It was told as joined.
    pub announced: bool,
    /// A datagram to it was last to be sent then.
    pub sent: Option<Moment>,
    /// This port's own record is looked up then: to confirm what is held, or that nothing is.
    pub check: Moment,
    /// Failures in a row.
    pub failures: u8,
    /// The next attempt after a failure.
    pub retry: Moment,
    /// The moment for which the node has a timer.
    pub timer: Option<Moment>,
    /// What waits for it.
    pub waiting: Queue,
}

impl Group {
    /// One of which nothing is known.
    #[must_use]
    pub fn new(now: Moment) -> Self {
        Self {
            phase: Phase::Out,
            knowledge: Knowledge::Unknown,
            addresses: 0,
            routed: false,
            broadcast: false,
            retired: false,
            held: JoinState::NONE,
            doubt: JoinState::NONE,
            ever: JoinState::NONE,
            asked: JoinState::NONE,
            creating: false,
            dirty: false,
            proven: false,
            certain: false,
            left: false,
            quiet: now,
            attached: None,
            announced: false,
            sent: None,
            check: now,
            failures: 0,
            retry: now,
            timer: None,
            waiting: Queue::default(),
        }
    }

    /// Datagrams were to be sent lately.
    fn is_sending(&self, around: &Surroundings<'_>) -> bool {
        let recent = |sent| around.now.since(sent) < around.timing.idle_ms;
        self.sent.is_some_and(recent)
    }

    /// The membership that is needed: the strongest reason counts.
    #[must_use]
    pub fn needed(&self, around: &Surroundings<'_>) -> JoinState {
        if self.retired || around.closing {
            JoinState::NONE
        } else if self.broadcast || self.addresses > 0 {
            JoinState::FULL
        } else if self.routed {
            JoinState::NON
        } else if self.is_sending(around) {
            let sender = JoinState::SEND_ONLY_NON.with(JoinState::SEND_ONLY_FULL);
            let held = self.held.both(sender);
            // one kind is enough to send, whichever it became
            if held.is_none() {
                around.send_only
            } else {
                held
            }
        } else {
            JoinState::NONE
        }
    }

    /// The membership that there is a reason for, needed or not.
    #[must_use]
    pub fn allowed(&self, around: &Surroundings<'_>) -> JoinState {
        let mut allowed = self.needed(around);
        if self.retired || around.closing {
            return allowed;
        }
        if self.routed {
            allowed = allowed.with(JoinState::NON);
        }
        if self.is_sending(around) {
            allowed = allowed.with(JoinState::SEND_ONLY_NON);
            // OpenSM counts a port once for both kinds that keep a group alive: had the full membership to be left first, the
            // other would be gone too, and the group, with its LID, would stay for ever
            if !self.held.has(JoinState::FULL) {
                allowed = allowed.with(JoinState::SEND_ONLY_FULL);
            }
        }
        allowed
    }

    /// What to do next, where nothing goes on.
    #[must_use]
    pub fn next_step(&self, around: &Surroundings<'_>) -> Step {
        let leaving = self.retired || around.closing;
        if !around.reachable || !(around.usable || leaving) {
            return Step::Rest(self.rest(around));
        }
        if self.phase == Phase::Resting && around.now < self.retry {
            return Step::Rest(self.rest(around));
        }
        self.surplus_step(around)
            .or_else(|| self.missing_step(around))
            .or_else(|| self.attach_step(around))
            .unwrap_or_else(|| self.upkeep_step(around))
    }

    /// What is held and not wanted is given up, the queue pair first.
    fn surplus_step(&self, around: &Surroundings<'_>) -> Option<Step> {
        let allowed = self.allowed(around);
        if let Some(mlid) = self.attached
            && !allowed.receives()
        {
            return Some(Step::Detach(mlid));
        }
        let surplus = self.held.without(allowed);
        if !surplus.is_none() {
            return Some(Step::Leave(surplus));
        }
        let doubted = self.doubt.without(self.needed(around));
        (!doubted.is_none()).then(|| Step::Leave(doubted.first()))
    }

    /// What is wanted and not held is joined, if the group is there or may be created.
    fn missing_step(&self, around: &Surroundings<'_>) -> Option<Step> {
        let missing = self.needed(around).without(self.held);
        if missing.is_none() {
            return None;
        }
        match self.knowledge {
            Knowledge::Exists(..) => Some(Step::Join(missing)),
            Knowledge::Unknown => Some(Step::Seek),
            Knowledge::Missing(_) if missing.has(JoinState::FULL) => Some(Step::Create(missing)),
            Knowledge::Missing(_) => None,
        }
    }

    /// A receiver's queue pair is attached, with the MLID that the group has now.
    fn attach_step(&self, around: &Surroundings<'_>) -> Option<Step> {
        let mlid = self.knowledge.attributes()?.mlid;
        match self.attached {
            Some(attached) if attached != mlid => Some(Step::Detach(attached)),
            None if self.held.receives() && around.queue => Some(Step::Attach(mlid)),
            _ => None,
        }
    }

    /// Nothing is to be changed: what is held is confirmed now and then, and what is not, once.
    fn upkeep_step(&self, around: &Surroundings<'_>) -> Step {
        let due = self.check_due(around);
        match due {
            Some(due) if due <= around.now && !around.closing => Step::Check,
            Some(_) => Step::Rest(self.rest(around)),
            None => Step::Empty,
        }
    }

    /// When one's own record is to be looked up; `None` where nothing is held, and nothing of ours can be on its way.
    fn check_due(&self, around: &Surroundings<'_>) -> Option<Moment> {
        let unsure = self.dirty && !around.closing;
        (!self.held.is_none() || unsure).then_some(self.check)
    }

    /// How long nothing happens of itself.
    #[must_use]
    pub fn rest(&self, around: &Surroundings<'_>) -> Moment {
        let later = |moment: Moment| (moment > around.now).then_some(moment);
        let retry = (self.phase == Phase::Resting).then_some(self.retry);
        let idle = self.sent.map(|sent| sent.after(around.timing.idle_ms));
        let due = self.check_due(around);
        [retry, idle, due, self.waiting.wake()]
            .into_iter()
            .flatten()
            .filter_map(later)
            .min()
            .unwrap_or(Moment(u64::MAX))
    }

    /// The still phase that what is held calls for.
    #[must_use]
    pub fn still(&self) -> Event {
        if !self.held.is_none() {
            Event::Held
        } else if self.dirty || !self.doubt.is_none() || self.attached.is_some() {
            Event::Settle
        } else {
            Event::Empty
        }
    }

    /// The SA may have forgotten this port, or know it by another address: nothing that was held is sure.
    pub fn doubt_all(&mut self) {
        self.doubt = self.doubt.with(self.held);
        self.held = JoinState::NONE;
    }

    /// Datagrams can be sent to it: the first line of link section 9's rule.
    #[must_use]
    pub const fn can_send(&self) -> bool {
        self.proven && matches!(self.knowledge, Knowledge::Exists(..))
    }

    /// The entry is worth nothing but what it remembers.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Out
            && !self.broadcast
            && self.addresses == 0
            && !self.routed
            && self.waiting.is_empty()
    }

    /// Whether a group that exists may be joined, by the rules for the link.
    ///
    /// # Errors
    /// The rule against it.
    pub fn fits(&self, link: &Attributes, port_mtu: crate::mtu::Mtu) -> Result<(), Refusal> {
        match (&self.knowledge, self.broadcast) {
            (Knowledge::Exists(attributes, _), false) => attributes.fit_group(link, port_mtu),
            _ => Ok(()),
        }
    }
}

/// The state of one group, with room for its key and its timer, stays below 512 octets; what waits for it is apart.
const _: () = assert!(size_of::<Group>() <= 384);
