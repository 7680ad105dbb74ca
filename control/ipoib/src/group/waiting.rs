//! Datagrams that wait for their group to be joined: few, and not for long.

use crate::settings::Limits;
use crate::time::Moment;
use std::collections::VecDeque;

/// A frame that waits.
#[derive(Debug, PartialEq, Eq)]
pub struct Waiting {
    /// It is dropped then.
    pub until: Moment,
    /// The frame.
    pub bytes: Vec<u8>,
}

/// The frames that wait for one group. Empty, it takes no memory beyond itself.
#[derive(Debug, Default)]
pub struct Queue {
    frames: VecDeque<Waiting>,
    octets: usize,
}

impl Queue {
    /// Adds a frame.
    ///
    /// # Errors
    /// As many wait as may, or as many octets: of this group, or with the `others` of all groups. The frame comes back.
    pub fn add(&mut self, frame: Waiting, limits: &Limits, others: usize) -> Result<(), Vec<u8>> {
        let octets = self.octets.saturating_add(frame.bytes.len());
        let all = others.saturating_add(frame.bytes.len());
        let full = self.frames.len() >= limits.waiting
            || octets > limits.waiting_octets
            || all > limits.all_waiting_octets;
        if full {
            return Err(frame.bytes);
        }
        self.octets = octets;
        self.frames.push_back(frame);
        Ok(())
    }

    /// Takes all frames out.
    pub fn take(&mut self) -> VecDeque<Waiting> {
        self.octets = 0;
        std::mem::take(&mut self.frames)
    }

    /// Takes out the first frame if it has waited too long: each waits equally long, so the first is the oldest.
    pub fn expired(&mut self, now: Moment) -> Option<Vec<u8>> {
        let first = self.frames.front()?;
        if first.until > now {
            return None;
        }
        let frame = self.frames.pop_front()?;
        self.octets = self.octets.saturating_sub(frame.bytes.len());
        if self.frames.is_empty() {
            self.frames = VecDeque::new();
        }
        Some(frame.bytes)
    }

    /// When the oldest has waited too long.
    #[must_use]
    pub fn wake(&self) -> Option<Moment> {
        self.frames.front().map(|frame| frame.until)
    }

    /// Octets that wait.
    #[must_use]
    pub const fn octets(&self) -> usize {
        self.octets
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// None waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(until: u64, octets: usize) -> Waiting {
        Waiting {
            until: Moment(until),
            bytes: vec![0; octets],
        }
    }

    #[test]
    fn section_9_few_wait() {
        let limits = Limits {
            waiting: 2,
            waiting_octets: 100,
            all_waiting_octets: 1000,
            ..Limits::default()
        };
        let mut queue = Queue::default();
        assert!(queue.add(frame(1, 10), &limits, 991).is_err());
        assert!(queue.add(frame(1, 10), &limits, 0).is_ok());
        assert!(queue.add(frame(2, 91), &limits, 10).is_err());
        assert!(queue.add(frame(2, 90), &limits, 10).is_ok());
        assert!(queue.add(frame(3, 0), &limits, 100).is_err());
        assert_eq!((queue.len(), queue.octets()), (2, 100));
    }

    #[test]
    fn section_9_not_for_long() {
        let mut queue = Queue::default();
        assert!(queue.add(frame(5, 10), &Limits::default(), 0).is_ok());
        assert!(queue.add(frame(6, 20), &Limits::default(), 0).is_ok());
        assert_eq!(queue.expired(Moment(4)), None);
        assert_eq!(queue.expired(Moment(5)).map(|it| it.len()), Some(10));
        assert_eq!((queue.wake(), queue.octets()), (Some(Moment(6)), 20));
        assert_eq!(queue.take().len(), 1);
        assert!(queue.is_empty() && queue.octets() == 0);
    }
}
