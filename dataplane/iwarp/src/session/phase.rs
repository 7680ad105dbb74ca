//! The life of a DDP stream, through its sessions (RFC 5043 section 6). One enum, one pure `next`;
//! the whole table stands in `tests/phases/stream.txt`, compared by a test.
//!
//! What has no place in the table is, where a peer did it, a chunk that conforms to no legal
//! sequence ([`Event::Breach`] is fed instead), and where this side's upper layer did it, refused.

pub use rpcrdma_listed::Illegal;
use rpcrdma_listed::listed;

listed! {
    /// Where a stream is.
    pub Phase {
        /// No session, and no chunk of one in flight: either end may begin one.
        Idle,
        /// Our Initiate is out; chunks that overtake the Accept are placed.
        Initiating,
        /// The same, and nobody here wants it any more: an Accept will be answered by Terminate.
        Abandoned,
        /// The peer's Initiate is with the upper layer.
        Pending,
        /// Our Accept is out, and perhaps not there yet: nothing may overtake it.
        Accepting,
        /// Segments go both ways.
        Open,
        /// Over here; the peer's last chunk has not come. Its Initiate would say that it has
        /// none in flight.
        Closing,
        /// Over at both ends; chunks of ours may be in flight.
        Closed,
        /// The association is gone.
        Lost,
    }
}

listed! {
    /// What moves it.
    pub Event {
        /// We ask for a session.
        Initiate,
        /// We accept the peer's.
        Accept,
        /// We reject it, or have no room for it.
        Refuse,
        /// We have had enough.
        End,
        /// The peer asks for a session.
        Initiated,
        /// The peer accepts ours.
        Accepted,
        /// The peer rejects it.
        Rejected,
        /// A segment of the peer's has come.
        Segment,
        /// The peer's Terminate has had its turn.
        Ended,
        /// The peer broke the rules, or its RDMAP says that we did.
        Breach,
        /// All control messages of ours have been received.
        Proof,
        /// No chunk of ours is in flight or waits to be sent.
        Dry,
        /// The association is gone.
        Loss,
    }
}

impl Phase {
    /// Where `event` leads.
    ///
    /// # Errors
    ///
    /// [`Illegal`] where it must not happen.
    pub fn next(self, event: Event) -> Result<Phase, Illegal> {
        use Event as E;
        use Phase::{Abandoned, Accepting, Closed, Closing, Idle, Initiating, Lost, Open, Pending};
        Ok(match (self, event) {
            (_, E::Loss) => Lost,

            (Idle, E::Initiate) => Initiating,
            (Idle | Closing | Closed, E::Initiated) => Pending,
            (Idle, E::Breach) => Closing,
            (Idle, E::Dry | E::Proof) => Idle,

            // Section 6.2.
            (Initiating, E::Accepted) => Open,
            (Pending, E::Accept) => Accepting,
            (Accepting, E::Proof) => Open,
            (Open, E::Proof) => Open,
            (Initiating | Accepting | Open, E::Segment) => self,
            (Accepting | Open, E::Ended) => Closed,
            (Accepting | Open, E::End) => Closing,

            // Section 6.3: each side has sent its one message. And 6.4.
            (Initiating | Abandoned, E::Rejected | E::Ended) => Closed,
            (Pending, E::Refuse) => Closed,

            (Initiating, E::End) => Abandoned,
            (Abandoned, E::End | E::Segment) => Abandoned,
            (Abandoned, E::Accepted) => Closing,
            (Initiating | Abandoned | Pending, E::Dry | E::Proof) => self,
            (Accepting | Open, E::Dry) => self,

            (Initiating | Abandoned | Pending | Accepting | Open, E::Breach) => Closing,

            // What is still coming is not looked at.
            (Closing, E::Segment | E::Breach | E::End | E::Proof | E::Dry) => Closing,
            (Closing, E::Accepted) => Closing,
            (Closing, E::Ended | E::Rejected) => Closed,
            (Closed, E::End | E::Breach | E::Proof) => Closed,
            (Closed, E::Dry) => Idle,

            (Lost, E::End | E::Breach | E::Proof | E::Dry) => Lost,
            _ => return Err(Illegal),
        })
    }

    /// The upper layer has not been told that the session is over.
    #[inline]
    #[must_use]
    pub fn is_live(self) -> bool {
        matches!(
            self,
            Phase::Initiating | Phase::Pending | Phase::Accepting | Phase::Open
        )
    }
}
