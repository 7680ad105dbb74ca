//! Reads records off a stream, their payload straight into arena memory.
//!
//! # How a record comes in
//!
//! The reader has one small buffer of its own. A record begins there: its marker and its first
//! octets, up to `head_bytes` of them, enough for the owner to see whose record it is and to
//! find memory for the whole. That is [`Step::Head`]. Then the owner says where the record
//! goes ([`RecordReader::accept`]), or that nobody wants it ([`RecordReader::skip`]), or says
//! nothing, and then nothing more is read: that is how a stream is held back while memory is
//! short. Once accepted, the head is copied to its place and the rest is read by `readv`,
//! from the socket into the arena without a stop between. Each such `readv` has the small
//! buffer as its last element, so the next record's beginning often comes with the end of this
//! one: reading ahead never goes further than that buffer.
//!
//! So what this code copies of a record is at most the buffer's size, however long the record:
//! [`RecordReader::copied`] counts it.
//!
//! # Layout of the buffer
//!
//! ```text
//!   0        start          start + held                filled
//!   | spent  | record octets, markers taken out | octets not looked at yet |  free  |
//! ```
//!
//! While a body is read, `held` is zero: whatever of it is in the buffer moves to the arena
//! first, and the buffer is empty whenever the stream is read into the arena.
//!
//! # Limits
//!
//! A record longer than `limit` octets, or of more than [`MAX_FRAGMENTS`] fragments, is refused
//! as soon as a marker says so, before any of the excess is read. Fragments may be empty; the
//! count bounds how many. After a refusal the stream is out of step for good: close it.

use super::{LAST, MAX_FRAGMENT_BYTES};
use rpcrdma_engine::{Io, Span};
use std::io::{ErrorKind, IoSliceMut, Read};

/// Most fragments of one record. Those who make many send some kilo-octets in each.
pub const MAX_FRAGMENTS: u32 = 4096;

const MARKER_BYTES: usize = 4;

/// What a step of reading came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The stream has no more for now.
    Blocked,
    /// A record has begun: look at [`RecordReader::head`], then accept or skip it.
    Head(Head),
    /// The accepted record is whole, in the first octets of the memory it was given.
    Record(Span),
    /// The record's end has been reached, and it is nowhere: it was skipped, or grew past the
    /// memory it had been accepted into, which is named here.
    Skipped(Option<Span>),
    /// The peer sends no more. `midway` if that was inside a record.
    Ended {
        /// Part of a record had come.
        midway: bool,
    },
}

/// A record that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Octets of the whole record; `None` while fragments of unknown number are to come.
    pub len: Option<u32>,
}

/// Why a stream cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// A record longer than the limit.
    TooLong,
    /// A record of more than [`MAX_FRAGMENTS`] fragments.
    TooManyFragments,
    /// The system refused to read.
    Stream(ErrorKind),
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Gathering the head.
    Begin,
    /// The head is there, and waits for a decision.
    Decide,
    /// The record goes to `into`, `written` octets of it are there.
    Body { into: Span, written: u32 },
    /// The record goes nowhere, nor does what `into` has of it.
    Skip { into: Option<Span> },
    /// Out of step.
    Refused(Refusal),
}

/// The record being read, as its markers describe it.
#[derive(Clone, Copy, Debug, Default)]
struct Markers {
    /// Octets of the present fragment still to come.
    left: u32,
    /// The present fragment is the last.
    last: bool,
    /// Octets of all fragments announced so far.
    total: u32,
    /// Fragments announced so far.
    fragments: u32,
}

impl Markers {
    fn complete(self) -> bool {
        self.last && self.left == 0
    }

    fn announce(&mut self, marker: u32, limit: u32) -> Result<(), Refusal> {
        let len = marker & MAX_FRAGMENT_BYTES;
        self.total = match self.total.checked_add(len) {
            Some(total) if total <= limit => total,
            _ => return Err(Refusal::TooLong),
        };
        self.fragments += 1;
        if self.fragments > MAX_FRAGMENTS {
            return Err(Refusal::TooManyFragments);
        }
        self.left = len;
        self.last = marker & LAST != 0;
        Ok(())
    }
}

/// The reading half of one stream of records. Allocates once, when it is made.
#[derive(Debug)]
pub struct RecordReader {
    buffer: Box<[u8]>,
    start: usize,
    held: usize,
    filled: usize,
    markers: Markers,
    state: State,
    limit: u32,
    copied: u64,
    received: u64,
}

impl RecordReader {
    /// A reader for records of at most `limit` octets, which shows the first `head_bytes`
    /// (at least one) of each before it asks where to put it.
    #[must_use]
    pub fn new(head_bytes: usize, limit: u32) -> Self {
        Self {
            buffer: vec![0; head_bytes.max(1) + MARKER_BYTES].into_boxed_slice(),
            start: 0,
            held: 0,
            filled: 0,
            markers: Markers::default(),
            state: State::Begin,
            limit,
            copied: 0,
            received: 0,
        }
    }

    /// The first octets of the record that [`Step::Head`] announced.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        self.buffer
            .get(self.start..self.start + self.held)
            .unwrap_or_default()
    }

    /// Octets copied inside this process so far: heads, and what came with them.
    #[must_use]
    pub fn copied(&self) -> u64 {
        self.copied
    }

    /// Octets read from the stream so far.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Longest record this reader takes, in octets.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// True while a record waits for [`RecordReader::accept`] or [`RecordReader::skip`].
    #[must_use]
    pub fn undecided(&self) -> bool {
        matches!(self.state, State::Decide)
    }

    /// The memory of a record accepted and not yet whole: its owner's again if the stream is
    /// given up.
    #[must_use]
    pub fn destination(&self) -> Option<Span> {
        match self.state {
            State::Body { into, .. } => Some(into),
            State::Skip { into } => into,
            State::Begin | State::Decide | State::Refused(_) => None,
        }
    }

    /// Puts the record that waits into `into`. Should it grow past it, it is read to its end
    /// all the same, and [`Step::Skipped`] says so.
    pub fn accept<'m>(&mut self, io: &mut impl Io<'m>, into: Span) {
        debug_assert!(self.undecided(), "no record waits");
        let held = self.held;
        self.state = State::Body { into, written: 0 };
        self.place(io, held);
        self.held = 0;
    }

    /// Reads the record that waits to its end and forgets it.
    pub fn skip(&mut self) {
        debug_assert!(self.undecided(), "no record waits");
        self.start += self.held;
        self.held = 0;
        self.state = State::Skip { into: None };
    }

    /// Reads on until something has to be known or done.
    ///
    /// # Errors
    ///
    /// The stream is of no more use; the same answer comes from then on.
    pub fn step<'m>(
        &mut self,
        stream: &mut impl Read,
        io: &mut impl Io<'m>,
    ) -> Result<Step, Refusal> {
        loop {
            let step = match self.state {
                State::Begin => self.begin(stream),
                State::Decide => return Ok(Step::Head(self.describe())),
                State::Body { into, written } => self.body(stream, io, into, written),
                State::Skip { into } => self.skipping(stream, into),
                State::Refused(refusal) => Err(refusal),
            };
            match step {
                Ok(None) => {}
                Ok(Some(step)) => return Ok(step),
                Err(refusal) => {
                    self.state = State::Refused(refusal);
                    return Err(refusal);
                }
            }
        }
    }

    fn describe(&self) -> Head {
        Head {
            len: self.markers.last.then_some(self.markers.total),
        }
    }

    fn begin(&mut self, stream: &mut impl Read) -> Result<Option<Step>, Refusal> {
        let head_bytes = self.buffer.len() - MARKER_BYTES;
        if self.held == head_bytes || self.markers.complete() {
            self.state = State::Decide;
        } else if self.markers.left > 0 && self.ahead() > 0 {
            let taken = self.ahead_of_fragment().min(head_bytes - self.held);
            self.held += taken;
            self.pass(taken);
        } else if self.markers.left > 0 || !self.take_marker()? {
            return self.refill(stream);
        }
        Ok(None)
    }

    fn body<'m>(
        &mut self,
        stream: &mut impl Read,
        io: &mut impl Io<'m>,
        into: Span,
        written: u32,
    ) -> Result<Option<Step>, Refusal> {
        if self.markers.complete() {
            self.finish();
            return Ok(Some(Step::Record(into.first(written))));
        }
        if self.markers.left == 0 {
            return if self.take_marker()? {
                Ok(None)
            } else {
                self.refill(stream)
            };
        }
        if self.markers.left > into.len - written {
            self.state = State::Skip { into: Some(into) };
            return Ok(None);
        }
        if self.ahead() > 0 {
            let taken = self.ahead_of_fragment();
            self.place(io, taken);
            self.pass(taken);
            return Ok(None);
        }
        self.read_into(stream, io, into, written)
    }

    /// The fast way: the buffer is empty, and the stream is read into the arena.
    fn read_into<'m>(
        &mut self,
        stream: &mut impl Read,
        io: &mut impl Io<'m>,
        into: Span,
        written: u32,
    ) -> Result<Option<Step>, Refusal> {
        let left = self.markers.left;
        let rest = io.octets_mut(into.skip(written).first(left));
        let mut slices = [IoSliceMut::new(rest), IoSliceMut::new(&mut self.buffer)];
        let count = match outcome(stream.read_vectored(&mut slices), true)? {
            Ok(count) => count,
            Err(step) => return Ok(Some(step)),
        };
        self.received += count as u64;
        let placed = u32::try_from(count).unwrap_or(u32::MAX).min(left);
        self.start = 0;
        self.filled = count - placed as usize;
        self.state = State::Body {
            into,
            written: written + placed,
        };
        self.pass(placed as usize);
        Ok(None)
    }

    fn skipping(
        &mut self,
        stream: &mut impl Read,
        into: Option<Span>,
    ) -> Result<Option<Step>, Refusal> {
        if self.markers.complete() {
            self.finish();
            return Ok(Some(Step::Skipped(into)));
        }
        if self.markers.left > 0 && self.ahead() > 0 {
            let taken = self.ahead_of_fragment();
            self.start += taken;
            self.pass(taken);
        } else if self.markers.left > 0 || !self.take_marker()? {
            return self.refill(stream);
        }
        Ok(None)
    }

    /// Octets in the buffer that nothing has looked at.
    fn ahead(&self) -> usize {
        self.filled - self.start - self.held
    }

    /// Those of them that belong to the present fragment.
    fn ahead_of_fragment(&self) -> usize {
        self.ahead().min(self.markers.left as usize)
    }

    /// Counts octets of the present fragment as dealt with; never more than it has left.
    fn pass(&mut self, octets: usize) {
        let octets = u32::try_from(octets).unwrap_or(u32::MAX);
        self.markers.left = self.markers.left.saturating_sub(octets);
    }

    /// Takes the marker that stands behind the octets held, if it is there whole. What is held
    /// moves over it, so that it stays in one piece.
    fn take_marker(&mut self) -> Result<bool, Refusal> {
        if self.ahead() < MARKER_BYTES {
            return Ok(false);
        }
        let behind = self.start + self.held;
        let mut marker = [0; MARKER_BYTES];
        marker.copy_from_slice(&self.buffer[behind..behind + MARKER_BYTES]);
        self.buffer
            .copy_within(self.start..behind, self.start + MARKER_BYTES);
        self.start += MARKER_BYTES;
        self.markers
            .announce(u32::from_be_bytes(marker), self.limit)?;
        Ok(true)
    }

    /// Reads more into the buffer, behind what is there.
    fn refill(&mut self, stream: &mut impl Read) -> Result<Option<Step>, Refusal> {
        self.buffer.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
        let midway = self.filled > 0 || self.markers.fragments > 0;
        let read = stream.read(&mut self.buffer[self.filled..]);
        Ok(match outcome(read, midway)? {
            Ok(count) => {
                self.filled += count;
                self.received += count as u64;
                None
            }
            Err(step) => Some(step),
        })
    }

    /// Copies the next `octets` of the buffer to the body.
    fn place<'m>(&mut self, io: &mut impl Io<'m>, octets: usize) {
        let State::Body { into, written } = self.state else {
            return;
        };
        let len = u32::try_from(octets).unwrap_or(u32::MAX);
        if len > into.len - written {
            self.state = State::Skip { into: Some(into) };
        } else {
            io.fill(
                into.skip(written),
                &self.buffer[self.start..self.start + octets],
            );
            self.copied += u64::from(len);
            self.state = State::Body {
                into,
                written: written + len,
            };
        }
        self.start += octets;
    }

    fn finish(&mut self) {
        self.markers = Markers::default();
        self.state = State::Begin;
    }
}

/// Sorts the outcomes of a read: octets, a step that ends this round, a refusal.
fn outcome(read: std::io::Result<usize>, midway: bool) -> Result<Result<usize, Step>, Refusal> {
    match read {
        Ok(0) => Ok(Err(Step::Ended { midway })),
        Ok(count) => Ok(Ok(count)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock => Ok(Err(Step::Blocked)),
            ErrorKind::Interrupted => Ok(Ok(0)),
            kind => Err(Refusal::Stream(kind)),
        },
    }
}
