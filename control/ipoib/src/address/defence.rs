//! How an address in use is defended: one enum, one pure `next`, the whole table in `tests/phases/defence.txt`.
//!
//! RFC 5227 section 2.4 leaves a choice of three. (a) To give the address up at once is to be at the mercy of a single frame.
//! Here it is defended once, by an announcement, and who claims it again within [`DEFEND_INTERVAL_MS`] insists. That the
//! owner of the address is told: it gives up an address that it can have another instead of, as by DHCP (b), and keeps one
//! that it was given by hand (c). In that time there is no second announcement, so that two hosts that are sure of the same
//! address do not shout at each other for ever.

use rpcrdma_listed::{Illegal, listed};

/// A claim is answered with an announcement once in so many milliseconds (RFC 5227 section 1.1: `DEFEND_INTERVAL`).
pub const DEFEND_INTERVAL_MS: u64 = 10_000;

listed! {
    /// Whether others claim an address in use.
    pub Defence {
        /// Nobody does.
        Calm,
        /// Somebody did, and it was announced in answer.
        Defended,
        /// Somebody did again soon after, and the owner was told.
        Contested,
    }
}

listed! {
    /// What moves it.
    pub Dispute {
        /// Another host says that it has the address.
        Claim,
        /// [`DEFEND_INTERVAL_MS`] is over since the claim that was answered.
        Lull,
    }
}

impl Defence {
    /// Where `event` leads.
    ///
    /// # Errors
    /// [`Illegal`]: there is no interval that could be over.
    pub fn next(self, event: Dispute) -> Result<Self, Illegal> {
        use Defence::{Calm, Contested, Defended};
        Ok(match (self, event) {
            (Calm, Dispute::Claim) => Defended,
            (Defended | Contested, Dispute::Claim) => Contested,
            (Defended | Contested, Dispute::Lull) => Calm,
            (Calm, Dispute::Lull) => return Err(Illegal),
        })
    }
}
