//! Two devices joined by a reliable connection, and the work that goes over it.
//!
//! Send-queue work of one end is carried out in order; its completions come in order; receives
//! complete in order. Nothing else is in order: completions of the two queues, and of the two
//! ends, are handed over as the run's choices say.
//!
//! `unsafe` is forbidden here, and yet [`Io::octets`] lends arena memory for the whole run
//! while other memory is written. What it lends is a copy, made when it is asked for, in a
//! bump arena that lives as long as the run.

use crate::chance::Chance;
use crate::device::{Arrival, Device, Faults, Piece, State, Task, Work};
use bumpalo::Bump;
use rpcrdma_engine::{Access, Counters, Io, Octets, Posted, Refused, Span, WorkError, WorkId};
use rpcrdma_wire::{Handle, Reject, Segment};

/// Two devices and the wire between them.
pub struct Link<'m> {
    snapshots: &'m Bump,
    /// Both ends.
    pub ends: [Device; 2],
    down: bool,
}

impl<'m> Link<'m> {
    /// Two devices that are not connected yet.
    #[must_use]
    pub fn new(snapshots: &'m Bump, chance: &mut Chance, faults: [Faults; 2]) -> Link<'m> {
        let ends = faults.map(|faults| Device::new(chance.fork(), faults));
        Link {
            snapshots,
            ends,
            down: false,
        }
    }

    /// One end, as its engine sees it.
    pub fn desk(&mut self, end: usize) -> Desk<'_, 'm> {
        Desk { link: self, end }
    }

    /// The connection is established.
    pub fn connect(&mut self) {
        for end in &mut self.ends {
            if end.state == State::Made {
                end.state = State::Up;
            }
        }
    }

    /// New queue pairs on the same arenas.
    pub fn renew(&mut self) {
        self.ends.iter_mut().for_each(Device::renew);
        self.down = false;
    }

    /// The connection is lost. Each end will notice.
    pub fn sever(&mut self) {
        if !self.down {
            self.down = true;
            self.ends.iter_mut().for_each(|end| end.notice = true);
        }
    }

    /// True when the connection is lost.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.down
    }

    /// True when [`Link::execute`] has something to do for this end.
    #[must_use]
    pub fn has_work(&self, end: usize) -> bool {
        !self.ends[end].queue.is_empty()
    }

    /// The end of the connection is to be told to this end: it is told, and in error.
    pub(crate) fn take_notice(&mut self, end: usize) -> bool {
        let told = std::mem::take(&mut self.ends[end].notice);
        if told {
            self.ends[end].break_down();
        }
        told
    }

    /// Carries out the work in front of one end's send queue. False when it has to wait for the
    /// peer to post a receive.
    pub fn execute(&mut self, end: usize) -> bool {
        let Some(work) = self.ends[end].queue.pop_front() else {
            return false;
        };
        if let Task::Retire { stale, .. } = work.task {
            match stale {
                true => self.fail(end, work, WorkError::LocalProtection),
                false => self.ends[end].finish(work, Ok(())),
            }
            return true;
        }
        if self.down || self.ends[1 - end].state != State::Up {
            self.fail(end, work, WorkError::Transport);
            return true;
        }
        match self.carry_out(end, &work.task) {
            Ok(()) => self.ends[end].finish(work, Ok(())),
            Err(WorkError::NotReady) => {
                // RNR: tried again later.
                self.ends[1 - end].not_ready += 1;
                self.ends[end].queue.push_front(work);
                return false;
            }
            Err(error) => self.fail(end, work, error),
        }
        true
    }

    /// Work failed: both queue pairs go to error, this one at once.
    fn fail(&mut self, end: usize, work: Work, error: WorkError) {
        self.ends[end].finish(work, Err(error));
        self.ends[end].break_down();
        self.sever();
    }

    /// The first retirement that is posted at an end will fail.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn fail_next_retirement(&mut self, end: usize) {
        let mut tasks = self.ends[end].queue.iter_mut().map(|work| &mut work.task);
        let stale = tasks.find_map(|task| match task {
            Task::Retire { stale, .. } => Some(stale),
            _ => None,
        });
        *stale.expect("a retirement") = true;
    }

    fn carry_out(&mut self, end: usize, task: &Task) -> Result<(), WorkError> {
        match task {
            Task::Send {
                message,
                invalidate,
            } => self.deliver(end, message, *invalidate),
            Task::Read { into, from } => {
                let from = self.ends[1 - end].exposures.reach(*from, Access::Read);
                let from = from.ok_or(WorkError::RemoteAccess)?;
                let octets = self.ends[1 - end].memory.octets(from).to_vec();
                let memory = &mut self.ends[end].memory;
                memory
                    .octets_mut(into.first(from.len))
                    .copy_from_slice(&octets);
                Ok(())
            }
            Task::Write { from, to } => {
                let to = self.ends[1 - end].exposures.reach(*to, Access::Write);
                let to = to.ok_or(WorkError::RemoteAccess)?;
                let octets = self.gather(end, std::slice::from_ref(from));
                self.ends[1 - end]
                    .memory
                    .octets_mut(to)
                    .copy_from_slice(&octets);
                Ok(())
            }
            Task::Retire { .. } => Ok(()),
        }
    }

    fn gather(&self, end: usize, pieces: &[Piece]) -> Vec<u8> {
        let mut octets = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Copied(copied) => octets.extend_from_slice(copied),
                Piece::Span(span) => octets.extend_from_slice(self.ends[end].memory.octets(*span)),
            }
        }
        octets
    }

    fn deliver(
        &mut self,
        end: usize,
        message: &[Piece],
        invalidate: Option<Handle>,
    ) -> Result<(), WorkError> {
        let octets = self.gather(end, message);
        let peer = &mut self.ends[1 - end];
        let (id, span) = *peer.receives.front().ok_or(WorkError::NotReady)?;
        let len = u32::try_from(octets.len()).expect("a message");
        if len > span.len {
            peer.receives.pop_front();
            let result = Err(WorkError::LocalLength);
            peer.arrived.push_back(Arrival { id, span, result });
            peer.break_down();
            return Err(WorkError::RemoteInvalid);
        }
        if let Some(handle) = invalidate
            && !peer.exposures.invalidate(handle)
        {
            return Err(WorkError::RemoteAccess);
        }
        peer.receives.pop_front();
        peer.memory
            .octets_mut(span.first(len))
            .copy_from_slice(&octets);
        let result = Ok((len, invalidate));
        peer.arrived.push_back(Arrival { id, span, result });
        Ok(())
    }
}

/// One end of a link: what its engine works with.
pub struct Desk<'a, 'm> {
    link: &'a mut Link<'m>,
    end: usize,
}

impl Desk<'_, '_> {
    /// This end's device.
    pub fn device(&mut self) -> &mut Device {
        &mut self.link.ends[self.end]
    }

    fn own(&self) -> &Device {
        &self.link.ends[self.end]
    }

    /// Says that there is no room, sometimes: only where a completion is sure to come.
    fn room(&mut self) -> Result<(), Refused> {
        let device = self.device();
        if device.state != State::Up {
            return Err(Refused::Broken);
        }
        let due = device.completions_due();
        let busy = due > 0 && device.chance.one_in(device.faults.busy_one_in);
        match busy || due >= device.faults.send_depth {
            true => Err(Refused::Busy),
            false => Ok(()),
        }
    }

    /// Does the work now and for good, or puts it behind what is posted.
    fn post(&mut self, id: WorkId, task: Task) -> Posted {
        if self.carried_out_now(&task) {
            return Posted::Done;
        }
        self.device().queue.push_back(Work { id, task });
        Posted::Pending
    }

    /// This work is to be done at once, if it can be.
    fn at_once(&mut self) -> bool {
        let device = self.device();
        let pending = device.faults.pending_percent;
        !device.chance.percent(pending)
    }

    /// Work that can be done before the call returns, because nothing is posted before it.
    fn carried_out_now(&mut self, task: &Task) -> bool {
        let (end, link) = (self.end, &mut *self.link);
        let free = link.ends[end].queue.is_empty() && link.ends[1 - end].state == State::Up;
        free && !link.down && self.at_once() && self.link.carry_out(end, task).is_ok()
    }
}

impl<'m> Io<'m> for Desk<'_, 'm> {
    fn reserve(&mut self, len: u32) -> Option<Span> {
        let device = self.device();
        let refuse = device.state == State::Up && device.chance.one_in(device.faults.busy_one_in);
        let span = if refuse {
            None
        } else {
            device.memory.reserve(len)
        };
        device.starved |= span.is_none();
        span
    }

    fn release(&mut self, span: Span) {
        self.own().check_private(span, "release");
        self.device().memory.release(span);
    }

    fn octets(&self, span: Span) -> &'m [u8] {
        self.own().check_readable(span);
        self.link
            .snapshots
            .alloc_slice_copy(self.own().memory.octets(span))
    }

    fn fill(&mut self, span: Span, from: &[u8]) {
        let to = span.first(u32::try_from(from.len()).expect("no longer than a span"));
        assert_eq!(to.len as usize, from.len(), "more than {span:?} holds");
        self.octets_mut(to).copy_from_slice(from);
    }

    fn octets_mut(&mut self, span: Span) -> &mut [u8] {
        self.own().check_private(span, "fill");
        self.device().memory.octets_mut(span)
    }

    fn post_receive(&mut self, memory: Span, id: WorkId) -> Result<(), Refused> {
        self.own().check_private(memory, "post_receive");
        let device = self.device();
        if device.state == State::Broken {
            // Some devices take it, and flush it; others refuse.
            if device.chance.one_in(2) {
                return Err(Refused::Broken);
            }
            let result = Err(WorkError::Flushed);
            let span = memory;
            device.arrived.push_back(Arrival { id, span, result });
            return Ok(());
        }
        device.memory.spoil(memory);
        device.receives.push_back((id, memory));
        Ok(())
    }

    fn send(
        &mut self,
        message: &[Octets<'_>],
        invalidate: Option<Handle>,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        self.room()?;
        let piece = |octets: &Octets<'_>| match octets {
            Octets::Bytes(bytes) => Piece::Copied(bytes.to_vec()),
            Octets::Span(span) => Piece::Span(*span),
        };
        let message = message.iter().map(piece).collect();
        let task = Task::Send {
            message,
            invalidate,
        };
        Ok(self.post(id, task))
    }

    fn read(&mut self, into: Span, from: Segment, id: WorkId) -> Result<Posted, Refused> {
        self.room()?;
        self.own().check_private(into, "read");
        Ok(self.post(id, Task::Read { into, from }))
    }

    fn write(&mut self, from: Span, to: Segment, id: WorkId) -> Result<Posted, Refused> {
        self.room()?;
        assert_eq!(
            from.len, to.length,
            "a Write to a segment of another length"
        );
        let from = Piece::Span(from);
        Ok(self.post(id, Task::Write { from, to }))
    }

    fn expose(&mut self, memory: Span, access: Access) -> Result<Segment, Refused> {
        let owned = self.own().memory.octets(memory).len();
        assert_eq!(owned, memory.len as usize);
        let device = self.device();
        if device.state != State::Up {
            return Err(Refused::Broken);
        }
        let none = device.exposures.count() >= device.faults.windows;
        if none || device.chance.one_in(device.faults.busy_one_in) {
            device.starved = true;
            return Err(Refused::Busy);
        }
        let Device {
            exposures, chance, ..
        } = device;
        Ok(exposures.expose(chance, memory, access))
    }

    fn retire(&mut self, handle: Handle, id: WorkId) -> Result<Posted, Refused> {
        let device = self.device();
        let broken = device.state == State::Broken;
        let due = device.completions_due();
        if due > 0 && device.chance.one_in(device.faults.busy_one_in) {
            return Err(Refused::Busy);
        }
        let hostile = broken || device.faults.hostile_peer;
        let stale = !device.exposures.retiring(handle, hostile) && !broken;
        let task = Task::Retire { handle, stale };
        if !stale && self.at_once() {
            self.device().exposures.retired(handle);
            return Ok(Posted::Done);
        }
        if broken {
            self.device().finish(Work { id, task }, Ok(()));
            return Ok(Posted::Pending);
        }
        self.device().queue.push_back(Work { id, task });
        Ok(Posted::Pending)
    }

    fn retired_by_peer(&mut self, handle: Handle) {
        self.device().exposures.acknowledged(handle);
    }

    fn disconnect(&mut self) {
        self.link.ends[self.end].break_down();
        self.link.sever();
    }

    fn counters(&mut self) -> &mut Counters {
        &mut self.device().counters
    }

    fn refused(&mut self, reject: Reject, message: &[u8]) {
        self.device().refused.push((reject, message.to_vec()));
    }
}
