//! Writes records to a stream, gathered from where their octets are.
//!
//! A record is one fragment: its marker, a few octets of the writer's own (a reply made on the
//! spot), then runs of arena memory. Nothing but those few octets is copied. Many records go
//! out by one `writev`; what the stream does not take stays queued. The memory of a record has
//! to stay as it is until [`RecordWriter::take_written`] gives the record's tag back.

use super::{LAST, MAX_FRAGMENT_BYTES};
use arrayvec::ArrayVec;
use rpcrdma_engine::{Io, MAX_PARTS, Span};
use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Write};

/// Octets of one record that may lie outside the arena.
pub const MAX_LEAD_BYTES: usize = 60;

/// Elements of one `writev`; far below `IOV_MAX`, and enough for a burst of small records.
const SLICES: usize = 64;

/// How far a flush got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Everything queued has been handed to the stream.
    Idle,
    /// The stream takes no more for now.
    Blocked,
}

/// The record was not taken: the queue has no place for it, or it has too many pieces or octets.
/// Its tag comes back at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full<T>(pub T);

#[derive(Debug)]
struct Outgoing<T> {
    /// The marker, and the octets outside the arena.
    lead: ArrayVec<u8, { MAX_LEAD_BYTES + 4 }>,
    spans: ArrayVec<Span, MAX_PARTS>,
    /// All octets, marker included.
    octets: u64,
    tag: T,
}

/// The writing half of one stream of records. Allocates once, when it is made.
#[derive(Debug)]
pub struct RecordWriter<T> {
    queue: VecDeque<Outgoing<T>>,
    capacity: usize,
    /// Records at the front of the queue that are written and not yet taken.
    written: usize,
    /// Octets of the record behind those that are written.
    sent: u64,
}

impl<T> RecordWriter<T> {
    /// A writer that holds at most `capacity` records not yet taken back.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            queue: VecDeque::with_capacity(capacity),
            capacity,
            written: 0,
            sent: 0,
        }
    }

    /// True when a record would be taken.
    #[must_use]
    pub fn has_place(&self) -> bool {
        self.queue.len() < self.capacity
    }

    /// How many more records would be taken.
    #[must_use]
    pub fn places(&self) -> usize {
        self.capacity.saturating_sub(self.queue.len())
    }

    /// True when there is nothing to write.
    #[must_use]
    pub fn idle(&self) -> bool {
        self.queue.len() == self.written
    }

    /// Queues one record: `lead`, copied, then `spans`. `tag` comes back when it is written.
    ///
    /// # Errors
    ///
    /// [`Full`]: nothing was queued.
    pub fn push(&mut self, lead: &[u8], spans: &[Span], tag: T) -> Result<(), Full<T>> {
        let octets = lead.len() as u64 + spans.iter().map(|span| u64::from(span.len)).sum::<u64>();
        let fits = lead.len() <= MAX_LEAD_BYTES && spans.len() <= MAX_PARTS && self.has_place();
        let marker = match u32::try_from(octets) {
            Ok(len) if fits && len <= MAX_FRAGMENT_BYTES => (LAST | len).to_be_bytes(),
            _ => return Err(Full(tag)),
        };
        self.queue.push_back(Outgoing {
            lead: marker.iter().chain(lead).copied().collect(),
            spans: spans.iter().copied().collect(),
            octets: octets + marker.len() as u64,
            tag,
        });
        Ok(())
    }

    /// Writes as much as the stream takes.
    ///
    /// # Errors
    ///
    /// The stream is of no more use.
    pub fn flush<'m>(
        &mut self,
        stream: &mut impl Write,
        io: &impl Io<'m>,
    ) -> Result<Progress, ErrorKind> {
        while !self.idle() {
            let written = stream.write_vectored(&self.gather(io));
            match written {
                Ok(0) => return Err(ErrorKind::WriteZero),
                Ok(count) => self.advance(count as u64),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return Ok(Progress::Blocked),
                    ErrorKind::Interrupted => {}
                    kind => return Err(kind),
                },
            }
        }
        Ok(Progress::Idle)
    }

    /// The tag of a record that has been written whole, oldest first.
    pub fn take_written(&mut self) -> Option<T> {
        self.written = self.written.checked_sub(1)?;
        self.queue.pop_front().map(|outgoing| outgoing.tag)
    }

    /// Gives the queue up: the tags of all records in it, written or not, oldest first.
    pub fn take_any(&mut self) -> Option<T> {
        self.written = self.written.saturating_sub(1);
        self.sent = 0;
        self.queue.pop_front().map(|outgoing| outgoing.tag)
    }

    /// The first octets that are still to be written.
    fn gather<'s, 'm: 's>(&'s self, io: &impl Io<'m>) -> ArrayVec<IoSlice<'s>, SLICES> {
        let mut slices = ArrayVec::new();
        let mut skip = self.sent;
        for outgoing in self.queue.iter().skip(self.written) {
            let spans = outgoing.spans.iter().map(|&span| io.octets(span));
            for octets in std::iter::once(outgoing.lead.as_slice()).chain(spans) {
                let rest = octets.get(usize::try_from(skip).unwrap_or(usize::MAX)..);
                skip = skip.saturating_sub(octets.len() as u64);
                let rest = rest.unwrap_or_default();
                if !rest.is_empty() && slices.try_push(IoSlice::new(rest)).is_err() {
                    return slices;
                }
            }
        }
        slices
    }

    fn advance(&mut self, mut count: u64) {
        for outgoing in self.queue.iter().skip(self.written) {
            let left = outgoing.octets - self.sent;
            if count < left {
                self.sent += count;
                return;
            }
            count -= left;
            self.sent = 0;
            self.written += 1;
        }
    }
}
