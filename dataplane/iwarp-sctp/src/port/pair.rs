//! One queue pair: a session on a stream, from its adoption to its end.
//!
//! | phase | is | leads to |
//! |---|---|---|
//! | Free | nobody's | Waiting |
//! | Waiting | adopted; receives may be posted | Open, Parting, Over |
//! | Open | everything works | Draining, Parting, Over |
//! | Draining | this side has ended it, and what was posted goes on | Parting, Over |
//! | Parting | all is flushed; whether the last message has arrived is not known yet | Over |
//! | Over | its owner has heard of the end | Free |

use crate::endpoint::{Endpoint, Origin};
use crate::port::At;
use rpcrdma_fabric::connect::ConnectionId;
use rpcrdma_fabric::{Completion, Outcome, Span, Token, WorkId};
use rpcrdma_iwarp::Owner;
use std::collections::VecDeque;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Free,
    Waiting,
    Open,
    Draining,
    Parting,
    Over,
}

/// What is to be told when the oldest work is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Book {
    pub(super) id: WorkId,
    /// Nobody waits for it: it was done when it was posted.
    pub(super) silent: bool,
    /// Memory of the outbox that it uses.
    pub(super) outbox: Span,
}

/// A queue pair's place.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) phase: Phase,
    pub(super) token: Token,
    pub(super) connection: ConnectionId,
    /// Who it is to the table of STags: a number never used again.
    pub(super) owner: Owner,
    /// While it is out.
    pub(super) endpoint: Option<Endpoint>,
    /// RDMAP's end of it, until it is bound to a stream.
    pub(super) machine: Option<Box<rpcrdma_iwarp::Endpoint>>,
    /// The stream it is bound to, while that is there.
    pub(super) at: Option<At>,
    /// Private data of a session to be asked for.
    pub(super) ask: Option<Box<[u8]>>,
    /// Posted work, oldest first.
    pub(super) works: VecDeque<Book>,
    /// Posted receives, oldest first.
    pub(super) receives: VecDeque<WorkId>,
    /// Tagged buffers that are open, or were invalidated by the peer.
    pub(super) exposures: u32,
    /// Octets of the outbox in use.
    pub(super) outbox_bytes: u32,
    /// Something was refused for want of room.
    pub(super) starved: bool,
    /// Until when an end is waited for.
    pub(super) until: Option<Instant>,
    /// Why it ended, where that is known before the end.
    pub(super) why: Option<String>,
}

impl Pair {
    pub(super) fn free(send_depth: u32, receive_depth: u32) -> Pair {
        Pair {
            phase: Phase::Free,
            token: Token(0),
            connection: ConnectionId(0),
            owner: Owner(0),
            endpoint: None,
            machine: None,
            at: None,
            ask: None,
            works: VecDeque::with_capacity(send_depth as usize),
            receives: VecDeque::with_capacity(receive_depth as usize),
            exposures: 0,
            outbox_bytes: 0,
            starved: false,
            until: None,
            why: None,
        }
    }

    pub(super) fn adopt(
        &mut self,
        endpoint: Endpoint,
        token: Token,
        owner: Owner,
        machine: Box<rpcrdma_iwarp::Endpoint>,
    ) {
        self.phase = Phase::Waiting;
        self.token = token;
        self.connection = endpoint.connection;
        self.owner = owner;
        self.endpoint = Some(endpoint);
        self.machine = Some(machine);
        self.at = None;
        self.ask = None;
        self.exposures = 0;
        self.starved = false;
        self.until = None;
        self.why = None;
    }

    /// It was adopted for this request, which was not accepted yet.
    pub(super) fn answers(&self, request: u64) -> bool {
        let origin = self.endpoint.as_ref().map(|endpoint| endpoint.origin);
        let asked = matches!(origin, Some(Origin::Asked { request: its, .. }) if its == request);
        asked && self.phase == Phase::Waiting
    }

    /// Its session is over, or never began.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Free | Phase::Parting | Phase::Over)
    }

    #[inline]
    pub(super) fn completion(&self, id: WorkId, outcome: Outcome) -> Completion {
        Completion {
            token: self.token,
            id,
            outcome,
        }
    }
}
