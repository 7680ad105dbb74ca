//! What the upper layer is told.

use crate::rdmap::Terminate;
use crate::reject::Reject;
use crate::session::Depths;
use crate::stag::Stag;
use rpcrdma_fabric::{WorkError, WorkId};

/// Something that happened to one stream. Work is told of in the order in which it was posted,
/// each piece once; after [`Event::Ended`] there is nothing more of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A peer asks for a session: bind an endpoint and accept, or reject, or turn away.
    Requested {
        /// What it sent with the request, without the IRD/ORD word.
        private_data: &'a [u8],
        /// That word's depths, as the peer means them; `None` when there was no word.
        depths: Option<Depths>,
    },
    /// The session that this side asked for stands.
    Accepted {
        /// What the peer sent with its answer, without the IRD/ORD word.
        private_data: &'a [u8],
        /// That word's depths, as the peer means them.
        depths: Option<Depths>,
    },
    /// The peer's upper layer said no. [`Event::Ended`] follows.
    Rejected {
        /// What the peer sent with its answer.
        private_data: &'a [u8],
    },
    /// A message came in a receive.
    Received {
        /// The receive.
        id: WorkId,
        /// The message's length in octets.
        len: u32,
        /// The tagged buffer of ours that it invalidated: to be reclaimed.
        invalidated: Option<Stag>,
        /// Its sender wants this side to be woken for it.
        solicited: bool,
    },
    /// A Send or a Write has been taken by the layer below, or a Read's data is here.
    Done {
        /// The work.
        id: WorkId,
    },
    /// Work, or a receive, that will not be done.
    Failed {
        /// The work.
        id: WorkId,
        /// Why.
        error: WorkError,
    },
    /// The session is over, and all its work has been told of.
    Ended(End),
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// This side's upper layer ended it.
    Local,
    /// The peer ended it, and says nothing more.
    Peer,
    /// The peer's upper layer rejected it.
    Rejected,
    /// The peer answered the request with a Terminate, and where that was an enhanced one, the plain
    /// one after it too: it has no room for it.
    TurnedAway,
    /// The peer's RDMAP found an error of this side's.
    Terminated(Terminate),
    /// The peer did something wrong.
    Reject(Reject),
    /// The association is gone.
    Lost,
}

impl End {
    /// How the oldest work that was on its way fails.
    pub(crate) fn error(self) -> WorkError {
        match self {
            End::Lost => WorkError::Transport,
            End::Terminated(terminate) => match (terminate.code.layer, terminate.code.error_type) {
                (0 | 1, 1) => WorkError::RemoteAccess,
                (1, 2) => WorkError::RemoteInvalid,
                _ => WorkError::Flushed,
            },
            _ => WorkError::Flushed,
        }
    }
}
