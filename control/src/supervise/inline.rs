//! The inline size of connections that stand, changed (version two, section 5.3).
//!
//! A size has two halves. What this side takes is its own RBSIZ: larger, it is announced by
//! UPDPROP; smaller, it can only be announced because the peer asks for it (V2-21). What this
//! side sends is bounded by the peer's RBSIZ, which a REQPROP asks it to change: from that
//! request on this side sends nothing longer than it asked for.
//!
//! An lcore forgets an order that its connection is not in a state for, and says nothing of
//! it. So a REQPROP is ordered again until the answer has come; one that is out already makes
//! the next order a vain one, which does no harm. UPDPROPs are kept apart: a peer may close
//! the connection of one who sends too many (V2-13).

use super::policy::{self, Able};
use super::seated::Seated;
use super::{Supervisor, setup};
use rpcrdma_engine::{Decision, PropertyEvent, Side, Values, Verdict};
use rpcrdma_fabric::connect::Fabric;
use rpcrdma_lcore::{ConnectionNumber, SeatOrder};
use std::time::{Duration, Instant};
use tracing::debug;

/// Between two UPDPROPs to one peer. It may take no more than one in a second, whose beginning
/// is its own.
const APART: Duration = Duration::from_secs(2);
/// Between two orders for one REQPROP.
const AGAIN: Duration = Duration::from_millis(100);
/// How long a peer has to answer it.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a peer takes that does not say (version two, 5.3.1).
const DEFAULT_BYTES: u32 = 4096;

/// A REQPROP that has been ordered.
#[derive(Clone, Copy, Debug)]
struct Asking {
    bytes: u32,
    again: Instant,
    until: Instant,
}

/// The sizes of one connection, as far as control knows, and what they are to become.
#[derive(Debug)]
pub(super) struct Inline {
    /// Our RBSIZ.
    announced: u32,
    /// The peer's, once it has announced its properties: before, it is told nothing.
    peer: Option<u32>,
    /// What both are to be, while there is something to do for it.
    goal: Option<u32>,
    asking: Option<Asking>,
    /// The peer was asked for the goal, and has answered.
    answered: bool,
    /// No UPDPROP before.
    quiet: Option<Instant>,
}

impl Inline {
    /// Of a connection that announces so many octets.
    pub(super) fn new(announced: u32) -> Self {
        Self {
            announced,
            peer: None,
            goal: None,
            asking: None,
            answered: false,
            quiet: None,
        }
    }

    /// From now on it is to be this.
    pub(super) fn aim(&mut self, bytes: u32) {
        self.goal = Some(bytes);
        self.answered = false;
    }

    /// What the peer said of its own properties.
    pub(super) fn hear(&mut self, event: PropertyEvent) {
        match event {
            PropertyEvent::Announced(values) => {
                self.peer = Some(values.receive_bytes.unwrap_or(DEFAULT_BYTES));
            }
            PropertyEvent::Updated(values) => self.peer = values.receive_bytes.or(self.peer),
            PropertyEvent::Responded(values) => {
                self.peer = values.receive_bytes.or(self.peer);
                let asked = self.asking.take().map(|it| it.bytes);
                self.answered |= asked.is_some() && asked == self.goal;
            }
            // It takes no property message.
            PropertyEvent::None => self.goal = None,
            PropertyEvent::Requested(_) => {}
        }
    }

    /// What the peer asked for was agreed to.
    fn agreed(&mut self, wanted: Values, decision: Decision) {
        self.announced = match (wanted.receive_bytes, decision.receive_bytes) {
            (Some(bytes), Verdict::Done) | (Some(_), Verdict::Other(bytes)) => bytes,
            _ => self.announced,
        };
    }

    /// The next order for its lcore; `None`: nothing now. A peer that did not answer is given up.
    fn next(&mut self, now: Instant) -> Option<Step> {
        let (goal, peer) = (self.goal?, self.peer?);
        let quiet = self.quiet.is_some_and(|until| now < until);
        if self.announced < goal && !quiet {
            self.announced = goal;
            self.quiet = Some(now + APART);
            return Some(Step::Update(goal));
        }
        if self.asking.is_some_and(|it| it.until <= now) {
            self.asking = None;
            self.answered = true;
        }
        // One at a time (V2-13): one for a former goal is waited for.
        let wanted = (peer != goal && !self.answered).then_some(goal);
        let asking = match (self.asking, wanted) {
            (Some(asking), _) if now < asking.again => return None,
            (Some(asking), _) => asking,
            (None, Some(bytes)) => Asking {
                bytes,
                again: now,
                until: now + PATIENCE,
            },
            (None, None) => {
                self.goal = self.goal.filter(|_| self.announced < goal);
                return None;
            }
        };
        let again = now + AGAIN;
        self.asking = Some(Asking { again, ..asking });
        Some(Step::Request(asking.bytes))
    }

    /// When there may be another order.
    fn due(&self) -> Option<Instant> {
        let goal = self.goal.filter(|_| self.peer.is_some())?;
        let asking = self.asking.map(|it| it.again.min(it.until));
        let quiet = self.quiet.filter(|_| self.announced < goal);
        asking.into_iter().chain(quiet).min()
    }
}

/// An order for an lcore, with the RBSIZ it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Update(u32),
    Request(u32),
}

impl<F: Fabric> Supervisor<F> {
    /// The plan has changed, in which endpoints had these inline sizes: connections that stand
    /// go where there is another now. Of others nothing is asked: their peers have sizes of
    /// their own.
    pub(super) fn resize(&mut self, before: &[u32], now: Instant) {
        let plan = &self.plan;
        for (_, seated) in self.sessions.iter_mut() {
            let bytes = seated.owner.transport(plan).inline_bytes;
            if before.get(seated.owner.place(plan)) != Some(&bytes) {
                seated.inline.aim(bytes);
            }
        }
        self.resizing = Some(now);
    }

    /// Takes connections further on their way to other inline sizes.
    pub(super) fn take_resizing(&mut self, now: Instant) {
        if self.resizing.is_none_or(|due| now < due) {
            return;
        }
        let mut soonest: Option<Instant> = None;
        for (number, seated) in self.sessions.iter_mut() {
            while let Some(step) = seated.inline.next(now) {
                debug!("connection {}: inline size: {step:?}", number.0);
                let order = match step {
                    Step::Update(bytes) => SeatOrder::UpdateProperties(size(bytes)),
                    Step::Request(bytes) => SeatOrder::RequestProperties(size(bytes)),
                };
                self.cores[seated.core].tell(seated.seat, order);
            }
            soonest = soonest.into_iter().chain(seated.inline.due()).min();
        }
        self.resizing = soonest;
    }

    /// What the peer said of properties, and what to say to it if it wants others of us.
    pub(super) fn heard_properties(
        &mut self,
        number: ConnectionNumber,
        event: PropertyEvent,
        now: Instant,
    ) -> Option<Decision> {
        debug!("connection {}: properties: {event:?}", number.0);
        let seated = self.sessions.get_mut(number)?;
        seated.inline.hear(event);
        // It may be the next one's turn.
        self.resizing = Some(now);
        let PropertyEvent::Requested(wanted) = event else {
            return None;
        };
        let decision = decide(seated, &self.plan, wanted);
        seated.inline.agreed(wanted, decision);
        Some(decision)
    }
}

fn decide(seated: &Seated, plan: &rpcrdma_config::Plan, wanted: Values) -> Decision {
    let transport = seated.owner.transport(plan);
    let own = setup::engine(transport, transport.credits, Side::Server);
    let able = Able {
        receive_bytes: own.receive_bytes,
        backward: own.backward,
    };
    policy::decide(able, wanted)
}

fn size(bytes: u32) -> Values {
    Values {
        receive_bytes: Some(bytes),
        ..Values::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection that announces `own` octets, whose peer announced `peer`.
    fn inline(own: u32, peer: u32) -> Inline {
        let mut inline = Inline::new(own);
        inline.hear(PropertyEvent::Announced(size(peer)));
        inline
    }

    fn after(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn larger_is_announced_and_asked_for() {
        let (mut it, t) = (inline(4096, 4096), Instant::now());
        assert_eq!(it.next(t), None);
        it.aim(16_384);
        assert_eq!(it.next(t), Some(Step::Update(16_384)));
        assert_eq!(it.next(t), Some(Step::Request(16_384)));
        assert_eq!((it.next(t), it.due()), (None, Some(after(t, 100))));
        it.hear(PropertyEvent::Responded(size(8192)));
        // What the peer agrees to is what there is.
        assert_eq!((it.next(t), it.due()), (None, None));
        assert_eq!((it.announced, it.peer), (16_384, Some(8192)));
    }

    #[test]
    fn smaller_is_asked_for_alone() {
        let (mut it, t) = (inline(16_384, 16_384), Instant::now());
        it.aim(4096);
        assert_eq!(it.next(t), Some(Step::Request(4096)));
        assert_eq!(it.announced, 16_384);
        let decision = Decision {
            receive_bytes: Verdict::Done,
            backward: Verdict::Rejected,
        };
        it.agreed(size(4096), decision);
        it.hear(PropertyEvent::Responded(size(4096)));
        assert_eq!((it.next(t), it.due()), (None, None));
        assert_eq!((it.announced, it.peer), (4096, Some(4096)));
    }

    #[test]
    fn nothing_is_said_before_the_peer_has_spoken() {
        let (mut it, t) = (Inline::new(4096), Instant::now());
        it.aim(8192);
        assert_eq!((it.next(t), it.due()), (None, None));
        it.hear(PropertyEvent::Announced(Values::default()));
        assert_eq!(it.next(t), Some(Step::Update(8192)));
        let mut mute = Inline::new(4096);
        mute.aim(8192);
        mute.hear(PropertyEvent::None);
        assert_eq!(mute.next(t), None);
    }

    #[test]
    fn a_request_is_ordered_until_it_is_answered_or_too_late() {
        let (mut it, t) = (inline(8192, 4096), Instant::now());
        it.aim(8192);
        assert_eq!(it.next(t), Some(Step::Request(8192)));
        assert_eq!(it.next(after(t, 99)), None);
        assert_eq!(it.next(after(t, 100)), Some(Step::Request(8192)));
        assert_eq!(it.next(after(t, 10_000)), None);
        assert_eq!((it.next(after(t, 20_000)), it.due()), (None, None));
    }

    #[test]
    fn an_answer_to_a_former_goal_is_waited_for() {
        let (mut it, t) = (inline(16_384, 4096), Instant::now());
        it.aim(16_384);
        assert_eq!(it.next(t), Some(Step::Request(16_384)));
        it.aim(8192);
        assert_eq!(it.next(after(t, 100)), Some(Step::Request(16_384)));
        it.hear(PropertyEvent::Responded(size(16_384)));
        assert_eq!(it.next(after(t, 150)), Some(Step::Request(8192)));
        it.hear(PropertyEvent::Responded(size(8192)));
        assert_eq!((it.next(after(t, 160)), it.due()), (None, None));
    }

    #[test]
    fn updates_are_kept_apart() {
        let (mut it, t) = (inline(4096, 16_384), Instant::now());
        it.aim(8192);
        assert_eq!(it.next(t), Some(Step::Update(8192)));
        it.hear(PropertyEvent::Updated(size(12_288)));
        it.aim(12_288);
        assert_eq!((it.next(t), it.due()), (None, Some(after(t, 2000))));
        assert_eq!(it.next(after(t, 1999)), None);
        assert_eq!(it.next(after(t, 2000)), Some(Step::Update(12_288)));
        assert_eq!((it.next(after(t, 2001)), it.due()), (None, None));
    }
}
