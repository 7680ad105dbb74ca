//! RDMAP's control octet, and which message goes into which buffer (RFC 5040 section 4.1).

use crate::ddp::{Header, Tagged, Untagged};
use crate::reject::Reject;

/// The queue of Sends.
pub const QUEUE_SEND: u32 = 0;
/// The queue of Read Requests.
pub const QUEUE_READ_REQUEST: u32 = 1;
/// The queue of the one Terminate.
pub const QUEUE_TERMINATE: u32 = 2;

const VERSION: u8 = 1;

rpcrdma_listed::listed! {
    /// What a message is.
    #[repr(u8)]
    pub Opcode {
        /// RDMA Write.
        Write = 0,
        /// RDMA Read Request.
        ReadRequest = 1,
        /// RDMA Read Response.
        ReadResponse = 2,
        /// Send.
        Send = 3,
        /// Send with Invalidate.
        SendInvalidate = 4,
        /// Send with Solicited Event.
        SendSolicited = 5,
        /// Send with Solicited Event and Invalidate.
        SendSolicitedInvalidate = 6,
        /// Terminate.
        Terminate = 7,
    }
}

impl Opcode {
    /// Reads a control octet; its reserved bits are not looked at.
    ///
    /// # Errors
    ///
    /// [`Reject::RdmapVersion`] for any version but 1: the other one that section 4.1 knows, 0, is
    /// of a consortium that never ran over SCTP. [`Reject::Opcode`] for reserved opcodes.
    #[inline]
    pub fn parse(control: u8) -> Result<Opcode, Reject> {
        if control >> 6 != VERSION {
            return Err(Reject::RdmapVersion);
        }
        let code = usize::from(control & 0xF);
        Opcode::ALL.get(code).copied().ok_or(Reject::Opcode)
    }

    /// The control octet.
    #[inline]
    #[must_use]
    pub const fn control(self) -> u8 {
        VERSION << 6 | self as u8
    }

    /// The Send family's member for a message.
    #[inline]
    #[must_use]
    pub const fn send(invalidate: bool, solicited: bool) -> Opcode {
        match (invalidate, solicited) {
            (false, false) => Opcode::Send,
            (true, false) => Opcode::SendInvalidate,
            (false, true) => Opcode::SendSolicited,
            (true, true) => Opcode::SendSolicitedInvalidate,
        }
    }

    /// A Send that invalidates.
    #[inline]
    #[must_use]
    pub const fn invalidates(self) -> bool {
        matches!(
            self,
            Opcode::SendInvalidate | Opcode::SendSolicitedInvalidate
        )
    }

    /// A Send that asks for an event.
    #[inline]
    #[must_use]
    pub const fn solicits(self) -> bool {
        matches!(
            self,
            Opcode::SendSolicited | Opcode::SendSolicitedInvalidate
        )
    }
}

/// A segment whose opcode, buffer model and queue go together (figure 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Of an RDMA Write.
    Write(Tagged),
    /// Of a Read Response.
    ReadResponse(Tagged),
    /// Of one of the four kinds of Send.
    Send(Untagged),
    /// Of a Read Request.
    ReadRequest(Untagged),
    /// Of a Terminate.
    Terminate(Untagged),
}

/// Tells what a segment is.
///
/// # Errors
///
/// [`Reject::QueueNumber`], [`Reject::RdmapVersion`], [`Reject::Opcode`].
#[inline]
pub fn sort(header: Header) -> Result<Arrival, Reject> {
    match header {
        Header::Tagged(tagged) => match Opcode::parse(tagged.ulp)? {
            Opcode::Write => Ok(Arrival::Write(tagged)),
            Opcode::ReadResponse => Ok(Arrival::ReadResponse(tagged)),
            _ => Err(Reject::Opcode),
        },
        Header::Untagged(untagged) => {
            if untagged.queue > QUEUE_TERMINATE {
                return Err(Reject::QueueNumber);
            }
            match (untagged.queue, Opcode::parse(untagged.ulp)?) {
                (
                    QUEUE_SEND,
                    Opcode::Send
                    | Opcode::SendInvalidate
                    | Opcode::SendSolicited
                    | Opcode::SendSolicitedInvalidate,
                ) => Ok(Arrival::Send(untagged)),
                (QUEUE_READ_REQUEST, Opcode::ReadRequest) => Ok(Arrival::ReadRequest(untagged)),
                (QUEUE_TERMINATE, Opcode::Terminate) => Ok(Arrival::Terminate(untagged)),
                _ => Err(Reject::Opcode),
            }
        }
    }
}
