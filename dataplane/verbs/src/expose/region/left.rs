//! Regions that are ready and that nobody comes for.
//!
//! They are registered memory, which may be somebody else's by now: the Call that they were made
//! for was cancelled. Nobody says so. But a connection that still wants a region comes for it
//! soon after it heard [`Outcome::Room`], and each time again until it has all it needs. So one
//! whose connection has heard of room, waits for no other region, and does not come for
//! [`PATIENCE`] turns is ended, and at the latest before the lcore sleeps.
//!
//! [`Outcome::Room`]: rpcrdma_fabric::Outcome::Room

use super::{Regions, State};
use crate::port::Place;

/// Turns for which a region that is ready waits to be fetched.
pub(super) const PATIENCE: u32 = 256;
/// Regions that are ended in one go because nobody came: each takes a look at all that are coming.
const ENDED_AT_ONCE: usize = 16;

impl Regions {
    /// Another turn is over.
    #[inline]
    pub(super) fn pass_turn(&mut self) {
        self.turns = self.turns.wrapping_add(1);
        if self.turns.is_multiple_of(PATIENCE) && !self.coming.is_empty() {
            self.end_left(PATIENCE);
        }
    }

    /// An owner hears that it may try again: it has time anew to fetch what is ready.
    pub(super) fn refresh(&mut self, of: Place) {
        for &slot in &self.coming {
            if let Some(State::Ready { purpose, since, .. }) = self.slots.get_mut(slot as usize)
                && purpose.owner == of
            {
                *since = self.turns;
            }
        }
    }

    /// Whether a region is ready, has been for so many turns, and its owner waits for no other.
    fn is_left(&self, slot: u32, turns: u32) -> bool {
        let State::Ready { purpose, since, .. } = self.state(slot) else {
            return false;
        };
        let awaited = |&slot: &u32| match self.state(slot) {
            State::Asked {
                purpose: other,
                wanted,
            } => wanted && other.owner == purpose.owner,
            _ => false,
        };
        self.turns.wrapping_sub(since) >= turns && !self.coming.iter().any(awaited)
    }

    /// Ends a few regions that nobody has fetched for so many turns. False when there are no more.
    #[cold]
    fn end_left(&mut self, turns: u32) -> bool {
        for _ in 0..ENDED_AT_ONCE {
            let left = |&slot: &u32| self.is_left(slot, turns);
            let Some(at) = self.coming.iter().position(left) else {
                return false;
            };
            let slot = self.coming.remove(at);
            self.end(slot, None);
        }
        true
    }

    /// The lcore is about to sleep, so whoever heard of room has come for it: what is ready is
    /// not wanted any more.
    #[cold]
    pub(crate) fn settle_down(&mut self) {
        while self.end_left(0) {}
        self.wake();
    }
}
