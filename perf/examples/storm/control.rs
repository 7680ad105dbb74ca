//! The control thread: a link of this process with many groups, and the storm of reports that it takes.
//!
//! Links are turned as the appliance's control thread turns them: when one of their descriptors is readable, or their deadline
//! has come. Reports come to them by the administrator's own way, each at its time, and ring the port's bell. The thread that
//! takes them is the one that puts them there: it is awake then anyway, and a second one on the same processor would take turns with it.
//!
//! Reports tell in turn of each group that it has gone, and then of each that it is there. All of them are members' own groups:
//! one that is taken up, and not merely counted, has the administrator asked.

use anyhow::{Context, Result, anyhow, ensure};
use hdrhistogram::Histogram;
use rpcrdma_config::link::Link;
use rpcrdma_config::{Machine, parse};
use rpcrdma_ipoib::gid::Gid;
use rpcrdma_ipoib::mad::Event;
use rpcrdma_ipoib::mgid::{Scope, of_address};
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_links::{Links, MemorySubnet};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long joining all groups may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest sleep: whether the storm is over is looked at no less often.
const ROUND: Duration = Duration::from_millis(100);
/// Longest delay told apart from longer ones, nanoseconds.
const LONGEST_NS: u64 = 60_000_000_000;

/// How much there is to take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storm {
    /// Groups joined as FullMember.
    pub(crate) groups: u32,
    /// Reports a second.
    pub(crate) per_second: u32,
}

/// What became of a storm.
pub(crate) struct Taken {
    /// How long it was.
    pub(crate) time: Duration,
    /// Of it, what control had the processor for.
    pub(crate) busy: Duration,
    /// Reports that came and were taken.
    pub(crate) reports: u64,
    /// Those that found the port's queue full.
    pub(crate) lost: u64,
    /// From when a report was due until it, and everything before it, was taken, nanoseconds.
    pub(crate) delay: Histogram<u64>,
    /// What limits and states kept from being done, by name.
    pub(crate) counted: BTreeMap<String, u64>,
}

/// Control.
pub(crate) struct Control {
    storm: Storm,
    subnet: MemorySubnet,
    links: Links,
    /// The groups, by their names in reports of the links.
    mgids: BTreeSet<String>,
    /// Each group goes, and each is there again.
    events: Vec<Event>,
    begun: Instant,
    /// Reports put, and those lost of them.
    put: u64,
    lost: u64,
    /// When those that wait were due.
    waiting: VecDeque<Instant>,
    delay: Histogram<u64>,
}

fn group(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0xEF00_0100 + number)
}

/// A link with these groups, as a configuration has it.
fn plan(groups: u32) -> Result<Vec<Link>> {
    let machine = Machine {
        cores: vec![0],
        status_socket: "/nonexistent".into(),
    };
    let text = "[[link]]\nname = 'storm'\nadministrator = true\nipv4 = '10.1.0.1/24'\n\
                [[service]]\nname = 's'\nlisten = 's'\n";
    let plan = parse("storm", text, &machine).map_err(|error| anyhow!("{error}"))?;
    let mut links = plan.links;
    let link = links.first_mut().context("a link")?;
    link.groups = (0..groups).map(|it| IpAddr::V4(group(it))).collect();
    Ok(links)
}

fn mgids(groups: u32) -> Result<Vec<Gid>> {
    let mgids = (0..groups).map(|number| {
        let address = IpAddr::V4(group(number));
        of_address(address, Scope::LINK_LOCAL, PKey::DEFAULT)
    });
    let mgids: Option<_> = mgids.collect();
    mgids.context("addresses that are no groups'")
}

impl Control {
    /// Brings up the link, and joins its groups.
    ///
    /// # Errors
    ///
    /// They are not all joined after a while.
    pub(crate) fn start(storm: Storm) -> Result<Self> {
        let begun = Instant::now();
        let mut subnet = MemorySubnet::new(vec![PKey::DEFAULT]);
        let links = Links::start_in(&mut subnet, &plan(storm.groups)?, begun)?;
        let mgids = mgids(storm.groups)?;
        let gone = mgids.iter().copied().map(Event::GroupDeleted);
        let there = mgids.iter().copied().map(Event::GroupCreated);
        let delay = Histogram::new_with_max(LONGEST_NS, 3);
        let mut control = Self {
            storm,
            subnet,
            links,
            mgids: mgids.iter().map(Gid::to_string).collect(),
            events: gone.chain(there).collect(),
            begun,
            put: 0,
            lost: 0,
            waiting: VecDeque::new(),
            delay: delay.map_err(|error| anyhow!("{error:?}"))?,
        };
        while control.joined() < storm.groups as usize {
            ensure!(
                begun.elapsed() < PATIENCE,
                "{} of {} groups are joined after {} s",
                control.joined(),
                storm.groups,
                PATIENCE.as_secs()
            );
            control.turn(Instant::now());
            control.sleep(control.links.deadline());
        }
        Ok(control)
    }

    /// How many of the groups are joined.
    fn joined(&self) -> usize {
        let reports = self.links.status();
        let groups = reports.iter().flat_map(|link| &link.groups);
        let members = groups.filter(|group| group.joined == "FullMember" && group.attached);
        members
            .filter(|group| self.mgids.contains(&group.group))
            .count()
    }

    /// Takes the storm, until it is over.
    ///
    /// # Errors
    ///
    /// Not all groups are joined at its end.
    pub(crate) fn run(mut self, over: &AtomicBool) -> Result<Taken> {
        let (busy, before) = (processor_time(), counted(&self.links));
        self.begun = Instant::now();
        while !over.load(Ordering::Relaxed) {
            let now = Instant::now();
            self.put_due(now);
            self.turn(now);
            self.took(Instant::now());
            self.sleep(Some(self.due(self.put)));
        }
        let time = self.begun.elapsed();
        let busy = processor_time().saturating_sub(busy);
        let (joined, groups) = (self.joined(), self.storm.groups);
        ensure!(
            joined >= groups as usize,
            "{joined} of {groups} groups are joined after the storm"
        );
        let left = u64::try_from(self.waiting.len()).unwrap_or(0);
        Ok(Taken {
            time,
            busy,
            reports: self.put - self.lost - left,
            lost: self.lost,
            delay: self.delay,
            counted: less(counted(&self.links), &before),
        })
    }

    /// When the report of this number is.
    fn due(&self, number: u64) -> Instant {
        let ns = number.saturating_mul(1_000_000_000) / u64::from(self.storm.per_second);
        self.begun + Duration::from_nanos(ns)
    }

    /// Has the reports come whose time it is.
    fn put_due(&mut self, now: Instant) {
        let mut due = self.due(self.put);
        while due <= now {
            let all = self.events.len() as u64;
            let place = usize::try_from(self.put % all).unwrap_or(0);
            if self.subnet.report(self.events[place]) == 0 {
                self.waiting.push_back(due);
            } else {
                self.lost += 1;
            }
            self.put += 1;
            due = self.due(self.put);
        }
    }

    fn turn(&mut self, now: Instant) {
        self.links.turn(now);
        while self.links.take().is_some() {}
    }

    /// Looks whether everything has been taken.
    fn took(&mut self, now: Instant) {
        if self.subnet.waiting() > 0 {
            return;
        }
        for due in self.waiting.drain(..) {
            let delay = now.saturating_duration_since(due).as_nanos();
            let delay = u64::try_from(delay).unwrap_or(u64::MAX);
            self.delay.saturating_record(delay);
        }
    }

    /// Sleeps until the links have something to do, or it is time.
    fn sleep(&self, until: Option<Instant>) {
        let now = Instant::now();
        let deadlines = until.into_iter().chain(self.links.deadline());
        let left = deadlines
            .map(|due| due.saturating_duration_since(now))
            .min();
        let left = left.map_or(ROUND, |left| left.min(ROUND));
        let watched = self.links.descriptors().into_iter();
        let mut watched: Vec<_> = watched
            .map(|link| PollFd::from_borrowed_fd(link, PollFlags::IN))
            .collect();
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(0),
            tv_nsec: left.subsec_nanos().into(),
        };
        // Interrupted, or out of memory for once: the next turn comes all the same.
        let _ = poll(&mut watched, Some(&left));
    }
}

/// What limits and states kept from being done.
fn counted(links: &Links) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    for link in links.status() {
        for (why, count) in &link.ignored {
            *counted.entry(format!("ignored {why}")).or_default() += count;
        }
        for (operation, why, count) in &link.failures {
            *counted.entry(format!("{operation} {why}")).or_default() += count;
        }
    }
    counted
}

/// What was added to counters since `before`.
fn less(
    mut counted: BTreeMap<String, u64>,
    before: &BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    for (what, count) in &mut counted {
        *count -= before.get(what).copied().unwrap_or(0);
    }
    counted.retain(|_, count| *count > 0);
    counted
}

/// What this thread has had of the processor.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
