//! Reading the facts of a port again and again.
//!
//! A round begins with what sysfs says. Then the port's own agent is asked for its PortInfo and its P_Key table, all at once, and
//! the round ends when everything is answered, or after [`PATIENCE`]. On a device the two say the same, but for the MTU, and
//! a fabric that is simulated has a sysfs of the day it was started: so the agent's word wins. An agent that does not answer
//! (one with an M_Key that protects it even from reading) leaves what sysfs says, and no MTU.
//!
//! Whoever owns a survey sends its questions and hands it the answers: it does no input and output itself, and times are
//! arguments.

use crate::Facts;
use crate::smp::{self, KEYS_OF_BLOCK, PortInfo, Question};
use std::time::{Duration, Instant};

/// For how long an answer is waited for: the agent is in the device.
pub(crate) const PATIENCE: Duration = Duration::from_millis(200);
/// Blocks of the P_Key table that are asked for: 128 keys. Those of larger tables are sysfs's.
const BLOCKS: u16 = 4;

/// The state of a survey.
#[derive(Debug)]
pub(crate) struct Survey {
    every: Duration,
    due: Instant,
    /// Somebody wants to hear, changed or not.
    asked: bool,
    round: Option<Round>,
    /// Of the questions that were asked last; those of each round are others.
    transaction: u32,
    last: Option<Facts>,
}

#[derive(Debug)]
struct Round {
    until: Instant,
    facts: Facts,
    /// Questions without an answer, and the transactions they were asked by.
    open: Vec<(Question, u32)>,
}

impl Survey {
    /// One whose first round is due.
    pub(crate) fn new(every: Duration, now: Instant) -> Self {
        Self {
            every,
            due: now,
            asked: true,
            round: None,
            transaction: 0,
            last: None,
        }
    }

    /// A round is due as soon as the present one is over.
    pub(crate) fn ask(&mut self, now: Instant) {
        self.asked = true;
        self.due = now;
    }

    /// Whether a round is to be begun.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.round.is_none() && now >= self.due
    }

    /// Begins a round with what sysfs says: the questions that are to be sent, with their transactions.
    pub(crate) fn begin(&mut self, facts: Facts, now: Instant) -> Vec<(Question, u32)> {
        self.due = now + self.every;
        let blocks = facts.p_keys.len().div_ceil(KEYS_OF_BLOCK);
        let blocks = u16::try_from(blocks).map_or(BLOCKS, |blocks| blocks.min(BLOCKS));
        let questions = std::iter::once(Question::PortInfo).chain((0..blocks).map(Question::Keys));
        let mut open = Vec::new();
        for question in questions.take(if facts.is_infiniband { usize::MAX } else { 0 }) {
            self.transaction = self.transaction.wrapping_add(1);
            open.push((question, self.transaction));
        }
        let until = now + PATIENCE;
        self.round = Some(Round {
            until,
            facts,
            open: open.clone(),
        });
        open
    }

    /// Sysfs says nothing: the next round may.
    pub(crate) fn put_off(&mut self, now: Instant) {
        self.due = now + self.every;
    }

    /// Takes an SMP that arrived; one that is no answer to what was asked changes nothing.
    pub(crate) fn answered(&mut self, mad: &[u8]) {
        let Some(round) = &mut self.round else { return };
        let found = round
            .open
            .iter()
            .enumerate()
            .find_map(|(at, (question, asked))| {
                let (transaction, data) = smp::answer(*question, mad)?;
                (transaction == *asked).then_some((at, *question, data))
            });
        if let Some((at, question, data)) = found {
            round.open.swap_remove(at);
            round.learn(question, data);
        }
    }

    /// The facts, when a round is over that has brought something to tell.
    pub(crate) fn settle(&mut self, now: Instant) -> Option<Facts> {
        let over = |round: &mut Round| round.open.is_empty() || now >= round.until;
        let facts = self.round.take_if(over)?.facts;
        let tell = self.asked || self.last.as_ref() != Some(&facts);
        // What was asked for during the round gets one of its own.
        self.asked &= now >= self.due;
        self.last = Some(facts.clone());
        tell.then_some(facts)
    }
}

impl Round {
    fn learn(&mut self, question: Question, data: &[u8; 64]) {
        match question {
            Question::PortInfo => {
                if let Some(info) = PortInfo::parse(data) {
                    self.facts.correct(&info);
                }
            }
            Question::Keys(block) => {
                let from = usize::from(block) * KEYS_OF_BLOCK;
                let held = self.facts.p_keys.iter_mut().skip(from);
                for (held, told) in held.zip(smp::keys(data)) {
                    *held = told;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::down;
    use crate::smp::tests::{answered, port_info};
    use rpcrdma_ipoib::gid::Lid;
    use rpcrdma_ipoib::pkey::PKey;

    const EVERY: Duration = Duration::from_secs(1);

    /// Answers all questions of a round: an active port, with a P_Key in the first entry.
    fn answer_all(survey: &mut Survey, questions: &[(Question, u32)], key: u16) {
        for (question, transaction) in questions {
            let mut keys = [0; 64];
            keys[..2].copy_from_slice(&key.to_be_bytes());
            let data = match question {
                Question::PortInfo => port_info(),
                Question::Keys(_) => keys,
            };
            survey.answered(&answered(*question, *transaction, data));
        }
    }

    #[test]
    fn the_first_round_is_told_of_and_later_ones_when_something_changed() {
        let now = Instant::now();
        let mut survey = Survey::new(EVERY, now);
        assert!(survey.is_due(now));
        let questions = survey.begin(down(), now);
        assert_eq!(questions.len(), 2, "PortInfo, and one block of keys");
        assert_eq!(survey.settle(now), None, "answers are awaited");
        answer_all(&mut survey, &questions, 0x8006);
        let facts = survey.settle(now).expect("the first facts");
        assert_eq!((facts.lid, facts.p_keys[0]), (Lid(5), PKey(0x8006)));
        assert!(!survey.is_due(now + EVERY / 2));
        let later = now + EVERY;
        for (key, told) in [(0x8006, false), (0x8007, true)] {
            assert!(survey.is_due(later));
            let questions = survey.begin(down(), later);
            answer_all(&mut survey, &questions, key);
            assert_eq!(survey.settle(later).is_some(), told);
            survey.due = later;
        }
    }

    #[test]
    fn who_asks_is_told_even_of_no_change_and_by_a_round_begun_after_asking() {
        let now = Instant::now();
        let mut survey = Survey::new(EVERY, now);
        let questions = survey.begin(down(), now);
        let later = now + PATIENCE / 2;
        survey.ask(later);
        answer_all(&mut survey, &questions, 1);
        assert!(survey.settle(later).is_some());
        assert!(survey.is_due(later));
        let questions = survey.begin(down(), later);
        answer_all(&mut survey, &questions, 1);
        assert!(survey.settle(later).is_some());
        assert!(!survey.is_due(later));
    }

    #[test]
    fn an_agent_that_says_nothing_leaves_what_sysfs_says() {
        let now = Instant::now();
        let mut survey = Survey::new(EVERY, now);
        survey.begin(down(), now);
        assert_eq!(survey.settle(now + PATIENCE), Some(down()));
    }

    #[test]
    fn answers_of_an_earlier_round_or_of_none_change_nothing() {
        let now = Instant::now();
        let mut survey = Survey::new(EVERY, now);
        let stale = survey.begin(down(), now);
        survey.settle(now + PATIENCE);
        answer_all(&mut survey, &stale, 1);
        let later = now + EVERY;
        survey.begin(down(), later);
        answer_all(&mut survey, &stale, 1);
        assert_eq!(survey.settle(later), None, "its own answers are awaited");
        assert_eq!(survey.settle(later + PATIENCE), None, "nothing has changed");
    }

    #[test]
    fn a_port_of_another_kind_is_asked_nothing() {
        let now = Instant::now();
        let mut survey = Survey::new(EVERY, now);
        let mut facts = down();
        facts.is_infiniband = false;
        assert_eq!(survey.begin(facts.clone(), now), []);
        assert_eq!(survey.settle(now), Some(facts));
    }
}
