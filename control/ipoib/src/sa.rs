//! Transactions with the SA: what is asked, asked again, answered, and given up.
//!
//! A request is asked until it is answered or was asked `tries` times. The wait for an answer doubles each time and has
//! jitter; a busy SA, or one without resources, is asked again after the same pauses. All tries of a request have one
//! transaction identifier, drawn at random, so an answer to any of them is an answer, a second one is to nothing asked, and
//! who cannot see the requests cannot answer them.
//!
//! At most `outstanding` requests are on their way. The others wait in lanes which take turns, so a link with a thousand
//! groups to join does not keep another from its one. Each owner has at most one request at a time: that bounds the lanes.
//!
//! An answer after silence is a sign that the SA is back, and whatever is still being waited for is asked again soon: the
//! longest pause is not the time that a recovery takes.

pub mod chance;
mod request;

pub use chance::Chance;
pub use request::{Answer, Mismatch, Request};

use crate::mad::{Mad, MadOctets, Status, Tid};
use crate::settings::{Limits, Timing};
use crate::time::Moment;
use crate::trouble::Ignored;
use std::collections::{BTreeMap, VecDeque};

/// Who takes turns with whom.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lane(pub u8);

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Answered(Answer),
    /// The SA refused it.
    Refused(Status),
    /// The SA was busy, or without resources, to the last.
    Busy(Status),
    /// No answer came, however often it was asked.
    Silent,
    /// Answers came that were none.
    Malformed,
}

/// A request that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled<P> {
    /// Whose it was.
    pub purpose: P,
    /// What became of it.
    pub outcome: Outcome,
    /// How often it was asked.
    pub tries: u8,
}

#[derive(Debug)]
struct Ask<P> {
    purpose: P,
    request: Request,
}

#[derive(Debug)]
struct Pending<P> {
    ask: Ask<P>,
    tid: Tid,
    tries: u8,
    /// When it is asked again, or given up.
    due: Moment,
    /// What the last try came to, if anything came.
    last: Option<Outcome>,
}

/// Everything that is being asked of the SA, with the owner's purpose of each.
#[derive(Debug)]
pub struct Transactions<P> {
    timing: Timing,
    outstanding: usize,
    records: usize,
    lanes: BTreeMap<Lane, VecDeque<Ask<P>>>,
    served: Lane,
    pending: Vec<Pending<P>>,
    /// Somebody has waited in vain since the last answer.
    silent: bool,
}

impl<P> Transactions<P> {
    /// None.
    #[must_use]
    pub fn new(timing: Timing, limits: &Limits) -> Self {
        Self {
            timing,
            outstanding: limits.outstanding.max(1),
            records: limits.groups,
            lanes: BTreeMap::new(),
            served: Lane(u8::MAX),
            pending: Vec::with_capacity(limits.outstanding),
            silent: false,
        }
    }

    /// Asks, when it is the lane's turn.
    pub fn ask(&mut self, lane: Lane, purpose: P, request: Request) {
        let ask = Ask { purpose, request };
        self.lanes.entry(lane).or_default().push_back(ask);
    }

    /// The next datagram to send now: one that is asked for the first time, or again. To be called until it gives none.
    pub fn next_datagram(&mut self, now: Moment, chance: &mut Chance) -> Option<MadOctets> {
        let again = self
            .pending
            .iter()
            .position(|pending| pending.due <= now && pending.tries < self.timing.tries);
        let at = match again {
            Some(at) => at,
            None => self.start(now, chance)?,
        };
        let pending = self.pending.get_mut(at)?;
        if pending.tries > 0 && pending.last.is_none() {
            self.silent = true;
        }
        let pause = chance.pause(self.timing.reply_ms, self.timing.pause_ms, pending.tries);
        pending.due = now.after(pause);
        pending.tries += 1;
        pending.last = None;
        Some(pending.ask.request.octets(pending.tid))
    }

    /// Takes what has waited longest in the next lane, if one more may be on its way.
    fn start(&mut self, now: Moment, chance: &mut Chance) -> Option<usize> {
        if self.pending.len() >= self.outstanding {
            return None;
        }
        let ask = self.next_ask()?;
        let tid = self.unused_tid(chance);
        self.pending.push(Pending {
            ask,
            tid,
            tries: 0,
            due: now,
            last: None,
        });
        Some(self.pending.len() - 1)
    }

    fn next_ask(&mut self) -> Option<Ask<P>> {
        let waits = |(lane, asks): (&Lane, &VecDeque<Ask<P>>)| (!asks.is_empty()).then_some(*lane);
        let served = self.served;
        let later = self.lanes.iter().filter(|(lane, _)| **lane > served);
        let lane = later
            .filter_map(waits)
            .next()
            .or_else(|| self.lanes.iter().filter_map(waits).next())?;
        self.served = lane;
        self.lanes.get_mut(&lane)?.pop_front()
    }

    fn unused_tid(&self, chance: &mut Chance) -> Tid {
        loop {
            let tid = Tid(chance.word());
            let used = |pending: &Pending<P>| pending.tid == tid;
            if tid.0 != 0 && !self.pending.iter().any(used) {
                return tid;
            }
        }
    }

    /// An answer came. `Ok(None)` where the request will be asked again.
    ///
    /// # Errors
    /// It answers nothing asked, or not as it must.
    pub fn answer(
        &mut self,
        now: Moment,
        mad: &Mad<'_>,
        chance: &mut Chance,
    ) -> Result<Option<Settled<P>>, Ignored> {
        let asked = |pending: &Pending<P>| pending.tid == mad.tid && pending.tries > 0;
        let at = self.pending.iter().position(asked);
        let at = at.ok_or(Ignored::LateAnswer)?;
        let read = match self.pending.get(at) {
            Some(pending) => pending.ask.request.read(mad, self.records),
            None => return Err(Ignored::LateAnswer),
        };
        let outcome = match read {
            Ok(Ok(answer)) => Outcome::Answered(answer),
            Ok(Err(status)) if status.is_transient() => {
                self.busy(at, now, status, chance);
                return Ok(None);
            }
            Ok(Err(status)) => Outcome::Refused(status),
            Err(mismatch) => return Err(self.mismatched(at, mismatch)),
        };
        let settled = self.settle(at, outcome);
        self.hasten(now, chance);
        Ok(Some(settled))
    }

    /// Not now: it is asked again after the pause that silence would have had.
    fn busy(&mut self, at: usize, now: Moment, status: Status, chance: &mut Chance) {
        if let Some(pending) = self.pending.get_mut(at) {
            let before = pending.tries.saturating_sub(1);
            let pause = chance.pause(self.timing.reply_ms, self.timing.pause_ms, before);
            pending.due = now.after(pause);
            pending.last = Some(Outcome::Busy(status));
        }
    }

    /// Somebody's nonsense must not end a request: the wait for the true answer goes on.
    fn mismatched(&mut self, at: usize, mismatch: Mismatch) -> Ignored {
        if let Some(pending) = self.pending.get_mut(at) {
            pending.last = Some(Outcome::Malformed);
        }
        match mismatch {
            Mismatch::Broken(_) => Ignored::BrokenMad,
            Mismatch::OtherKind => Ignored::LateAnswer,
            Mismatch::OtherRecord => Ignored::OtherRecord,
        }
    }

    /// The SA is back: who has waited in vain asks again soon.
    fn hasten(&mut self, now: Moment, chance: &mut Chance) {
        if !std::mem::take(&mut self.silent) {
            return;
        }
        let tried = |pending: &&mut Pending<P>| pending.tries > 1;
        for pending in self.pending.iter_mut().filter(tried) {
            let soon = now.after(chance.about(self.timing.reply_ms / 4));
            pending.due = pending.due.min(soon);
        }
    }

    /// A request whose last try was in vain. To be called until it gives none.
    pub fn expired(&mut self, now: Moment) -> Option<Settled<P>> {
        let over = |pending: &Pending<P>| pending.due <= now && pending.tries >= self.timing.tries;
        let at = self.pending.iter().position(over)?;
        let last = self.pending.get_mut(at).and_then(|it| it.last.take());
        self.silent |= last.is_none();
        Some(self.settle(at, last.unwrap_or(Outcome::Silent)))
    }

    fn settle(&mut self, at: usize, outcome: Outcome) -> Settled<P> {
        let over = self.pending.swap_remove(at);
        Settled {
            purpose: over.ask.purpose,
            outcome,
            tries: over.tries,
        }
    }

    /// When [`Transactions::next_datagram`] or [`Transactions::expired`] will next have something.
    #[must_use]
    pub fn wake(&self) -> Option<Moment> {
        self.pending.iter().map(|pending| pending.due).min()
    }

    /// Forgets every request of some purposes, asked or not: their answers will be late ones.
    pub fn forget(&mut self, mut of: impl FnMut(&P) -> bool) {
        self.pending.retain(|pending| !of(&pending.ask.purpose));
        for asks in self.lanes.values_mut() {
            asks.retain(|ask| !of(&ask.purpose));
        }
    }

    /// Requests on their way.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.pending.len()
    }

    /// Requests that wait for their turn.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lanes.values().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests;
