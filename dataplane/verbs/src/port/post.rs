//! Taking work from the engine: into the books, and into the batch.

use super::VerbsPort;
use super::batch::Slot;
use super::outbox::gather;
use super::pair::{Entry, Pair, Phase, Then};
use super::parts::Registered;
use crate::expose::Means;
use rdma_core_sys as rdma;
use rpcrdma_fabric::{Access, Handle, Octets, Posted, Refused, Segment, Span, WorkId};

impl VerbsPort {
    /// The batch, empty or this queue pair's, with room for a send; and the queue pair.
    #[inline]
    fn turn_to(&mut self, qp: u32) -> Result<(), Refused> {
        if !self.batch.takes_send(qp) {
            self.post_batch();
            self.batch.belong_to(qp);
        }
        // Posting may have found it broken.
        match self.pairs.get_mut(qp as usize) {
            Some(pair) if pair.phase == Phase::Open => match pair.has_room() {
                true => Ok(()),
                false => Err(Refused::Busy),
            },
            _ => Err(Refused::Broken),
        }
    }

    #[inline]
    pub(super) fn put_receive(&mut self, qp: u32, memory: Span, id: WorkId) -> Result<(), Refused> {
        if !self.batch.takes_receive(qp) {
            self.post_batch();
            self.batch.belong_to(qp);
        }
        let pair = self.pairs.get_mut(qp as usize);
        let Some(pair) = pair.filter(|pair| pair.phase == Phase::Open) else {
            return Err(Refused::Broken);
        };
        let Some(number) = pair.receives.push(id) else {
            return Err(Refused::Busy);
        };
        let ticket = pair.place.receive(number);
        self.batch.receive(ticket, self.arena.element(memory));
        Ok(())
    }

    #[inline]
    pub(super) fn put_send(
        &mut self,
        qp: u32,
        message: &[Octets<'_>],
        invalidate: Option<Handle>,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        self.turn_to(qp)?;
        if invalidate.is_some() && !self.limits.send_invalidate {
            return Err(Refused::Unsupported);
        }
        let (Some(pair), Some(slot)) = (self.pairs.get_mut(qp as usize), self.batch.slot()) else {
            return Err(Refused::Broken);
        };
        let room = slot.octets.get_mut(..pair.inline_bytes as usize);
        let Some(length) = gather(&self.arena, message, room.unwrap_or_default()) else {
            return self.put_long_send(qp, message, invalidate, id);
        };
        let (number, signalled) = pair
            .book(Entry::new(id, Then::Nothing), false)
            .ok_or(Refused::Busy)?;
        pair.messages = pair.messages.wrapping_add(1);
        slot.send(pair.place.send(number), invalidate, Some(length), signalled);
        Ok(Posted::Done)
    }

    /// A message that does not go inline: its spans from where they are, the rest from the outbox.
    #[inline(never)]
    fn put_long_send(
        &mut self,
        qp: u32,
        message: &[Octets<'_>],
        invalidate: Option<Handle>,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        let (Some(pair), Some(mut slot)) = (self.pairs.get_mut(qp as usize), self.batch.slot())
        else {
            return Err(Refused::Broken);
        };
        let own: u64 = message.iter().map(plain_octets_in).sum();
        if !pair.outbox.fits(own) || elements_of(message) > self.limits.gather as usize {
            return Err(Refused::Unsupported);
        }
        let own = u32::try_from(own).unwrap_or(u32::MAX);
        let mut run = None;
        if own > 0 {
            run = pair.outbox.take(own);
            pair.starved |= run.is_none();
            if run.is_none() {
                return Err(Refused::Busy);
            }
        }
        let mut rest = run.map_or(Span::default(), |run| run.span);
        let (mut piece, mut all_own, mut inside) = (rest.first(0), true, true);
        for element in message {
            match element {
                Octets::Bytes(octets) => {
                    let behind = self.outbox.put(rest, octets);
                    piece.len += rest.len - behind.len;
                    rest = behind;
                }
                Octets::Span(span) => {
                    inside &= self.arena.arena.contains(*span);
                    if piece.len > 0 {
                        slot.element(self.outbox.element(piece));
                    }
                    piece = rest.first(0);
                    slot.element(self.arena.element(*span));
                    all_own = false;
                }
            }
        }
        if piece.len > 0 {
            slot.element(self.outbox.element(piece));
        }
        if !inside {
            if let Some(run) = run {
                pair.outbox.take_back(run);
            }
            return Err(Refused::Unsupported);
        }
        // What was copied is the engine's again at once; what was not, when it has gone.
        let then = if all_own { Then::Nothing } else { Then::Tell };
        let entry = Entry::new(id, then);
        let entry = run.map_or(entry, |run| entry.with_run(run.end));
        let lazy = octets_in(message) >= u64::from(self.limits.lazy_bytes);
        let (number, signalled) = pair.book(entry, lazy).ok_or(Refused::Busy)?;
        pair.messages = pair.messages.wrapping_add(1);
        slot.send(pair.place.send(number), invalidate, None, signalled);
        Ok(match all_own {
            true => Posted::Done,
            false => Posted::Pending,
        })
    }

    #[inline]
    pub(super) fn put_read(
        &mut self,
        qp: u32,
        into: Span,
        from: Segment,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        self.turn_to(qp)?;
        if from.length > self.limits.transfer_bytes || from.length > into.len {
            return Err(Refused::Unsupported);
        }
        let (pair, mut slot, arena) = self.at(qp)?;
        let entry = Entry::new(id, Then::Tell);
        // What waits for a Read should not wait for what is posted behind it: always signalled.
        let (number, _) = pair.book(entry, true).ok_or(Refused::Busy)?;
        let ticket = pair.place.send(number);
        slot.element(arena.element(into.first(from.length)));
        slot.read(ticket, from);
        Ok(Posted::Pending)
    }

    #[inline]
    pub(super) fn put_write(
        &mut self,
        qp: u32,
        from: Span,
        to: Segment,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        self.turn_to(qp)?;
        if from.len > self.limits.transfer_bytes {
            return Err(Refused::Unsupported);
        }
        let lazy = from.len >= self.limits.lazy_bytes;
        let (pair, mut slot, arena) = self.at(qp)?;
        let entry = Entry::new(id, Then::Tell);
        let (number, signalled) = pair.book(entry, lazy).ok_or(Refused::Busy)?;
        let ticket = pair.place.send(number);
        slot.element(arena.element(from));
        slot.write(ticket, to, signalled);
        Ok(Posted::Pending)
    }

    /// Opens a window on `memory`.
    #[inline]
    pub(super) fn put_binding(
        &mut self,
        qp: u32,
        memory: Span,
        access: Access,
    ) -> Result<Segment, Refused> {
        self.turn_to(qp)?;
        if memory.len == 0 {
            return Err(Refused::Unsupported);
        }
        let Means::Windows(windows) = &mut self.means else {
            return Err(Refused::Unsupported);
        };
        let (Some(pair), Some(slot)) = (self.pairs.get_mut(qp as usize), self.batch.slot()) else {
            return Err(Refused::Broken);
        };
        let Some(binding) = windows.take(pair.place) else {
            self.seeker = Some(pair.token);
            return Err(Refused::Busy);
        };
        let entry = Entry::new(WorkId(0), Then::Nothing);
        let (number, signalled) = pair.book(entry, false).ok_or(Refused::Busy)?;
        let ticket = pair.place.send(number);
        let segment = Segment {
            handle: Handle(binding.rkey),
            length: memory.len,
            offset: self.arena.element(memory).addr,
        };
        let bind_info = rdma::ibv_mw_bind_info {
            mr: binding.region.0,
            addr: segment.offset,
            length: u64::from(segment.length),
            mw_access_flags: remote_access(access),
        };
        slot.bind(
            ticket,
            rdma::ibv_send_wr__bindgen_ty_4__bindgen_ty_1 {
                mw: binding.object.0,
                rkey: binding.rkey,
                bind_info,
            },
            signalled,
        );
        Ok(segment)
    }

    /// Ends a window by a work request; by nothing where the peer cannot reach it any more.
    #[inline]
    pub(super) fn put_invalidation(
        &mut self,
        qp: u32,
        handle: Handle,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        let dangling = self.is_dangling();
        let pair = self.pairs.get_mut(qp as usize).ok_or(Refused::Broken)?;
        let place = pair.place;
        match pair.phase {
            Phase::Free => return Err(Refused::Broken),
            Phase::Failing if dangling => {
                pair.starved = true;
                return Err(Refused::Busy);
            }
            // It stays bound until control destroys it, but nothing is carried out for the peer.
            Phase::Failing | Phase::Over => return Ok(Posted::Done),
            Phase::Open | Phase::Draining => {}
        }
        if !pair.has_room() {
            return Err(Refused::Busy);
        }
        if !self.batch.takes_send(qp) {
            self.post_batch();
            self.batch.belong_to(qp);
        }
        let Means::Windows(windows) = &mut self.means else {
            return Err(Refused::Unsupported);
        };
        let window = windows.find(place, handle).ok_or(Refused::Broken)?;
        let (Some(pair), Some(slot)) = (self.pairs.get_mut(qp as usize), self.batch.slot()) else {
            return Err(Refused::Broken);
        };
        if !pair.phase.is_live() {
            return Ok(Posted::Done);
        }
        let entry = Entry::new(id, Then::Release(window));
        let (number, _) = pair.book(entry, true).ok_or(Refused::Busy)?;
        windows.retire(window);
        slot.invalidate(pair.place.send(number), handle);
        Ok(Posted::Pending)
    }

    /// Puts in the request whose completion says that all before it are done: an RDMA Write of
    /// nothing, for which no device looks at the handle. It takes the entry kept for it.
    #[cold]
    pub(super) fn put_marker(&mut self, qp: u32) {
        if !self.batch.takes_send(qp) {
            self.post_batch();
            self.batch.belong_to(qp);
        }
        let Ok((pair, slot, _)) = self.at(qp) else {
            return;
        };
        if let Some((number, _)) = pair.book(Entry::new(WorkId(0), Then::Nothing), true) {
            let nowhere = Segment {
                handle: Handle(0),
                length: 0,
                offset: 0,
            };
            slot.write(pair.place.send(number), nowhere, true);
        }
    }

    /// A queue pair and the place of its next request.
    #[inline]
    fn at(&mut self, qp: u32) -> Result<(&mut Pair, Slot<'_>, &Registered), Refused> {
        match (self.pairs.get_mut(qp as usize), self.batch.slot()) {
            (Some(pair), Some(slot)) => Ok((pair, slot, &self.arena)),
            _ => Err(Refused::Broken),
        }
    }
}

/// What a peer may do, as a device has it.
pub(crate) fn remote_access(access: Access) -> u32 {
    match access {
        Access::Read => rdma::IBV_ACCESS_REMOTE_READ,
        Access::Write => rdma::IBV_ACCESS_REMOTE_WRITE,
    }
}

/// Octets that have to be copied.
fn plain_octets_in(element: &Octets<'_>) -> u64 {
    match element {
        Octets::Bytes(octets) => octets.len() as u64,
        Octets::Span(_) => 0,
    }
}

/// Octets of a message.
fn octets_in(message: &[Octets<'_>]) -> u64 {
    let octets = message.iter().map(|element| match element {
        Octets::Bytes(octets) => octets.len() as u64,
        Octets::Span(span) => u64::from(span.len),
    });
    octets.sum()
}

/// Elements of a gather list: plain octets next to each other are one.
fn elements_of(message: &[Octets<'_>]) -> usize {
    let (mut count, mut plain) = (0, false);
    for element in message {
        let is_plain = matches!(element, Octets::Bytes(_));
        count += usize::from(!(plain && is_plain));
        plain = is_plain;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_octets_are_one_element() {
        let (bytes, span) = (Octets::Bytes(b"x"), Octets::Span(Span::default()));
        assert_eq!(elements_of(&[]), 0);
        assert_eq!(elements_of(&[bytes, bytes, bytes]), 1);
        assert_eq!(elements_of(&[bytes, span, bytes, bytes, span, span]), 5);
    }
}
