//! A link on Ethernet (RoCE): no administrator, groups joined by the connection manager.
//!
//! | state of a group | told to join as | a datagram for it | the manager says joined | it says not | left |
//! |---|---|---|---|---|---|
//! | unknown | joining | joining as a sender; it waits | | | |
//! | joining | joining | waits | joined; what waited is sent | resting, as after a time without a word | unknown |
//! | joined | joined | sent | joined | resting | unknown |
//! | resting | resting | dropped | | | unknown |
//!
//! Resting ends after a pause, twice as long each time up to a limit; then it is joined again. There is nobody to ask whether a group exists, so
//! the egress rule (link section 9) is its first line and a send-only join. A membership as a sender ends when it was not used for a while.
//! The address of the interface is the operating system's: its ARP, its neighbours, its DHCP.
//!
//! A queue pair whose device is gone is dropped, with every membership; so is one whose GID, which is the interface's address, is not
//! where it was in the port's table. Another one is tried for, each second; it joins what was asked for.

use crate::pairs::Pairs;
use rpcrdma_fabric::datagram::{
    AddressVector, Arrival, DatagramCounts, Failure, FailureKind, LinkChange, LinkName, Membership,
    Memberships, PairFacts, Standing,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Groups at most.
pub(crate) const GROUPS: usize = 1024;
/// Frames that wait for one group at most.
const WAITING: usize = 16;
/// The first pause after a failure, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));
/// A membership as a sender ends after so long without a datagram.
const IDLE: Duration = Duration::from_secs(120);
/// The manager says within this time what became of a group, or it is not joined.
const ANSWER: Duration = Duration::from_secs(10);
/// A device that is gone is looked for again after so long, and so on.
const AGAIN: Duration = Duration::from_secs(1);

/// What a link stands on while its device and its address are there, dropped in this order.
pub(crate) struct Footing {
    pair: Box<dyn Memberships + Send>,
    /// Tells what becomes of the device.
    fabric: Box<dyn Pairs + Send>,
    /// The port is ready.
    up: bool,
    /// Where the GID that it sends from is in the port's table.
    gid_place: Option<usize>,
}

impl Footing {
    /// What cannot be read of the port is taken for well: if it is not, that is said later.
    pub(crate) fn new(pair: Box<dyn Memberships + Send>, fabric: Box<dyn Pairs + Send>) -> Self {
        let PairFacts {
            device, link, gid, ..
        } = pair.facts();
        let port = fabric.link(Some(device), *link);
        let gids = port.iter().flat_map(|port| &port.gids);
        let gid_place = gids.into_iter().position(|it| it == gid);
        Self {
            up: port.is_none_or(|port| port.up),
            gid_place,
            pair,
            fabric,
        }
    }

    /// Its GID is not where it was: what is sent would come from another address, or from none.
    fn has_moved(&self) -> bool {
        let PairFacts {
            device, link, gid, ..
        } = self.pair.facts();
        let now = self.fabric.link(Some(device), *link);
        let now = now.zip(self.gid_place);
        now.is_some_and(|(port, place)| port.gids.get(place) != Some(gid))
    }
}

/// Makes a footing again: after the device was gone.
pub(crate) type Reopen = Box<dyn FnMut() -> Result<Footing, String> + Send>;

/// Where a group is.
#[derive(Debug)]
enum State {
    Joining { until: Instant },
    Joined(AddressVector),
    Resting { until: Instant },
}

#[derive(Debug)]
struct Group {
    /// As what it is joined, or being joined: fully if it was asked for.
    membership: Membership,
    state: State,
    pause: Duration,
    used: Instant,
    waiting: VecDeque<Vec<u8>>,
    /// The log has that it is not joined.
    said: bool,
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
    /// The link's.
    name: String,
    /// Or why there is none.
    footing: Result<Footing, &'static str>,
    /// Of the queue pair, or the last one there was.
    facts: PairFacts,
    reopen: Reopen,
    /// The next attempt, when there is no footing.
    again: Option<Instant>,
    groups: BTreeMap<IpAddr, Group>,
    frame: Vec<u8>,
    counts: EthernetCounts,
    /// Of queue pairs that are gone.
    before: DatagramCounts,
    /// The log has that there are too many groups.
    full: bool,
}

impl Ethernet {
    pub(crate) fn new(name: &str, mut reopen: Reopen) -> Result<Self, String> {
        let footing = reopen()?;
        Ok(Self {
            name: name.to_owned(),
            facts: footing.pair.facts().clone(),
            footing: Ok(footing),
            reopen,
            again: None,
            groups: BTreeMap::new(),
            frame: Vec::new(),
            counts: EthernetCounts::default(),
            before: DatagramCounts::default(),
            full: false,
        })
    }

    pub(crate) const fn counts(&self) -> &EthernetCounts {
        &self.counts
    }

    /// What its queue pair is, or was.
    pub(crate) const fn facts(&self) -> &PairFacts {
        &self.facts
    }

    /// What came and went by its queue pairs, those that are gone included.
    pub(crate) fn pair_counts(&self) -> DatagramCounts {
        let mut counts = self.before;
        if let Ok(on) = &self.footing {
            counts.add(&on.pair.counts());
        }
        counts
    }

    /// Why it is down; `None` while it is up.
    pub(crate) const fn trouble(&self) -> Option<&'static str> {
        match &self.footing {
            Err(why) => Some(*why),
            Ok(Footing { up: false, .. }) => Some("its port is down"),
            Ok(_) => None,
        }
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let footing = self.footing.iter();
        footing.flat_map(|on| {
            [on.fabric.descriptor(), Some(on.pair.descriptor())]
                .into_iter()
                .flatten()
        })
    }

    /// Each group, as what it is joined or being joined, and whether it is.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (IpAddr, Membership, bool)> {
        self.groups.iter().map(|(address, group)| {
            let joined = matches!(group.state, State::Joined(_));
            (*address, group.membership, joined)
        })
    }

    /// Joins a group, to send and to receive: before anything is sent to it, since one that was joined to send alone stays so.
    pub(crate) fn join(&mut self, address: IpAddr, now: Instant) {
        if !self.groups.contains_key(&address) {
            self.begin(address, Membership::Full, now);
        }
    }

    fn leave(&mut self, address: IpAddr) {
        let Some(group) = self.groups.remove(&address) else {
            return;
        };
        let resting = matches!(group.state, State::Resting { .. });
        if !resting && let Err(failure) = self.forget(address) {
            self.counts.failed_leaves += 1;
            warn!(
                "link {}: group {address} was not left: {failure}",
                self.name
            );
        }
    }

    /// Has the manager leave a group. Where there is no queue pair there is no membership either.
    fn forget(&mut self, address: IpAddr) -> Result<(), Failure> {
        let on = self.footing.as_mut().ok();
        on.map_or(Ok(()), |on| on.pair.leave(address))
    }

    /// Sends a frame to a group.
    pub(crate) fn send_group(&mut self, address: IpAddr, frame: Vec<u8>, now: Instant) {
        if !self.groups.contains_key(&address) {
            self.begin(address, Membership::SendOnly, now);
        }
        let Some(group) = self.groups.get_mut(&address) else {
            self.counts.dropped += 1;
            return;
        };
        group.used = now;
        match group.state {
            State::Joined(to) => self.put(&to, &frame, true),
            State::Joining { .. } if group.waiting.len() < WAITING => {
                group.waiting.push_back(frame)
            }
            State::Joining { .. } | State::Resting { .. } => self.counts.dropped += 1,
        }
    }

    /// Sends a frame to one queue pair.
    pub(crate) fn send(&mut self, to: &AddressVector, frame: &[u8]) {
        self.put(to, frame, false);
    }

    fn put(&mut self, to: &AddressVector, frame: &[u8], to_group: bool) {
        match self.footing.as_mut().map(|on| on.pair.send(frame, to)) {
            Ok(Ok(())) => self.counts.sent += u64::from(to_group),
            Ok(Err(_)) | Err(_) => self.counts.unsent += 1,
        }
    }

    fn begin(&mut self, address: IpAddr, membership: Membership, now: Instant) {
        if self.groups.len() >= GROUPS {
            self.counts.failed_joins += 1;
            if !std::mem::replace(&mut self.full, true) {
                warn!(
                    "link {}: group {address} is not joined: there are {GROUPS} already",
                    self.name
                );
            }
            return;
        }
        self.full = false;
        let group = Group {
            membership,
            state: State::Joining {
                until: now + ANSWER,
            },
            pause: PAUSE.0,
            used: now,
            waiting: VecDeque::new(),
            said: false,
        };
        self.groups.insert(address, group);
        self.enter(address, now);
    }

    /// Has the manager join a group that is not.
    fn enter(&mut self, address: IpAddr, now: Instant) {
        let Some(group) = self.groups.get_mut(&address) else {
            return;
        };
        group.state = State::Joining {
            until: now + ANSWER,
        };
        let begun = match &mut self.footing {
            Ok(on) => on.pair.join(address, group.membership),
            Err(why) => Err(FailureKind::Gone.because(*why)),
        };
        if let Err(failure) = begun {
            self.failed(address, &failure, now);
        }
    }

    /// A group is not joined: said once until it is.
    fn failed(&mut self, address: IpAddr, failure: &Failure, now: Instant) {
        self.counts.failed_joins += 1;
        let Some(group) = self.groups.get_mut(&address) else {
            return;
        };
        if !std::mem::replace(&mut group.said, true) {
            warn!(
                "link {}: group {address} is not joined: {failure}",
                self.name
            );
        }
        self.counts.dropped += group.waiting.len() as u64;
        group.waiting.clear();
        let until = now + group.pause;
        group.state = State::Resting { until };
        group.pause = (group.pause * 2).min(PAUSE.1);
    }

    /// Takes the word of device and manager, tries again what rested long enough, leaves what is idle.
    pub(crate) fn turn(&mut self, now: Instant) {
        self.hear_device(now);
        self.stand_again(now);
        while let Some((address, standing)) = self.standing() {
            match standing {
                Standing::Joined(to) => self.joined(address, to),
                Standing::Failed(failure) => self.failed(address, &failure, now),
            }
        }
        // What rests without a queue pair is joined when there is one.
        if self.footing.is_ok() {
            let due: Vec<IpAddr> = self.due(now).collect();
            for address in due {
                self.retry_or_leave(address, now);
            }
        }
    }

    fn standing(&mut self) -> Option<(IpAddr, Standing)> {
        self.footing.as_mut().ok()?.pair.standing()
    }

    fn hear_device(&mut self, now: Instant) {
        let Ok(on) = &mut self.footing else {
            return;
        };
        let (mut gone, mut moved) = (false, false);
        while let Some((name, change)) = on.fabric.change() {
            match change {
                _ if !is_of(&name, &self.facts) => {}
                LinkChange::Up => on.up = true,
                LinkChange::Down => on.up = false,
                LinkChange::Gone => gone = true,
                LinkChange::Gids => moved = on.has_moved(),
                // InfiniBand's.
                LinkChange::Lid
                | LinkChange::SubnetManager
                | LinkChange::Reregister
                | LinkChange::PKeys => {}
            }
        }
        if gone || on.pair.is_gone() {
            self.fall("its device is gone", now);
        } else if moved {
            self.fall("its address is not the port's any more", now);
        }
    }

    /// Drops a queue pair that is gone, or of no use. What was joined to send alone is joined again by whoever sends.
    fn fall(&mut self, why: &'static str, now: Instant) {
        self.before = self.pair_counts();
        self.footing = Err(why);
        self.again = Some(now);
        let counts = &mut self.counts;
        self.groups.retain(|_, group| {
            counts.dropped += group.waiting.len() as u64;
            group.waiting.clear();
            group.state = State::Resting { until: now };
            group.is_wanted()
        });
    }

    fn stand_again(&mut self, now: Instant) {
        if self.again.is_none_or(|due| now < due) {
            return;
        }
        self.again = Some(now + AGAIN);
        let Ok(footing) = (self.reopen)() else {
            return;
        };
        self.facts = footing.pair.facts().clone();
        self.footing = Ok(footing);
        self.again = None;
        let all: Vec<IpAddr> = self.groups.keys().copied().collect();
        for address in all {
            self.enter(address, now);
        }
    }

    fn joined(&mut self, address: IpAddr, to: AddressVector) {
        let Some(group) = self.groups.get_mut(&address) else {
            return;
        };
        group.state = State::Joined(to);
        group.pause = PAUSE.0;
        group.said = false;
        info!("link {}: group {address} joined", self.name);
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
        if !group.is_wanted() && now.saturating_duration_since(group.used) >= IDLE {
            return self.leave(address);
        }
        if let State::Joining { .. } = group.state {
            // What the manager may still say of it comes too late.
            let _ = self.forget(address);
            let failure = FailureKind::NotJoined.because("the manager does not answer");
            return self.failed(address, &failure, now);
        }
        self.enter(address, now);
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let groups = self.groups.values().filter_map(Group::next);
        self.again.or_else(|| groups.min())
    }

    /// The next frame that came.
    pub(crate) fn receive(&mut self) -> Option<Arrival> {
        self.footing.as_mut().ok()?.pair.receive(&mut self.frame)
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
    /// It was asked for, and not joined because something was to be sent to it.
    fn is_wanted(&self) -> bool {
        self.membership == Membership::Full
    }

    /// When something is to be done about it.
    fn next(&self) -> Option<Instant> {
        match self.state {
            State::Joining { until } | State::Resting { until } => Some(until),
            State::Joined(_) if !self.is_wanted() => Some(self.used + IDLE),
            State::Joined(_) => None,
        }
    }
}

/// What was told of a link concerns the one that a queue pair is on.
fn is_of(name: &LinkName, pair: &PairFacts) -> bool {
    name.device == pair.device && (name.number == 0 || name.number == pair.link)
}

#[cfg(test)]
mod tests;
