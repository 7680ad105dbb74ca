//! How connections end: at our word, at the peer's, by failed work, with the port.

use super::{Chores, MemoryPort, Parking, Retiring};
use crate::link::Cause;
use crate::queue_pair::{Phase, Waiting, Work};
use rpcrdma_fabric::arena::Arena;
use rpcrdma_fabric::{Completion, Octets, Outcome, QueuePair, Span, WorkError, WorkId};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

impl MemoryPort {
    /// Ends a connection from this side.
    #[cold]
    pub(super) fn end(&mut self, number: u32, cause: Cause) {
        let Ok(pair) = self.pair(QueuePair(number)) else {
            return;
        };
        if !matches!(
            pair.phase,
            Phase::Adopted | Phase::Established | Phase::Draining
        ) {
            return;
        }
        let (Some(link), side, lane) = (pair.link.clone(), pair.side(), pair.lane()) else {
            return;
        };
        if let Some(lane) = self.lanes.get(lane) {
            // Everything that is in the ring now will still be delivered.
            link.sides[1 - side]
                .last
                .store(lane.to.position(), Ordering::Release);
        }
        if link.sever(cause) {
            link.tell(1 - side);
        }
        self.begin_flush(number);
    }

    /// A message was longer than the receive that it met.
    #[cold]
    pub(super) fn too_long(&mut self, number: u32, receive: WorkId) {
        let pair = &mut self.queue_pairs[number as usize];
        pair.failed = Some((receive, WorkError::LocalLength));
        let side = pair.side();
        self.end(number, Cause::TooLongFor(side));
    }

    fn begin_flush(&mut self, number: u32) {
        let pair = &mut self.queue_pairs[number as usize];
        pair.phase = Phase::Flushing;
        self.stirred = true;
        if !pair.in_flushing {
            pair.in_flushing = self.chores.flushing.push(number);
        }
    }

    /// Takes what others have left for this lcore.
    #[cold]
    pub(super) fn read_news(&mut self) {
        self.stirred = true;
        let Self {
            shared,
            lanes,
            queue_pairs,
            chores,
            ..
        } = self;
        shared.take_news(
            |lane| lanes.push(lane),
            |number| {
                let Some(pair) = queue_pairs.get_mut(number as usize) else {
                    return;
                };
                // It may be news of an earlier use of this number.
                let ended = pair.link.as_ref().is_some_and(|link| link.is_severed());
                if ended && matches!(pair.phase, Phase::Adopted | Phase::Established) {
                    pair.phase = Phase::Draining;
                    if !pair.in_draining {
                        pair.in_draining = chores.draining.push(number);
                    }
                }
            },
        );
    }

    /// Begins the flush where everything that the peer sent has been delivered.
    pub(super) fn drain(&mut self) {
        for _ in 0..self.chores.draining.len() {
            let Some(number) = self.chores.draining.pop() else {
                break;
            };
            let pair = &mut self.queue_pairs[number as usize];
            pair.in_draining = false;
            if pair.phase != Phase::Draining {
                continue;
            }
            if self.is_drained(number) {
                self.begin_flush(number);
            } else {
                self.queue_pairs[number as usize].in_draining = self.chores.draining.push(number);
            }
        }
    }

    fn is_drained(&self, number: u32) -> bool {
        let pair = &self.queue_pairs[number as usize];
        let Some(link) = &pair.link else { return true };
        let last = link.sides[pair.side()].last.load(Ordering::Acquire);
        let peer = link.sides[1 - pair.side()].port.get();
        let lane = peer.and_then(|peer| self.lanes.iter().find(|lane| lane.peer.id == peer.id));
        lane.is_none_or(|lane| lane.from.position() >= last)
    }

    /// Reports the outstanding work of queue pairs in error, then `Disconnected`.
    pub(super) fn flush(&mut self, completions: &mut [Completion]) -> usize {
        let mut count = 0;
        while count < completions.len() {
            let Some(number) = self.chores.flushing.front() else {
                break;
            };
            let pair = &mut self.queue_pairs[number as usize];
            if pair.phase != Phase::Flushing {
                pair.in_flushing = false;
                self.chores.flushing.pop();
                continue;
            }
            let token = pair.token;
            let (id, outcome) = self.flush_one(number);
            completions[count] = Completion { token, id, outcome };
            count += 1;
        }
        count
    }

    /// The next thing that a queue pair in error has to report.
    fn flush_one(&mut self, number: u32) -> (WorkId, Outcome) {
        let pair = &mut self.queue_pairs[number as usize];
        if let Some((id, error)) = pair.failed.take() {
            return (id, Outcome::Failed(error));
        }
        if let Some(front) = pair.waiting.front() {
            self.unpark_front(number);
            let pair = &mut self.queue_pairs[number as usize];
            pair.waiting.pop();
            return (front.id, self.fate(number, front));
        }
        if let Some(receive) = pair.flush_receive() {
            return (receive.id, Outcome::Failed(WorkError::Flushed));
        }
        pair.phase = Phase::Over;
        (WorkId(0), Outcome::Disconnected)
    }

    /// What becomes of work that waited when the connection ended.
    fn fate(&self, number: u32, waiting: Waiting) -> Outcome {
        let pair = &self.queue_pairs[number as usize];
        let Work::Judging(sent) = waiting.work else {
            return Outcome::Failed(WorkError::Flushed);
        };
        let too_long = |link: &crate::link::Link| link.was_too_long_for(1 - pair.side());
        if pair.was_judged(sent) {
            Outcome::Done
        } else if pair.link.as_deref().is_some_and(too_long) {
            Outcome::Failed(WorkError::RemoteInvalid)
        } else {
            Outcome::Failed(WorkError::Flushed)
        }
    }

    /// Gives back the memory of the oldest waiting work.
    pub(super) fn unpark_front(&mut self, number: u32) {
        let pair = &mut self.queue_pairs[number as usize];
        if let Some(Work::Send { parked, .. }) = pair.waiting.front().map(|front| front.work) {
            pair.parked_bytes -= parked.len;
            self.parking.pool.release(parked);
        }
    }

    /// Makes a queue pair's number free. Whatever it still has is given back unreported.
    pub(super) fn forget(&mut self, number: u32) {
        self.end(number, Cause::Ended);
        let Ok(pair) = self.pair(QueuePair(number)) else {
            return;
        };
        if pair.phase == Phase::Free {
            return;
        }
        let (token, owner, exposures) = (pair.token, pair.owner(), pair.exposures);
        while !self.queue_pairs[number as usize].waiting.is_empty() {
            self.unpark_front(number);
            self.queue_pairs[number as usize].waiting.pop();
        }
        if exposures > 0 {
            self.stirred = true;
            let Self {
                shared,
                windows,
                chores,
                ..
            } = self;
            shared.windows.close_all(owner, |window, vacant| {
                if vacant {
                    windows.push(window);
                } else {
                    chores.retiring.push(Retiring {
                        window,
                        report: None,
                    });
                }
            });
        }
        self.queue_pairs[number as usize].release();
        self.free.push(number);
        self.backlog.retain(|completion| completion.token != token);
        if let Some(faults) = &mut self.faults {
            faults.forget(token);
        }
    }

    /// Wakes the lcore at the other end of a queue pair.
    #[cold]
    pub(super) fn wake_peer(&self, number: u32) {
        let pair = &self.queue_pairs[number as usize];
        let peer = pair
            .link
            .as_ref()
            .and_then(|link| link.sides[1 - pair.side()].port.get());
        if let Some(peer) = peer {
            peer.bell.ring();
        }
    }
}

impl Drop for MemoryPort {
    /// Ends every connection, and returns only when no access to the arena is under way.
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        for number in (0_u32..).take(self.queue_pairs.len()) {
            self.end(number, Cause::Ended);
        }
        let mut used: Vec<u32> = self.chores.retiring.iter().map(|it| it.window).collect();
        self.shared.windows.close_all(None, |window, vacant| {
            if !vacant {
                used.push(window);
            }
        });
        for window in used {
            while !self.shared.windows.vacant(window) {
                std::thread::yield_now();
            }
        }
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        registry.forget_port(self.shared.id);
    }
}

impl Chores {
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.urgent() | !self.waiting.is_empty()
    }

    /// Something that needs no word from the peer.
    #[inline]
    pub(super) fn urgent(&self) -> bool {
        !self.flushing.is_empty() | !self.draining.is_empty() | !self.retiring.is_empty()
    }
}

impl Parking {
    /// Copies a message; `None` when there is no room.
    pub(super) fn keep(&mut self, message: &[Octets<'_>], len: u32, arena: &Arena) -> Option<Span> {
        let parked = self.pool.reserve(len)?;
        let mut at = parked;
        for part in message {
            let (len, kept) = match part {
                Octets::Bytes(bytes) => (bytes.len(), crate::copy::fill(&self.arena, at, bytes)),
                Octets::Span(span) => (
                    span.len as usize,
                    crate::copy::across(&self.arena, at, arena, *span),
                ),
            };
            debug_assert!(kept, "measured before");
            at = at.skip(u32::try_from(len).unwrap_or(u32::MAX));
        }
        Some(parked)
    }
}
