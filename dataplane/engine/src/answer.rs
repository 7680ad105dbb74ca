//! Answering a Call: results to their Write chunks, the rest inline or to the Reply chunk.
//!
//! RDMA Writes are posted before the Send, on one queue pair, so the peer has the data when it
//! has the Reply. What finds no room in the send queue waits in phase `Replying` and is taken
//! up at the number it stopped at.

use crate::api::{CloseReason, Event, MAX_PARTS, Part, Reply, SlotId};
use crate::connection::{Connection, count, count_bytes};
use crate::ids::{Kind, work_id};
use crate::outline::{pad, tail};
use crate::phase::{ServeEvent, ServePhase};
use crate::responder::{Incoming, STORED_PARTS, held_lists};
use crate::work::{Io, Octets, Posted, Refused, Span, WorkError};
use arrayvec::ArrayVec;
use rpcrdma_wire::emit::message_bytes;
use rpcrdma_wire::segment::RawSegment;
use rpcrdma_wire::{
    ChunkLists, Direction, Emitter, ErrorBody, Handle, Procedure, Segment, Version, Xid,
};

/// A Reply's gather list: header, head, parts, padding of the last item.
type Gather<'a> = ArrayVec<Octets<'a>, { STORED_PARTS + 1 }>;
/// Room for a header with no chunks, either version.
const PLAIN_BYTES: usize = 40;
/// Room for the header of most Replies with chunks.
const SHORT_HEADER_BYTES: usize = 256;
/// Room for any Reply header within the limits on a Call's chunks.
const HEADER_BYTES: usize = 4096;

/// Octets that fit into a chunk.
pub(crate) fn room(chunk: &[RawSegment]) -> u64 {
    chunk
        .iter()
        .map(|segment| u64::from(segment.value().length))
        .sum()
}

/// The header of the Reply to a Call with these lists, octets.
pub(crate) fn reply_header_bytes(version: Version, lists: &ChunkLists<'_>) -> usize {
    let segments = lists.writes.iter().map(<[RawSegment]>::len).sum();
    message_bytes(
        version,
        0,
        lists.writes.len(),
        segments,
        lists.reply.map(<[_]>::len),
    )
}

/// How a Reply travels.
struct Delivery<'m> {
    lists: ChunkLists<'m>,
    /// Parts that go by Write chunk, by place.
    reduced: u32,
    header_bytes: usize,
    /// Octets of the rest.
    body: u32,
    /// The rest goes by the Reply chunk.
    long: bool,
}

/// The room that was missing (V2-11).
struct TooSmall {
    segment: u32,
    length: u32,
}

impl Connection {
    /// Answers a Call. A stale slot's reply is dropped, its memory released all the same; one
    /// of more than [`MAX_PARTS`] parts is no reply: the Call is abandoned, with an error.
    pub fn answer<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId, reply: Reply<'_>) -> Event {
        let over = self.phase.is_over();
        let limit = self.peer.receive_bytes;
        let serving = self
            .responder
            .slots
            .get_mut(slot)
            .filter(|call| call.phase == ServePhase::Serving);
        let Some(call) = serving else {
            reply.memory.into_iter().for_each(|span| io.release(span));
            return Event::None;
        };
        if reply.parts.len() > MAX_PARTS {
            reply.memory.into_iter().for_each(|span| io.release(span));
            return self.abandon(io, slot, true);
        }
        call.memory = [reply.memory, None];
        if over {
            self.end_serve(io, slot);
            self.look_again();
            return Event::None;
        }
        let parts = reply
            .parts
            .iter()
            .map(|part| u64::from(part.span.len))
            .sum::<u64>();
        let total = parts
            .saturating_add(reply.head.len() as u64)
            .saturating_add(tail(reply.parts).into());
        let plain = !call.chunked && total.saturating_add(PLAIN_BYTES as u64) <= limit.into();
        self.step_serve(io, slot, ServeEvent::Answer);
        if plain && self.send_plain(io, slot, &reply) {
            return Event::None;
        }
        self.store(io, slot, &reply)
    }

    /// The common case: no chunks, and it fits. False when there was no room to send it.
    fn send_plain<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId, reply: &Reply<'_>) -> bool {
        let Some(call) = self.responder.slots.get(slot) else {
            return true;
        };
        let version = self.version.unwrap_or(Version::One);
        let mut octets = [0; PLAIN_BYTES];
        let mut header = Emitter::new(&mut octets);
        header.start(version, call.xid, self.responder.grant(), Procedure::Msg);
        header.direction(Direction::Reply, None);
        header
            .end_reads()
            .end_writes()
            .reply_chunk(None::<std::iter::Empty<Segment>>);
        let len = header.finish().unwrap_or(0);
        let mut message = Gather::new();
        message.push(Octets::Bytes(octets.get(..len).unwrap_or_default()));
        if !reply.head.is_empty() {
            message.push(Octets::Bytes(reply.head));
        }
        message.extend(reply.parts.iter().map(|part| Octets::Span(part.span)));
        let tail = tail(reply.parts) as usize;
        if tail > 0 {
            message.push(Octets::Bytes([0; 3].get(..tail).unwrap_or_default()));
        }
        self.send_reply(io, slot, &message, None)
    }

    /// Posts a Reply's Send, then the receive its Call came in. False when it found no room.
    ///
    /// In this order a Send without room leaves the Call as it was. The grant is covered all the
    /// same: one receive at a time is missing, and two more than the grant are posted.
    fn send_reply<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        message: &[Octets<'_>],
        invalidate: Option<Handle>,
    ) -> bool {
        match io.send(message, invalidate, work_id(Kind::Reply, slot)) {
            Ok(posted) => {
                let held = self
                    .responder
                    .slots
                    .get_mut(slot)
                    .and_then(|call| call.held.take());
                if let Some(buffer) = held {
                    self.repost(io, buffer);
                }
                self.sent(io, slot, posted, invalidate.is_some());
                true
            }
            Err(Refused::Busy) => false,
            Err(_) => {
                self.fail(io, CloseReason::Work(WorkError::Transport));
                true
            }
        }
    }

    fn sent<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId, posted: Posted, invalidate: bool) {
        count(&mut io.counters().replies_out);
        if invalidate {
            count(&mut io.counters().sends_with_invalidate);
        }
        self.posted(posted);
        self.step_serve(io, slot, ServeEvent::Send);
        let Some(call) = self.responder.slots.get_mut(slot) else {
            return;
        };
        if posted == Posted::Pending {
            call.replying = call.replying.saturating_add(1);
        }
        let (xid, done) = (call.xid, call.replying == 0);
        self.responder.answered(xid, slot);
        if done {
            self.end_serve(io, slot);
        }
        self.end_if_quiet(io);
    }

    /// Keeps a Reply in its slot, then sends it in as many steps as it takes.
    fn store<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId, reply: &Reply<'_>) -> Event {
        let head = u32::try_from(reply.head.len()).unwrap_or(u32::MAX);
        let tail = tail(reply.parts);
        let own = head.saturating_add(tail);
        let memory = if own > 0 { io.reserve(own) } else { None };
        let Some(call) = self.responder.slots.get_mut(slot) else {
            return Event::None;
        };
        if own > 0 && memory.is_none() {
            self.fail(io, CloseReason::Memory);
            return Event::None;
        }
        let plain = |span| Part { span, item: false };
        let memory = memory.unwrap_or_default();
        call.parts.clear();
        if own > 0 {
            io.fill(memory, reply.head);
            io.fill(
                memory.skip(head),
                [0; 3].get(..tail as usize).unwrap_or_default(),
            );
            call.memory = [reply.memory, Some(memory)];
        }
        if head > 0 {
            call.parts.push(plain(memory.first(head)));
        }
        call.parts.extend(reply.parts.iter().copied());
        if tail > 0 {
            call.parts.push(plain(memory.skip(head)));
        }
        self.transmit(io, slot)
    }

    /// Posts what is left of a Reply: its RDMA Writes, then its Send.
    pub(crate) fn transmit<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) -> Event {
        let version = self.version.unwrap_or(Version::One);
        let limit = self.peer.receive_bytes;
        let Some(call) = self.responder.slots.get_mut(slot) else {
            return Event::None;
        };
        let Some(lists) = held_lists(io, call, &self.setup.limits) else {
            return self.illegal(io);
        };
        let delivery = match deliver(version, limit, &call.parts, lists) {
            Ok(delivery) => delivery,
            Err(small) => return self.no_room(io, slot, version, small),
        };
        let (pending, result) = write_all(io, call, slot, &delivery);
        self.outstanding = self.outstanding.saturating_add(pending);
        match result {
            Ok(()) if delivery.header_bytes <= SHORT_HEADER_BYTES => {
                self.send_delivery(io, slot, version, &delivery, &mut [0; SHORT_HEADER_BYTES]);
            }
            Ok(()) => self.send_delivery(io, slot, version, &delivery, &mut [0; HEADER_BYTES]),
            Err(Refused::Busy) => self.responder.unsent(slot),
            Err(_) => self.fail(io, CloseReason::Work(WorkError::Transport)),
        }
        Event::None
    }

    /// The Reply's Send, all Writes being posted.
    fn send_delivery<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        version: Version,
        delivery: &Delivery<'m>,
        octets: &mut [u8],
    ) {
        let invalidate = self.invalidates(slot, version, &delivery.lists);
        let credits = self.responder.grant();
        let Some(call) = self.responder.slots.get(slot) else {
            return;
        };
        let Some(len) = emit_header(octets, version, call.xid, credits, call, delivery) else {
            self.illegal(io);
            return;
        };
        let mut message = Gather::new();
        message.push(Octets::Bytes(octets.get(..len).unwrap_or_default()));
        if !delivery.long {
            message.extend(rest(&call.parts, delivery.reduced).map(Octets::Span));
        }
        if !self.send_reply(io, slot, &message, invalidate) {
            self.responder.unsent(slot);
        }
    }

    /// The handle to take from the peer with this Reply: the one it named, or in version one,
    /// with both flags set, the one distinct handle of its Call (section 4).
    fn invalidates(
        &self,
        slot: SlotId,
        version: Version,
        lists: &ChunkLists<'_>,
    ) -> Option<Handle> {
        if !self.setup.remote_invalidate {
            return None;
        }
        match version {
            Version::Two => self.responder.slots.get(slot)?.inv_handle,
            Version::One => {
                let agreed = self
                    .peer
                    .private
                    .is_some_and(|private| private.remote_invalidate);
                if agreed { only_handle(lists) } else { None }
            }
        }
    }

    /// The Reply fits nowhere: the answer the protocol names, the connection kept (V1-09).
    fn no_room<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        version: Version,
        small: TooSmall,
    ) -> Event {
        let Some(call) = self.responder.slots.get(slot) else {
            return Event::None;
        };
        let xid = call.xid;
        let error = match version {
            Version::One => ErrorBody::Chunk,
            Version::Two => {
                self.keep(io, slot);
                ErrorBody::ReplyResource {
                    segment: small.segment,
                    length: small.length,
                }
            }
        };
        count(&mut io.counters().calls_refused);
        self.end_serve(io, slot);
        self.send_error(io, version.code(), xid, error);
        self.end_if_quiet(io);
        Event::None
    }

    /// Work of a Reply completed: its memory is free when the last has.
    pub(crate) fn reply_work_done<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) -> Event {
        let Some(call) = self.responder.slots.get_mut(slot) else {
            return Event::None;
        };
        call.replying = call.replying.saturating_sub(1);
        if call.replying == 0 && call.phase == ServePhase::Lingering {
            self.end_serve(io, slot);
            self.end_if_quiet(io);
        }
        Event::None
    }
}

/// Decides how a Reply travels, or says which segment is too small (V2-11).
fn deliver<'m>(
    version: Version,
    limit: u32,
    parts: &[Part],
    lists: ChunkLists<'m>,
) -> Result<Delivery<'m>, TooSmall> {
    let (mut reduced, mut body, mut skip) = (0u32, 0u64, 0u32);
    let mut chunks = lists.writes.iter();
    let (mut small, mut index) = (SmallSegments::default(), 0u32);
    for (part, place) in parts.iter().zip(0u32..) {
        let chunk = if part.item { chunks.next() } else { None };
        body = body.saturating_add(part.span.skip(skip).len.into());
        skip = 0;
        let Some(chunk) = chunk else { continue };
        if !chunk.is_empty() {
            small.judge(chunk, u64::from(part.span.len), index);
            reduced |= 1 << (place & 31);
            body = body.saturating_sub(part.span.len.into());
            skip = pad(part.span.len);
        }
        index = index.saturating_add(u32::try_from(chunk.len()).unwrap_or(0));
    }
    for chunk in chunks {
        index = index.saturating_add(u32::try_from(chunk.len()).unwrap_or(0));
    }
    let header_bytes = reply_header_bytes(version, &lists);
    let long = body.saturating_add(header_bytes as u64) > limit.into();
    if header_bytes > HEADER_BYTES.min(limit as usize) {
        small.unknown();
    }
    if long {
        match lists.reply {
            Some(chunk) if !chunk.is_empty() => small.judge(chunk, body, index),
            _ => small.unknown(),
        }
    }
    let body = u32::try_from(body).unwrap_or(u32::MAX);
    small.none().map(|()| Delivery {
        lists,
        reduced,
        header_bytes,
        body,
        long,
    })
}

/// Collects the chunks that are too small: one can be named, several cannot.
#[derive(Default)]
struct SmallSegments {
    first: Option<TooSmall>,
    several: bool,
}

impl SmallSegments {
    /// `before` segments stand before this chunk; `needed` octets are to go into it.
    fn judge(&mut self, chunk: &[RawSegment], needed: u64, before: u32) {
        let missing = needed.saturating_sub(room(chunk));
        let Some(last) = chunk.last().filter(|_| missing > 0) else {
            return;
        };
        self.several |= self.first.is_some();
        let length = missing.saturating_add(last.value().length.into());
        let segment = before.saturating_add(u32::try_from(chunk.len()).unwrap_or(0));
        self.first = Some(match u32::try_from(length) {
            Ok(length) => TooSmall { segment, length },
            Err(_) => TooSmall {
                segment: 0,
                length: 0,
            },
        });
    }

    fn unknown(&mut self) {
        self.several = true;
        self.first = Some(TooSmall {
            segment: 0,
            length: 0,
        });
    }

    fn none(self) -> Result<(), TooSmall> {
        match self.first {
            None => Ok(()),
            Some(_) if self.several => Err(TooSmall {
                segment: 0,
                length: 0,
            }),
            Some(small) => Err(small),
        }
    }
}

/// The parts that do not go by Write chunk, less the padding of those that do.
fn rest(parts: &[Part], reduced: u32) -> impl Iterator<Item = Span> + '_ {
    let mut skip = 0;
    parts.iter().zip(0u32..).filter_map(move |(part, place)| {
        let span = part.span.skip(skip);
        let gone = reduced >> (place & 31) & 1 == 1;
        skip = if gone { pad(part.span.len) } else { 0 };
        (!gone && span.len > 0).then_some(span)
    })
}

/// Cuts spans over the segments of one chunk, as if they lay one after the other.
fn spread(
    spans: impl Iterator<Item = Span>,
    chunk: &[RawSegment],
    mut each: impl FnMut(Span, Segment) -> Result<(), Refused>,
) -> Result<(), Refused> {
    let mut segments = chunk.iter().map(RawSegment::value);
    let Some(mut room) = segments.next() else {
        return Ok(());
    };
    for mut span in spans {
        while span.len > 0 {
            if room.length == 0 {
                match segments.next() {
                    Some(next) => room = next,
                    None => return Ok(()),
                }
                continue;
            }
            let piece = span.first(room.length);
            each(
                piece,
                Segment {
                    length: piece.len,
                    ..room
                },
            )?;
            span = span.skip(piece.len);
            room.offset = room.offset.wrapping_add(piece.len.into());
            room.length = room.length.saturating_sub(piece.len);
        }
    }
    Ok(())
}

/// Posts the Writes of a Reply that are not posted yet. How many will complete, and whether all
/// are posted.
fn write_all<'m>(
    io: &mut impl Io<'m>,
    call: &mut Incoming,
    slot: SlotId,
    delivery: &Delivery<'m>,
) -> (u32, Result<(), Refused>) {
    let (mut number, mut pending) = (0u16, 0u32);
    let parts = std::mem::take(&mut call.parts);
    let mut write = |from: Span, to: Segment| {
        number = number.saturating_add(1);
        if number <= call.writes_posted {
            return Ok(());
        }
        let posted = io.write(from, to, work_id(Kind::Write, slot))?;
        call.writes_posted = number;
        if posted == Posted::Pending {
            call.replying = call.replying.saturating_add(1);
            pending = pending.saturating_add(1);
        }
        count(&mut io.counters().writes);
        count_bytes(&mut io.counters().write_bytes, from.len);
        Ok(())
    };
    let result = (|| {
        for (part, chunk) in written_parts(&parts, delivery) {
            spread([part.span].into_iter(), chunk, &mut write)?;
        }
        match delivery.lists.reply.filter(|_| delivery.long) {
            Some(chunk) => spread(rest(&parts, delivery.reduced), chunk, &mut write),
            None => Ok(()),
        }
    })();
    call.parts = parts;
    (pending, result)
}

/// The parts that go by Write chunk, each with its chunk.
fn written_parts<'a, 'm: 'a>(
    parts: &'a [Part],
    delivery: &'a Delivery<'m>,
) -> impl Iterator<Item = (&'a Part, &'m [RawSegment])> + 'a {
    let items = parts.iter().zip(0u32..).filter(|(part, _)| part.item);
    let chunks = items.zip(delivery.lists.writes.iter());
    chunks.filter_map(|((part, place), chunk)| {
        (delivery.reduced >> (place & 31) & 1 == 1).then_some((part, chunk))
    })
}

/// The Reply's header: the Call's Write list and Reply chunk with what was written (4.3.2).
fn emit_header(
    octets: &mut [u8],
    version: Version,
    xid: Xid,
    credits: u32,
    call: &Incoming,
    delivery: &Delivery<'_>,
) -> Option<usize> {
    let mut header = Emitter::new(octets);
    let procedure = if delivery.long {
        Procedure::NoMsg
    } else {
        Procedure::Msg
    };
    header.start(version, xid, credits, procedure);
    header.direction(Direction::Reply, None);
    header.end_reads();
    let mut items = call.parts.iter().zip(0u32..).filter(|(part, _)| part.item);
    for chunk in delivery.lists.writes.iter() {
        let written = match items.next() {
            Some((part, place)) if delivery.reduced >> (place & 31) & 1 == 1 => part.span.len,
            _ => 0,
        };
        header.write_chunk(filled(chunk, written));
    }
    header.end_writes();
    let written = if delivery.long { delivery.body } else { 0 };
    header.reply_chunk(delivery.lists.reply.map(|chunk| filled(chunk, written)));
    header.finish()
}

/// A chunk's segments with `written` octets put into them in order.
fn filled(chunk: &[RawSegment], written: u32) -> impl ExactSizeIterator<Item = Segment> + '_ {
    let mut left = written;
    chunk.iter().map(move |segment| {
        let segment = segment.value();
        let length = segment.length.min(left);
        left = left.saturating_sub(length);
        Segment { length, ..segment }
    })
}

/// The one distinct handle in all lists of a Call, if it is one.
fn only_handle(lists: &ChunkLists<'_>) -> Option<Handle> {
    let reads = lists.reads.iter().map(|read| read.target());
    let writes = lists
        .writes
        .iter()
        .chain(lists.reply)
        .flatten()
        .map(RawSegment::value);
    let mut handles = reads.chain(writes).map(|segment| segment.handle);
    let first = handles.next()?;
    handles.all(|handle| handle == first).then_some(first)
}
