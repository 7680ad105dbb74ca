//! Posting: what the owner of a queue pair wants done.

use super::desk::{RECEIVE, WORK};
use super::pair::{Book, Pair, Phase};
use super::places::Places;
use super::{IwarpPort, TRANSFER_BYTES, machine};
use arrayvec::ArrayVec;
use rpcrdma_fabric::{Handle, Octets, Posted, Refused, Segment, Span, WorkId};
use rpcrdma_iwarp::rdmap::GATHER;
use rpcrdma_sctp::Llp;

/// The spans of one message.
type Gather = ArrayVec<Span, GATHER>;

/// What a message is made of.
#[derive(Clone, Copy, Debug, Default)]
struct Makeup {
    /// Octets that are not in the arena.
    plain: u32,
    /// Some are.
    spans: bool,
}

impl<L: Llp> IwarpPort<L> {
    #[inline]
    pub(super) fn put_receive(
        &mut self,
        index: u32,
        memory: Span,
        id: WorkId,
    ) -> Result<(), Refused> {
        let pair = self.desk.pairs.get_mut(index as usize);
        let pair = pair.ok_or(Refused::Broken)?;
        if !matches!(pair.phase, Phase::Waiting | Phase::Open) {
            return Err(Refused::Broken);
        }
        if !self.places.has(memory) {
            return Err(Refused::Unsupported);
        }
        let machine = machine(&mut self.sites, pair).ok_or(Refused::Broken)?;
        machine.post_receive(memory, RECEIVE)?;
        pair.receives.push_back(id);
        Ok(())
    }

    #[inline]
    pub(super) fn put_send(
        &mut self,
        index: u32,
        message: &[Octets<'_>],
        invalidate: Option<Handle>,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        let makeup = self.make_up(message)?;
        self.check_room(index)?;
        let outbox = self.reserve(index, makeup.plain)?;
        let book = Book {
            id,
            silent: !makeup.spans,
            outbox,
        };
        let stag = invalidate.map(Into::into);
        let posted = match gather(&self.places, message, outbox) {
            Some(spans) => self.post(index, book, |machine| {
                machine.send(&spans, stag, false, WORK)
            }),
            None => Err(Refused::Unsupported),
        };
        if posted.is_err() {
            self.desk.release(index, outbox);
        }
        posted
    }

    #[inline]
    pub(super) fn put_read(
        &mut self,
        index: u32,
        into: Span,
        from: Segment,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        if from.length > TRANSFER_BYTES || !self.places.has(into) {
            return Err(Refused::Unsupported);
        }
        self.check_room(index)?;
        self.post(index, told(id), |machine| machine.read(into, from, WORK))
    }

    #[inline]
    pub(super) fn put_write(
        &mut self,
        index: u32,
        from: Span,
        to: Segment,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        if from.len > TRANSFER_BYTES || !self.places.has(from) {
            return Err(Refused::Unsupported);
        }
        self.check_room(index)?;
        self.post(index, told(id), |machine| machine.write(from, to, WORK))
    }

    /// Whether the message can be sent at all.
    #[inline]
    fn make_up(&self, message: &[Octets<'_>]) -> Result<Makeup, Refused> {
        let mut makeup = Makeup::default();
        let mut all = 0_u64;
        for part in message {
            match part {
                Octets::Bytes(octets) => {
                    let len = u32::try_from(octets.len()).map_err(|_| Refused::Unsupported)?;
                    makeup.plain = makeup.plain.saturating_add(len);
                    all += u64::from(len);
                }
                Octets::Span(span) if self.places.has(*span) => {
                    makeup.spans = true;
                    all += u64::from(span.len);
                }
                Octets::Span(_) => return Err(Refused::Unsupported),
            }
        }
        if makeup.plain > self.limits.outbox_bytes || all > u64::from(TRANSFER_BYTES) {
            return Err(Refused::Unsupported);
        }
        Ok(makeup)
    }

    /// Whether a queue pair takes work, and has room for some.
    #[inline]
    fn check_room(&mut self, index: u32) -> Result<(), Refused> {
        let pair = self.desk.pairs.get_mut(index as usize);
        let pair = pair.filter(|pair| pair.phase == Phase::Open);
        let pair = pair.ok_or(Refused::Broken)?;
        if pair.works.len() >= self.limits.send_depth as usize {
            pair.starved = true;
            return Err(Refused::Busy);
        }
        Ok(())
    }

    /// Memory of the outbox for the octets of a message.
    #[inline]
    fn reserve(&mut self, index: u32, len: u32) -> Result<Span, Refused> {
        if len == 0 {
            return Ok(Span::default());
        }
        let desk = &mut self.desk;
        let pair = desk.pairs.get_mut(index as usize).ok_or(Refused::Broken)?;
        if pair.outbox_bytes.saturating_add(len) > self.limits.outbox_bytes {
            pair.starved = true;
            return Err(Refused::Busy);
        }
        let Some(span) = desk.outbox.reserve(len) else {
            if !std::mem::replace(&mut pair.starved, true) {
                desk.seekers.push_back(index);
            }
            return Err(Refused::Busy);
        };
        pair.outbox_bytes += len;
        Ok(span)
    }

    /// Hands work to the stream, and writes it down.
    #[inline]
    fn post(
        &mut self,
        index: u32,
        book: Book,
        work: impl FnOnce(&mut rpcrdma_iwarp::Endpoint) -> Result<(), Refused>,
    ) -> Result<Posted, Refused> {
        let pair = self.desk.pairs.get_mut(index as usize);
        let pair: &mut Pair = pair.ok_or(Refused::Broken)?;
        let at = pair.at.ok_or(Refused::Broken)?;
        let reach = self.sites.reach(at).ok_or(Refused::Broken)?;
        let machine = reach.association.endpoint(at.stream);
        work(machine.ok_or(Refused::Broken)?)?;
        pair.works.push_back(book);
        self.desk.queue(reach.track, at);
        Ok(if book.silent {
            Posted::Done
        } else {
            Posted::Pending
        })
    }
}

/// Work that somebody waits for.
fn told(id: WorkId) -> Book {
    Book {
        id,
        silent: false,
        outbox: Span::default(),
    }
}

/// The spans of a message, its plain octets copied to the outbox; `None` when there are too many.
#[inline]
fn gather(places: &Places, message: &[Octets<'_>], outbox: Span) -> Option<Gather> {
    let mut spans = Gather::new();
    let mut free = outbox;
    // Plain octets that follow one another are one span.
    let mut growing = false;
    for part in message {
        match part {
            Octets::Bytes(octets) => {
                // Both were counted when the outbox was reserved.
                let len = u32::try_from(octets.len()).unwrap_or(u32::MAX);
                places.keep(free.first(len), octets);
                if growing && let Some(last) = spans.last_mut() {
                    last.len += len;
                } else if len > 0 {
                    spans.try_push(Places::of_outbox(free.first(len))).ok()?;
                    growing = true;
                }
                free = free.skip(len);
            }
            Octets::Span(span) => {
                spans.try_push(*span).ok()?;
                growing = false;
            }
        }
    }
    Some(spans)
}
