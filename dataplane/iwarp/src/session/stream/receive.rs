//! What is done with a chunk.

use super::{Counts, Speech, Stream};
use crate::ddp::order::Mark;
use crate::event::{End, Event};
use crate::local::{Local, Memory};
use crate::lower::StreamId;
use crate::rdmap::{Blame, Terminate};
use crate::reject::Reject;
use crate::session::control::{self, Control, Function, Message};
use crate::session::depths::Word;
use crate::session::phase::{Event as Step, Phase};

/// What the association lets a stream know, and do.
#[derive(Debug)]
pub(in crate::session) struct Surroundings<'a> {
    pub(in crate::session) counts: &'a mut Counts,
    /// One more request may wait for the upper layer.
    pub(in crate::session) may_wait: bool,
    /// The peer is known to speak DDP: requests go up.
    pub(in crate::session) settled: bool,
    /// This stream asks for a session, and there is nothing on any other.
    pub(in crate::session) alone: bool,
    pub(in crate::session) speech: &'a mut Speech,
}

const SEGMENT: u32 = crate::lower::Ppid::Segment as u32;
const CONTROL: u32 = crate::lower::Ppid::Control as u32;

impl Stream {
    /// Takes a chunk, whatever it is.
    #[inline]
    pub(in crate::session) fn receive<M: Memory>(
        &mut self,
        ppid: u32,
        chunk: &[u8],
        around: &mut Surroundings<'_>,
        local: &mut Local<'_, M>,
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) {
        let taken = match (chunk.split_first_chunk(), ppid) {
            (None, _) => Err(Reject::ChunkShort.into()),
            (Some((ssn, segment)), SEGMENT) => {
                let ssn = u16::from_be_bytes(*ssn);
                self.segment(ssn, segment, around.counts, local, told)
            }
            (Some((ssn, message)), CONTROL) => {
                let ssn = u16::from_be_bytes(*ssn);
                self.control(ssn, message, around, local, told)
            }
            (Some(_), _) => Err(Reject::Ppid.into()),
        };
        if let Err(blame) = taken {
            self.breach(&blame, around.counts, told);
        }
        if self.phase == Phase::Closed {
            self.settle();
        }
    }

    #[inline]
    fn segment<M: Memory>(
        &mut self,
        ssn: u16,
        segment: &[u8],
        counts: &mut Counts,
        local: &mut Local<'_, M>,
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) -> Result<(), Blame> {
        if self.phase != Phase::Open && !self.is_for_endpoint(ssn, counts)? {
            return Ok(());
        }
        self.order.check(ssn)?;
        let Some(endpoint) = &mut self.endpoint else {
            return Err(Reject::SegmentSequence.into());
        };
        match endpoint.place(segment, local) {
            Ok(mark) => self.order.insert(ssn, mark),
            Err(reject) => {
                self.order.insert(ssn, Mark::Quiet);
                return Err(Blame::of(reject, segment));
            }
        }
        self.advance(local, told).map_err(|blame| {
            let its_turn = self.order.next() == ssn.wrapping_add(1);
            if blame.culprit.is_none() && its_turn {
                blame.shows(segment)
            } else {
                blame
            }
        })
    }

    /// What a segment is in any phase but Open: for the endpoint, or too late, or a breach.
    #[cold]
    fn is_for_endpoint(&mut self, ssn: u16, counts: &mut Counts) -> Result<bool, Blame> {
        if matches!(self.phase, Phase::Closed | Phase::Lost) {
            counts.drop_one();
            return Ok(false);
        }
        if self.step(Step::Segment).is_err() {
            return Err(Reject::SegmentSequence.into());
        }
        if matches!(self.phase, Phase::Abandoned | Phase::Closing) {
            self.follow(ssn, Mark::Quiet, counts);
            return Ok(false);
        }
        self.order.check(ssn)?;
        if ssn == 0 {
            // Where an Accept should be.
            return Err(Reject::SegmentSequence.into());
        }
        if self.phase == Phase::Accepting {
            self.proved();
        }
        Ok(true)
    }

    /// Gives every chunk that is here its turn.
    #[inline]
    fn advance<M>(
        &mut self,
        local: &mut Local<'_, M>,
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) -> Result<(), Blame> {
        let id = self.id;
        while let Some(mark) = self.order.take() {
            if mark == Mark::End {
                self.ended(told);
                return Ok(());
            }
            let Some(endpoint) = &mut self.endpoint else {
                continue;
            };
            let terminate = endpoint.deliver(mark, local, &mut |event| told(id, event))?;
            if let Some(terminate) = terminate {
                self.terminated(terminate, told);
                return Ok(());
            }
        }
        Ok(())
    }

    /// The peer's last chunk has had its turn.
    fn ended(&mut self, told: &mut impl FnMut(StreamId, Event<'_>)) {
        self.terminate = self.established;
        self.proved();
        self.must(Step::Ended);
        self.conclude(End::Peer, told);
    }

    /// The peer's RDMAP has found fault.
    fn terminated(&mut self, terminate: Terminate, told: &mut impl FnMut(StreamId, Event<'_>)) {
        self.must(Step::Breach);
        self.terminate = true;
        self.conclude(End::Terminated(terminate), told);
        self.follow_turns();
    }

    /// A chunk of a session that is over at this end: only the peer's Terminate matters.
    fn follow(&mut self, ssn: u16, mark: Mark, counts: &mut Counts) {
        counts.drop_one();
        if self.order.check(ssn).is_ok() {
            self.order.insert(ssn, mark);
            self.follow_turns();
        }
    }

    fn follow_turns(&mut self) {
        while let Some(mark) = self.order.take() {
            if mark == Mark::End && self.phase == Phase::Closing {
                // Nobody would hear it.
                self.report = None;
                self.must(Step::Ended);
            }
        }
    }

    fn control<M: Memory>(
        &mut self,
        ssn: u16,
        message: &[u8],
        around: &mut Surroundings<'_>,
        local: &mut Local<'_, M>,
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) -> Result<(), Blame> {
        if self.phase == Phase::Lost {
            around.counts.drop_one();
            return Ok(());
        }
        let control = control::parse(message)?;
        if control.function.is_enhanced() {
            *around.speech = Speech::Enhanced;
        }
        match control.function {
            Function::Initiate | Function::EnhancedInitiate => {
                self.initiated(ssn, &control, around, told)
            }
            Function::Accept | Function::EnhancedAccept => {
                self.accepted(ssn, &control, around, local, told)
            }
            Function::Reject | Function::EnhancedReject => {
                self.rejected(ssn, &control, around, told)
            }
            Function::Terminate => self.terminating(ssn, around, local, told),
        }
    }

    fn initiated(
        &mut self,
        ssn: u16,
        control: &Control<'_>,
        around: &mut Surroundings<'_>,
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) -> Result<(), Blame> {
        match self.phase {
            Phase::Idle | Phase::Closing | Phase::Closed if ssn == 0 && self.owes_nothing() => {}
            Phase::Initiating | Phase::Abandoned => {
                if self.order.check(ssn).is_ok() {
                    self.order.insert(ssn, Mark::Quiet);
                }
                return Err(Reject::CrossedInitiates.into());
            }
            _ => return Err(Reject::ControlSequence.into()),
        }
        self.begin();
        self.order.insert(0, Mark::Quiet);
        let _ = self.order.take();
        self.must(Step::Initiated);
        if !around.may_wait {
            around.counts.reject(Reject::TooManyPending);
            self.concluded = true;
            self.owed = Some(Message::terminate());
            self.must(Step::Refuse);
            return Ok(());
        }
        self.word = control.word;
        if around.settled {
            self.request(control.private_data, told);
        } else {
            self.early = Some(control.private_data.into());
            self.concluded = true;
        }
        Ok(())
    }

    fn request(&self, private_data: &[u8], told: &mut impl FnMut(StreamId, Event<'_>)) {
        told(
            self.id,
            Event::Requested {
                private_data,
                depths: self.word.map(|word| word.depths),
            },
        );
    }

    /// The peer is known to speak DDP: a request that was early goes up.
    pub(in crate::session) fn settled(&mut self, told: &mut impl FnMut(StreamId, Event<'_>)) {
        if let Some(private_data) = self.early.take() {
            self.concluded = false;
            self.request(&private_data, told);
        }
    }

    fn accepted<M: Memory>(
        &mut self,
        ssn: u16,
        control: &Control<'_>,
        around: &mut Surroundings<'_>,
        local: &mut Local<'_, M>,
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) -> Result<(), Blame> {
        let answers = self.answers(ssn);
        // An enhanced answer goes with an enhanced request, and with no other (RFC 6581 section
        // 10).
        if !answers || control.word.is_some() != self.word.is_some() {
            return Err(Reject::ControlSequence.into());
        }
        self.order.insert(ssn, Mark::Quiet);
        self.proved();
        self.note_answer(around);
        self.established = true;
        let live = self.phase == Phase::Initiating;
        self.must(Step::Accepted);
        if !live {
            self.terminate = true;
            self.follow_turns();
            return Ok(());
        }
        let Some(endpoint) = &mut self.endpoint else {
            return Err(Reject::ControlSequence.into());
        };
        let own = endpoint.depths();
        let settle = |word: Word| word.settle(own);
        let depths = control.word.map_or(Ok(own.unsaid()), settle)?;
        endpoint.open(depths.ord);
        told(
            self.id,
            Event::Accepted {
                private_data: control.private_data,
                depths: control.word.map(|word| word.depths),
            },
        );
        self.advance(local, told)
    }

    /// Whether a control message of the peer's stands where the answer to our Initiate belongs.
    fn answers(&self, ssn: u16) -> bool {
        let asked = match self.phase {
            Phase::Initiating | Phase::Abandoned => true,
            // It may have been sent before the peer knew.
            Phase::Closing => !self.established,
            _ => false,
        };
        let first = ssn == 0 && self.order.check(0).is_ok();
        asked && first && self.owed.is_none()
    }

    fn rejected(
        &mut self,
        ssn: u16,
        control: &Control<'_>,
        around: &mut Surroundings<'_>,
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) -> Result<(), Blame> {
        // A plain Reject may also turn down an enhanced request: section 7 of RFC 6581 wants the
        // enhanced one only where a plain request would have been accepted.
        let unasked = control.function == Function::EnhancedReject && self.word.is_none();
        if !self.answers(ssn) || unasked {
            return Err(Reject::ControlSequence.into());
        }
        self.note_answer(around);
        if self.phase == Phase::Initiating {
            let private_data = control.private_data;
            told(self.id, Event::Rejected { private_data });
        }
        self.refused(Step::Rejected, End::Rejected, told);
        Ok(())
    }

    /// The peer's upper layer has answered.
    fn note_answer(&mut self, around: &mut Surroundings<'_>) {
        self.enhanced = None;
        if std::mem::take(&mut self.asked_again) {
            *around.speech = Speech::Plain;
        }
    }

    /// The peer's one message was no: nothing more is to be said (sections 6.3 and 6.4).
    fn refused(&mut self, step: Step, end: End, told: &mut impl FnMut(StreamId, Event<'_>)) {
        self.order.insert(0, Mark::Quiet);
        let _ = self.order.take();
        self.proved();
        self.terminate = false;
        self.must(step);
        self.conclude(end, told);
    }

    fn terminating<M: Memory>(
        &mut self,
        ssn: u16,
        around: &mut Surroundings<'_>,
        local: &mut Local<'_, M>,
        told: &mut impl FnMut(StreamId, Event<'_>),
    ) -> Result<(), Blame> {
        if self.answers(ssn) {
            let unknown = around.alone && *around.speech == Speech::Unknown;
            if !unknown || !self.ask_again() {
                self.refused(Step::Ended, End::TurnedAway, told);
            }
            return Ok(());
        }
        match self.phase {
            Phase::Initiating | Phase::Accepting | Phase::Open => {
                self.order.check(ssn)?;
                self.order.insert(ssn, Mark::End);
                if self.phase == Phase::Accepting {
                    self.proved();
                }
                self.advance(local, told)
            }
            Phase::Abandoned | Phase::Closing => {
                self.follow(ssn, Mark::End, around.counts);
                Ok(())
            }
            Phase::Closed | Phase::Lost => {
                around.counts.drop_one();
                Ok(())
            }
            Phase::Idle | Phase::Pending => Err(Reject::ControlSequence.into()),
        }
    }
}
