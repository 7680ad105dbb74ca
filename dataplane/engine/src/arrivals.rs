//! Messages as they arrive: the buffer each came in, what it is, and whose: the requester's, the
//! responder's or the properties'.

use crate::api::{CloseReason, Event};
use crate::connection::{Connection, close_reason};
use crate::deferred::Arrival;
use crate::head::{Head, NO_LISTS};
use crate::ids::{Kind, receive_index};
use crate::receives::Buffer;
use crate::work::{Io, Span, WorkError, WorkId};
use rpcrdma_wire::{Body, Direction, Handle, Header, Plain, parse};

impl Connection {
    /// A receive completed with a message of `len` octets. `invalidated` is the handle of ours
    /// that the peer's Send With Invalidate took away.
    #[inline(always)]
    pub fn receive<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        id: WorkId,
        len: u32,
        invalidated: Option<Handle>,
    ) -> Event {
        let completed = receive_index(id).and_then(|index| self.receives.completed(index));
        let Some((buffer, memory)) = completed else {
            return self.illegal(io);
        };
        if self.phase.can_send() {
            self.take_message(io, buffer, memory.first(len), invalidated)
        } else {
            self.put_aside(io, buffer, len, invalidated)
        }
    }

    /// A message that comes before this side is told that the connection is established, or after
    /// its end.
    #[cold]
    fn put_aside<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        buffer: Buffer,
        len: u32,
        invalidated: Option<Handle>,
    ) -> Event {
        if self.phase.is_over() {
            self.receives.release(io, buffer);
            self.look_again();
        } else {
            self.deferred.push(Arrival {
                buffer,
                len,
                invalidated,
            });
        }
        Event::None
    }

    /// A message is looked at. Most are plain and of the version in force, and are known by
    /// that one look.
    #[inline(always)]
    pub(crate) fn take_message<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        buffer: Buffer,
        whole: Span,
        invalidated: Option<Handle>,
    ) -> Event {
        let message = io.octets(whole);
        match Plain::peek(message) {
            Some(plain) if self.version == Some(plain.version) && invalidated.is_none() => {
                let head = Head::plain(&plain, whole);
                match plain.direction {
                    Direction::Call => self.call_arrived(io, buffer, &head, &NO_LISTS),
                    Direction::Reply => self.reply_arrived(io, buffer, &head, &NO_LISTS, None),
                }
            }
            _ => self.parse_message(io, buffer, whole, invalidated),
        }
    }

    /// Any other message.
    #[inline(never)]
    fn parse_message<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        buffer: Buffer,
        whole: Span,
        invalidated: Option<Handle>,
    ) -> Event {
        let message = io.octets(whole);
        match parse(message, &self.setup.limits) {
            Ok(header) => self.dispatch(io, buffer, &header, whole, invalidated),
            Err(reject) => {
                let reject = self.judge_version(message, reject);
                if invalidated.is_some() {
                    self.fail(io, CloseReason::WrongInvalidation);
                }
                self.refuse(io, buffer, reject, message)
            }
        }
    }

    fn dispatch<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        buffer: Buffer,
        header: &Header<'m>,
        whole: Span,
        invalidated: Option<Handle>,
    ) -> Event {
        if self.version != Some(header.version) && !self.negotiate(io, header) {
            return self.wrong_version(io, buffer, io.octets(whole));
        }
        let is_reply = match &header.body {
            Body::Msg(lists) | Body::NoMsg(lists) => lists.direction == Direction::Reply,
            _ => false,
        };
        if invalidated.is_some() && !is_reply {
            self.fail(io, CloseReason::WrongInvalidation);
        }
        if self.phase.is_over() {
            self.receives.release(io, buffer);
            return Event::None;
        }
        match &header.body {
            Body::Msg(lists) | Body::NoMsg(lists) if is_reply => {
                self.reply_arrived(io, buffer, &Head::of(header, whole), lists, invalidated)
            }
            Body::Msg(lists) | Body::NoMsg(lists) => {
                self.call_arrived(io, buffer, &Head::of(header, whole), lists)
            }
            Body::Error(error) => {
                self.repost(io, buffer);
                self.error_arrived(io, header, *error)
            }
            _ => {
                let event = self.property_message(io, header);
                self.repost(io, buffer);
                event
            }
        }
    }

    /// Posts a receive buffer again, or gives it back where the connection is over.
    #[inline]
    pub(crate) fn repost<'m>(&mut self, io: &mut impl Io<'m>, buffer: Buffer) {
        if self.phase.is_over() {
            self.receives.release(io, buffer);
            self.look_again();
        } else if let Err(buffer) = self.receives.repost(io, buffer) {
            self.receives.release(io, buffer);
            self.fail(io, CloseReason::Work(WorkError::Transport));
        }
    }

    pub(crate) fn receive_failed<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        index: u16,
        result: Result<(), WorkError>,
    ) -> Event {
        if let Some((buffer, _)) = self.receives.completed(index) {
            self.receives.release(io, buffer);
        }
        let error = result.err().unwrap_or(WorkError::Flushed);
        self.fail(io, close_reason(Kind::Receive, error));
        self.look_again();
        Event::None
    }
}
