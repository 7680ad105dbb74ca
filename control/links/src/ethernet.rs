//! A link on Ethernet (RoCE): no administrator, groups joined by the connection manager.
//!
//! | state of a group | told to join as | a datagram for it | the manager says joined | it says not | left |
//! |---|---|---|---|---|---|
//! | unknown | joining | joining as a sender; it waits | | | |
//! | joining | joining | waits | joined; what waited is sent | resting | unknown |
//! | joined | joined, anew where it was as a sender alone | sent | joined | resting | unknown |
//! | resting | resting | dropped | | | unknown |
//!
//! Resting ends after a pause, twice as long each time up to a limit; then it is joined again. There is nobody to ask whether a group exists, so
//! the egress rule (link section 9) is its first line and a send-only join. A membership as a sender ends when it was not used for a while.
//! The address of the interface is the operating system's: its ARP, its neighbours, its DHCP.

use rpcrdma_fabric::datagram::{
    AddressVector, Arrival, Datagrams, Failure, Membership, Memberships, Standing,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Groups at most.
const GROUPS: usize = 1024;
/// Frames that wait for one group at most.
const WAITING: usize = 16;
/// The first pause after a failure, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));
/// A membership as a sender ends after so long without a datagram.
const IDLE: Duration = Duration::from_secs(120);

/// Where a group is.
#[derive(Debug)]
enum State {
    Joining,
    Joined(AddressVector),
    Resting { until: Instant },
}

#[derive(Debug)]
struct Group {
    /// Asked for; else it is joined to send alone.
    wanted: bool,
    /// As what it is joined, or being joined.
    membership: Membership,
    state: State,
    pause: Duration,
    used: Instant,
    waiting: VecDeque<Vec<u8>>,
}

/// What became of frames and joins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EthernetCounts {
    /// Frames sent to groups.
    pub(crate) sent: u64,
    /// Frames dropped: the group was not joined, or too many waited.
    pub(crate) dropped: u64,
    /// Frames that the queue pair did not take.
    pub(crate) unsent: u64,
    /// Joins that failed.
    pub(crate) failed_joins: u64,
    /// Leaves that failed.
    pub(crate) failed_leaves: u64,
}

/// A link, and its queue pair.
pub(crate) struct Ethernet {
    pair: Box<dyn Memberships + Send>,
    groups: BTreeMap<IpAddr, Group>,
    frame: Vec<u8>,
    counts: EthernetCounts,
}

impl Ethernet {
    pub(crate) fn new(pair: Box<dyn Memberships + Send>) -> Self {
        Self {
            pair,
            groups: BTreeMap::new(),
            frame: Vec::new(),
            counts: EthernetCounts::default(),
        }
    }

    pub(crate) const fn counts(&self) -> &EthernetCounts {
        &self.counts
    }

    pub(crate) fn pair(&self) -> &dyn Datagrams {
        &*self.pair
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.pair.descriptor()
    }

    /// Each group, as what it is joined or being joined, and whether it is.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (IpAddr, Membership, bool)> {
        self.groups.iter().map(|(address, group)| {
            let joined = matches!(group.state, State::Joined(_));
            (*address, group.membership, joined)
        })
    }

    /// Joins a group, to send and to receive.
    pub(crate) fn join(&mut self, address: IpAddr, now: Instant) {
        match self.groups.get_mut(&address) {
            Some(group) if group.membership == Membership::Full => group.wanted = true,
            // One membership of a group at a time: the lesser one first goes.
            Some(_) => {
                self.leave(address);
                self.begin(address, Membership::Full, true, now);
            }
            None => self.begin(address, Membership::Full, true, now),
        }
    }

    fn leave(&mut self, address: IpAddr) {
        let Some(group) = self.groups.remove(&address) else {
            return;
        };
        let resting = matches!(group.state, State::Resting { .. });
        if !resting && let Err(failure) = self.pair.leave(address) {
            self.counts.failed_leaves += 1;
            warn!("group {address} was not left: {failure}");
        }
    }

    /// Sends a frame to a group.
    pub(crate) fn send_group(&mut self, address: IpAddr, frame: Vec<u8>, now: Instant) {
        if !self.groups.contains_key(&address) {
            self.begin(address, Membership::SendOnly, false, now);
        }
        let Some(group) = self.groups.get_mut(&address) else {
            self.counts.dropped += 1;
            return;
        };
        group.used = now;
        match group.state {
            State::Joined(to) => self.put(&to, &frame, true),
            State::Joining if group.waiting.len() < WAITING => group.waiting.push_back(frame),
            State::Joining | State::Resting { .. } => self.counts.dropped += 1,
        }
    }

    /// Sends a frame to one queue pair.
    pub(crate) fn send(&mut self, to: &AddressVector, frame: &[u8]) {
        self.put(to, frame, false);
    }

    fn put(&mut self, to: &AddressVector, frame: &[u8], to_group: bool) {
        match self.pair.send(frame, to) {
            Ok(()) => self.counts.sent += u64::from(to_group),
            Err(_) => self.counts.unsent += 1,
        }
    }

    fn begin(&mut self, address: IpAddr, membership: Membership, wanted: bool, now: Instant) {
        if self.groups.len() >= GROUPS {
            self.counts.failed_joins += 1;
            return warn!("group {address} is not joined: there are {GROUPS} already");
        }
        let group = Group {
            wanted,
            membership,
            state: State::Joining,
            pause: PAUSE.0,
            used: now,
            waiting: VecDeque::new(),
        };
        self.groups.insert(address, group);
        if let Err(failure) = self.pair.join(address, membership) {
            self.failed(address, &failure, now);
        }
    }

    fn failed(&mut self, address: IpAddr, failure: &Failure, now: Instant) {
        self.counts.failed_joins += 1;
        warn!("group {address} is not joined: {failure}");
        let Some(group) = self.groups.get_mut(&address) else {
            return;
        };
        self.counts.dropped += group.waiting.len() as u64;
        group.waiting.clear();
        let until = now + group.pause;
        group.state = State::Resting { until };
        group.pause = (group.pause * 2).min(PAUSE.1);
    }

    /// Takes the manager's word, tries again what rested long enough, leaves what is idle.
    pub(crate) fn turn(&mut self, now: Instant) {
        while let Some((address, standing)) = self.pair.standing() {
            match standing {
                Standing::Joined(to) => self.joined(address, to),
                Standing::Failed(failure) => self.failed(address, &failure, now),
            }
        }
        let due: Vec<IpAddr> = self.due(now).collect();
        for address in due {
            self.retry_or_leave(address, now);
        }
    }

    fn joined(&mut self, address: IpAddr, to: AddressVector) {
        let Some(group) = self.groups.get_mut(&address) else {
            return;
        };
        group.state = State::Joined(to);
        group.pause = PAUSE.0;
        info!("group {address} joined");
        for frame in std::mem::take(&mut group.waiting) {
            self.put(&to, &frame, true);
        }
    }

    fn due(&self, now: Instant) -> impl Iterator<Item = IpAddr> {
        let due = move |group: &Group| group.next().is_some_and(|at| at <= now);
        let due = self.groups.iter().filter(move |(_, group)| due(group));
        due.map(|(address, _)| *address)
    }

    fn retry_or_leave(&mut self, address: IpAddr, now: Instant) {
        let Some(group) = self.groups.get_mut(&address) else {
            return;
        };
        if !group.wanted && now.saturating_duration_since(group.used) >= IDLE {
            return self.leave(address);
        }
        group.state = State::Joining;
        let membership = group.membership;
        if let Err(failure) = self.pair.join(address, membership) {
            self.failed(address, &failure, now);
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.groups.values().filter_map(Group::next).min()
    }

    /// The next frame that came.
    pub(crate) fn receive(&mut self) -> Option<Arrival> {
        self.pair.receive(&mut self.frame)
    }

    /// Its octets.
    pub(crate) fn frame(&self) -> &[u8] {
        &self.frame
    }

    /// Leaves everything.
    pub(crate) fn close(&mut self) {
        let all: Vec<IpAddr> = self.groups.keys().copied().collect();
        for address in all {
            self.leave(address);
        }
    }
}

impl Group {
    /// When something is to be done about it.
    fn next(&self) -> Option<Instant> {
        match self.state {
            State::Resting { until } => Some(until),
            State::Joined(_) if !self.wanted => Some(self.used + IDLE),
            State::Joined(_) | State::Joining => None,
        }
    }
}
