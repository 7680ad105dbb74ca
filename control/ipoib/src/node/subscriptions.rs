//! Subscriptions to the SA's reports of groups created and deleted (link sections 9 and 10 C): one each for the port, of all
//! groups, since a router needs all and the others can leave out what they do not know.
//!
//! The SA may forget them without a word, as it may memberships; so they are renewed as often as those are verified.

use super::timers::Timer;
use super::{Node, Purpose, lane};
use crate::mad::InformInfo;
use crate::sa::{Answer, Outcome, Request};
use crate::time::Moment;
use crate::trouble::Operation;

/// Where a subscription is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// There is none.
    Off,
    /// It is asked for.
    Asking,
    /// It stands.
    On,
    /// It is being ended.
    Ending,
}

/// One subscription.
#[derive(Debug)]
pub(super) struct Subscription {
    /// Reports of what.
    pub(super) trap: u16,
    pub(super) state: State,
    failures: u8,
}

impl Subscription {
    pub(super) const fn new(trap: u16) -> Self {
        Self {
            trap,
            state: State::Off,
            failures: 0,
        }
    }
}

impl Node {
    /// Asks for every subscription anew.
    pub(super) fn subscribe_again(&mut self) {
        for index in 0..2 {
            if let Some(subscription) = self.subscription(index) {
                subscription.failures = 0;
            }
            self.renew_subscription(index);
        }
    }

    fn subscription(&mut self, index: u8) -> Option<&mut Subscription> {
        self.subscriptions.get_mut(usize::from(index))
    }

    /// Asks for a subscription, or for it again.
    pub(super) fn renew_subscription(&mut self, index: u8) {
        if !self.can_ask() || self.closing.is_some() || self.links.is_empty() {
            return;
        }
        let Some(subscription) = self.subscription(index) else {
            return;
        };
        subscription.state = State::Asking;
        let trap = subscription.trap;
        self.ask_subscription(index, trap, true);
    }

    fn ask_subscription(&mut self, index: u8, trap: u16, subscribe: bool) {
        let purpose = Purpose::Subscription(index);
        self.sa.forget(|other| *other == purpose);
        let request = Request::Subscribe(InformInfo::of_trap(trap, subscribe));
        self.sa.ask(lane(&purpose), purpose, request);
    }

    /// Ends what stands. What is being asked for is ended when it is answered: an end that overtook its beginning would
    /// leave it standing.
    pub(super) fn end_subscriptions(&mut self) {
        for index in 0..2 {
            if self
                .subscription(index)
                .is_some_and(|it| it.state == State::On)
            {
                self.end_subscription(index);
            }
        }
    }

    fn end_subscription(&mut self, index: u8) {
        let Some(subscription) = self.subscription(index) else {
            return;
        };
        subscription.state = State::Ending;
        let trap = subscription.trap;
        self.ask_subscription(index, trap, false);
    }

    pub(super) fn subscription_outcome(&mut self, now: Moment, index: u8, outcome: &Outcome) {
        let done = *outcome == Outcome::Answered(Answer::Subscribed);
        let Some(subscription) = self.subscription(index) else {
            return;
        };
        if subscription.state == State::Ending {
            // over in any case: there is no second attempt when one leaves
            subscription.state = State::Off;
            if !done {
                self.port_failed(now, Operation::Unsubscribe, outcome);
            }
            return;
        }
        if self.closing.is_some() {
            self.end_subscription(index);
            return;
        }
        let Some(subscription) = self.subscription(index) else {
            return;
        };
        subscription.state = if done { State::On } else { State::Off };
        let failures = subscription.failures;
        subscription.failures = if done { 0 } else { failures.saturating_add(1) };
        let timing = self.settings.timing;
        let pause = if done {
            let early = self.chance.below(timing.verify_ms / 4 + 1);
            timing.verify_ms - early
        } else {
            self.port_failed(now, Operation::Subscribe, outcome);
            self.chance
                .pause(timing.reply_ms, timing.pause_ms, failures)
        };
        if done && self.send_only_full.is_none() {
            self.ask_capabilities();
        }
        self.arm(Timer::Subscription(index), now.after(pause));
    }

    /// What the SA can do is known: whether senders may join as SendOnlyFullMember.
    pub(super) fn capabilities_came(&mut self, now: Moment, outcome: &Outcome) {
        match outcome {
            Outcome::Answered(Answer::Capabilities(info)) => {
                self.send_only_full = Some(info.has_send_only_full_member());
            }
            other => self.port_failed(now, Operation::Capabilities, other),
        }
    }
}
