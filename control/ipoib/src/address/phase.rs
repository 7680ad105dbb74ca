//! Where an address is on its way into use: one enum, one pure `next`, the whole table in `tests/phases/address.txt`.

use rpcrdma_listed::{Illegal, listed};

listed! {
    /// Where an address is.
    pub Phase {
        /// Its link is not up, or its group not joined: it cannot be looked for.
        Waiting,
        /// It is looked for, and not used (RFC 4862: tentative).
        Probing,
        /// It is in use.
        Used,
        /// Somebody else has it.
        Taken,
    }
}

listed! {
    /// What moves an address.
    pub Event {
        /// The link is up, and whoever has the address would be heard.
        Ready,
        /// Nobody has claimed it for as long as was waited.
        Silence,
        /// Somebody else says that it is his, or looks for it too.
        Claim,
        /// The pause after that is over.
        Retry,
        /// The link is not up any more, or its queue pair or port another one.
        Fall,
    }
}

impl Phase {
    /// Where `event` leads.
    ///
    /// # Errors
    /// [`Illegal`] for a step that this code must not take: an address in use is not claimed, that is a conflict.
    pub fn next(self, event: Event) -> Result<Self, Illegal> {
        use Phase::{Probing, Taken, Used, Waiting};
        Ok(match (self, event) {
            (_, Event::Fall) => Waiting,
            (Waiting, Event::Ready) | (Taken, Event::Retry) => Probing,
            (Probing, Event::Silence) => Used,
            (Probing, Event::Claim) => Taken,
            _ => return Err(Illegal),
        })
    }
}
