//! Delivery: what is done with a message when its turn has come.

use super::{Blame, Endpoint};
use crate::ddp::order::Mark;
use crate::ddp::queue::Delivered;
use crate::ddp::{self, Header};
use crate::event::Event;
use crate::local::Local;
use crate::rdmap::control::Opcode;
use crate::rdmap::request::{READ_REQUEST_LEN, ReadRequest};
use crate::rdmap::terminate::{Culprit, Terminate};
use crate::reject::Reject;
use crate::stag::{Stag, StagTable, Violation};
use rpcrdma_fabric::Access;

impl Endpoint {
    /// The turn of a chunk has come. Gives the peer's Terminate, when that is what it was.
    #[inline]
    pub(crate) fn deliver<M>(
        &mut self,
        mark: Mark,
        local: &mut Local<'_, M>,
        told: &mut impl FnMut(Event<'_>),
    ) -> Result<Option<Terminate>, Blame> {
        match mark {
            Mark::Quiet | Mark::End => {}
            Mark::Send => self.deliver_send(local.stags, told)?,
            Mark::ReadRequest => self.deliver_request(local.stags)?,
            Mark::ReadResponse => self.deliver_response(told)?,
            Mark::Terminate => return self.deliver_terminate().map(Some),
        }
        Ok(None)
    }

    #[inline]
    fn deliver_send(
        &mut self,
        stags: &mut StagTable,
        told: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Blame> {
        let sent = self.receives.deliver().ok_or(Reject::MsnRange)?;
        let refuse = |reject| blame(reject, &sent.tail);
        // What is refused has a receive that is told of with the rest.
        let Some(len) = sent.len else {
            self.fail_receive(&sent, told);
            return Err(refuse(Reject::MessageGaps));
        };
        let (opcode, stag) = told_by(&sent.tail);
        let invalidated = opcode.invalidates().then_some(stag);
        if let Some(stag) = invalidated
            && stags.invalidate(self.outfit.party, stag).is_err()
        {
            self.fail_receive(&sent, told);
            return Err(refuse(Reject::CannotInvalidate));
        }
        told(Event::Received {
            id: sent.buffer.id,
            len,
            invalidated,
            solicited: opcode.solicits(),
        });
        Ok(())
    }

    #[cold]
    fn fail_receive(&self, sent: &Delivered<super::Receive>, told: &mut impl FnMut(Event<'_>)) {
        told(Event::Failed {
            id: sent.buffer.id,
            error: rpcrdma_fabric::WorkError::Flushed,
        });
    }

    /// A Read Request is checked now, and answered from now on.
    fn deliver_request(&mut self, stags: &StagTable) -> Result<(), Blame> {
        let sent = self.requests.deliver().ok_or(Reject::MsnRange)?;
        if sent.len != Some(READ_REQUEST_LEN) {
            let reject = sent
                .len
                .map_or(Reject::MessageGaps, |_| Reject::RequestLength);
            return Err(blame(reject, &sent.tail));
        }
        let request = ReadRequest::parse(&sent.buffer.0);
        // Source STag and offset of a Read of no octets are not looked at (section 5.2.1).
        if request.size > 0 {
            self.admit_read(request, request.size, stags)
                .map_err(|reject| Blame {
                    request: Some(sent.buffer.0),
                    ..blame(reject, &sent.tail)
                })?;
        }
        self.responses.push(request);
        Ok(())
    }

    /// Where the first `len` octets of what is asked for lie.
    pub(super) fn admit_read(
        &self,
        request: ReadRequest,
        len: u32,
        stags: &StagTable,
    ) -> Result<rpcrdma_fabric::Span, Reject> {
        stags
            .admit(
                self.outfit.party,
                request.source,
                request.source_to,
                len,
                Access::Read,
            )
            .map_err(|violation| match violation {
                Violation::Invalid => Reject::SourceInvalid,
                Violation::Foreign => Reject::SourceForeign,
                Violation::Rights => Reject::SourceRights,
                Violation::Wrap => Reject::SourceWrap,
                Violation::Bounds => Reject::SourceBounds,
            })
    }

    fn deliver_response(&mut self, told: &mut impl FnMut(Event<'_>)) -> Result<(), Blame> {
        self.reads.deliver(self.tiling)?;
        // All before it is done: the oldest work is the oldest Read.
        if let Some(work) = self.works.get_mut(0) {
            work.done = true;
        }
        self.complete(told);
        Ok(())
    }

    fn deliver_terminate(&mut self) -> Result<Terminate, Blame> {
        let sent = self.terminates.deliver().ok_or(Reject::MsnRange)?;
        let len = sent.len.ok_or(Reject::MessageGaps)? as usize;
        let octets = sent.buffer.0.get(..len).unwrap_or_default();
        // One too short to say why still ends the stream.
        Terminate::parse(octets).ok_or_else(|| Reject::MessageGaps.into())
    }
}

fn blame(reject: Reject, tail: &Culprit) -> Blame {
    Blame {
        reject,
        culprit: Some(*tail),
        request: None,
    }
}

/// What the header of a Send's last segment says: its opcode, and the STag to be invalidated.
#[inline]
fn told_by(tail: &Culprit) -> (Opcode, Stag) {
    match ddp::parse(&tail.header) {
        Ok((Header::Untagged(header), _)) => {
            let opcode = Opcode::parse(header.ulp).unwrap_or(Opcode::Send);
            (opcode, Stag(header.ulp_word))
        }
        // It was parsed when it came.
        _ => (Opcode::Send, Stag(0)),
    }
}
