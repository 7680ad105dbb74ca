//! What the connection manager says, as plain data, and as text for a person.

use super::Identifier;
use super::reason;
use rdma_core_sys as rdma;
use rpcrdma_fabric::datagram::AddressVector;
use std::io;

/// One event.
#[derive(Debug)]
pub(crate) struct Happening {
    /// Whose it is: the id's number; of a request, the listener's.
    pub(crate) number: u64,
    pub(crate) what: What,
    /// Zero, or why: what it means depends on the event and the transport.
    pub(crate) status: i32,
    pub(crate) private_data: Vec<u8>,
    pub(crate) offer: Offer,
    /// Of a request: the connection that is asked for.
    pub(crate) id: Option<Identifier>,
    /// Of a multicast group: which, and how to send to it.
    pub(crate) group: Option<GroupNews>,
}

/// What is said of a multicast group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupNews {
    /// As it was called when it was joined.
    pub(crate) number: usize,
    /// Its address, once it is joined.
    pub(crate) to: AddressVector,
}

/// RDMA Reads that the peer and this side could have outstanding, as seen from here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Reads of the peer's that this side would serve at once.
    pub(crate) responder_resources: u8,
    /// Reads of this side's that the peer would serve at once.
    pub(crate) initiator_depth: u8,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    AddressResolved,
    AddressError,
    RouteResolved,
    RouteError,
    Request,
    ConnectError,
    Unreachable,
    Rejected,
    Established,
    Disconnected,
    DeviceRemoval,
    AddressChange,
    TimewaitExit,
    GroupJoined,
    GroupFailed,
    /// Of a newer librdmacm.
    Other(rdma::rdma_cm_event_type),
}

impl From<rdma::rdma_cm_event_type> for What {
    fn from(event: rdma::rdma_cm_event_type) -> What {
        match event {
            rdma::RDMA_CM_EVENT_ADDR_RESOLVED => What::AddressResolved,
            rdma::RDMA_CM_EVENT_ADDR_ERROR => What::AddressError,
            rdma::RDMA_CM_EVENT_ROUTE_RESOLVED => What::RouteResolved,
            rdma::RDMA_CM_EVENT_ROUTE_ERROR => What::RouteError,
            rdma::RDMA_CM_EVENT_CONNECT_REQUEST => What::Request,
            rdma::RDMA_CM_EVENT_CONNECT_ERROR => What::ConnectError,
            rdma::RDMA_CM_EVENT_UNREACHABLE => What::Unreachable,
            rdma::RDMA_CM_EVENT_REJECTED => What::Rejected,
            rdma::RDMA_CM_EVENT_ESTABLISHED => What::Established,
            rdma::RDMA_CM_EVENT_DISCONNECTED => What::Disconnected,
            rdma::RDMA_CM_EVENT_DEVICE_REMOVAL => What::DeviceRemoval,
            rdma::RDMA_CM_EVENT_ADDR_CHANGE => What::AddressChange,
            rdma::RDMA_CM_EVENT_TIMEWAIT_EXIT => What::TimewaitExit,
            rdma::RDMA_CM_EVENT_MULTICAST_JOIN => What::GroupJoined,
            rdma::RDMA_CM_EVENT_MULTICAST_ERROR => What::GroupFailed,
            other => What::Other(other),
        }
    }
}

impl Happening {
    /// Why a connection is over, for a person. What the peer says in it is made harmless.
    pub(crate) fn explain(&self) -> String {
        let status = || status(self.status);
        match self.what {
            What::AddressError => format!("the address is not found: {}", status()),
            What::RouteError => format!("no route: {}", status()),
            What::ConnectError => format!("the connection was not made: {}", status()),
            What::Unreachable => format!("the peer does not answer: {}", status()),
            What::Rejected => match reason::from_peer(&self.private_data) {
                Some(text) => format!("rejected by the peer: {text}"),
                None => format!("rejected: {}", status()),
            },
            What::Disconnected => "the peer has left".to_owned(),
            What::DeviceRemoval => "the device is gone".to_owned(),
            What::AddressChange => "the address has moved to another device".to_owned(),
            What::AddressResolved
            | What::RouteResolved
            | What::Request
            | What::Established
            | What::TimewaitExit
            | What::GroupJoined
            | What::GroupFailed
            | What::Other(_) => format!("{:?}", self.what),
        }
    }
}

/// A status: negative, errno; positive, a reason of InfiniBand's CM REJ (volume 1, section
/// 12.6.7.2 of the architecture).
fn status(status: i32) -> String {
    let text = match status {
        0 => "no reason given",
        1 => "no queue pair available",
        3 => "no resources available",
        4 => "timed out",
        5 => "unsupported request",
        6 => "invalid communication id",
        7 => "invalid communication instance",
        8 => "nobody listens there",
        9 => "unsupported transport",
        10 => "stale connection",
        12 | 18 => "invalid GID",
        13 | 19 => "invalid LID",
        14 | 20 => "invalid service level",
        15 | 21 => "invalid traffic class",
        16 | 22 => "invalid hop limit",
        17 | 23 => "invalid packet rate",
        24 | 25 => "redirected",
        26 => "invalid path MTU",
        27 => "more RDMA Reads asked for than the peer can serve",
        28 => "the peer's program does not want it",
        29 => "invalid RNR retry count",
        30 => "duplicate communication id",
        31 => "invalid class version",
        32 | 33 => "invalid flow label",
        negative if negative < 0 => {
            return io::Error::from_raw_os_error(negative.saturating_neg()).to_string();
        }
        _ => return format!("reason {status}"),
    };
    format!("{text} (reason {status})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn happening(what: What, status: i32, private_data: &[u8]) -> String {
        Happening {
            number: 1,
            what,
            status,
            private_data: private_data.to_vec(),
            offer: Offer::default(),
            id: None,
            group: None,
        }
        .explain()
    }

    #[test]
    fn each_end_says_why() {
        assert_eq!(
            happening(What::Rejected, 8, &[0; 148]),
            "rejected: nobody listens there (reason 8)"
        );
        assert_eq!(
            happening(What::Rejected, -libc::ECONNREFUSED, &[]),
            "rejected: Connection refused (os error 111)"
        );
        assert_eq!(
            happening(
                What::Rejected,
                28,
                &reason::to_peer("not on the allow list")
            ),
            "rejected by the peer: not on the allow list"
        );
        assert_eq!(
            happening(What::AddressError, -libc::ENODEV, &[]),
            "the address is not found: No such device (os error 19)"
        );
        assert_eq!(
            happening(What::Unreachable, -libc::ETIMEDOUT, &[]),
            "the peer does not answer: Connection timed out (os error 110)"
        );
        assert_eq!(happening(What::Rejected, 99, &[]), "rejected: reason 99");
    }

    #[test]
    fn no_event_is_taken_for_another() {
        let mut seen = Vec::new();
        for event in rdma::RDMA_CM_EVENT_ADDR_RESOLVED..=rdma::RDMA_CM_EVENT_TIMEWAIT_EXIT {
            let what = What::from(event);
            assert!(!seen.contains(&what), "{what:?}");
            seen.push(what);
        }
        let others = seen.iter().filter(|what| matches!(what, What::Other(_)));
        // The response, which librdmacm keeps to itself.
        assert_eq!(others.count(), 1);
    }
}
