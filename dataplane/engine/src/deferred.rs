//! Messages that came before they could be looked at.
//!
//! Two kinds. A peer may Send as soon as it is connected, which this side may be told a little
//! later than its receives complete. And a Call within the grant may come while the slots are
//! still held by Replies whose Sends have not completed: the peer can have such a Reply, and use
//! its credit again, before we hear of it. Both wait in their receive buffers, in order.

use crate::api::Event;
use crate::connection::Connection;
use crate::receives::Buffer;
use crate::work::Io;
use rpcrdma_wire::Handle;
use std::collections::VecDeque;

/// A message in its receive buffer, not looked at.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) buffer: Buffer,
    /// Of the message, octets.
    pub(crate) len: u32,
    pub(crate) invalidated: Option<Handle>,
}

/// The messages that wait.
pub(crate) struct Deferred(VecDeque<Arrival>);

impl Deferred {
    /// Room for one in each of `receives` buffers.
    pub(crate) fn new(receives: u16) -> Self {
        Self(VecDeque::with_capacity(usize::from(receives)))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn push(&mut self, arrival: Arrival) {
        self.0.push_back(arrival);
    }
}

impl Connection {
    /// Looks at what waits, up to the first message that the upper layer must know of.
    pub(crate) fn resume_deferred<'m>(&mut self, io: &mut impl Io<'m>) -> Event {
        while self.phase.can_send() && self.responder.may_take() {
            let Some(arrival) = self.deferred.0.pop_front() else {
                return Event::None;
            };
            let Arrival {
                buffer,
                len,
                invalidated,
            } = arrival;
            let whole = self.receives.span(&buffer).first(len);
            let event = self.take_message(io, buffer, whole, invalidated);
            if event != Event::None {
                return event;
            }
        }
        Event::None
    }

    /// The connection is over: nobody will look at these.
    pub(crate) fn drop_deferred<'m>(&mut self, io: &mut impl Io<'m>) {
        while let Some(arrival) = self.deferred.0.pop_front() {
            self.receives.release(io, arrival.buffer);
        }
    }
}
