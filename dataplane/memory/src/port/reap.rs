//! Reaping: messages that have come, and work that had to wait.

use super::MemoryPort;
use crate::lane::Lane;
use crate::queue_pair::{Attempt, Phase, QueuePair, Work};
use crate::ring::Record;
use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::{Completion, Octets, Outcome, Token, WorkError, WorkId};

/// Waiting queue pairs that are tried in one reap, so that a thousand blocked ones cost the
/// others nothing.
const TRIES: u32 = 16;

/// Completions that a port with faults takes in at once.
const FAULTY_BURST: usize = 64;

const NOTHING: Completion = Completion {
    token: Token(0),
    id: WorkId(0),
    outcome: Outcome::Disconnected,
};

/// Messages being delivered.
struct Delivery<'a> {
    completions: &'a mut [Completion],
    count: usize,
    /// A message was too long for the receive that it met: the queue pair, and the receive. The
    /// delivery ends there.
    too_long: Option<(u32, WorkId)>,
}

impl Delivery<'_> {
    /// Delivers what has come by one lane. A message whose queue pair is gone is dropped.
    #[inline]
    fn take_all(&mut self, lane: &mut Lane, queue_pairs: &mut [QueuePair], arena: &Arena) {
        let Lane { from, peer, .. } = lane;
        while self.too_long.is_none()
            && let Some(place) = self.completions.get_mut(self.count)
            && let Some(record) = from.peek()
        {
            let heading = record.heading;
            let pair = queue_pairs.get_mut(heading.queue_pair as usize);
            // The sender counts our receives, so there is one.
            if let Some(pair) = pair
                && pair.takes(heading.generation)
                && let Some(receive) = pair.take_receive()
            {
                if from.copy(record, arena, receive.memory) {
                    *place = completion(pair.token, &record, receive.id);
                    self.count += 1;
                    if heading.judge && pair.judge() {
                        peer.bell.ring();
                    }
                } else {
                    self.too_long = Some((heading.queue_pair, receive.id));
                }
            }
            from.advance(record);
        }
        if from.publish() {
            peer.bell.ring();
        }
    }
}

#[inline]
fn completion(token: Token, record: &Record, id: WorkId) -> Completion {
    let outcome = Outcome::Received {
        len: record.len,
        invalidated: record.heading.invalidated,
    };
    Completion { token, id, outcome }
}

impl MemoryPort {
    #[inline]
    pub(super) fn gather(&mut self, completions: &mut [Completion]) -> usize {
        let disturbed = self.armed | self.shared.has_news() | self.faults.is_some();
        if disturbed | self.chores.any() {
            self.gather_disturbed(completions)
        } else {
            self.receive(completions)
        }
    }

    /// When there is more than messages, or may be.
    #[inline(never)]
    fn gather_disturbed(&mut self, completions: &mut [Completion]) -> usize {
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
        let mut arrived = [NOTHING; FAULTY_BURST];
        let count = self.collect(&mut arrived);
        let Some(faults) = &mut self.faults else {
            return 0;
        };
        faults.take_in(&arrived[..count]);
        faults.hand_out(completions)
    }

    /// What comes of waiting work, then messages.
    fn collect(&mut self, completions: &mut [Completion]) -> usize {
        // Half of the room, so that neither starves the other.
        let half = completions.len().div_ceil(2);
        let count = self.do_chores(&mut completions[..half]);
        count + self.receive(&mut completions[count..])
    }

    /// Delivers what has come by the lanes, beginning with another one each time.
    #[inline]
    fn receive(&mut self, completions: &mut [Completion]) -> usize {
        let Self {
            lanes,
            turn,
            queue_pairs,
            arena,
            ..
        } = self;
        let mut delivery = Delivery {
            completions,
            count: 0,
            too_long: None,
        };
        let (before, first) = lanes.split_at_mut(*turn);
        for lane in first.iter_mut().chain(before) {
            delivery.take_all(lane, queue_pairs, arena);
        }
        *turn = if *turn + 1 < lanes.len() {
            *turn + 1
        } else {
            0
        };
        let Delivery {
            count, too_long, ..
        } = delivery;
        if let Some((number, receive)) = too_long {
            self.too_long(number, receive);
        }
        count
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
        let lane = &mut self.lanes[pair.lane];
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
        if self.chores.urgent() || counting || held || self.shared.has_news() {
            return false;
        }
        for number in self.chores.waiting.iter() {
            let pair = &self.queue_pairs[number as usize];
            if let (Some(link), Some(lane)) = (&pair.link, self.lanes.get(pair.lane)) {
                link.sides[1 - pair.side].starve();
                lane.to.starve();
            }
        }
        self.shared.bell.arm();
        self.armed = true;
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
                        .get_mut(pair.lane)
                        .and_then(|lane| lane.to.room(parked.len));
                    room.is_some() && pair.has_credit()
                }
            }
        })
    }
}
