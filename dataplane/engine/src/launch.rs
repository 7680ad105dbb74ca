//! Sending a Call: what is exposed, what the header says, what the Send gathers.

use crate::api::{MAX_PARTS, Part, SlotId};
use crate::connection::Connection;
use crate::ids::{Kind, work_id};
use crate::outline::{
    HEADER_BYTES, MAX_SEGMENTS, Outline, Run, Shape, pieces, runs, segments, tail,
};
use crate::requester::Outgoing;
use crate::setup::Side;
use crate::work::{Access, Io, Octets, Posted, Refused, Span};
use arrayvec::ArrayVec;
use rpcrdma_wire::plain::{PLAIN_BYTES, emit_plain};
use rpcrdma_wire::{BackwardRequests, Direction, Emitter, Handle, Procedure, Segment, Version};

/// What is exposed for one Call, in the order of the header: Reads, Writes, Reply chunk.
type Exposed = ArrayVec<Segment, MAX_SEGMENTS>;

/// A Call's gather list: header, parts, padding of the last item.
type Gather<'a> = ArrayVec<Octets<'a>, { MAX_PARTS + 2 }>;

/// What holds for the next Call to be sent.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    version: Version,
    /// The longest message, octets.
    limit: u32,
    /// The credits to ask for.
    credits: u32,
    /// The longest segment to offer, octets.
    segment_bytes: u32,
}

impl Terms {
    /// A Call of so many octets goes into one message, behind a header without chunks.
    #[inline]
    pub(crate) fn has_room_for(&self, bytes: u64) -> bool {
        bytes <= u64::from(self.limit).saturating_sub(PLAIN_BYTES as u64)
    }

    /// How such a Call is to be laid out; `None` where no message can carry it.
    fn outline(&self, parts: &[Part], results: &[Span], reply: Option<Span>) -> Option<Outline> {
        Outline::of(
            self.version,
            self.limit,
            self.segment_bytes,
            parts,
            results,
            reply,
        )
    }
}

impl Connection {
    /// The terms of now.
    #[inline]
    pub(crate) fn terms(&self) -> Terms {
        Terms {
            version: self.version.unwrap_or(self.setup.version_max),
            limit: self.peer.receive_bytes,
            credits: self.requester.wanted(),
            segment_bytes: self.setup.segment_bytes,
        }
    }

    /// The peer takes such a Call. What goes forward it must take; of backward Calls version one
    /// knows no chunks (RFC 8167 5.3), and version two what the peer has announced (V2-22).
    #[inline]
    pub(crate) fn peer_takes(&self, parts: &[Part], results: &[Span], reply: Option<Span>) -> bool {
        if self.setup.side == Side::Client {
            return true;
        }
        let terms = self.terms();
        let takes = match terms.version {
            Version::One => BackwardRequests::Inline,
            Version::Two => self.peer.backward,
        };
        let outline = || terms.outline(parts, results, reply);
        let inline = || outline().is_some_and(|outline| outline.shape == Shape::Inline);
        match takes {
            BackwardRequests::None => false,
            BackwardRequests::Inline => results.is_empty() && reply.is_none() && inline(),
            BackwardRequests::General => true,
        }
    }

    /// Sends the Call in `slot`, or leaves everything as it was.
    pub(crate) fn launch<'m>(&mut self, io: &mut impl Io<'m>, slot: SlotId) -> Result<(), Refused> {
        let terms = self.terms();
        let Some(call) = self.requester.slots.get_mut(slot) else {
            return Err(Refused::Unsupported);
        };
        if !call.is_quiet() {
            // What the last attempt exposed comes back first: else a Call that finds too few
            // windows would take and return them for ever.
            return match self.retire_all(io, slot) {
                true => self.launch(io, slot),
                false => Err(Refused::Busy),
            };
        }
        if call.is_plain(&terms) {
            let posted = call.send_plain(io, slot, &terms)?;
            self.posted(posted);
            return Ok(());
        }
        self.launch_planned(io, slot, &terms)
    }

    /// A Call that is not plainly short.
    #[inline(never)]
    fn launch_planned<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        terms: &Terms,
    ) -> Result<(), Refused> {
        let Some(call) = self.requester.slots.get(slot) else {
            return Err(Refused::Unsupported);
        };
        let (parts, results, reply) = (&call.parts, &call.results, call.reply);
        if !self.peer_takes(parts, results, reply) {
            return Err(Refused::Unsupported);
        }
        let outline = terms
            .outline(parts, results, reply)
            .ok_or(Refused::Unsupported)?;
        self.launch_chunked(io, slot, terms, outline)
    }

    /// Exposes what the outline says, sends the Call, and takes the exposures back where that
    /// cannot be done.
    fn launch_chunked<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        terms: &Terms,
        outline: Outline,
    ) -> Result<(), Refused> {
        let name_one = self.setup.remote_invalidate && terms.version == Version::Two;
        let Some(call) = self.requester.slots.get_mut(slot) else {
            return Err(Refused::Unsupported);
        };
        let runs = runs(&call.parts, outline.shape != Shape::Inline);
        let mut exposed = Exposed::new();
        let sent = expose_all(io, call, &runs, outline.shape, terms, &mut exposed).and_then(|()| {
            call.named = if name_one { choose(&exposed) } else { None };
            call.send_chunked(io, slot, terms, outline, &runs, &exposed)
        });
        // Without a Send nobody was told of them. What finds no room to be ended now is ended
        // before the next attempt.
        call.keep_exposed(&exposed);
        match sent {
            Ok(posted) => {
                let made = exposed.len() as u64;
                io.counters().exposures = io.counters().exposures.wrapping_add(made);
                self.posted(posted);
                Ok(())
            }
            Err(refused) => {
                self.retire_all(io, slot);
                Err(refused)
            }
        }
    }
}

impl Outgoing {
    /// The common case: a short Call, and a short Reply expected.
    #[inline]
    pub(crate) fn is_plain(&self, terms: &Terms) -> bool {
        self.results.is_empty() && self.reply.is_none() && terms.has_room_for(self.bytes)
    }

    /// Sends a plain Call.
    #[inline(always)]
    pub(crate) fn send_plain<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        terms: &Terms,
    ) -> Result<Posted, Refused> {
        let mut room = [0; PLAIN_BYTES];
        let Terms {
            version, credits, ..
        } = *terms;
        let header = emit_plain(&mut room, version, self.xid, credits, Direction::Call);
        let mut message = Gather::new();
        message.push(Octets::Bytes(header));
        for part in &self.parts {
            message.push(Octets::Span(part.span));
        }
        push_tail(&mut message, &self.parts);
        self.named = None;
        let posted = io.send(&message, None, work_id(Kind::Call, slot))?;
        if posted == Posted::Pending {
            self.busy = self.busy.saturating_add(1);
        }
        Ok(posted)
    }

    /// Sends a Call with chunks, all of them exposed.
    fn send_chunked<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        slot: SlotId,
        terms: &Terms,
        outline: Outline,
        runs: &[Run],
        exposed: &Exposed,
    ) -> Result<Posted, Refused> {
        let mut octets = [0; HEADER_BYTES];
        let header = self.emit(&mut octets, terms, outline, runs, exposed)?;
        let mut message = Gather::new();
        message.push(Octets::Bytes(header));
        if outline.shape != Shape::Long {
            let inline = runs.iter().filter(|run| !run.item);
            message.extend(inline.map(|run| Octets::Span(run.span)));
        }
        if outline.shape == Shape::Inline {
            push_tail(&mut message, &self.parts);
        }
        let posted = io.send(&message, None, work_id(Kind::Call, slot))?;
        if posted == Posted::Pending {
            self.busy = self.busy.saturating_add(1);
        }
        Ok(posted)
    }

    /// The header of a Call with chunks, in `octets`.
    fn emit<'o>(
        &self,
        octets: &'o mut [u8],
        terms: &Terms,
        outline: Outline,
        runs: &[Run],
        exposed: &Exposed,
    ) -> Result<&'o [u8], Refused> {
        let mut header = Emitter::new(octets);
        let procedure = match outline.shape {
            Shape::Long => Procedure::NoMsg,
            Shape::Inline | Shape::Reduced => Procedure::Msg,
        };
        header.start(terms.version, self.xid, terms.credits, procedure);
        header.direction(Direction::Call, self.named);
        emit_lists(&mut header, self, runs, outline.shape, terms, exposed);
        let len = header.finish().ok_or(Refused::Unsupported)?;
        debug_assert_eq!(
            len, outline.header_bytes,
            "a header of another size than planned"
        );
        Ok(octets.get(..len).unwrap_or_default())
    }

    /// Remembers what is exposed for this Call.
    fn keep_exposed(&mut self, exposed: &Exposed) {
        self.exposures.clear();
        let handles = exposed.iter().map(|segment| segment.handle);
        self.exposures.extend(handles);
        self.live = exposed.iter().fold(0, |bits, _| bits << 1 | 1);
    }
}

/// Adds the padding that the parts lack at their end.
fn push_tail(message: &mut Gather<'_>, parts: &[Part]) {
    let tail = tail(parts);
    if tail > 0 {
        message.push(Octets::Bytes(
            [0; 3].get(..tail as usize).unwrap_or_default(),
        ));
    }
}

/// Exposes what `shape` sends as chunks, and the room for results and Reply.
fn expose_all<'m>(
    io: &mut impl Io<'m>,
    call: &Outgoing,
    runs: &[Run],
    shape: Shape,
    terms: &Terms,
    exposed: &mut Exposed,
) -> Result<(), Refused> {
    let reads = runs
        .iter()
        .filter(|run| by_read(run, shape))
        .map(|run| (run.span, Access::Read));
    let results = call
        .results
        .iter()
        .chain(&call.reply)
        .map(|&span| (span, Access::Write));
    for (span, access) in reads.chain(results) {
        for piece in pieces(span, terms.segment_bytes) {
            let segment = io.expose(piece, access)?;
            exposed
                .try_push(segment)
                .map_err(|_| Refused::Unsupported)?;
        }
    }
    Ok(())
}

/// This run goes by a Read chunk.
fn by_read(run: &Run, shape: Shape) -> bool {
    match shape {
        Shape::Inline => false,
        Shape::Reduced => run.item,
        Shape::Long => true,
    }
}

/// The one handle the responder may invalidate: that of the longest segment, whose invalidation
/// is worth most to somebody else's device.
fn choose(exposed: &Exposed) -> Option<Handle> {
    let longest = exposed.iter().max_by_key(|segment| segment.length)?;
    // Zero says "none" on the wire (6.2.3), so a handle of zero cannot be named.
    Some(longest.handle).filter(|handle| handle.0 != 0)
}

/// The chunk lists, from the exposures in their order.
fn emit_lists(
    header: &mut Emitter<'_>,
    call: &Outgoing,
    runs: &[Run],
    shape: Shape,
    terms: &Terms,
    exposed: &Exposed,
) {
    let mut rest: &[Segment] = exposed;
    let mut take = |count: usize| {
        let (first, after) = rest.split_at_checked(count).unwrap_or((rest, &[]));
        rest = after;
        first
    };
    for run in runs.iter().filter(|run| by_read(run, shape)) {
        let position = if run.item { run.position } else { 0 };
        for segment in take(segments(run.span.len, terms.segment_bytes)) {
            header.read(position, *segment);
        }
    }
    header.end_reads();
    for span in &call.results {
        header.write_chunk(
            take(segments(span.len, terms.segment_bytes))
                .iter()
                .copied(),
        );
    }
    header.end_writes();
    let reply = call.reply.map(|span| {
        take(segments(span.len, terms.segment_bytes))
            .iter()
            .copied()
    });
    header.reply_chunk(reply);
}
