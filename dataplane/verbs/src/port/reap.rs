//! What the device says, told to the engine.
//!
//! Completions of one queue come in the order of posting (on siw by a fence). So a send completion that is there
//! speaks for all sends before it, back to the last that was spoken for: those were done, or it
//! would have been one of them that failed. Of the one it names it says how that went.

use super::pair::{Pair, Phase, Then};
use super::poller::Seen;
use super::ticket::Place;
use super::{VerbsPort, counts};
use crate::expose::Means;
use rpcrdma_fabric::{Completion, Outcome, Token, WorkError, WorkId};

/// A completion whose consequences are being told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settling {
    pub(super) place: Place,
    /// The last number it speaks for.
    number: u32,
    /// How that one went.
    error: Option<WorkError>,
}

impl Settling {
    /// That of a send's completion.
    #[inline]
    fn of(seen: Seen) -> Settling {
        Settling {
            place: seen.ticket.place(),
            number: seen.ticket.number(),
            error: seen.error(),
        }
    }
}

/// Where completions go.
pub(super) struct Sink<'a> {
    room: &'a mut [Completion],
    filled: usize,
}

impl Sink<'_> {
    #[inline]
    fn is_full(&self) -> bool {
        self.filled == self.room.len()
    }

    /// Puts one in; there is room.
    #[inline]
    fn push(&mut self, completion: Completion) {
        if let Some(place) = self.room.get_mut(self.filled) {
            *place = completion;
            self.filled += 1;
        }
    }
}

/// What is in the place of a completion before there is one.
const NONE_YET: Completion = Completion {
    token: Token(0),
    id: WorkId(0),
    outcome: Outcome::Disconnected,
};

impl VerbsPort {
    /// The next thing to tell. Where there is nothing but completions of the device, which is
    /// nearly always, that takes one look at all the rest; and the device is asked once for all of
    /// a turn that it has, not again after each.
    #[inline]
    pub(super) fn reap_next(&mut self) -> Option<Completion> {
        if self.poller.is_spent() && !self.is_disturbed() {
            self.poller.begin();
            return None;
        }
        self.reap_another()
    }

    #[inline(never)]
    fn reap_another(&mut self) -> Option<Completion> {
        let mut one = [NONE_YET];
        while !self.is_disturbed() {
            let Some(seen) = self.poller.next() else {
                self.poller.begin();
                return None;
            };
            if seen.ticket.is_receive() {
                let received = self.take_receive(seen);
                if received.is_some() {
                    return received;
                }
                continue;
            }
            let mut sink = Sink {
                room: &mut one,
                filled: 0,
            };
            self.settle(Settling::of(seen), &mut sink);
            if sink.is_full() {
                return Some(one[0]);
            }
        }
        (self.reap_into(&mut one) == 1).then_some(one[0])
    }

    /// Anything to see to before the next completion of the device.
    #[inline]
    fn is_disturbed(&self) -> bool {
        self.armed || self.settling.is_some() || self.has_chores()
    }

    #[inline(never)]
    pub(super) fn reap_into(&mut self, room: &mut [Completion]) -> usize {
        let mut sink = Sink { room, filled: 0 };
        self.poller.begin();
        if self.armed {
            self.rise();
        }
        if self.has_chores() {
            self.do_chores();
            self.tell_late(&mut sink);
        }
        if let Some(settling) = self.settling.take() {
            self.settle(settling, &mut sink);
        }
        while !sink.is_full()
            && let Some(seen) = self.poller.next()
        {
            self.take(seen, &mut sink);
        }
        // What was just settled may have been the last that an ending connection waited for.
        if !self.ending.is_empty() {
            self.do_chores();
            self.tell_late(&mut sink);
        }
        sink.filled
    }

    /// Anything but completions of the device to look after.
    #[inline]
    fn has_chores(&self) -> bool {
        !self.late.is_empty()
            || !self.ending.is_empty()
            || self.inbox.has_notice()
            || self.means.has_answer()
    }

    #[cold]
    fn tell_late(&mut self, sink: &mut Sink<'_>) {
        while !sink.is_full()
            && let Some(completion) = self.late.pop_front()
        {
            sink.push(completion);
        }
    }

    /// One completion of the device.
    #[inline]
    fn take(&mut self, seen: Seen, sink: &mut Sink<'_>) {
        if !seen.ticket.is_receive() {
            self.settle(Settling::of(seen), sink);
        } else if let Some(completion) = self.take_receive(seen) {
            sink.push(completion);
        }
    }

    /// That of a receive.
    #[inline]
    fn take_receive(&mut self, seen: Seen) -> Option<Completion> {
        let place = seen.ticket.place();
        let pair = self.pairs.get_mut(usize::from(place.index));
        let number = seen.ticket.number();
        let awaited = |pair: &&mut Pair| {
            if pair.place != place {
                return false;
            }
            let next = !pair.receives.is_empty() && pair.receives.first_number() == number;
            debug_assert!(
                next || !pair.receives.has(number),
                "receives are used in the order they were posted"
            );
            next
        };
        let Some(pair) = pair.filter(awaited) else {
            self.counts.stale = self.counts.stale.wrapping_add(1);
            return None;
        };
        let id = pair.receives.pop().unwrap_or_default();
        let (token, forgotten) = (pair.token, pair.forgotten);
        let outcome = match seen.error() {
            None => Outcome::Received {
                len: seen.len,
                invalidated: seen.invalidated,
            },
            Some(error) => {
                self.fail(place);
                Outcome::Failed(receive_error(error))
            }
        };
        (!forgotten).then_some(Completion { token, id, outcome })
    }

    /// Tells of all sends that a completion speaks for, as far as there is room.
    #[inline]
    fn settle(&mut self, settling: Settling, sink: &mut Sink<'_>) {
        let Settling {
            place,
            number,
            error,
        } = settling;
        let pair = self.pairs.get_mut(usize::from(place.index));
        let Some(pair) = pair.filter(|pair| pair.place == place) else {
            self.counts.stale = self.counts.stale.wrapping_add(1);
            return;
        };
        while pair.sends.has(number) {
            if sink.is_full() {
                self.settling = Some(settling);
                return;
            }
            let last = pair.sends.first_number() == number;
            let error = error.filter(|_| last);
            let Some(entry) = pair.settle_one() else {
                break;
            };
            if let Then::Release(window) = entry.then
                && error.is_none()
                && let Means::Windows(windows) = &mut self.means
            {
                windows.release(window);
            }
            if entry.then != Then::Nothing && !pair.forgotten {
                sink.push(Completion {
                    token: pair.token,
                    id: entry.id,
                    outcome: error.map_or(Outcome::Done, Outcome::Failed),
                });
            }
        }
        if pair.starved && pair.phase.is_live() {
            if sink.is_full() {
                self.settling = Some(settling);
                return;
            }
            pair.starved = false;
            sink.push(Completion {
                token: pair.token,
                id: WorkId(0),
                outcome: Outcome::Room,
            });
        }
        if let Some(error) = error {
            counts::count(&mut self.counts, error);
            self.fail(place);
        }
    }

    /// Whether nothing that matters to the engine is with the device any more.
    pub(super) fn is_flushed(&self, place: Place) -> bool {
        self.pairs
            .get(usize::from(place.index))
            .is_some_and(|pair| {
                pair.phase == Phase::Failing && pair.told == 0 && pair.receives.is_empty()
            })
    }
}

/// A receive fails because the connection ends, or because the message was too long for it.
fn receive_error(error: WorkError) -> WorkError {
    match error {
        WorkError::LocalLength => WorkError::LocalLength,
        _ => WorkError::Flushed,
    }
}
