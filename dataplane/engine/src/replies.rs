//! What comes back for the Calls this side made: Replies and errors.

use crate::api::{CallError, CloseReason, Event, MAX_RESULTS, SlotId};
use crate::connection::{Connection, count};
use crate::head::Head;
use crate::outline::{pieces, segments};
use crate::phase::{CallEvent, CallPhase};
use crate::receives::Buffer;
use crate::requester::{Outgoing, Requester, Then};
use crate::work::{Io, Span};
use crate::xids::Sought;
use rpcrdma_wire::rpc::{self, MessageType};
use rpcrdma_wire::segment::RawSegment;
use rpcrdma_wire::{ChunkLists, ErrorBody, Handle, Header, Version, Xid};

/// The chunk lists of a Reply are not those of its Call.
struct Mismatch;

impl Connection {
    #[inline(always)]
    pub(crate) fn reply_arrived<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        buffer: Buffer,
        head: &Head,
        lists: &ChunkLists<'m>,
        invalidated: Option<Handle>,
    ) -> Event {
        let segment_bytes = self.setup.segment_bytes;
        let Some((sought, slot, call)) = waiting_call(&mut self.requester, head.xid) else {
            return self.drop_reply(io, buffer, invalidated);
        };
        if let Some(handle) = invalidated {
            if !take_invalidated(call, handle, head.version) {
                self.fail(io, CloseReason::WrongInvalidation);
                self.repost(io, buffer);
                return Event::None;
            }
            io.retired_by_peer(handle);
            count(&mut io.counters().remote_invalidations);
        }
        match check_lists(call, lists, head.long, segment_bytes) {
            Ok((written, reply_bytes)) => {
                call.written = written;
                call.body = if head.long {
                    call.reply.unwrap_or_default().first(reply_bytes)
                } else {
                    head.body()
                };
            }
            Err(Mismatch) => {
                // Dropped (V1-05). A handle that is gone is gone; the others stay exposed.
                count(&mut io.counters().bad_replies);
                self.repost(io, buffer);
                return Event::None;
            }
        }
        call.open = false;
        let spare = match head.long {
            true => Some(buffer),
            false => {
                call.held = Some(buffer);
                None
            }
        };
        let at_once = call.answer_at_once();
        self.requester.xids.clear(sought);
        self.requester.answered();
        self.requester.grant(head.credits);
        if let Some(buffer) = spare {
            self.repost(io, buffer);
        }
        let event = if at_once {
            count(&mut io.counters().replies_in);
            Event::Reply(slot)
        } else {
            self.settle_call(io, slot, Then::Deliver)
        };
        self.pump(io);
        event
    }

    /// A Reply to no Call. One that invalidated a handle took it from another Call (V2-19).
    #[cold]
    fn drop_reply<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        buffer: Buffer,
        invalidated: Option<Handle>,
    ) -> Event {
        count(&mut io.counters().strays);
        if invalidated.is_some() {
            self.fail(io, CloseReason::WrongInvalidation);
        }
        self.repost(io, buffer);
        Event::None
    }

    /// Nothing is exposed any more: the Reply can be trusted, and goes up. That of a long Reply
    /// is looked at only now, since until now the peer could still write it.
    #[inline]
    pub(crate) fn deliver<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) -> Event {
        let Some(call) = self.requester.slots.get_mut(slot) else {
            return Event::None;
        };
        if call.held.is_none() && !call.is_answered_at_length(io) {
            count(&mut io.counters().bad_replies);
            count(&mut io.counters().calls_failed);
            self.end_call(io, slot);
            return Event::Failed(slot, CallError::System);
        }
        if call.step(CallEvent::Deliver).is_err() {
            return self.illegal(io);
        }
        count(&mut io.counters().replies_in);
        Event::Reply(slot)
    }

    pub(crate) fn error_arrived<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        header: &Header<'m>,
        error: ErrorBody,
    ) -> Event {
        count(&mut io.counters().errors_in);
        if self.control_error(io, header.xid, error) {
            self.look_again();
            return Event::None;
        }
        let Some((_, slot, _)) = waiting_call(&mut self.requester, header.xid) else {
            count(&mut io.counters().strays);
            return Event::None;
        };
        self.requester.answered();
        let then = match error {
            ErrorBody::Version { low, high } if self.version.is_none() => {
                self.fall_back(io, low, high);
                Then::Requeue
            }
            ErrorBody::Chunk => Then::Fail(CallError::Chunk),
            ErrorBody::ReplyResource { segment, length } => Then::NeedRoom { segment, length },
            ErrorBody::Version { .. }
            | ErrorBody::InvalProc
            | ErrorBody::InvalOption
            | ErrorBody::System => Then::Fail(CallError::System),
        };
        let event = self.settle_call(io, slot, then);
        self.pump(io);
        event
    }
}

impl Outgoing {
    /// With a Reply that is held, and nothing to be ended first, the Call is answered and the
    /// Reply can go up in the same step. False where there is more to do.
    #[inline]
    fn answer_at_once(&mut self) -> bool {
        self.is_quiet()
            && self.held.is_some()
            && self.then == Then::Deliver
            && self.step(CallEvent::Answer).is_ok()
            && self.step(CallEvent::Deliver).is_ok()
    }

    /// What is in the memory for a long Reply is a Reply to this Call.
    #[inline(never)]
    fn is_answered_at_length<'m>(&self, io: &impl Io<'m>) -> bool {
        rpc::peek(io.octets(self.body)) == Some((self.xid, MessageType::Reply))
    }
}

/// The Call in flight with this xid, and where that is in the table.
#[inline]
fn waiting_call(requester: &mut Requester, xid: Xid) -> Option<(Sought, SlotId, &mut Outgoing)> {
    let sought = requester.xids.seek(xid);
    let (slot, call) = requester.slots.at_mut(sought.slot?)?;
    match call.phase {
        CallPhase::Sent | CallPhase::Forsaken => Some((sought, slot, call)),
        _ => None,
    }
}

/// Takes note that the peer invalidated `handle`. False when it was not to: version two names
/// the one handle, in version one it must be of this Call (V2-19).
fn take_invalidated(call: &mut Outgoing, handle: Handle, version: Version) -> bool {
    let allowed = version == Version::One || call.named == Some(handle);
    let place = call.exposures.iter().position(|&exposed| exposed == handle);
    match place {
        Some(place) if allowed && call.live & (1 << (place & 31)) != 0 => {
            call.live &= !(1 << (place & 31));
            true
        }
        _ => false,
    }
}

/// Compares a Reply's lists with those its Call offered: what was written to each result, and
/// to the Reply chunk.
#[inline(always)]
fn check_lists(
    call: &Outgoing,
    lists: &ChunkLists<'_>,
    long: bool,
    segment_bytes: u32,
) -> Result<([Option<u32>; MAX_RESULTS], u32), Mismatch> {
    if lists.writes.len() != call.results.len() {
        return Err(Mismatch);
    }
    let mut written = [None; MAX_RESULTS];
    let chunks = lists.writes.iter().zip(&call.results).zip(&mut written);
    for ((chunk, &room), written) in chunks {
        let bytes = written_to(chunk, room, segment_bytes)?;
        *written = (room.len > 0).then_some(bytes);
    }
    let reply = match (lists.reply, call.reply) {
        (Some(chunk), Some(room)) => written_to(chunk, room, segment_bytes)?,
        (None, _) if !long => 0,
        _ => return Err(Mismatch),
    };
    Ok((written, reply))
}

/// The octets written to one chunk: the same segments as offered, filled one after the other.
fn written_to(chunk: &[RawSegment], room: Span, segment_bytes: u32) -> Result<u32, Mismatch> {
    if chunk.len() != segments(room.len, segment_bytes) {
        return Err(Mismatch);
    }
    let (mut bytes, mut ended) = (0u32, false);
    for (segment, piece) in chunk.iter().zip(pieces(room, segment_bytes)) {
        let length = segment.value().length;
        if length > piece.len || (ended && length > 0) {
            return Err(Mismatch);
        }
        ended = length < piece.len;
        bytes = bytes.saturating_add(length);
    }
    Ok(bytes)
}
