//! Faults on purpose, from a seed.

use crate::settings::Faults;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rpcrdma_fabric::{Completion, Outcome, Token, WorkId};
use std::collections::VecDeque;

/// Draws the faults of one port, and holds the completions that it delays.
#[derive(Debug)]
pub(crate) struct FaultDesk {
    faults: Faults,
    random: StdRng,
    /// Reaps so far.
    now: u64,
    /// In order of arrival.
    held: VecDeque<Held>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    completion: Completion,
    due: u64,
}

/// What happens to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    Drop,
    NotReady,
}

impl FaultDesk {
    pub(crate) fn new(faults: Faults) -> FaultDesk {
        let random = StdRng::seed_from_u64(faults.seed);
        FaultDesk {
            faults,
            random,
            now: 0,
            held: VecDeque::new(),
        }
    }

    fn hits(&mut self, parts: u16) -> bool {
        parts != 0 && self.random.random::<u16>() < parts
    }

    pub(crate) fn refuses_window(&mut self) -> bool {
        self.hits(self.faults.refuse_window)
    }

    /// Draws for a Send, Read or Write.
    pub(crate) fn draw(&mut self, send: bool) -> Fault {
        if self.hits(self.faults.drop) {
            Fault::Drop
        } else if send && self.hits(self.faults.not_ready) {
            Fault::NotReady
        } else {
            Fault::None
        }
    }

    /// Whether the completion of work that is done at once is held back: by chance, or because
    /// earlier work of the same queue pair is.
    pub(crate) fn holds_back(&mut self, token: Token, id: WorkId) -> bool {
        let behind = self
            .held
            .iter()
            .any(|held| held.completion.token == token && held.completion.outcome == Outcome::Done);
        let delayed = self.hits(self.faults.delay);
        if behind || delayed {
            self.hold(
                Completion {
                    token,
                    id,
                    outcome: Outcome::Done,
                },
                delayed,
            );
        }
        behind || delayed
    }

    /// Takes completions in, some with a delay.
    pub(crate) fn take_in(&mut self, completions: &[Completion]) {
        for &completion in completions {
            let delayed = self.hits(self.faults.delay);
            self.hold(completion, delayed);
        }
    }

    fn hold(&mut self, completion: Completion, delayed: bool) {
        let delay = if delayed {
            self.random
                .random_range(1..=u64::from(self.faults.delay_reaps.max(1)))
        } else {
            0
        };
        // Never before an earlier one of the same queue pair.
        let same = self
            .held
            .iter()
            .rev()
            .find(|held| held.completion.token == completion.token);
        let due = (self.now + delay).max(same.map_or(0, |held| held.due));
        self.held.push_back(Held { completion, due });
    }

    /// Hands out what is due; a reap.
    pub(crate) fn hand_out(&mut self, completions: &mut [Completion]) -> usize {
        self.now += 1;
        let mut count = 0;
        for place in completions {
            let Some(held) = self.pick() else { break };
            *place = held.completion;
            count += 1;
        }
        count
    }

    /// The oldest that is due; or, reordering, the oldest that is due of any queue pair.
    fn pick(&mut self) -> Option<Held> {
        let due = |held: &Held| held.due < self.now;
        let ready = self.held.iter().filter(|held| due(held)).count();
        if ready == 0 {
            return None;
        }
        let nth = if self.faults.reorder {
            self.random.random_range(0..ready)
        } else {
            0
        };
        let token = self
            .held
            .iter()
            .filter(|held| due(held))
            .nth(nth)?
            .completion
            .token;
        let first = self
            .held
            .iter()
            .position(|held| held.completion.token == token)?;
        self.held.remove(first)
    }

    /// Whether something is held that a sleeper would miss.
    pub(crate) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Drops what is held for a queue pair that is gone.
    pub(crate) fn forget(&mut self, token: Token) {
        self.held.retain(|held| held.completion.token != token);
    }
}
