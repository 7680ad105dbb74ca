//! Posting: receives, messages, transfers, windows.

use super::{GATHER, MemoryPort, Retiring};
use crate::fault::Fault;
use crate::link::Cause;
use crate::queue_pair::{Attempt, Endpoint, Phase, Receive, Waiting, Work};
use crate::transfer;
use rpcrdma_fabric::{
    Access, Handle, Octets, Posted, QueuePair, Refused, Segment, Span, Token, WorkError, WorkId,
};

impl MemoryPort {
    pub(super) fn adopt_endpoint(
        &mut self,
        endpoint: Endpoint,
        token: Token,
    ) -> Result<QueuePair, Refused> {
        let Some(&number) = self.free.last() else {
            return Err(Refused::Busy);
        };
        let Some(parts) = endpoint.into_parts() else {
            return Err(Refused::Broken);
        };
        if parts.port != self.shared.id {
            // Made an endpoint again so that dropping it ends the connection.
            drop(Endpoint::new(parts));
            return Err(Refused::Unsupported);
        }
        let (link, side) = (parts.link.clone(), parts.side);
        let qp = &mut self.queue_pairs[number as usize];
        qp.adopt(parts, token);
        link.sides[side].set_address(number, qp.generation);
        if link.is_severed() {
            qp.release();
            return Err(Refused::Broken);
        }
        self.free.pop();
        Ok(QueuePair(number))
    }

    #[inline]
    pub(super) fn post_one_receive(
        &mut self,
        qp: QueuePair,
        memory: Span,
        id: WorkId,
    ) -> Result<(), Refused> {
        let inside = self.arena.contains(memory);
        if let Some(pair) = self.queue_pairs.get_mut(qp.0 as usize)
            && inside
            && pair.takes_receives()
            && let Some(wake) = pair.post_receive(Receive { memory, id })
        {
            if wake {
                self.wake_peer(qp.0);
            }
            return Ok(());
        }
        Err(self.why_no_receive(qp, inside))
    }

    /// Why a receive was not posted.
    #[cold]
    fn why_no_receive(&mut self, qp: QueuePair, inside: bool) -> Refused {
        match self.pair(qp) {
            _ if !inside => Refused::Unsupported,
            Ok(pair) if pair.takes_receives() => Refused::Busy,
            _ => Refused::Broken,
        }
    }

    #[inline]
    pub(super) fn post_send(
        &mut self,
        number: u32,
        message: &[Octets<'_>],
        invalidate: Option<Handle>,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        if invalidate.is_none()
            && let Some(pair) = self.queue_pairs.get_mut(number as usize)
            && let Some(lane) = self.lanes.get_mut(pair.lane())
            && self.faults.is_none()
            && message.len() <= GATHER as usize
            && pair.send_at_once(lane, message, &self.arena)
        {
            return Ok(Posted::Done);
        }
        self.post_send_slowly(number, message, invalidate, id)
    }

    /// A message that needs more than to be put into the ring.
    #[inline(never)]
    fn post_send_slowly(
        &mut self,
        number: u32,
        message: &[Octets<'_>],
        invalidate: Option<Handle>,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        let len = self.measure(message)?;
        if invalidate.is_some() && !self.limits.remote_invalidate {
            return Err(Refused::Unsupported);
        }
        self.ready(number)?;
        if self.faults.is_some()
            && let Some(posted) = self.faulty_send(number, message, len, invalidate, id)
        {
            return posted;
        }
        let pair = &mut self.queue_pairs[number as usize];
        if !pair.waiting.is_empty() {
            return self.park(number, message, len, invalidate, id);
        }
        let lane = &mut self.lanes[pair.lane()];
        let attempt = pair.attempt(lane, message, len, invalidate, &self.arena);
        match attempt {
            Attempt::Done => Ok(self.done(number, id)),
            Attempt::NotReady | Attempt::NoRoom => self.park(number, message, len, invalidate, id),
            Attempt::Judging(sent) => {
                let work = Work::Judging(sent);
                Ok(self.wait(number, Waiting { id, work }))
            }
            Attempt::Failed(error) => Ok(self.fail(number, id, error)),
        }
    }

    /// The length of a message that can be sent at all.
    fn measure(&self, message: &[Octets<'_>]) -> Result<u32, Refused> {
        if message.len() > GATHER as usize {
            return Err(Refused::Unsupported);
        }
        let mut len = 0_u64;
        for part in message {
            len += match part {
                Octets::Bytes(bytes) => bytes.len() as u64,
                Octets::Span(span) if self.arena.contains(*span) => u64::from(span.len),
                Octets::Span(_) => return Err(Refused::Unsupported),
            };
        }
        if len > u64::from(self.limits.message_bytes) {
            return Err(Refused::Unsupported);
        }
        #[expect(clippy::cast_possible_truncation, reason = "compared with 32 bits")]
        Ok(len as u32)
    }

    /// Whether a queue pair can send, read and write now.
    fn ready(&mut self, number: u32) -> Result<(), Refused> {
        let pair = self.pair(QueuePair(number))?;
        let severed = pair.is_severed();
        match pair.phase {
            Phase::Established if !severed => Ok(()),
            Phase::Adopted if !severed => self.establish(number),
            _ => Err(Refused::Broken),
        }
    }

    /// Finds out whether the connection has been established meanwhile.
    #[cold]
    fn establish(&mut self, number: u32) -> Result<(), Refused> {
        self.read_news();
        let pair = &mut self.queue_pairs[number as usize];
        let link = pair
            .link
            .as_ref()
            .filter(|link| link.is_established())
            .ok_or(Refused::Broken)?;
        let peer = &link.sides[1 - pair.side()];
        let (Some(port), Some(address)) = (peer.port.get(), peer.address()) else {
            return Err(Refused::Broken);
        };
        let lane = self.lanes.iter().position(|lane| lane.peer.id == port.id);
        let lane = lane.and_then(|lane| u32::try_from(lane).ok());
        let lane = lane.ok_or(Refused::Broken)?;
        pair.establish(lane, address, self.limits.message_bytes);
        Ok(())
    }

    /// Work is done: now, or, where a fault says so, later.
    #[inline]
    fn done(&mut self, number: u32, id: WorkId) -> Posted {
        if let Some(faults) = &mut self.faults {
            let token = self.queue_pairs[number as usize].token;
            if faults.holds_back(token, id) {
                return Posted::Pending;
            }
        }
        Posted::Done
    }

    /// Work has failed: its completion comes first, then the flush.
    #[cold]
    pub(super) fn fail(&mut self, number: u32, id: WorkId, error: WorkError) -> Posted {
        self.queue_pairs[number as usize].failed = Some((id, error));
        self.end(number, Cause::Ended);
        Posted::Pending
    }

    /// Lets a message wait.
    #[cold]
    fn park(
        &mut self,
        number: u32,
        message: &[Octets<'_>],
        len: u32,
        invalidate: Option<Handle>,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        let pair = &mut self.queue_pairs[number as usize];
        let share = u64::from(pair.parked_bytes) + u64::from(len);
        if pair.waiting.is_full()
            || (pair.parked_bytes > 0 && share > u64::from(self.limits.parking_share))
        {
            return Err(Refused::Busy);
        }
        let parked = self
            .parking
            .keep(message, len, &self.arena)
            .ok_or(Refused::Busy)?;
        self.queue_pairs[number as usize].parked_bytes += len;
        let work = Work::Send {
            parked,
            invalidate,
            attempts: 0,
        };
        Ok(self.wait(number, Waiting { id, work }))
    }

    /// Queues work that cannot be done yet. The caller has seen that there is room.
    fn wait(&mut self, number: u32, waiting: Waiting) -> Posted {
        let pair = &mut self.queue_pairs[number as usize];
        let queued = pair.waiting.push(waiting);
        debug_assert!(queued, "room was checked");
        self.stirred = true;
        if !pair.in_waiting {
            pair.in_waiting = self.chores.waiting.push(number);
        }
        Posted::Pending
    }

    /// A Read or Write: at once, or in its turn.
    pub(super) fn post_transfer(
        &mut self,
        number: u32,
        work: Work,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        self.ready(number)?;
        if let Some(faults) = &mut self.faults
            && faults.draw(false) == Fault::Drop
        {
            return Ok(self.fail(number, id, WorkError::Transport));
        }
        let pair = &self.queue_pairs[number as usize];
        if !pair.waiting.is_empty() {
            if pair.waiting.is_full() {
                return Err(Refused::Busy);
            }
            return Ok(self.wait(number, Waiting { id, work }));
        }
        Ok(match self.transfer(number, work) {
            Ok(()) => self.done(number, id),
            Err(error) => self.fail(number, id, error),
        })
    }

    pub(super) fn transfer(&self, number: u32, work: Work) -> Result<(), WorkError> {
        let pair = &self.queue_pairs[number as usize];
        let (Some(owner), Some(lane)) = (pair.peer_owner(), self.lanes.get(pair.lane())) else {
            return Err(WorkError::Flushed);
        };
        let arena = &self.arena;
        match work {
            Work::Write { from, to } => transfer::write(arena, from, &lane.peer, owner, to),
            Work::Read { into, from } => transfer::read(arena, into, &lane.peer, owner, from),
            Work::Send { .. } | Work::Judging(_) => Err(WorkError::Flushed),
        }
    }

    pub(super) fn open_window(
        &mut self,
        qp: QueuePair,
        memory: Span,
        access: Access,
    ) -> Result<Segment, Refused> {
        if !self.arena.contains(memory) {
            return Err(Refused::Unsupported);
        }
        if self
            .faults
            .as_mut()
            .is_some_and(|faults| faults.refuses_window())
        {
            return Err(Refused::Busy);
        }
        let pair = self
            .queue_pairs
            .get_mut(qp.0 as usize)
            .ok_or(Refused::Broken)?;
        if !matches!(pair.phase, Phase::Established | Phase::Adopted) {
            return Err(Refused::Broken);
        }
        let owner = pair.owner().ok_or(Refused::Broken)?;
        // A late access may be in the window used last, for a few nanoseconds: try others.
        for nth in 1..=self.windows.len().min(4) {
            let place = self.windows.len() - nth;
            let window = self.windows[place];
            let opened = self
                .shared
                .windows
                .open(window, owner, memory, access, &mut self.random);
            if let Ok(segment) = opened {
                self.windows.swap_remove(place);
                pair.exposures += 1;
                return Ok(segment);
            }
        }
        Err(Refused::Busy)
    }

    pub(super) fn close_window(
        &mut self,
        number: u32,
        handle: Handle,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        let pair = self
            .queue_pairs
            .get_mut(number as usize)
            .ok_or(Refused::Broken)?;
        let owner = pair.owner().ok_or(Refused::Broken)?;
        let broken = pair.link.as_ref().is_none_or(|link| link.is_severed());
        match self.shared.windows.close(owner, handle, broken) {
            Ok(vacant) => {
                pair.exposures = pair.exposures.saturating_sub(1);
                let report = (number, pair.generation, id);
                if self.put_back(handle, vacant, Some(report)) {
                    return Ok(self.done(number, id));
                }
                Ok(Posted::Pending)
            }
            // Nothing can be reached by it: on a broken queue pair that is all that counts.
            Err(_) if broken => Ok(Posted::Done),
            Err(_) => Ok(self.fail(number, id, WorkError::LocalProtection)),
        }
    }

    pub(super) fn reclaim_window(&mut self, qp: QueuePair, handle: Handle) {
        let Ok(pair) = self.pair(qp) else { return };
        let Some(owner) = pair.owner() else { return };
        if let Ok(vacant) = self.shared.windows.reclaim(owner, handle) {
            let pair = &mut self.queue_pairs[qp.0 as usize];
            pair.exposures = pair.exposures.saturating_sub(1);
            self.put_back(handle, vacant, None);
        }
    }

    /// A closed window is free again, now (true) or once nobody is in it.
    fn put_back(
        &mut self,
        handle: Handle,
        vacant: bool,
        report: Option<(u32, u32, WorkId)>,
    ) -> bool {
        let window = self.shared.windows.index(handle);
        if vacant {
            self.windows.push(window);
        } else {
            self.stirred = true;
            self.chores.retiring.push(Retiring { window, report });
        }
        vacant
    }

    /// What a fault makes of a Send, if it hits.
    #[cold]
    fn faulty_send(
        &mut self,
        number: u32,
        message: &[Octets<'_>],
        len: u32,
        invalidate: Option<Handle>,
        id: WorkId,
    ) -> Option<Result<Posted, Refused>> {
        match self.faults.as_mut()?.draw(true) {
            Fault::None => None,
            Fault::Drop => Some(Ok(self.fail(number, id, WorkError::Transport))),
            Fault::NotReady => Some(self.park(number, message, len, invalidate, id)),
        }
    }
}
