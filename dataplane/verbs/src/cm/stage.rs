//! The way of a connection, as control sees it.
//!
//! ```text
//! Resolving ─► Routing ─► Resolved ─take─► Opened ─connect─► Asked ──────┐
//!                                                                        ├─► Established ─► Ending ─► Over
//!                       Requested ─take─► Taken ─accept─► Accepted ──────┘
//! ```
//!
//! From `take` on there is an endpoint, and whatever ends the connection leads to `Ending`: the
//! queue pair is in error or about to be, and stays until the endpoint is given up. Only then is
//! it `Over`, and destroyed.

use std::fmt;

/// Where a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
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

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    AddressFound,
    RouteFound,
    Take,
    Connect,
    Accept,
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

/// An input that cannot come here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Illegal(pub(crate) Stage, pub(crate) Input);

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} does not follow {:?}", self.1, self.0)
    }
}

/// What control's owner hears of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parting {
    /// Nothing: it did this itself, or never heard of the connection.
    Silent,
    /// It is not going to stand.
    Rejected,
    /// It stood, and does no more.
    Disconnected,
}

impl Stage {
    /// What follows.
    pub(crate) fn next(self, input: Input) -> Result<Stage, Illegal> {
        use Input as I;
        use Stage as S;
        Ok(match (self, input) {
            (S::Resolving, I::AddressFound) => S::Routing,
            (S::Routing, I::RouteFound) => S::Resolved,
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
            (S::Ending, I::Established | I::AddressFound | I::RouteFound) => S::Ending,
            (stage, input) => return Err(Illegal(stage, input)),
        })
    }

    /// It was taken, and its endpoint is out.
    pub(crate) fn has_endpoint(self) -> bool {
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
    pub(crate) fn is_known_to_peer(self) -> bool {
        matches!(self, Stage::Asked | Stage::Accepted | Stage::Established)
    }

    /// What is said when `input` ends a connection that is here.
    pub(crate) fn parting(self, input: Input) -> Parting {
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

#[cfg(test)]
mod tests {
    use super::*;

    const STAGES: [Stage; 11] = [
        Stage::Resolving,
        Stage::Routing,
        Stage::Resolved,
        Stage::Opened,
        Stage::Asked,
        Stage::Requested,
        Stage::Taken,
        Stage::Accepted,
        Stage::Established,
        Stage::Ending,
        Stage::Over,
    ];
    const INPUTS: [Input; 11] = [
        Input::AddressFound,
        Input::RouteFound,
        Input::Take,
        Input::Connect,
        Input::Accept,
        Input::Established,
        Input::Lost,
        Input::Reject,
        Input::Abandon,
        Input::Broken,
        Input::Vacated,
    ];

    fn table() -> String {
        let mut lines = vec!["| stage | input | next | said |".to_owned(), "|---|---|---|---|".to_owned()];
        for stage in STAGES {
            for input in INPUTS {
                if let Ok(next) = stage.next(input) {
                    let ends = matches!(next, Stage::Ending | Stage::Over) && stage != next;
                    let said = if ends && stage != Stage::Ending {
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
        for stage in STAGES {
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
