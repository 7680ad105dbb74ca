//! Control's side of a port: notices to it, words from it, by one bounded ring each way.
//!
//! Control never waits, and loses nothing: a notice that finds no room waits here, without a bound
//! to keep, for control alone makes them. What words there are, and why they always have room, is
//! for each fabric's `inbox` to say.

use crate::bell::Bell;
use rtrb::{Consumer, Producer, PushError};
use std::collections::VecDeque;
use std::sync::Arc;

/// Notices `N` to a port, and words `W` from it.
#[derive(Debug)]
pub struct Outlet<N, W> {
    notices: Producer<N>,
    words: Consumer<W>,
    /// The port's.
    bell: Arc<Bell>,
    /// Notices that found no room yet.
    waiting: VecDeque<N>,
}

impl<N, W> Outlet<N, W> {
    /// The control ends of both rings, and the bell that the port listens to.
    #[must_use]
    pub fn new(notices: Producer<N>, words: Consumer<W>, bell: Arc<Bell>) -> Outlet<N, W> {
        Outlet {
            notices,
            words,
            bell,
            waiting: VecDeque::new(),
        }
    }

    /// Tells the port, now or as soon as there is room.
    pub fn tell(&mut self, notice: N) {
        self.waiting.push_back(notice);
        self.push_on();
    }

    /// Hands over what waits.
    pub fn push_on(&mut self) {
        let mut told = false;
        while let Some(notice) = self.waiting.pop_front() {
            if let Err(PushError::Full(notice)) = self.notices.push(notice) {
                self.waiting.push_front(notice);
                break;
            }
            told = true;
        }
        if told {
            self.bell.ring();
        }
    }

    /// The next word.
    pub fn hear(&mut self) -> Option<W> {
        self.words.pop().ok()
    }

    /// The port is gone, and not all its words are read.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.words.is_abandoned() && !self.words.is_empty()
    }

    /// The port is gone, and all its words are read.
    #[must_use]
    pub fn is_over(&self) -> bool {
        // In this order: what was said before the end is still there after it.
        self.words.is_abandoned() && self.words.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtrb::RingBuffer;

    #[test]
    fn notices_wait_for_room_in_their_order() {
        let (to_port, mut notices) = RingBuffer::new(2);
        let (mut words, from_port) = RingBuffer::<char>::new(2);
        let mut outlet = Outlet::new(to_port, from_port, Arc::new(Bell::new().unwrap()));
        for notice in 0..5 {
            outlet.tell(notice);
        }
        let mut heard = Vec::new();
        while let Ok(notice) = notices.pop() {
            heard.push(notice);
            outlet.push_on();
        }
        assert_eq!(heard, [0, 1, 2, 3, 4]);
        words.push('a').unwrap();
        drop(words);
        assert!(outlet.is_left() && !outlet.is_over());
        assert_eq!(outlet.hear(), Some('a'));
        assert!(!outlet.is_left() && outlet.is_over());
    }
}
