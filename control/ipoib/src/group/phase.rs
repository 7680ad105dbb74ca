//! What goes on with one group: one enum, one pure `next`, the whole table in `tests/phases/group.txt`.
//!
//! At most one thing goes on with a group at a time, so nothing can overtake anything: no leave its join, no detach its
//! attach. Between two things the group stands still in one of four phases, and [`Group::next_step`](super::Group::next_step)
//! decides, from what is wanted and what is held, which thing is next.

use rpcrdma_listed::{Illegal, listed};

listed! {
    /// What goes on with a group.
    pub Phase {
        /// Still: nothing is held, and the SA holds nothing of this port.
        Out,
        /// The SA is asked for the group's record.
        Seeking,
        /// A join is on its way.
        Joining,
        /// The queue pair is being attached.
        Attaching,
        /// Still: a member.
        In,
        /// The SA is asked for this port's own record.
        Checking,
        /// The queue pair is being detached.
        Detaching,
        /// A leave is on its way.
        Leaving,
        /// Still: nothing is held, but a join may be on its way yet, as a late duplicate; the SA will be asked.
        Settling,
        /// Still: something failed, and is tried again after a pause.
        Resting,
    }
}

listed! {
    /// What moves a group.
    pub Event {
        /// Ask for the group's record.
        Seek,
        /// Join, or create.
        Join,
        /// Attach the queue pair.
        Attach,
        /// Ask for this port's own record.
        Check,
        /// Detach the queue pair.
        Detach,
        /// Leave.
        Leave,
        /// What went on is over: something is held.
        Held,
        /// What went on is over: nothing is held, for now.
        Settle,
        /// What went on is over: nothing is held, for certain.
        Empty,
        /// What went on failed.
        Fail,
    }
}

impl Phase {
    /// Where `event` leads.
    ///
    /// # Errors
    /// [`Illegal`] for a step that this code must not take.
    pub fn next(self, event: Event) -> Result<Self, Illegal> {
        use Event as E;
        use Phase::{
            Attaching, Checking, Detaching, In, Joining, Leaving, Out, Resting, Seeking, Settling,
        };
        Ok(match (self, event) {
            (Out | In | Settling | Resting, E::Seek) => Seeking,
            (Out | In | Settling | Resting, E::Join) => Joining,
            (In | Resting, E::Attach) => Attaching,
            (In | Settling | Resting, E::Check) => Checking,
            (Out | In | Settling | Resting, E::Detach) => Detaching,
            (Out | In | Settling | Resting, E::Leave) => Leaving,
            (_, E::Held) => In,
            (_, E::Settle) => Settling,
            (_, E::Empty) => Out,
            (Seeking | Joining | Attaching | Checking | Detaching | Leaving, E::Fail) => Resting,
            (Out | In | Settling | Resting, E::Fail) => Resting,
            _ => return Err(Illegal),
        })
    }

    /// Nothing goes on.
    #[must_use]
    pub const fn is_still(self) -> bool {
        matches!(self, Self::Out | Self::In | Self::Settling | Self::Resting)
    }

    /// An answer of the SA is awaited.
    #[must_use]
    pub const fn awaits_sa(self) -> bool {
        matches!(
            self,
            Self::Seeking | Self::Joining | Self::Checking | Self::Leaving
        )
    }
}
