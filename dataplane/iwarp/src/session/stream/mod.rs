//! One DDP stream: the session on it, and the endpoint that is bound to it.
//!
//! # What may overtake what (RFC 5043 section 6.6)
//!
//! Every chunk is unordered, so what is sent later can arrive earlier. An Initiate or Accept is
//! therefore alone in flight: nothing follows it until it is known to have arrived. That is known
//! when the layer below says that nothing of ours is unacknowledged, or when the peer says
//! something that it could not have said without it. Segments may overtake each other, and a
//! Terminate them: the DDP-SSN says what was meant.
//!
//! # The end
//!
//! Either side ends with a Terminate, and this side answers the peer's with its own, so that both
//! know which chunk was the other's last. A stream is [`Phase::Idle`] again, and can carry another
//! session, when the peer's last chunk has had its turn and nothing of ours is unacknowledged.
//!
//! A peer may be content with our Terminate and send none (section 6.2). Then nothing says which
//! chunk was its last: all of ours may have arrived long ago while segments of the peer's wait
//! behind a full window or are sent again. A session begun then would take them for its own, by
//! numbers that fit, and section 6.6 forbids it. So the stream waits in [`Phase::Closing`]: the
//! peer, which knows, can begin the next session on it, and this side cannot. Such streams are
//! counted ([`Association::unanswered`]) and come back with another association.
//!
//! # Asking again (RFC 6581 sections 7 and 9.3)
//!
//! A peer of RFC 5043 alone does not know the function code of an enhanced request: that is no
//! legal sequence, which it answers with Terminate. Every responder takes plain requests. So the
//! same is asked again without the IRD/ORD word, once, in a session of its own on the same stream,
//! and the upper layer hears nothing of it. What the peer then answers says what it speaks, and
//! all later requests on the association are plain at once. Nothing is said of read depths in such
//! a session: this side asks for one Read at a time.
//!
//! A Terminate may also say that there is no room (section 6.4). There is no telling them apart,
//! and a session that could have had more Reads should not get one; so it is asked again only by
//! an association that has no other session or request, which is no crowd, and has never heard
//! the peer speak RFC 6581. An Enhanced Reject is the upper layer's word, as a plain one is, and
//! stands.
//!
//! [`Association::unanswered`]: crate::Association::unanswered

mod receive;
mod transmit;

use super::control::{Function, Message};
use super::depths::Word;
use super::phase::{Event as Step, Illegal, Phase};
use crate::ddp::order::{Order, WINDOW};
use crate::event::{End, Event};
use crate::lower::StreamId;
use crate::rdmap::{Blame, Endpoint, Report};
use crate::reject::{Answer, Code, Reject};
use std::fmt;

pub(super) use receive::Surroundings;
pub use transmit::Flow;

/// The upper layer asked for something that has no place now. Nothing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misstep {
    /// There is no stream of this number.
    NoStream,
    /// The session is not at the point where this can be done.
    Sequence(Phase),
    /// No endpoint is bound, or one of a session that is over.
    Unbound,
    /// More private data than 512 octets with the IRD/ORD word.
    PrivateData,
}

impl fmt::Display for Misstep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misstep::NoStream => f.write_str("no stream of this number"),
            Misstep::Sequence(phase) => write!(f, "not on a stream that is {phase:?}"),
            Misstep::Unbound => f.write_str("no endpoint is bound to the stream"),
            Misstep::PrivateData => f.write_str("too much private data"),
        }
    }
}

impl std::error::Error for Misstep {}

/// What has happened on an association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Chunks that came.
    pub chunks_in: u64,
    /// Chunks that were sent.
    pub chunks_out: u64,
    /// Chunks that came for a session that was over: not looked at.
    pub dropped: u64,
    /// What peers did wrong, by [`Reject::index`].
    pub rejects: [u64; Reject::COUNT],
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            chunks_in: 0,
            chunks_out: 0,
            dropped: 0,
            rejects: [0; Reject::COUNT],
        }
    }
}

impl Counts {
    pub(super) fn reject(&mut self, reject: Reject) {
        if let Some(count) = self.rejects.get_mut(reject.index()) {
            *count = count.wrapping_add(1);
        }
    }

    pub(super) fn drop_one(&mut self) {
        self.dropped = self.dropped.wrapping_add(1);
    }
}

/// What a peer is known to speak, of what one may ask for a session by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Speech {
    /// It has not said.
    #[default]
    Unknown,
    /// RFC 6581: it has asked or answered in that way.
    Enhanced,
    /// RFC 5043 alone: it has turned an enhanced request away, and answered a plain one.
    Plain,
}

/// The endpoint, if it has not been in a session.
fn fresh(endpoint: &mut Option<Box<Endpoint>>) -> Result<&mut Endpoint, Misstep> {
    let endpoint = endpoint.as_deref_mut();
    endpoint
        .filter(|endpoint| endpoint.is_fresh())
        .ok_or(Misstep::Unbound)
}

/// One stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: StreamId,
    phase: Phase,
    endpoint: Option<Box<Endpoint>>,
    /// The peer's chunks.
    order: Order,
    /// The DDP-SSN of our next chunk.
    ssn: u16,
    /// Chunks sent since all were known to have arrived: the oldest that the peer may lack is at
    /// most so many numbers behind the next.
    unproven: u16,
    /// Our Initiate or Accept may not have arrived.
    unproved: bool,
    /// An Accept was sent or has come: segments belong to this session.
    established: bool,
    /// The upper layer knows that the session is over, or never knew of it.
    concluded: bool,
    /// A control message to be sent before anything else.
    owed: Option<Message>,
    /// The RDMAP Terminate to be sent after that.
    report: Option<Report>,
    /// The session's Terminate to be sent after that.
    terminate: bool,
    /// The peer's IRD/ORD word, or the one we offered.
    word: Option<Word>,
    /// The private data of our enhanced request, while that may have to be asked again without the
    /// word.
    enhanced: Option<Box<[u8]>>,
    /// It was.
    asked_again: bool,
    /// A request that came before it was known whether the peer speaks DDP at all.
    early: Option<Box<[u8]>>,
}

impl Stream {
    pub(super) fn new(id: StreamId) -> Stream {
        Stream {
            id,
            phase: Phase::Idle,
            endpoint: None,
            order: Order::new(),
            ssn: 0,
            unproven: 0,
            unproved: false,
            established: false,
            concluded: true,
            owed: None,
            report: None,
            terminate: false,
            word: None,
            enhanced: None,
            asked_again: false,
            early: None,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn endpoint(&mut self) -> Option<&mut Endpoint> {
        self.endpoint.as_deref_mut()
    }

    /// The one place where the phase changes.
    fn step(&mut self, step: Step) -> Result<(), Illegal> {
        self.phase = self.phase.next(step)?;
        Ok(())
    }

    /// A step that the table has. If it has not, the mistake is ours, and the session is over.
    fn must(&mut self, step: Step) {
        let found = self.step(step);
        debug_assert!(found.is_ok(), "{step:?} in {:?}", self.phase);
        if found.is_err() {
            self.terminate = self.phase.is_live();
            self.phase = self.phase.next(Step::Breach).unwrap_or(Phase::Lost);
        }
    }

    fn allow(&self, step: Step) -> Result<(), Misstep> {
        match self.phase.next(step) {
            Ok(_) => Ok(()),
            Err(Illegal) => Err(Misstep::Sequence(self.phase)),
        }
    }

    /// The upper layer answers what it has been told of.
    fn allow_answer(&self, step: Step) -> Result<(), Misstep> {
        if self.early.is_some() {
            return Err(Misstep::Sequence(self.phase));
        }
        self.allow(step)
    }

    /// Binds an endpoint, to ask for a session or to accept one.
    pub(super) fn bind(&mut self, endpoint: Box<Endpoint>) -> Result<(), Box<Endpoint>> {
        let free = self.endpoint.is_none() && matches!(self.phase, Phase::Idle | Phase::Pending);
        if !free {
            return Err(endpoint);
        }
        self.order.prepare();
        self.endpoint = Some(endpoint);
        Ok(())
    }

    /// Gives the endpoint back, unless its session is not over.
    pub(super) fn unbind(&mut self) -> Option<Box<Endpoint>> {
        if !self.concluded && self.phase != Phase::Pending {
            return None;
        }
        self.endpoint.take()
    }

    pub(super) fn is_bound(&self) -> bool {
        self.endpoint.is_some()
    }

    fn begin(&mut self) {
        self.order.reset();
        self.ssn = 0;
        self.unproved = false;
        self.established = false;
        self.concluded = false;
        self.report = None;
        self.terminate = false;
        self.word = None;
        self.enhanced = None;
        self.asked_again = false;
        self.early = None;
    }

    pub(super) fn initiate(&mut self, private_data: &[u8], enhanced: bool) -> Result<(), Misstep> {
        self.allow(Step::Initiate)?;
        let endpoint = fresh(&mut self.endpoint)?;
        let word = enhanced.then(|| Word::offer(endpoint.depths()));
        let function = if enhanced {
            Function::EnhancedInitiate
        } else {
            Function::Initiate
        };
        let message =
            Message::new(function, word, private_data).map_err(|_| Misstep::PrivateData)?;
        endpoint.take_requests(endpoint.depths().ird);
        self.begin();
        self.owed = Some(message);
        self.word = word;
        self.enhanced = enhanced.then(|| private_data.into());
        self.must(Step::Initiate);
        Ok(())
    }

    /// Asks again, without the word, where the peer has answered the enhanced request with
    /// Terminate. False when it was not enhanced, or nobody wants it any more.
    pub(super) fn ask_again(&mut self) -> bool {
        if self.phase != Phase::Initiating {
            return false;
        }
        let Some(private_data) = self.enhanced.take() else {
            return false;
        };
        let Ok(message) = Message::new(Function::Initiate, None, &private_data) else {
            return false;
        };
        // Each side has sent its one message, and the peer's says that ours has come: a session
        // of its own begins.
        self.must(Step::Ended);
        self.must(Step::Dry);
        self.begin();
        self.asked_again = true;
        self.owed = Some(message);
        self.must(Step::Initiate);
        true
    }

    pub(super) fn accept(&mut self, private_data: &[u8]) -> Result<(), Misstep> {
        self.allow_answer(Step::Accept)?;
        let endpoint = fresh(&mut self.endpoint)?;
        let own = endpoint.depths();
        let (function, word, depths) = match self.word {
            Some(word) => {
                let (word, depths) = word.answer(own);
                (Function::EnhancedAccept, Some(word), depths)
            }
            None => (Function::Accept, None, own.unsaid()),
        };
        let message =
            Message::new(function, word, private_data).map_err(|_| Misstep::PrivateData)?;
        endpoint.take_requests(depths.ird);
        endpoint.open(depths.ord);
        self.owed = Some(message);
        self.established = true;
        self.must(Step::Accept);
        Ok(())
    }

    /// Answers a request with Reject, at the upper layer's word, or with Terminate. An enhanced
    /// request is answered with enhanced function codes only, and a plain one with plain (RFC
    /// 6581 sections 7 and 10); there is one Terminate for both.
    pub(super) fn refuse(
        &mut self,
        private_data: Option<&[u8]>,
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) -> Result<(), Misstep> {
        self.allow_answer(Step::Refuse)?;
        let message = match private_data {
            Some(data) => {
                let function = match self.word {
                    Some(_) => Function::EnhancedReject,
                    None => Function::Reject,
                };
                Message::new(function, None, data).map_err(|_| Misstep::PrivateData)?
            }
            None => Message::terminate(),
        };
        self.owed = Some(message);
        self.must(Step::Refuse);
        self.conclude(End::Local, told);
        Ok(())
    }

    /// The upper layer has had enough.
    pub(super) fn end(&mut self, told: &mut impl FnMut(StreamId, Event<'_>)) {
        match self.phase {
            Phase::Pending => {
                // Without private data there is nothing that could be too long.
                let _ = self.refuse(None, told);
            }
            Phase::Initiating => {
                self.must(Step::End);
                self.conclude(End::Local, told);
            }
            Phase::Accepting | Phase::Open => {
                self.must(Step::End);
                self.terminate = true;
                self.conclude(End::Local, told);
            }
            Phase::Idle | Phase::Abandoned | Phase::Closing | Phase::Closed | Phase::Lost => {}
        }
    }

    /// The association is gone.
    pub(super) fn lose(&mut self, told: &mut impl FnMut(StreamId, Event<'_>)) {
        self.must(Step::Loss);
        self.conclude(End::Lost, told);
    }

    /// Tells the upper layer, once.
    fn conclude(&mut self, end: End, told: &mut impl FnMut(StreamId, Event<'_>)) {
        self.early = None;
        self.enhanced = None;
        if self.concluded {
            return;
        }
        self.concluded = true;
        let id = self.id;
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.close(end, &mut |event| told(id, event));
        }
        told(id, Event::Ended(end));
    }

    /// The peer did something wrong.
    #[cold]
    pub(super) fn breach(
        &mut self,
        blame: &Blame,
        counts: &mut Counts,
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) {
        counts.reject(blame.reject);
        match self.phase {
            Phase::Closing | Phase::Closed | Phase::Lost => {
                counts.drop_one();
                return;
            }
            Phase::Idle => {
                self.begin();
                self.concluded = true;
            }
            _ => {}
        }
        self.must(Step::Breach);
        if self.established && self.report.is_none() {
            let code = match blame.reject.answer() {
                Answer::Terminate(code) => code,
                Answer::EndSession | Answer::TurnAway => Code::STREAM,
            };
            self.report = Some(Report::new(code, blame.culprit, blame.request));
        }
        self.terminate = true;
        self.conclude(End::Reject(blame.reject), told);
    }

    /// All that was sent has arrived.
    pub(super) fn dry(&mut self) {
        self.unproven = 0;
        self.settle();
    }

    /// Whether anything depends on [`Stream::dry`]: what is to be sent may not overtake what was,
    /// or half the window is used up.
    pub(super) fn awaits_dry(&self) -> bool {
        let is_open = self.phase == Phase::Open && !self.unproved && self.owes_nothing();
        self.unproven > if is_open { WINDOW / 2 } else { 0 }
    }

    /// Nothing of ours is to be sent but segments.
    fn owes_nothing(&self) -> bool {
        self.owed.is_none() && self.report.is_none() && !self.terminate
    }

    /// Over here, and the peer has all of it: only what the peer may say brings the stream back.
    pub(super) fn is_unanswered(&self) -> bool {
        self.phase == Phase::Closing && self.owes_nothing() && self.unproven == 0
    }

    /// Looks whether all of ours has arrived.
    fn settle(&mut self) {
        if self.unproven > 0 || self.owed.is_some() {
            return;
        }
        self.proved();
        if self.phase == Phase::Closed && self.owes_nothing() {
            self.must(Step::Dry);
        }
    }

    /// Our Initiate or Accept has arrived.
    fn proved(&mut self) {
        self.unproved = false;
        if self.phase == Phase::Accepting {
            self.must(Step::Proof);
        }
    }
}
