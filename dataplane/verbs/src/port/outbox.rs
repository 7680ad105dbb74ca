//! Where the octets of a message wait that are not in the arena and do not go inline.
//!
//! Work requests point at memory, and what the engine hands over as plain octets is gone when
//! the call returns. So each queue pair has a run of registered memory, used front to back as a
//! ring: a reliable connection's Sends are done in the order they were posted, so what was taken
//! first comes back first. When nothing is out it begins at its front again, which keeps a quiet
//! connection on the same few cache lines.

#![expect(unsafe_code, reason = "raw memory is this module's job")]

use super::parts::Registered;
use rpcrdma_fabric::{Octets, Span};

/// The ring of one queue pair: where, and what of it is out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outbox {
    /// Where it begins in the port's memory for outboxes, and its octets.
    start: u64,
    bytes: u32,
    /// Where the next run begins, and where the oldest that is out does.
    head: u32,
    tail: u32,
    /// Runs that are out.
    out: u32,
}

/// A run of a ring, until its Send is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Where in the port's memory for outboxes.
    pub(crate) span: Span,
    /// Where the ring's tail is when it is back.
    pub(crate) end: u32,
}

impl Outbox {
    /// Number `index` of rings of `bytes` octets each.
    pub(crate) fn new(index: u16, bytes: u32) -> Outbox {
        Outbox {
            start: u64::from(index) * u64::from(bytes),
            bytes,
            ..Outbox::default()
        }
    }

    /// Takes `len` octets in one piece. `None` when there are not as many now.
    #[inline]
    pub(crate) fn take(&mut self, len: u32) -> Option<Run> {
        let begin = self.room_for(len)?;
        if self.out == 0 {
            self.tail = 0;
        }
        self.head = begin + len;
        self.out += 1;
        Some(Run {
            span: Span {
                offset: self.start + u64::from(begin),
                len,
            },
            end: self.head,
        })
    }

    /// Where a run of `len` octets can begin. The head never reaches the tail from behind: were
    /// they equal with runs out, a full ring would look like an empty one.
    #[inline]
    fn room_for(&self, len: u32) -> Option<u32> {
        if self.out == 0 {
            (len <= self.bytes).then_some(0)
        } else if self.head <= self.tail {
            (len < self.tail - self.head).then_some(self.head)
        } else if len <= self.bytes - self.head {
            Some(self.head)
        } else {
            (len < self.tail).then_some(0)
        }
    }

    /// The run that was taken last is not used after all.
    #[cold]
    pub(crate) fn take_back(&mut self, run: Run) {
        self.out = self.out.saturating_sub(1);
        self.head = run.end - run.span.len;
    }

    /// Whether `len` octets can ever be taken.
    #[inline]
    pub(crate) fn fits(&self, len: u64) -> bool {
        len <= u64::from(self.bytes)
    }

    /// The oldest run that is out, which ends at `end`, comes back.
    #[inline]
    pub(crate) fn give_back(&mut self, end: u32) {
        self.tail = end;
        self.out = self.out.saturating_sub(1);
    }
}

impl Registered {
    /// Copies one element of a message to the start of `to`, which is long enough, and gives
    /// what is left of it behind.
    ///
    /// Only for a span that this port alone has: of an outbox, and taken.
    #[inline]
    pub(crate) fn put(&self, to: Span, octets: &[u8]) -> Span {
        // SAFETY: the span was taken from a ring and not yet posted; nobody has a slice of it.
        let put = unsafe { self.arena.fill(to, octets) };
        debug_assert!(put, "{} octets into {to:?}", octets.len());
        to.skip(u32::try_from(octets.len()).unwrap_or(u32::MAX))
    }
}

/// Copies a whole message to the start of `into`; how long it is. `None` when it does not fit, or an
/// element is not inside `arena`: what is in `into` then means nothing.
///
/// The octets of a span that is being sent are not written by anybody until the Send is done:
/// that is the engine's promise.
#[inline]
pub(crate) fn gather(arena: &Registered, message: &[Octets<'_>], into: &mut [u8]) -> Option<u32> {
    let mut filled = 0_u32;
    for element in message {
        match element {
            Octets::Bytes(octets) => {
                let to = into.get_mut(filled as usize..)?.get_mut(..octets.len())?;
                // SAFETY: both have as many octets, and a borrowed slice overlaps no other.
                unsafe {
                    rpcrdma_fabric::short::copy(octets.as_ptr(), to.as_mut_ptr(), octets.len());
                };
                // No longer than `into`, which is short.
                filled += u32::try_from(octets.len()).unwrap_or_default();
            }
            Octets::Span(span) => {
                let to = into.get_mut(filled as usize..)?;
                let to = to.get_mut(..span.len as usize)?;
                // SAFETY: `to` has as many octets, and is not in any arena.
                if !unsafe { arena.arena.copy_out(*span, to.as_mut_ptr()) } {
                    return None;
                }
                filled += span.len;
            }
        }
    }
    Some(filled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn an_empty_ring_begins_at_its_front() {
        let mut outbox = Outbox::new(2, 100);
        for _ in 0..5 {
            let run = outbox.take(60).expect("room");
            assert_eq!(
                run.span,
                Span {
                    offset: 200,
                    len: 60
                }
            );
            assert_eq!(outbox.take(60), None);
            outbox.give_back(run.end);
        }
        assert!(outbox.take(100).is_some(), "all of it");
        assert!(outbox.fits(100) && !outbox.fits(101));
    }

    /// Whatever is taken and given back in order, no two runs that are out share an octet, and
    /// none is outside.
    #[test]
    fn runs_never_overlap() {
        let mut outbox = Outbox::new(1, 64);
        let mut out = VecDeque::new();
        let mut draw = 7_u32;
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..20_000 {
            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let len = 1 + (draw >> 8) % 30;
            if draw >> 31 == 0 {
                match outbox.take(len) {
                    Some(run) => {
                        let span = run.span;
                        assert!(span.offset >= 64 && span.offset + u64::from(len) <= 128);
                        for other in &out {
                            let Run { span: other, .. } = other;
                            let apart = span.offset + u64::from(span.len) <= other.offset
                                || other.offset + u64::from(other.len) <= span.offset;
                            assert!(apart, "{span:?} and {other:?}");
                        }
                        out.push_back(run);
                        taken += 1;
                    }
                    None => refused += 1,
                }
            } else if let Some(run) = out.pop_front() {
                outbox.give_back(run.end);
            }
        }
        assert!(taken > 1000 && refused > 100, "{taken} {refused}");
    }
}
