//! The way of a connection, as the control thread of a fabric with queue pairs sees it: one enum,
//! one pure `next`. A test compares the whole table with `stage.md`.
//!
//! ```text
//! Resolving ─► Routing ─► Resolved ─take─► Opened ─connect─► Asked ──────┐
//!     └───────────────────────┘                                          ├─► Established ─► Ending ─► Over
//!                       Requested ─take─► Taken ─accept─► Accepted ──────┘
//! ```
//!
//! A fabric that has no route to look for goes from `Resolving` to `Resolved`.
//!
//! From `take` on there is an endpoint, and whatever ends the connection leads to `Ending`: the
//! queue pair is in error or about to be, and stays until the endpoint is given up. Only then is
//! it `Over`, and destroyed.

use crate::connect::{ConnectionId, Event};
pub use rpcrdma_listed::Illegal;
use rpcrdma_listed::listed;

listed! {
    /// Where a connection is.
    pub Stage {
        /// Begun here: the device that leads to the address is looked for.
        Resolving,
        /// The path on that device is looked for.
        Routing,
        /// Both are found.
        Resolved,
        /// Begun here, and given a queue pair.
        Opened,
        /// Begun here, and the peer was asked.
        Asked,
        /// A peer asks.
        Requested,
        /// A peer asks, and it was given a queue pair.
        Taken,
        /// The peer was told yes.
        Accepted,
        /// Both sides can send.
        Established,
        /// No connection any more; its endpoint is still out.
        Ending,
        /// Nothing is left to do but to destroy it.
        Over,
    }
}

listed! {
    /// What happens to a connection.
    pub Input {
        /// The device that leads to the peer is found, and a route is still to be looked for.
        AddressFound,
        /// It is known how the peer is reached.
        Found,
        /// Control gives it a queue pair.
        Take,
        /// Control asks the peer.
        Connect,
        /// Control says yes to a request.
        Accept,
        /// Both sides can send.
        Established,
        /// The peer or the fabric ended it.
        Lost,
        /// Control said no to a request.
        Reject,
        /// Control does not want any more what it began.
        Abandon,
        /// The port says that the queue pair is in error.
        Broken,
        /// The endpoint was given up.
        Vacated,
    }
}

/// What control hears of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parting {
    /// Nothing: it did this itself, or never heard of the connection.
    Silent,
    /// It is not going to stand.
    Rejected,
    /// It stood, and does no more.
    Disconnected,
}

impl Stage {
    /// What follows.
    ///
    /// # Errors
    ///
    /// [`Illegal`]: late, or out of turn. Nothing is to change.
    pub fn next(self, input: Input) -> Result<Stage, Illegal> {
        use Input as I;
        use Stage as S;
        Ok(match (self, input) {
            (S::Resolving, I::AddressFound) => S::Routing,
            (S::Resolving | S::Routing, I::Found) => S::Resolved,
            (S::Resolving | S::Routing | S::Resolved, I::Lost | I::Abandon) => S::Over,
            (S::Resolved, I::Take) => S::Opened,
            (S::Opened, I::Connect) => S::Asked,
            (S::Requested, I::Take) => S::Taken,
            (S::Requested, I::Lost | I::Reject) => S::Over,
            (S::Taken, I::Accept) => S::Accepted,
            (S::Taken, I::Reject) => S::Ending,
            (S::Asked | S::Accepted, I::Established) => S::Established,
            (stage, I::Lost | I::Broken) if stage.has_endpoint() => S::Ending,
            (stage, I::Vacated) if stage.has_endpoint() => S::Over,
            // What was under way when it ended.
            (S::Ending, I::Established) => S::Ending,
            _ => return Err(Illegal),
        })
    }

    /// It was taken, and its endpoint is out.
    #[must_use]
    pub fn has_endpoint(self) -> bool {
        matches!(
            self,
            Stage::Opened
                | Stage::Asked
                | Stage::Taken
                | Stage::Accepted
                | Stage::Established
                | Stage::Ending
        )
    }

    /// The peer knows of it, so that it is to be told of its end.
    #[must_use]
    pub fn is_known_to_peer(self) -> bool {
        matches!(self, Stage::Asked | Stage::Accepted | Stage::Established)
    }

    /// What is said when `input` ends a connection that is here.
    #[must_use]
    pub fn parting(self, input: Input) -> Parting {
        match (self, input) {
            (_, Input::Reject | Input::Abandon) => Parting::Silent,
            (Stage::Established, _) => Parting::Disconnected,
            (Stage::Asked | Stage::Accepted, _) => Parting::Rejected,
            (Stage::Resolving | Stage::Routing | Stage::Resolved | Stage::Opened, Input::Lost) => {
                Parting::Rejected
            }
            _ => Parting::Silent,
        }
    }
}

/// A step of a connection's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it was.
    pub before: Stage,
    /// Where it is.
    pub after: Stage,
    /// What took it there.
    pub input: Input,
}

impl Stage {
    /// Goes where `input` leads: the one writer of a connection's stage. `None`, and nothing has
    /// changed, where the table has no such step.
    pub fn step(&mut self, input: Input) -> Option<Step> {
        let before = *self;
        let after = before.next(input).ok()?;
        *self = after;
        Some(Step {
            before,
            after,
            input,
        })
    }
}

impl Step {
    /// The connection ends by it.
    #[must_use]
    pub fn ends(&self) -> bool {
        self.before != Stage::Ending && matches!(self.after, Stage::Ending | Stage::Over)
    }

    /// It is over by it.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.after == Stage::Over
    }

    /// What control hears of it, where it ends the connection; `why` is for a person.
    pub fn parting(&self, connection: ConnectionId, why: impl FnOnce() -> String) -> Option<Event> {
        if !self.ends() {
            return None;
        }
        match self.before.parting(self.input) {
            Parting::Silent => None,
            Parting::Rejected => Some(Event::Rejected {
                connection,
                reason: why(),
            }),
            Parting::Disconnected => Some(Event::Disconnected { connection }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> String {
        let mut lines = vec![
            "| stage | input | next | said |".to_owned(),
            "|---|---|---|---|".to_owned(),
        ];
        for stage in Stage::ALL.iter().copied() {
            for input in Input::ALL.iter().copied() {
                if let Ok(next) = stage.next(input) {
                    let step = stage.clone().step(input).expect("the same");
                    let said = if step.ends() {
                        format!("{:?}", stage.parting(input))
                    } else {
                        String::new()
                    };
                    lines.push(format!("| {stage:?} | {input:?} | {next:?} | {said} |"));
                }
            }
        }
        lines.join("\n") + "\n"
    }

    /// All that is not in the table is illegal.
    #[test]
    fn the_whole_table() {
        assert_eq!(table(), include_str!("stage.md"));
    }

    #[test]
    fn everything_ends() {
        for stage in Stage::ALL.iter().copied() {
            let last = match stage {
                Stage::Over => continue,
                stage if stage.has_endpoint() => Input::Vacated,
                Stage::Requested => Input::Reject,
                _ => Input::Abandon,
            };
            assert_eq!(stage.next(last), Ok(Stage::Over), "{stage:?}");
        }
    }
}
