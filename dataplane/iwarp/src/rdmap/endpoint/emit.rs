//! Emission: the next segment, one at a time.
//!
//! A segment is decided on ([`Endpoint::next`]), written into the layer below's own memory
//! ([`Endpoint::write_into`]), and, if that took it, done ([`Endpoint::sent`]). If not, nothing
//! has happened, and the next try may decide otherwise.

use super::{Blame, Endpoint, Life};
use crate::ddp::{Header, TAGGED_BYTES, Tagged, UNTAGGED_BYTES, Untagged, cut};
use crate::event::Event;
use crate::local::{Local, Memory};
use crate::rdmap::control::{Opcode, QUEUE_READ_REQUEST, QUEUE_SEND};
use crate::rdmap::request::{READ_REQUEST_BYTES, READ_REQUEST_LEN, ReadRequest};
use crate::rdmap::work::{Operation, Turn};
use crate::reject::Reject;
use crate::stag::Stag;
use rpcrdma_fabric::{Segment, Span};

/// A segment that could be sent now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Emission {
    header: Header,
    payload: Payload,
    /// Octets of payload.
    len: u32,
}

#[derive(Clone, Copy, Debug)]
enum Payload {
    /// A part of the message being sent, from this octet on.
    Message(u32),
    /// Arena memory of a Write.
    Write(Span),
    /// Arena memory of a response.
    Response(Span),
    /// A Read Request, and its sink.
    Request([u8; READ_REQUEST_BYTES], Stag),
}

impl Emission {
    /// Octets of the segment.
    #[inline]
    pub(crate) fn segment_bytes(&self) -> usize {
        let header = match self.header {
            Header::Tagged(_) => TAGGED_BYTES,
            Header::Untagged(_) => UNTAGGED_BYTES,
        };
        header.saturating_add(self.len as usize)
    }

    #[inline]
    fn last(&self) -> bool {
        match self.header {
            Header::Tagged(header) => header.last,
            Header::Untagged(header) => header.last,
        }
    }
}

impl Endpoint {
    /// The next segment, of at most `room` octets, if anything can be sent. An answer to a Read
    /// whose source is not there any more is the peer's error.
    #[inline]
    pub(crate) fn next<M>(
        &mut self,
        local: &mut Local<'_, M>,
        room: usize,
    ) -> Result<Option<Emission>, Blame> {
        if self.life != Life::Open {
            return Ok(None);
        }
        match self.current {
            Some(Turn::Response) => self.next_response(local, room),
            Some(Turn::Work) => Ok(self.next_work(local, room)),
            None if self.last == Turn::Work => match self.next_response(local, room)? {
                None => Ok(self.next_work(local, room)),
                some => Ok(some),
            },
            None => match self.next_work(local, room) {
                None => self.next_response(local, room),
                some => Ok(some),
            },
        }
    }

    fn next_response<M>(
        &self,
        local: &Local<'_, M>,
        room: usize,
    ) -> Result<Option<Emission>, Blame> {
        let Some(whole) = self.responses.get(0) else {
            return Ok(None);
        };
        let request = whole.skip(self.at_of(Turn::Response));
        let (len, last) = cut(request.size, room.saturating_sub(TAGGED_BYTES));
        let from = if len == 0 {
            Span::default()
        } else {
            // Asked again for each segment: it may have been closed since the last.
            self.admit_read(request, len, local.stags)
                .map_err(|reject| self.blame_response(reject, request))?
        };
        Ok(Some(Emission {
            header: Header::Tagged(Tagged {
                last,
                ulp: Opcode::ReadResponse.control(),
                stag: request.sink,
                to: request.sink_to,
            }),
            payload: Payload::Response(from),
            len,
        }))
    }

    /// Shows where the response stopped (RFC 5040 section 4.8).
    #[cold]
    fn blame_response(&self, reject: Reject, request: ReadRequest) -> Blame {
        Blame {
            request: Some(request.octets()),
            ..Blame::from(reject)
        }
    }

    /// Octets of the current message that are sent, when it is this one's turn.
    #[inline]
    fn at_of(&self, turn: Turn) -> u32 {
        if self.current == Some(turn) {
            self.at
        } else {
            0
        }
    }

    #[inline]
    fn next_work<M>(&self, local: &mut Local<'_, M>, room: usize) -> Option<Emission> {
        let work = self.works.get(self.sent)?;
        let at = self.at_of(Turn::Work);
        match &work.operation {
            Operation::Send {
                message,
                invalidate,
                solicited,
            } => {
                let left = message.len().saturating_sub(at);
                let (len, last) = cut(left, room.saturating_sub(UNTAGGED_BYTES));
                let opcode = Opcode::send(invalidate.is_some(), *solicited);
                Some(Emission {
                    header: Header::Untagged(Untagged {
                        last,
                        ulp: opcode.control(),
                        ulp_word: invalidate.map_or(0, |stag| stag.0),
                        queue: QUEUE_SEND,
                        msn: self.send_msn,
                        mo: at,
                    }),
                    payload: Payload::Message(at),
                    len,
                })
            }
            Operation::Write { from, to } => {
                let left = from.skip(at);
                let (len, last) = cut(left.len, room.saturating_sub(TAGGED_BYTES));
                Some(Emission {
                    header: Header::Tagged(Tagged {
                        last,
                        ulp: Opcode::Write.control(),
                        stag: to.handle.into(),
                        to: to.offset.wrapping_add(u64::from(at)),
                    }),
                    payload: Payload::Write(left.first(len)),
                    len,
                })
            }
            Operation::Read { from, .. } if !self.reads.is_full() => {
                Some(self.next_request(*from, local.stags.draw()))
            }
            Operation::Read { .. } => None,
        }
    }

    fn next_request(&self, from: Segment, random: u64) -> Emission {
        let sink = self.reads.offer(random);
        let request = ReadRequest {
            sink,
            sink_to: 0,
            size: from.length,
            source: from.handle.into(),
            source_to: from.offset,
        };
        Emission {
            header: Header::Untagged(Untagged {
                last: true,
                ulp: Opcode::ReadRequest.control(),
                ulp_word: 0,
                queue: QUEUE_READ_REQUEST,
                msn: self.request_msn,
                mo: 0,
            }),
            payload: Payload::Request(request.octets(), sink),
            len: READ_REQUEST_LEN,
        }
    }

    /// Writes a segment that was decided on just now into `out`, which is as long.
    #[inline]
    pub(crate) fn write_into<M: Memory>(&self, emission: &Emission, memory: &M, out: &mut [u8]) {
        let payload = match emission.header {
            Header::Tagged(header) => header.emit(out),
            Header::Untagged(header) => header.emit(out),
        };
        let Some(payload) = payload else {
            return;
        };
        match &emission.payload {
            Payload::Write(from) | Payload::Response(from) => {
                if !payload.is_empty() {
                    memory.fetch(*from, payload);
                }
            }
            Payload::Message(at) => self.write_message(*at, emission.len, memory, payload),
            Payload::Request(octets, _) => {
                for (to, from) in payload.iter_mut().zip(octets) {
                    *to = *from;
                }
            }
        }
    }

    #[inline]
    fn write_message<M: Memory>(&self, at: u32, len: u32, memory: &M, mut payload: &mut [u8]) {
        let Some(work) = self.works.get(self.sent) else {
            return;
        };
        let Operation::Send { message, .. } = &work.operation else {
            return;
        };
        for part in message.parts(at, len) {
            let rest = std::mem::take(&mut payload);
            let Some((here, rest)) = rest.split_at_mut_checked(part.len as usize) else {
                return;
            };
            memory.fetch(part, here);
            payload = rest;
        }
    }

    /// The layer below has taken the segment.
    #[inline]
    pub(crate) fn sent(&mut self, emission: &Emission, told: &mut impl FnMut(Event<'_>)) {
        let turn = match emission.payload {
            Payload::Response(_) => Turn::Response,
            Payload::Request(_, sink) => {
                self.asked(sink);
                Turn::Work
            }
            Payload::Message(_) | Payload::Write(_) => Turn::Work,
        };
        if !emission.last() {
            self.at = self.at_of(turn).saturating_add(emission.len);
            self.current = Some(turn);
            return;
        }
        self.current = None;
        self.at = 0;
        self.last = turn;
        match turn {
            Turn::Response => {
                self.responses.pop();
                self.requests.post(super::Own::default());
            }
            Turn::Work => self.work_sent(told),
        }
    }

    /// A Read Request is out.
    fn asked(&mut self, sink: Stag) {
        if let Some(work) = self.works.get(self.sent)
            && let Operation::Read { into, .. } = work.operation
        {
            self.reads.push(sink, into);
            self.request_msn = self.request_msn.wrapping_add(1);
        }
    }

    #[inline]
    fn work_sent(&mut self, told: &mut impl FnMut(Event<'_>)) {
        if let Some(work) = self.works.get_mut(self.sent) {
            match work.operation {
                Operation::Send { .. } => {
                    self.send_msn = self.send_msn.wrapping_add(1);
                    work.done = true;
                }
                Operation::Write { .. } => work.done = true,
                Operation::Read { .. } => {}
            }
        }
        self.sent = self.sent.wrapping_add(1);
        self.complete(told);
    }

    /// Tells of what is done, in the order of posting.
    #[inline]
    pub(super) fn complete(&mut self, told: &mut impl FnMut(Event<'_>)) {
        while self.works.get(0).is_some_and(|work| work.done) {
            if let Some(work) = self.works.pop() {
                self.sent = self.sent.saturating_sub(1);
                told(Event::Done { id: work.id });
            }
        }
    }
}
