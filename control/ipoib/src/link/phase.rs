//! Where a link is on its way up: one enum, one pure `next`, the whole table in `tests/phases/link.txt`.

use rpcrdma_listed::{Illegal, listed};

listed! {
    /// Where a link is.
    pub Phase {
        /// The port is not active, or not a full member of the partition: only news of the port can change that.
        Down,
        /// The broadcast group is looked up, the narrowest scope first (link section 7).
        Seeking,
        /// The broadcast group is being joined, or created.
        Joining,
        /// Joined; the queue pair is being made, with the group's Q_Key.
        Opening,
        /// The queue pair is being attached to the broadcast group.
        Attaching,
        /// Usable.
        Up,
        /// Usable, but the membership in the broadcast group is in doubt: it is joined again, or could not be verified.
        Degraded,
        /// Refused, or failed: tried again after a pause.
        Resting,
    }
}

listed! {
    /// What moves a link.
    pub Event {
        /// Port and partition allow it.
        Raise,
        /// The broadcast group was found and fits, or is to be created.
        Found,
        /// This port is a full member.
        Granted,
        /// The queue pair is there.
        Opened,
        /// It is attached to the broadcast group, and the port a full member.
        Proven,
        /// The membership in the broadcast group is in doubt.
        Doubt,
        /// The broadcast group is gone, or another one: it has to be looked up.
        Lost,
        /// A step was refused, or failed.
        Fail,
        /// The pause is over.
        Retry,
        /// The port is not active any more, or out of the partition.
        Fall,
    }
}

impl Phase {
    /// Where `event` leads.
    ///
    /// # Errors
    /// [`Illegal`] for a step that this code must not take.
    pub fn next(self, event: Event) -> Result<Self, Illegal> {
        use Event as E;
        use Phase::{Attaching, Degraded, Down, Joining, Opening, Resting, Seeking, Up};
        Ok(match (self, event) {
            (_, E::Fall) => Down,
            (Down, E::Raise) | (Resting, E::Retry) => Seeking,
            (Seeking, E::Found) => Joining,
            (Joining, E::Granted) => Opening,
            (Opening, E::Opened) => Attaching,
            (Attaching | Degraded | Up, E::Proven) => Up,
            // joined again on the way, or after a doubt
            (Opening | Attaching | Up | Degraded, E::Granted) => self,
            (Up | Degraded, E::Doubt) => Degraded,
            (Down | Seeking | Joining | Opening | Attaching | Resting, E::Doubt) => self,
            (Joining | Opening | Attaching | Up | Degraded, E::Lost) => Seeking,
            (Seeking | Joining | Opening | Attaching | Up | Degraded, E::Fail) => Resting,
            _ => return Err(Illegal),
        })
    }

    /// Datagrams and joins of other groups are possible: the broadcast group was joined before anything else.
    #[must_use]
    pub const fn is_usable(self) -> bool {
        matches!(self, Self::Up | Self::Degraded)
    }

    /// The queue pair, if there is one, is the right one to attach.
    #[must_use]
    pub const fn may_attach(self) -> bool {
        matches!(self, Self::Attaching | Self::Up | Self::Degraded)
    }
}
