//! The states of a client (RFC 2131 figure 5), and what leads from one to another.

pub use rpcrdma_listed::Illegal;
use rpcrdma_listed::listed;

listed! {
    /// Where a client is.
    pub Phase {
        /// The link is not up.
        Down,
        /// INIT: DISCOVER goes out when a wait is over.
        Init,
        /// DISCOVER is out.
        Selecting,
        /// An offer was taken, its REQUEST is out.
        Requesting,
        /// INIT-REBOOT and REBOOTING: the address of before is asked for.
        Rebooting,
        /// An address was given; whether somebody else has it is being asked (RFC 2131 section 2.2).
        Checking,
        /// The address is in use.
        Bound,
        /// T1 is over: the server is asked for more time.
        Renewing,
        /// T2 is over: any server is asked.
        Rebinding,
    }
}

listed! {
    /// What happens to a client.
    pub Event {
        /// The link is up, and no lease of before is left.
        Up,
        /// The link is up, and a lease of before is left.
        UpAgain,
        /// The link is down.
        Down,
        /// The wait before DISCOVER is over.
        Waited,
        /// DHCPOFFER.
        Offer,
        /// DHCPACK.
        Ack,
        /// DHCPNAK.
        Nak,
        /// As many requests as are sent have not been answered.
        Silence,
        /// Nobody else has the address.
        Free,
        /// Somebody else has the address.
        Conflict,
        /// T1.
        T1,
        /// T2.
        T2,
        /// The lease is over.
        Expired,
    }
}

impl Phase {
    /// What follows.
    ///
    /// # Errors
    ///
    /// [`Illegal`]: a reply that is not waited for, which the caller counts; a timer that is not set.
    pub const fn next(self, event: Event) -> Result<Self, Illegal> {
        use Event as E;
        use Phase as P;
        Ok(match (self, event) {
            (P::Down, E::Up) => P::Init,
            (P::Down, E::UpAgain) => P::Rebooting,
            (_, E::Down) => P::Down,
            (P::Init, E::Waited) => P::Selecting,
            (P::Selecting, E::Offer) => P::Requesting,
            (P::Requesting | P::Rebooting, E::Ack) => P::Checking,
            (P::Renewing | P::Rebinding, E::Ack) => P::Bound,
            (P::Requesting | P::Rebooting, E::Silence) => P::Init,
            (P::Requesting | P::Rebooting | P::Renewing | P::Rebinding, E::Nak) => P::Init,
            (P::Checking, E::Free) => P::Bound,
            (P::Checking | P::Bound | P::Renewing | P::Rebinding, E::Conflict) => P::Init,
            (P::Bound, E::T1) => P::Renewing,
            (P::Renewing, E::T2) => P::Rebinding,
            (P::Rebinding, E::Expired) => P::Init,
            _ => return Err(Illegal),
        })
    }

    /// The address is in use.
    #[must_use]
    pub const fn has_address(self) -> bool {
        matches!(self, Self::Bound | Self::Renewing | Self::Rebinding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn table() -> String {
        let mut table = String::from("|  |");
        for phase in Phase::ALL {
            write!(table, " {phase:?} |").unwrap();
        }
        table.push_str("\n|---|");
        table.push_str(&"---|".repeat(Phase::ALL.len()));
        for event in Event::ALL {
            write!(table, "\n| {event:?} |").unwrap();
            for phase in Phase::ALL {
                match phase.next(*event) {
                    Ok(next) => write!(table, " {next:?} |").unwrap(),
                    Err(Illegal) => table.push_str(" |"),
                }
            }
        }
        table + "\n"
    }

    #[test]
    fn the_table_is_the_one_written_down() {
        let written = include_str!("phase.md");
        assert_eq!(written, table(), "src/phase.md is to be:\n{}", table());
    }
}
