//! Who this station is, what there may be, what is wanted, and why something was not done.

use super::State;
use super::way::Way;
use crate::gid::Gid;
use crate::mad::PathTemplate;
use crate::packet::HardwareAddress;
use crate::pkey::PKey;
use crate::settings::Limits;
use crate::time::Pace;
use rpcrdma_listed::{Tally, listed};
use std::net::IpAddr;

/// Who this station is on its link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Station {
    /// Its queue pair and its port, as they go into what it says.
    pub hardware: HardwareAddress,
    /// Its address. It decides between ARP and neighbour discovery.
    pub ip: IpAddr,
    /// The link's partition.
    pub p_key: PKey,
}

/// How much there may be of anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Neighbours at a time.
    pub neighbours: usize,
    /// Questions for this station's address are answered here, by the way to who asked. Otherwise they only teach: somebody
    /// else answers them, at the queue pair that they came from.
    pub answers: bool,
    /// Questions to everybody.
    pub asked: Pace,
    /// Answers to anybody.
    pub answered: Pace,
    /// Frames that wait: for one neighbour, and for all.
    pub waiting: Limits,
    /// A frame waits at most this long, in milliseconds.
    pub wait_ms: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            neighbours: 256,
            answers: true,
            asked: Pace {
                per_second: 50,
                burst: 100,
            },
            answered: Pace {
                per_second: 200,
                burst: 400,
            },
            waiting: Limits {
                waiting: 4,
                waiting_octets: 16 << 10,
                all_waiting_octets: 256 << 10,
                ..Limits::default()
            },
            wait_ms: 4_000,
        }
    }
}

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It goes now.
    Sent,
    /// It waits for the way.
    Waiting,
    /// It was dropped.
    Dropped(Lost),
}

/// Something for the owner to do, in the order in which it comes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send a frame to all of a group.
    Everybody {
        /// 255.255.255.255, which is the broadcast group, for ARP; a group of IPv6 for neighbour discovery.
        group: IpAddr,
        /// From the encapsulation header on.
        frame: Vec<u8>,
    },
    /// Send a frame to a neighbour.
    One {
        /// The way to it.
        way: Way,
        /// From the encapsulation header on.
        frame: Vec<u8>,
    },
    /// Ask the SA for a path; answered by [`Neighbours::routed`](super::Neighbours::routed) with the destination's GID.
    Path(PathTemplate),
    /// Somebody else says that this station's address is its own. One for each time that it says so.
    Conflict {
        /// The address.
        ip: IpAddr,
        /// Who says so.
        hardware: HardwareAddress,
    },
}

impl Output {
    /// Asks for a path by both ends and the partition; it has to be the way back too.
    pub(super) fn path(station: &Station, gid: Gid) -> Self {
        Self::Path(PathTemplate {
            dgid: Some(gid),
            sgid: Some(station.hardware.gid),
            reversible: Some(true),
            numb_path: Some(1),
            p_key: Some(station.p_key),
            ..PathTemplate::default()
        })
    }
}

listed! {
    /// Why a frame to a neighbour was not sent.
    pub Lost {
        /// The address is no other host's, or of the other IP.
        NotANeighbour,
        /// As many as may wait for it wait.
        Full,
        /// The way was not found in time.
        WaitedTooLong,
        /// Nobody has the address.
        Unanswered,
        /// There is no path to it.
        NoPath,
        /// Others were more worth being known.
        Evicted,
    }
}

impl Lost {
    /// Why frames are lost with a neighbour that is forgotten in this state.
    pub(super) const fn of(state: State) -> Self {
        match state {
            State::Routing { .. } => Self::NoPath,
            State::Asked(_) | State::Known(_) | State::Doubted(..) => Self::Unanswered,
        }
    }
}

listed! {
    /// Why something that came was not taken, or not answered.
    pub Unheard {
        /// It is neither ARP nor neighbour discovery, or of the other IP.
        OtherKind,
        /// It is this station's own.
        Own,
        /// It says that this station's address is its own.
        Conflict,
        /// Its hardware address is not that of who sent it.
        Impostor,
        /// It answers nothing that was asked, or tells of one that nobody wants to know of.
        NotAsked,
        /// More questions than the pace of answers allows.
        TooManyQuestions,
        /// More questions to everybody than their pace allows: not asked.
        NotAskedInTime,
    }
}

/// The state in which a neighbour is that was asked for just now.
pub(super) const FIRST: State = State::Asked(1);

/// What was lost and not taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames that were not sent, by reason.
    pub lost: Tally<Lost>,
    /// What came and was not taken, by reason.
    pub unheard: Tally<Unheard>,
}

impl Counts {
    /// Adds those of others.
    pub fn add(&mut self, other: &Self) {
        self.lost.add_all(&other.lost);
        self.unheard.add_all(&other.unheard);
    }
}
