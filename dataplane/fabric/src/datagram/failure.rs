//! What can go wrong with datagrams, by kind: each kind has a counter of whoever asks.

use std::fmt;

/// Something that was asked for and did not come about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind.
    pub kind: FailureKind,
    /// What and why, for a person.
    pub detail: String,
}

rpcrdma_listed::listed! {
    /// A kind of failure.
    pub FailureKind {
        /// No such device, link or address.
        Absent => "absent",
        /// The link's P_Key table lacks the partition.
        NoPartition => "no_partition",
        /// It takes a privilege that this process lacks: a controlled Q_Key.
        Forbidden => "forbidden",
        /// A limit is reached: the device's, the system's, or one that is set here.
        Exhausted => "exhausted",
        /// Device or system cannot do this at all.
        Unsupported => "unsupported",
        /// What was asked for makes no sense, now or ever.
        Invalid => "invalid",
        /// The group was not joined: nobody answered, or somebody said no.
        NotJoined => "not_joined",
        /// The device is gone.
        Gone => "gone",
        /// The system refused, for a reason that is none of these.
        Refused => "refused",
    }
}

impl FailureKind {
    /// What it was, for a person.
    #[must_use]
    pub fn because(self, detail: impl Into<String>) -> Failure {
        Failure {
            kind: self,
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Failure {}

/// Why a datagram was not sent. Copied, not explained: there may be many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unsent {
    /// As many are on their way as may be. Later there is room.
    Busy,
    /// Longer than [`payload_bytes`](super::PairFacts::payload_bytes).
    TooLong,
    /// The address cannot be: more bits than a field has, or no GID where one is needed.
    Address,
    /// The system found no way to the address; its errno.
    NoWay(i32),
    /// The link is down.
    LinkDown,
    /// The pair is in error, or its device gone.
    Gone,
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsent::Busy => f.write_str("too many datagrams are on their way"),
            Unsent::TooLong => f.write_str("the datagram is too long"),
            Unsent::Address => f.write_str("the address cannot be"),
            Unsent::NoWay(errno) => {
                let error = std::io::Error::from_raw_os_error(*errno);
                write!(f, "no way to the address: {error}")
            }
            Unsent::LinkDown => f.write_str("the link is down"),
            Unsent::Gone => f.write_str("the device is gone"),
        }
    }
}

impl std::error::Error for Unsent {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_kind_has_a_name_of_its_own() {
        let names: HashSet<&str> = FailureKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), FailureKind::ALL.len());
    }

    #[test]
    fn a_failure_says_what_it_was_told() {
        let failure = FailureKind::NoPartition.because("P_Key 0x8009 is not in the table");
        assert_eq!(failure.kind, FailureKind::NoPartition);
        assert_eq!(failure.to_string(), "P_Key 0x8009 is not in the table");
        assert!(Unsent::NoWay(101).to_string().contains("unreachable"));
    }
}
