//! One end of an RDMAP stream.
//!
//! # Who owns what
//!
//! | memory | owner | given up when |
//! |---|---|---|
//! | a posted receive | the endpoint; the peer writes it | its message is delivered, or the session ends |
//! | spans of a Send or Write | the endpoint | the last segment has been taken by the layer below |
//! | a Read's sink | the endpoint; the peer writes it | the response is delivered, or the session ends |
//! | a tagged buffer | its opener; the peer reads or writes it | it is closed, or invalidated |
//!
//! Given up is told by the one event that the work has. From then on no octet of it is written,
//! whatever still arrives: a delivered message's number is behind the queue's window, a delivered
//! Read's STag names nothing, and an endpoint that has ended places nothing at all.
//!
//! # Order (RFC 5040 section 5.5)
//!
//! Messages go onto the wire in the order in which they were posted (rule 13), one whole before
//! the next. Answers to the peer's Reads take turns with them, in the order of the requests (rule
//! 20). Work completes in the order in which it was posted (rule 15): a Send behind a Read is told
//! of after it. A Read Request is looked at in its turn, not when it arrives (rules 12 and 17), so
//! what was written before it is what it reads. An STag is invalidated when the message that says
//! so is delivered.

mod deliver;
mod emit;
mod place;

use super::reads::Reads;
use super::request::READ_REQUEST_BYTES;
use super::terminate::{Culprit, TERMINATE_BYTES};
use super::work::{Gather, Operation, Response, Turn, Work};
use crate::ddp::assembly::Tiling;
use crate::ddp::queue::Queue;
use crate::event::{End, Event};
use crate::reject::Reject;
use crate::ring::Ring;
use crate::session::Depths;
use crate::stag::{Party, Stag, StagTable};
use rpcrdma_fabric::{Refused, Segment, Span, WorkError, WorkId};

/// How large an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outfit {
    /// Who it is to the table of STags.
    pub party: Party,
    /// Receives that can be posted at once.
    pub receive_depth: u32,
    /// Sends, Writes and Reads that can be posted at once.
    pub send_depth: u32,
    /// Reads it can answer at once, and Reads it may ask for at once, at most. What a session
    /// has of that is agreed on with the peer.
    pub depths: Depths,
}

/// A small buffer of the endpoint's own.
#[derive(Clone, Copy, Debug)]
struct Own<const N: usize>([u8; N]);

impl<const N: usize> Default for Own<N> {
    fn default() -> Own<N> {
        Own([0; N])
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Receive {
    memory: Span,
    id: WorkId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// Receives may be posted, and segments that overtake the Accept are placed.
    Bound,
    /// Everything works.
    Open,
    /// Nothing is placed, nothing is sent.
    Over,
}

/// One end of one RDMAP stream. Lives for one session.
#[derive(Debug)]
pub struct Endpoint {
    outfit: Outfit,
    life: Life,
    tiling: Tiling,
    receives: Queue<Receive>,
    /// The inbound read queue: requests that come, then those being answered.
    requests: Queue<Own<READ_REQUEST_BYTES>>,
    responses: Ring<Response>,
    terminates: Queue<Own<TERMINATE_BYTES>>,
    /// Reads asked for.
    reads: Reads,
    works: Ring<Work>,
    /// Of the works, those that are wholly with the layer below.
    sent: u32,
    /// The message being sent, and how many octets of it are.
    current: Option<Turn>,
    at: u32,
    /// Whose message was the last.
    last: Turn,
    send_msn: u32,
    request_msn: u32,
}

/// What is wrong with a message, and which.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blame {
    pub(crate) reject: Reject,
    pub(crate) culprit: Option<Culprit>,
    pub(crate) request: Option<[u8; READ_REQUEST_BYTES]>,
}

impl Blame {
    /// Of a segment that has just come.
    pub(crate) fn of(reject: Reject, segment: &[u8]) -> Blame {
        Blame::from(reject).shows(segment)
    }

    /// Of this segment, if its header could be told.
    pub(crate) fn shows(self, segment: &[u8]) -> Blame {
        Blame {
            culprit: self.reject.has_header().then(|| Culprit::of(segment)),
            ..self
        }
    }
}

impl From<Reject> for Blame {
    fn from(reject: Reject) -> Blame {
        Blame {
            reject,
            culprit: None,
            request: None,
        }
    }
}

impl Endpoint {
    /// An endpoint with all the memory it will ever need. The table's generator gives it its
    /// secret.
    #[must_use]
    pub fn new(outfit: Outfit, stags: &mut StagTable) -> Endpoint {
        let inbound = u32::from(outfit.depths.ird);
        let mut terminates = Queue::new(1);
        terminates.post(Own::default());
        Endpoint {
            outfit,
            life: Life::Bound,
            tiling: Tiling::new([stags.draw(), stags.draw()]),
            receives: Queue::new(outfit.receive_depth),
            requests: Queue::new(inbound),
            responses: Ring::new(inbound),
            terminates,
            reads: Reads::new(outfit.depths.ord),
            works: Ring::new(outfit.send_depth),
            sent: 0,
            current: None,
            at: 0,
            last: Turn::Response,
            send_msn: 1,
            request_msn: 1,
        }
    }

    /// Who it is to the table of STags.
    #[must_use]
    pub fn party(&self) -> Party {
        self.outfit.party
    }

    /// The largest read depths it has room for.
    #[must_use]
    pub fn depths(&self) -> Depths {
        self.outfit.depths
    }

    /// Receives that are posted.
    #[must_use]
    pub fn receives_posted(&self) -> u32 {
        self.receives.posted()
    }

    /// Posts a receive.
    ///
    /// # Errors
    ///
    /// [`Refused::Busy`] when as many are posted as there is room for, [`Refused::Broken`] after
    /// the session's end.
    #[inline]
    pub fn post_receive(&mut self, memory: Span, id: WorkId) -> Result<(), Refused> {
        if self.life == Life::Over {
            return Err(Refused::Broken);
        }
        if self.receives.post(Receive { memory, id }) {
            Ok(())
        } else {
            Err(Refused::Busy)
        }
    }

    /// Posts a Send, or with `invalidate` a Send with Invalidate of that buffer of the peer's;
    /// `solicited` asks the peer to be woken for it.
    ///
    /// # Errors
    ///
    /// [`Refused::Unsupported`] for more than [`super::GATHER`] spans or 2^32 octets;
    /// [`Refused::Busy`] when the queue is full; [`Refused::Broken`] when the session does not
    /// stand.
    #[inline]
    pub fn send(
        &mut self,
        message: &[Span],
        invalidate: Option<Stag>,
        solicited: bool,
        id: WorkId,
    ) -> Result<(), Refused> {
        let message = Gather::new(message).ok_or(Refused::Unsupported)?;
        self.post(
            Operation::Send {
                message,
                invalidate,
                solicited,
            },
            id,
        )
    }

    /// Posts an RDMA Write of all of `from` to the start of the peer's `to`.
    ///
    /// # Errors
    ///
    /// [`Refused::Unsupported`] when `from` is longer than `to`; else as for a Send.
    #[inline]
    pub fn write(&mut self, from: Span, to: Segment, id: WorkId) -> Result<(), Refused> {
        if from.len > to.length {
            return Err(Refused::Unsupported);
        }
        self.post(Operation::Write { from, to }, id)
    }

    /// Posts an RDMA Read of `from.length` octets of the peer's to the start of `into`.
    ///
    /// # Errors
    ///
    /// [`Refused::Unsupported`] when `into` is shorter, or the peer answers no Reads; else as for
    /// a Send.
    #[inline]
    pub fn read(&mut self, into: Span, from: Segment, id: WorkId) -> Result<(), Refused> {
        if from.length > into.len || !self.reads.allowed() {
            return Err(Refused::Unsupported);
        }
        let into = into.first(from.length);
        self.post(Operation::Read { into, from }, id)
    }

    #[inline]
    fn post(&mut self, operation: Operation, id: WorkId) -> Result<(), Refused> {
        if self.life != Life::Open {
            return Err(Refused::Broken);
        }
        let work = Work {
            id,
            operation,
            done: false,
        };
        if self.works.push(work) {
            Ok(())
        } else {
            Err(Refused::Busy)
        }
    }

    /// It has not been in a session.
    pub(crate) fn is_fresh(&self) -> bool {
        self.life == Life::Bound
    }

    /// Takes Read Requests, up to so many at once.
    pub(crate) fn take_requests(&mut self, ird: u16) {
        // No more than there is room for.
        for _ in 0..ird {
            self.requests.post(Own::default());
        }
    }

    /// The session stands, with this many Reads to be asked for at once.
    pub(crate) fn open(&mut self, ord: u16) {
        if self.life == Life::Bound {
            self.life = Life::Open;
            self.reads.limit(ord);
        }
    }

    /// The session's end: nothing is placed any more, and all work is told of, oldest first. What
    /// was on its way fails as `end` says, the rest is flushed.
    pub(crate) fn close(&mut self, end: End, told: &mut impl FnMut(Event<'_>)) {
        self.life = Life::Over;
        let mut error = if self.sent > 0 {
            end.error()
        } else {
            WorkError::Flushed
        };
        while let Some(work) = self.works.pop() {
            told(Event::Failed { id: work.id, error });
            error = WorkError::Flushed;
        }
        while let Some(receive) = self.receives.withdraw() {
            told(Event::Failed {
                id: receive.id,
                error: WorkError::Flushed,
            });
        }
        self.reads.clear();
        while self.responses.pop().is_some() {}
        self.sent = 0;
        self.current = None;
    }
}
