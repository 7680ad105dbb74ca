//! Errors and other messages that belong to no RPC of ours.

use crate::api::{CloseReason, Event, SlotId};
use crate::connection::{Connection, count};
use crate::ids::{Kind, work_id};
use crate::receives::Buffer;
use crate::setup::Side;
use crate::work::{Io, Octets, Refused, WorkError};
use rpcrdma_wire::emit::emit_error;
use rpcrdma_wire::reject::told_role;
use rpcrdma_wire::{ErrorBody, FixedHeader, Reject, Role, Version, Xid, answer};

impl Connection {
    /// A header that cannot be used: the answer the protocol names, and the receive again.
    pub(crate) fn refuse<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        buffer: Buffer,
        reject: Reject,
        message: &[u8],
    ) -> Event {
        self.last_refusal = Some(reject);
        io.counters().rejects.add(reject);
        io.refused(reject, message);
        let (low, high) = (Version::One.code(), self.setup.version_max.code());
        let error = answer(reject, message, self.role(message)).error(low, high);
        let reply = error.zip(FixedHeader::peek(message));
        // From here on the peer may write where the message was.
        self.repost(io, buffer);
        if let Some((body, fixed)) = reply {
            self.send_error(io, fixed.vers, fixed.xid, body);
        }
        Event::None
    }

    /// Sends an ERROR. One that cannot be sent ends the connection: the peer would wait for
    /// an answer that never comes.
    pub(crate) fn send_error<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        version: u32,
        xid: Xid,
        body: ErrorBody,
    ) {
        let mut octets = [0; 32];
        let credits = self.responder.grant();
        let Some(len) = emit_error(&mut octets, version, xid, credits, body) else {
            return;
        };
        if self
            .send_control(io, octets.get(..len).unwrap_or_default())
            .is_ok()
        {
            count(&mut io.counters().errors_out);
        }
    }

    /// Sends a message that is not an RPC's.
    pub(crate) fn send_control<'m>(
        &mut self,
        io: &mut impl Io<'m>,
        message: &[u8],
    ) -> Result<(), Refused> {
        if !self.phase.can_send() {
            return Err(Refused::Broken);
        }
        let id = work_id(
            Kind::Control,
            SlotId {
                index: 0,
                generation: 0,
            },
        );
        let sent = io.send(&[Octets::Bytes(message)], None, id);
        match sent {
            Ok(posted) => self.posted(posted),
            Err(_) => self.fail(io, CloseReason::Work(WorkError::NotReady)),
        }
        sent.map(|_| ())
    }

    /// What this side is for a message. One that does not tell is what most messages are.
    fn role(&self, message: &[u8]) -> Role {
        told_role(message).unwrap_or(match self.setup.side {
            Side::Client => Role::Requester,
            Side::Server => Role::Responder,
        })
    }
}
