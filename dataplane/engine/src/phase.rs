//! The three state machines of a connection: its own life, the life of a Call it makes, the
//! life of a Call it serves. Each is one enum with one pure `next`; the whole tables stand in
//! `tests/phases/`, compared by a test, and are the documentation.

pub use rpcrdma_listed::Illegal;
use rpcrdma_listed::listed;

listed! {
    /// The life of a connection.
    pub Phase {
        /// A queue pair is here, with receives posted; nothing may be sent yet.
        Adopted,
        /// Client: a version-two message is on its way, the server's version is not known.
        Offering,
        /// Server: established, and no message has come that shows the client's version.
        Awaiting,
        /// The version is agreed; Calls go both ways as the credits allow.
        Open,
        /// No new Calls; ends when those in flight are answered.
        Draining,
        /// The queue pair is in error: work is being flushed, memory coming back.
        Broken,
        /// Nothing is outstanding: the queue pair can be destroyed.
        Closed,
    }
}

listed! {
    /// What moves a connection.
    pub PhaseEvent {
        /// Established, as a client that offers version two.
        Offer,
        /// Established, as a server.
        Await,
        /// Established, as a client that speaks version one.
        Start,
        /// The version is known.
        Agree,
        /// Told to drain.
        Drain,
        /// The queue pair went into error, or was put there.
        Break,
        /// The last outstanding work has come back.
        Flush,
        /// A new queue pair, to replay unanswered Calls on.
        Reopen,
    }
}

impl Phase {
    /// Where `event` leads.
    pub fn next(self, event: PhaseEvent) -> Result<Self, Illegal> {
        use Phase::{Adopted, Awaiting, Broken, Closed, Draining, Offering, Open};
        use PhaseEvent as E;
        Ok(match (self, event) {
            (Adopted, E::Offer) => Offering,
            (Adopted, E::Await) => Awaiting,
            (Adopted, E::Start) => Open,
            (Offering | Awaiting, E::Agree) => Open,
            (Draining, E::Agree) => Draining,
            (Offering | Awaiting | Open | Draining, E::Drain) => Draining,
            (Broken | Closed, E::Drain) => self,
            (Adopted | Offering | Awaiting | Open | Draining | Broken, E::Break) => Broken,
            (Closed, E::Break) => Closed,
            (Broken, E::Flush) => Closed,
            (Closed, E::Reopen) => Adopted,
            _ => return Err(Illegal),
        })
    }

    /// The queue pair is in error or gone.
    #[inline]
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Phase::Broken | Phase::Closed)
    }

    /// Messages may be sent.
    #[inline]
    #[must_use]
    pub fn can_send(self) -> bool {
        matches!(
            self,
            Phase::Offering | Phase::Awaiting | Phase::Open | Phase::Draining
        )
    }
}

listed! {
    /// The life of a Call this side makes. A free slot is [`CallPhase::Free`].
    pub CallPhase {
        /// No Call.
        Free,
        /// Taken, waiting for a credit (or for the connection to come back).
        Queued,
        /// Sent, and not answered.
        Sent,
        /// Sent, not answered, and nobody waits for it: its memory stays exposed (8166 4.4.1).
        Forsaken,
        /// Answered, refused or lost; exposures are still being ended.
        Settling,
        /// The Reply is with the upper layer.
        Answered,
        /// REPLY_RESOURCE is with the upper layer: it looks for more room.
        Starved,
    }
}

listed! {
    /// What moves a Call this side makes.
    pub CallEvent {
        /// Handed in by the upper layer.
        Submit,
        /// Its Send was posted.
        Launch,
        /// A Reply or an error came for it, or the connection was lost.
        Answer,
        /// Nothing of it is exposed any more: the Reply goes up.
        Deliver,
        /// Nothing of it is exposed any more: the upper layer must find more room.
        Starve,
        /// To be sent again: version fall-back, retry, replay.
        Requeue,
        /// The upper layer gave it up.
        Forsake,
        /// Over: the slot is free.
        End,
    }
}

impl CallPhase {
    /// Where `event` leads.
    pub fn next(self, event: CallEvent) -> Result<Self, Illegal> {
        use CallEvent as E;
        use CallPhase::{Answered, Forsaken, Free, Queued, Sent, Settling, Starved};
        Ok(match (self, event) {
            (Free, E::Submit) => Queued,
            (Queued, E::Launch) => Sent,
            (Queued, E::Answer) => Settling,
            (Sent | Forsaken, E::Answer) => Settling,
            (Settling, E::Deliver) => Answered,
            (Settling, E::Starve) => Starved,
            (Settling | Starved, E::Requeue) => Queued,
            (Sent, E::Forsake) => Forsaken,
            (Settling, E::Forsake) => Settling,
            (Settling | Answered | Starved, E::End) => Free,
            _ => return Err(Illegal),
        })
    }
}

listed! {
    /// The life of a Call this side serves. A free slot is [`ServePhase::Free`].
    pub ServePhase {
        /// No Call.
        Free,
        /// Its Read chunks wait for memory or for room in the send queue.
        Waiting,
        /// RDMA Reads are outstanding.
        Fetching,
        /// Whole, and with the upper layer.
        Serving,
        /// The Reply is here; Writes or the Send wait for room in the send queue.
        Replying,
        /// The Reply was posted; its memory is still in use by the fabric.
        Lingering,
    }
}

listed! {
    /// What moves a Call this side serves.
    pub ServeEvent {
        /// It came whole, in one message.
        Arrive,
        /// It came with Read chunks.
        Reduce,
        /// All its Reads are posted.
        Fetch,
        /// All its data is here.
        Complete,
        /// The upper layer answered it.
        Answer,
        /// The Reply's Send was posted.
        Send,
        /// Over: the slot is free.
        End,
    }
}

impl ServePhase {
    /// Where `event` leads.
    pub fn next(self, event: ServeEvent) -> Result<Self, Illegal> {
        use ServeEvent as E;
        use ServePhase::{Fetching, Free, Lingering, Replying, Serving, Waiting};
        Ok(match (self, event) {
            (Free, E::Arrive) => Serving,
            (Free, E::Reduce) => Waiting,
            (Waiting, E::Fetch) => Fetching,
            (Fetching, E::Complete) => Serving,
            (Serving, E::Answer) => Replying,
            (Replying, E::Send) => Lingering,
            (Waiting | Fetching | Serving | Replying | Lingering, E::End) => Free,
            _ => return Err(Illegal),
        })
    }
}
