//! Reaping: messages that have come, and work that had to wait.

use super::MemoryPort;
use crate::queue_pair::{Attempt, Phase, QueuePair, Receive, Work};
use crate::ring::Heading;
use rpcrdma_fabric::{Completion, Octets, Outcome, Token, WorkError, WorkId};

/// Waiting queue pairs that are tried in one reap, so that a thousand blocked ones cost the
/// others nothing.
const TRIES: u32 = 16;

/// Completions that one look at everything brings at most.
pub(super) const BURST: usize = 64;

const NOTHING: Completion = Completion {
    token: Token(0),
    id: WorkId(0),
    outcome: Outcome::Disconnected,
};

/// The queue pair that a message is for, and the receive it meets. `None` where it is gone.
#[inline(always)]
fn meet<'p>(
    queue_pairs: &'p mut [QueuePair],
    heading: &Heading,
) -> Option<(&'p mut QueuePair, Receive)> {
    let pair = queue_pairs.get_mut(heading.queue_pair as usize)?;
    if !pair.takes(heading.generation) {
        return None;
    }
    // The sender counts our receives, so there is one.
    let receive = pair.take_receive()?;
    Some((pair, receive))
}

impl MemoryPort {
    /// The next completion.
    #[inline(always)]
    pub(super) fn take_one(&mut self) -> Option<Completion> {
        if self.stirred || self.shared.has_news() {
            return self.take_stirred();
        }
        debug_assert!(!self.is_stirred(), "somebody did not say so");
        self.receive()
    }

    /// As many as there is room for.
    pub(super) fn gather(&mut self, completions: &mut [Completion]) -> usize {
        let mut count = 0;
        while let Some(place) = completions.get_mut(count)
            && let Some(completion) = self.backlog.pop_front()
        {
            *place = completion;
            count += 1;
        }
        count + self.look(&mut completions[count..])
    }

    /// There is more to look after than messages and news.
    fn is_stirred(&self) -> bool {
        let waiting = !self.backlog.is_empty() || self.chores.any();
        waiting || self.armed || self.faults.is_some()
    }

    /// From a look at everything.
    #[inline(never)]
    fn take_stirred(&mut self) -> Option<Completion> {
        if self.backlog.is_empty() {
            let mut found = [NOTHING; BURST];
            let count = self.look(&mut found);
            self.backlog.extend(&found[..count]);
        }
        let next = self.backlog.pop_front();
        self.stirred = self.is_stirred();
        next
    }

    /// Looks at everything there may be.
    fn look(&mut self, completions: &mut [Completion]) -> usize {
        if self.armed {
            self.armed = false;
            self.shared.bell.disarm();
        }
        if self.shared.has_news() {
            self.read_news();
        }
        if self.faults.is_none() {
            return self.collect(completions);
        }
        let mut arrived = [NOTHING; BURST];
        let count = self.collect(&mut arrived);
        let Some(faults) = &mut self.faults else {
            return 0;
        };
        faults.take_in(&arrived[..count]);
        faults.hand_out(completions)
    }

    /// What comes of waiting work, then messages.
    fn collect(&mut self, completions: &mut [Completion]) -> usize {
        let mut count = 0;
        if self.chores.any() {
            // Half of the room, so that neither starves the other.
            let half = completions.len().div_ceil(2);
            count = self.do_chores(&mut completions[..half]);
        }
        while let Some(place) = completions.get_mut(count)
            && let Some(completion) = self.receive()
        {
            *place = completion;
            count += 1;
        }
        count
    }

    /// The next message. A lane is read until it is empty, or owes its writer a word of how much
    /// was taken; then comes the next one's turn.
    #[inline(always)]
    fn receive(&mut self) -> Option<Completion> {
        let mut empty = 0;
        while empty < self.lanes.len() {
            let Some(lane) = self.lanes.get_mut(self.turn) else {
                self.turn = 0;
                continue;
            };
            let Some(message) = lane.from.peek() else {
                lane.publish();
                self.turn += 1;
                empty += 1;
                continue;
            };
            let (heading, len) = (message.heading, message.len);
            let met = meet(&mut self.queue_pairs, &heading);
            let fits = met
                .as_ref()
                .is_some_and(|(_, receive)| message.copy(&self.arena, receive.memory));
            message.advance();
            if lane.from.owes() {
                lane.publish();
                self.turn += 1;
            }
            let Some((pair, receive)) = met else {
                empty = 0;
                continue;
            };
            if !fits {
                self.too_long(heading.queue_pair, receive.id);
                continue;
            }
            if heading.judge && pair.judge() {
                lane.peer.bell.ring();
            }
            let (token, id, invalidated) = (pair.token, receive.id, heading.invalidated);
            let outcome = Outcome::Received { len, invalidated };
            return Some(Completion { token, id, outcome });
        }
        None
    }

    /// Looks after what is not simply a message that came.
    #[cold]
    #[inline(never)]
    fn do_chores(&mut self, completions: &mut [Completion]) -> usize {
        self.drain();
        let mut count = self.report_retired(completions);
        count += self.flush(&mut completions[count..]);
        for _ in 0..self.chores.waiting.len().min(TRIES) {
            let Some(number) = self.chores.waiting.pop() else {
                break;
            };
            count += self.progress(number, &mut completions[count..]);
            let pair = &mut self.queue_pairs[number as usize];
            pair.in_waiting = pair.phase == Phase::Established
                && !pair.waiting.is_empty()
                && self.chores.waiting.push(number);
        }
        count
    }

    /// Does the waiting work of one queue pair, as far as it goes.
    fn progress(&mut self, number: u32, completions: &mut [Completion]) -> usize {
        let mut count = 0;
        while count < completions.len() {
            let pair = &self.queue_pairs[number as usize];
            let (Phase::Established, Some(front)) = (pair.phase, pair.waiting.front()) else {
                break;
            };
            let done = match front.work {
                Work::Send {
                    parked,
                    invalidate,
                    attempts,
                } => {
                    let attempt = self.attempt_parked(number, parked, invalidate);
                    self.settle_parked(number, attempt, attempts)
                }
                Work::Judging(sent) if pair.was_judged(sent) => Some(Ok(())),
                Work::Judging(_) => None,
                Work::Read { .. } | Work::Write { .. } => Some(self.transfer(number, front.work)),
            };
            let Some(result) = done else { break };
            let pair = &mut self.queue_pairs[number as usize];
            pair.waiting.pop();
            match result {
                Ok(()) => {
                    let token = pair.token;
                    completions[count] = Completion {
                        token,
                        id: front.id,
                        outcome: Outcome::Done,
                    };
                    count += 1;
                }
                Err(error) => {
                    self.fail(number, front.id, error);
                }
            }
        }
        count
    }

    fn attempt_parked(
        &mut self,
        number: u32,
        parked: rpcrdma_fabric::Span,
        invalidate: Option<rpcrdma_fabric::Handle>,
    ) -> Attempt {
        let pair = &mut self.queue_pairs[number as usize];
        let lane = &mut self.lanes[pair.lane()];
        let message = [Octets::Span(parked)];
        let attempt = pair.attempt(lane, &message, parked.len, invalidate, &self.parking.arena);
        if !matches!(attempt, Attempt::NotReady | Attempt::NoRoom) {
            pair.parked_bytes -= parked.len;
            self.parking.pool.release(parked);
        }
        attempt
    }

    /// What a parked message has come to; `None` when it goes on waiting.
    fn settle_parked(
        &mut self,
        number: u32,
        attempt: Attempt,
        attempts: u32,
    ) -> Option<Result<(), WorkError>> {
        let pair = &mut self.queue_pairs[number as usize];
        match attempt {
            Attempt::Done => Some(Ok(())),
            Attempt::Failed(error) => Some(Err(error)),
            Attempt::NoRoom => None,
            Attempt::Judging(sent) => {
                if let Some(front) = pair.waiting.front_mut() {
                    front.work = Work::Judging(sent);
                }
                None
            }
            Attempt::NotReady => {
                if self.limits.rnr_retries.is_some_and(|most| attempts >= most) {
                    self.unpark_front(number);
                    return Some(Err(WorkError::NotReady));
                }
                let front = pair.waiting.front_mut();
                if let Some(Work::Send { attempts, .. }) = front.map(|front| &mut front.work) {
                    *attempts = attempts.saturating_add(1);
                }
                None
            }
        }
    }

    /// Says which windows have become free that were closed while used.
    fn report_retired(&mut self, completions: &mut [Completion]) -> usize {
        let mut count = 0;
        let mut nth = 0;
        while nth < self.chores.retiring.len() && count < completions.len() {
            let retiring = self.chores.retiring[nth];
            if !self.shared.windows.vacant(retiring.window) {
                nth += 1;
                continue;
            }
            self.chores.retiring.swap_remove(nth);
            self.windows.push(retiring.window);
            let Some((number, generation, id)) = retiring.report else {
                continue;
            };
            let pair = &self.queue_pairs[number as usize];
            if pair.generation == generation && pair.phase != Phase::Free {
                completions[count] = Completion {
                    token: pair.token,
                    id,
                    outcome: Outcome::Done,
                };
                count += 1;
            }
        }
        count
    }

    /// Asks to be woken; false when there is something to do already.
    pub(super) fn fall_asleep(&mut self) -> bool {
        let counting = self.limits.rnr_retries.is_some() && !self.chores.waiting.is_empty();
        let held = self
            .faults
            .as_ref()
            .is_some_and(|faults| faults.is_holding());
        if !self.backlog.is_empty()
            || self.chores.urgent()
            || counting
            || held
            || self.shared.has_news()
        {
            return false;
        }
        for number in self.chores.waiting.iter() {
            let pair = &self.queue_pairs[number as usize];
            if let (Some(link), Some(lane)) = (&pair.link, self.lanes.get(pair.lane())) {
                link.sides[1 - pair.side()].starve();
                lane.to.starve();
            }
        }
        self.shared.bell.arm();
        (self.armed, self.stirred) = (true, true);
        if self.shared.has_news() || self.has_messages() || self.has_progress() {
            self.armed = false;
            self.shared.bell.disarm();
            return false;
        }
        true
    }

    fn has_messages(&mut self) -> bool {
        self.lanes.iter_mut().any(|lane| lane.from.peek().is_some())
    }

    /// Whether any waiting work could be done now.
    fn has_progress(&mut self) -> bool {
        let Self {
            chores,
            queue_pairs,
            lanes,
            ..
        } = self;
        chores.waiting.iter().any(|number| {
            let pair = &mut queue_pairs[number as usize];
            match pair.waiting.front().map(|front| front.work) {
                None => false,
                Some(Work::Judging(sent)) => pair.was_judged(sent),
                Some(Work::Read { .. } | Work::Write { .. }) => true,
                Some(Work::Send { parked, .. }) => {
                    let room = lanes
                        .get_mut(pair.lane())
                        .and_then(|lane| lane.to.room(parked.len));
                    room.is_some() && pair.has_credit()
                }
            }
        })
    }
}
