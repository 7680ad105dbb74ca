//! The way of a connection, as control sees it: one enum, one pure `next`. A test compares the
//! whole table with `stage.md`.

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Begun here; its host's address is being looked up.
    Resolving,
    /// Begun here; where it leads is known.
    Resolved,
    /// Begun here, and given a queue pair.
    Opened,
    /// Begun here; the peer is being asked.
    Asked,
    /// Asked for by a peer.
    Requested,
    /// Asked for by a peer, and given a queue pair.
    Taken,
    /// The peer is being told yes.
    Accepted,
    /// Both sides may send.
    Established,
    /// Over, but for its queue pair.
    Ending,
    /// Over.
    Over,
}

/// What happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// Its address is found.
    Found,
    /// Its owner has a queue pair made.
    Take,
    /// Its owner has the peer asked.
    Connect,
    /// Its owner says yes.
    Accept,
    /// The port says that it stands.
    Established,
    /// It is lost, or will not be.
    Lost,
    /// Its owner says no.
    Reject,
    /// Its owner does not want it any more.
    Abandon,
    /// The endpoint is gone.
    Vacated,
}

/// An input that cannot come here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Illegal;

/// What the owner hears of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parting {
    /// Nothing: it did this itself, or never heard of the connection.
    Silent,
    /// It is not going to stand.
    Rejected,
    /// It stood, and does no more.
    Disconnected,
}

impl Stage {
    /// What follows.
    pub(super) fn next(self, input: Input) -> Result<Stage, Illegal> {
        use Input as I;
        use Stage as S;
        Ok(match (self, input) {
            (S::Resolving, I::Found) => S::Resolved,
            (S::Resolving | S::Resolved, I::Lost | I::Abandon) => S::Over,
            (S::Resolved, I::Take) => S::Opened,
            (S::Opened, I::Connect) => S::Asked,
            (S::Requested, I::Take) => S::Taken,
            (S::Requested, I::Lost | I::Reject) => S::Over,
            (S::Taken, I::Accept) => S::Accepted,
            (S::Taken, I::Reject) => S::Ending,
            (S::Asked | S::Accepted, I::Established) => S::Established,
            (stage, I::Lost) if stage.has_endpoint() => S::Ending,
            (stage, I::Vacated) if stage.has_endpoint() => S::Over,
            // What was under way when it ended.
            (S::Ending, I::Established) => S::Ending,
            _ => return Err(Illegal),
        })
    }

    /// It was taken, and its endpoint is out.
    pub(super) fn has_endpoint(self) -> bool {
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

    /// What is said when `input` ends a connection that is here.
    pub(super) fn parting(self, input: Input) -> Parting {
        match (self, input) {
            (_, Input::Reject | Input::Abandon) => Parting::Silent,
            (Stage::Established, _) => Parting::Disconnected,
            (Stage::Asked | Stage::Accepted, _) => Parting::Rejected,
            (Stage::Resolving | Stage::Resolved | Stage::Opened, Input::Lost) => Parting::Rejected,
            _ => Parting::Silent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGES: [Stage; 10] = [
        Stage::Resolving,
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
    const INPUTS: [Input; 9] = [
        Input::Found,
        Input::Take,
        Input::Connect,
        Input::Accept,
        Input::Established,
        Input::Lost,
        Input::Reject,
        Input::Abandon,
        Input::Vacated,
    ];

    fn table() -> String {
        let mut lines = vec![
            "| stage | input | next | said |".to_owned(),
            "|---|---|---|---|".to_owned(),
        ];
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
