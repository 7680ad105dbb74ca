//! The states of a neighbour (RFC 4861 section 7.3.2, and the same for ARP), with a path to be found. One enum, one pure
//! `next`; the whole table is in `tests/neighbour/states.txt`.

use super::way::{Route, Way};
use crate::gid::Gid;
use crate::packet::HardwareAddress;

/// Times that one question is asked (RFC 4861 section 10: MAX_MULTICAST_SOLICIT, MAX_UNICAST_SOLICIT).
pub const TRIES: u8 = 3;
/// Between two questions, in milliseconds (RFC 4861 RETRANS_TIMER; RFC 1122 section 2.3.2.1 wants no more than one a second).
const RETRY_MS: u64 = 1_000;
/// How long an answer is believed (RFC 4861 REACHABLE_TIME), and how long the SA has for a path.
const BELIEVED_MS: u64 = 30_000;
/// Until one that was heard of, and that is sent to, is asked itself (RFC 4861 DELAY_FIRST_PROBE_TIME).
const DELAY_MS: u64 = 5_000;

/// What is known of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Nothing: everybody was asked, so many times.
    Asked(u8),
    /// Its hardware address; the path to it is asked for.
    Routing {
        /// The address.
        hardware: HardwareAddress,
        /// It was the answer to a question, and not said without being asked.
        proven: bool,
    },
    /// The way to it, and that it is there.
    Known(Way),
    /// The way to it, by hearsay or of a while ago: it was asked itself, so many times.
    Doubted(Way, u8),
}

/// What happens to a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// It answered a question.
    Told(HardwareAddress),
    /// It was said to be there without being asked, and whether this is to replace what is known (the override flag of RFC
    /// 4861 section 4.4).
    Hinted(HardwareAddress, bool),
    /// The SA has told the path to its port.
    Routed(Route),
    /// The SA has no path, or does not answer.
    Unrouted,
    /// Its path may be another.
    Reroute,
    /// Its time has come.
    Due {
        /// Something was sent to it since the last time.
        used: bool,
    },
}

/// What is to be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// All, who has the address.
    Everybody,
    /// The neighbour, whether it is still there.
    Itself(Way),
    /// The SA, for the path to a port.
    Path(Gid),
}

/// What becomes of a neighbour, and what is to be asked; without a state it is forgotten.
type Next = (Option<State>, Option<Ask>);

impl State {
    /// What becomes of it.
    #[must_use]
    pub fn next(self, event: Event) -> Next {
        match event {
            Event::Told(hardware) => self.told(hardware),
            Event::Hinted(hardware, replaces) => self.hinted(hardware, replaces),
            Event::Routed(route) => self.routed(route),
            Event::Unrouted => self.unrouted(),
            Event::Reroute => self.reroute(),
            Event::Due { used } => self.due(used),
        }
    }

    fn told(self, hardware: HardwareAddress) -> Next {
        match self {
            Self::Routing { hardware: had, .. } if had.is_same(&hardware) => {
                let proven = true;
                (Some(Self::Routing { hardware, proven }), None)
            }
            Self::Known(way) | Self::Doubted(way, _) if way.hardware.is_same(&hardware) => {
                (Some(Self::Known(Way { hardware, ..way })), None)
            }
            _ => route_to(hardware, true),
        }
    }

    fn hinted(self, hardware: HardwareAddress, replaces: bool) -> Next {
        let had = self.hardware();
        match (self, replaces) {
            _ if had.is_some_and(|had| had.is_same(&hardware)) => (Some(self), None),
            (Self::Asked(_), _) | (_, true) => route_to(hardware, false),
            // Two say that they have the address: the one that was known is asked.
            (Self::Known(way), false) => doubt(way, 1),
            (Self::Routing { .. } | Self::Doubted(..), false) => (Some(self), None),
        }
    }

    const fn routed(self, route: Route) -> Next {
        let next = match self {
            Self::Routing { hardware, proven } => {
                let way = Way { hardware, route };
                if proven {
                    Self::Known(way)
                } else {
                    Self::Doubted(way, 0)
                }
            }
            Self::Asked(_) | Self::Known(_) | Self::Doubted(..) => self,
        };
        (Some(next), None)
    }

    const fn unrouted(self) -> Next {
        match self {
            Self::Routing { .. } => (None, None),
            Self::Asked(_) | Self::Known(_) | Self::Doubted(..) => (Some(self), None),
        }
    }

    const fn reroute(self) -> Next {
        match self {
            // What is asked already will be answered.
            Self::Asked(_) | Self::Routing { .. } => (Some(self), None),
            Self::Known(way) => route_to(way.hardware, true),
            Self::Doubted(way, _) => route_to(way.hardware, false),
        }
    }

    const fn due(self, used: bool) -> Next {
        match self {
            Self::Asked(tries) if tries < TRIES => {
                (Some(Self::Asked(tries + 1)), Some(Ask::Everybody))
            }
            Self::Asked(_) | Self::Routing { .. } => (None, None),
            Self::Known(_) | Self::Doubted(_, 0) if !used => (None, None),
            Self::Known(way) => doubt(way, 1),
            Self::Doubted(way, tries) if tries < TRIES => doubt(way, tries + 1),
            Self::Doubted(..) => (Some(Self::Asked(1)), Some(Ask::Everybody)),
        }
    }

    /// How long it stays so by itself, in milliseconds.
    #[must_use]
    pub const fn patience_ms(self) -> u64 {
        match self {
            Self::Asked(_) => RETRY_MS,
            Self::Routing { .. } | Self::Known(_) => BELIEVED_MS,
            Self::Doubted(_, 0) => DELAY_MS,
            Self::Doubted(..) => RETRY_MS,
        }
    }

    /// Its hardware address, as far as it is known.
    #[must_use]
    pub const fn hardware(self) -> Option<HardwareAddress> {
        match self {
            Self::Asked(_) => None,
            Self::Routing { hardware, .. } => Some(hardware),
            Self::Known(way) | Self::Doubted(way, _) => Some(way.hardware),
        }
    }

    /// The way to send to it.
    #[must_use]
    pub const fn way(self) -> Option<Way> {
        match self {
            Self::Asked(_) | Self::Routing { .. } => None,
            Self::Known(way) | Self::Doubted(way, _) => Some(way),
        }
    }

    /// What it is worth to be kept when others are to be known: that it has answered counts most.
    pub(super) const fn worth(self) -> u8 {
        match self {
            Self::Asked(_) => 0,
            Self::Routing { proven: false, .. } => 1,
            Self::Doubted(..) => 2,
            Self::Routing { proven: true, .. } | Self::Known(_) => 3,
        }
    }
}

const fn route_to(hardware: HardwareAddress, proven: bool) -> Next {
    let next = State::Routing { hardware, proven };
    (Some(next), Some(Ask::Path(hardware.gid)))
}

const fn doubt(way: Way, tries: u8) -> Next {
    (Some(State::Doubted(way, tries)), Some(Ask::Itself(way)))
}
