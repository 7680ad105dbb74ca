//! One port with all its links and groups: what comes goes in by a method, what is to be done comes out by
//! [`Node::take`].
//!
//! ```text
//!  MADs, frames, port facts,            ┌────────────────────────────────┐   MADs, frames,
//!  words of the device,        ───────► │ links ─ groups ─ subscriptions │ ──► queue pairs, attachments,
//!  commands, time                       │      transactions with the SA  │   datagrams, states, troubles
//!                                       └────────────────────────────────┘
//! ```
//!
//! **How to drive one.** After every call drain [`Node::take`]; call [`Node::pass`] when [`Node::wake`] says so. Outputs are
//! done in order. Each [`Output::Open`], [`Output::Attach`] and [`Output::Detach`] is answered once, in order, by
//! [`Node::queue_opened`], [`Node::attached`], [`Node::detached`]; a device that fails says so there.
//!
//! **What it believes.** Only what the SA has answered, and no longer than `verify_ms`. Whatever could mean that the SA has
//! forgotten this port makes everything doubtful, and doubt means to join again, which is idempotent: another LID, another
//! subnet manager or GID, another P_Key table, a port that came back, a client-reregister event, a record that is gone. An
//! unchanged LID of the subnet manager proves nothing; hence the looking up of one's own records.
//!
//! **The port is shared by nobody.** The SA keeps one record for a port and group. Another owner's FullMember (a kernel's
//! IPoIB on the same port and partition) is indistinguishable from this one's, and would be left with it.
//!
//! **Bounds.** Groups, addresses, waiting frames, requests on their way, reports a second, lines for the log a second: all
//! are [`Limits`](crate::settings::Limits). What is beyond is counted by kind in a [`Ledger`]. Nothing that
//! comes can make a node allocate more than they allow.
//!
//! **Where to read.** `groups` carries out what [`Group::next_step`](crate::group::Group::next_step) decides, `answers` takes
//! the SA's word on it, `links` moves links, `egress` sends, `reports` takes traps, `census` is the router's list, `addresses`
//! and `neighbours` are the unicast half.

mod addresses;
mod answers;
mod census;
mod changes;
mod device;
mod egress;
mod groups;
mod links;
mod neighbours;
mod output;
mod reports;
mod status;
mod subscriptions;
mod timers;

pub use addresses::AddressNews;
pub use egress::Fate;
pub use output::{AddressVector, Attachment, LinkId, MULTICAST_QPN, Opening, Origin, Output};
pub use status::{GroupStatus, LinkStatus, NodeStatus};

use crate::gid::Gid;
use crate::group::Group;
use crate::link::Link;
use crate::packet::Reject;
use crate::port::PortFacts;
use crate::sa::{Chance, Lane, Transactions};
use crate::settings::{LinkSpec, Settings};
use crate::time::{Bucket, Moment};
use crate::trouble::{Gauge, Ledger, Refusal, Resource, Trouble};
use rpcrdma_listed::Tally;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use subscriptions::Subscription;
use timers::Timer;

/// Links of a node at most.
pub const MAX_LINKS: usize = 64;

/// A group of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    link: LinkId,
    mgid: Gid,
}

/// Octets of state for a group: its entry and its timer in trees whose nodes may be half empty, and the count of its
/// attachments. What waits for a group comes to it, within its own limits.
pub const STATE_PER_GROUP_BYTES: usize =
    2 * (size_of::<(Key, Group)>() + size_of::<(Moment, Timer)>()) + size_of::<(Gid, u32)>();

const _: () = assert!(STATE_PER_GROUP_BYTES < 512);

/// Whom an answer of the SA is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// A link that looks for its broadcast group.
    Broadcast(LinkId),
    /// A group.
    Group(Key),
    /// The list of all groups.
    Census,
    /// One of the subscriptions.
    Subscription(u8),
    /// What the SA can do.
    Capabilities,
    /// The path from a link to a port.
    Path(LinkId, Gid),
}

/// A port with its links.
#[derive(Debug)]
pub struct Node {
    settings: Settings,
    chance: Chance,
    port: Option<PortFacts>,
    links: Vec<Link>,
    groups: BTreeMap<Key, Group>,
    timers: BTreeSet<(Moment, Timer)>,
    /// When the timer is due of something that there is one of.
    singles: BTreeMap<Timer, Moment>,
    sa: Transactions<Purpose>,
    subscriptions: [Subscription; 2],
    census: census::Census,
    /// The SA offers SendOnlyFullMember; `None` before it said.
    send_only_full: Option<bool>,
    ledger: Ledger,
    gauges: Gauges,
    reports: Bucket,
    /// Frames that were not taken.
    frames_refused: Tally<Reject>,
    /// Octets of frames that wait for groups.
    waiting_octets: usize,
    closing: Option<Moment>,
    closed: bool,
    outputs: VecDeque<Output>,
}

/// What is used of multicast resources.
#[derive(Debug)]
struct Gauges {
    memberships: Gauge,
    groups: Gauge,
    attachments: Gauge,
    /// By how many links' queue pairs each group is attached to.
    attached: BTreeMap<Gid, u32>,
}

impl Node {
    /// One without links, whose port is not known. `seed` decides its jitter and its transaction identifiers, which who
    /// answers in the SA's name must not guess.
    #[must_use]
    pub fn new(settings: Settings, seed: u64) -> Self {
        let limits = settings.limits;
        Self {
            chance: Chance::new(seed),
            port: None,
            links: Vec::new(),
            groups: BTreeMap::new(),
            timers: BTreeSet::new(),
            singles: BTreeMap::new(),
            sa: Transactions::new(settings.timing, &limits),
            subscriptions: [Subscription::new(66), Subscription::new(67)],
            census: census::Census::default(),
            send_only_full: None,
            ledger: Ledger::new(&limits),
            gauges: Gauges {
                memberships: Gauge::new(Resource::Memberships, u32::try_from(limits.groups).ok()),
                groups: Gauge::new(Resource::AttachedGroups, settings.device.groups),
                attachments: Gauge::new(Resource::Attachments, settings.device.attachments),
                attached: BTreeMap::new(),
            },
            reports: Bucket::new(limits.reports),
            frames_refused: Tally::default(),
            waiting_octets: 0,
            closing: None,
            closed: false,
            outputs: VecDeque::new(),
            settings,
        }
    }

    /// Adds a link, and begins to bring it up.
    ///
    /// # Errors
    /// [`Refusal::LimitedKey`] of a P_Key without full membership (link section 6), [`Refusal::LinksFull`] where there is no
    /// room or the same link already.
    pub fn add_link(&mut self, now: Moment, spec: LinkSpec) -> Result<LinkId, Refusal> {
        if !spec.p_key.is_full() || spec.p_key.partition() == 0 {
            return Err(self.ledger.refused(Refusal::LimitedKey));
        }
        let same = |link: &Link| (link.spec.p_key, link.spec.family) == (spec.p_key, spec.family);
        let free = u8::try_from(self.links.len()).ok();
        let free = free.filter(|_| self.links.len() < MAX_LINKS && !self.links.iter().any(same));
        let Some(number) = free else {
            return Err(self.ledger.refused(Refusal::LinksFull));
        };
        let mut link = Link::new(spec);
        if spec.router {
            // link section 7: created when the link is configured, if a router is attached to it
            link.addresses.insert(match spec.family {
                crate::mgid::Family::V4 => IpAddr::V4(Ipv4Addr::new(224, 0, 0, 2)),
                crate::mgid::Family::V6 => IpAddr::V6(Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 2)),
            });
        }
        self.links.push(link);
        if number == 0 {
            self.subscribe_again();
        }
        self.raise_links(now);
        self.settle(now);
        Ok(LinkId(number))
    }

    /// Joins the group of an address, on a link that need not be up yet. Told by [`Output::Member`] when it is joined; what
    /// fails is tried again until it is left.
    ///
    /// # Errors
    /// The address is no group's, the link none, or there are as many as may be.
    pub fn join(&mut self, now: Moment, link: LinkId, address: IpAddr) -> Result<(), Refusal> {
        let joined = self.try_join(now, link, address);
        self.settle(now);
        joined.map_err(|refusal| self.ledger.refused(refusal))
    }

    fn try_join(&mut self, now: Moment, id: LinkId, address: IpAddr) -> Result<(), Refusal> {
        if self.closing.is_some() {
            return Err(Refusal::Closing);
        }
        let all: usize = self.links.iter().map(|link| link.addresses.len()).sum();
        let limit = self.settings.limits.groups;
        let link = self.link_mut(id).ok_or(Refusal::UnknownLink)?;
        let mgid = link.group_of(address)?;
        if link.addresses.contains(&address) {
            return Ok(());
        }
        if all >= limit {
            return Err(Refusal::GroupsFull);
        }
        let usable = link.phase.is_usable();
        link.addresses.insert(address);
        match mgid {
            Some(mgid) if usable => {
                let commanded = self.command(now, Key { link: id, mgid }, 1);
                if let (Err(_), Some(link)) = (commanded, self.link_mut(id)) {
                    link.addresses.remove(&address);
                }
                commanded
            }
            _ => Ok(()),
        }
    }

    /// Leaves the group of an address.
    ///
    /// # Errors
    /// The link is none, or the address no group's; one that was not joined is left without a word.
    pub fn leave(&mut self, now: Moment, link: LinkId, address: IpAddr) -> Result<(), Refusal> {
        let left = self.try_leave(now, link, address);
        self.settle(now);
        left.map_err(|refusal| self.ledger.refused(refusal))
    }

    fn try_leave(&mut self, now: Moment, id: LinkId, address: IpAddr) -> Result<(), Refusal> {
        let link = self.link_mut(id).ok_or(Refusal::UnknownLink)?;
        let mgid = link.group_of(address)?;
        if !link.addresses.remove(&address) {
            return Ok(());
        }
        if let Some(mgid) = mgid {
            let key = Key { link: id, mgid };
            self.change(now, key, |group| {
                group.addresses = group.addresses.saturating_sub(1);
            });
            self.drive(now, key);
        }
        Ok(())
    }

    /// Leaves every group and ends the subscriptions; takes at most `close_ms`. See [`Node::is_closed`].
    pub fn close(&mut self, now: Moment) {
        if self.closing.is_some() {
            return;
        }
        let deadline = now.after(self.settings.timing.close_ms);
        self.closing = Some(deadline);
        self.timers.insert((deadline, Timer::Close));
        let goes_on = |it: &Purpose| matches!(it, Purpose::Group(_) | Purpose::Subscription(_));
        self.sa.forget(|purpose| !goes_on(purpose));
        self.stop_looking();
        for key in self.keys() {
            self.drive(now, key);
        }
        self.end_subscriptions();
        self.settle(now);
    }

    /// Everything was left, or there was no more time to; nothing will come out any more.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// The next thing to do. To be drained after every call.
    pub fn take(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Node::pass`] is to be called next; `None` while nothing depends on time.
    #[must_use]
    pub fn wake(&self) -> Option<Moment> {
        if self.closed {
            return None;
        }
        let timer = self.timers.first().map(|(due, _)| *due);
        let asked = self.can_ask().then(|| self.sa.wake()).flatten();
        timer.into_iter().chain(asked).min()
    }

    /// Failures, refusals and drops so far.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The SA can be asked.
    fn can_ask(&self) -> bool {
        self.port.as_ref().is_some_and(PortFacts::can_ask)
    }

    fn link(&self, id: LinkId) -> Option<&Link> {
        self.links.get(usize::from(id.0))
    }

    fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.get_mut(usize::from(id.0))
    }

    fn link_ids(&self) -> impl Iterator<Item = LinkId> + use<> {
        // MAX_LINKS bounds the list
        (0..u8::try_from(self.links.len()).unwrap_or(u8::MAX)).map(LinkId)
    }

    fn keys(&self) -> Vec<Key> {
        self.groups.keys().copied().collect()
    }

    fn keys_of(&self, link: LinkId) -> Vec<Key> {
        let first = Key {
            link,
            mgid: Gid([0; 16]),
        };
        let last = Key {
            link,
            mgid: Gid([0xFF; 16]),
        };
        let of = self.groups.range(first..=last);
        of.map(|(key, _)| *key).collect()
    }

    fn tell(&mut self, now: Moment, trouble: Trouble) {
        let told = self.ledger.tell(now, trouble);
        self.outputs.extend(told.map(Output::Trouble));
    }

    /// Looks for addresses where that is possible by now, sends what is to be asked now, and ends a close that is complete. The
    /// last thing that every call does.
    fn settle(&mut self, now: Moment) {
        self.watch_addresses(now);
        if let Some(port) = self.port.as_ref().filter(|port| port.can_ask()) {
            let (to, sl) = (port.sm_lid, port.sm_sl);
            while let Some(octets) = self.sa.next_datagram(now, &mut self.chance) {
                self.outputs.push_back(Output::Mad {
                    to,
                    sl,
                    bytes: octets.to_vec(),
                });
            }
        }
        self.finish_close(now);
    }
}

/// Links take turns by number, and what is nobody's takes turns with them.
const fn lane(purpose: &Purpose) -> Lane {
    match purpose {
        Purpose::Broadcast(link) | Purpose::Group(Key { link, .. }) | Purpose::Path(link, _) => {
            Lane(link.0)
        }
        Purpose::Census | Purpose::Subscription(_) | Purpose::Capabilities => Lane(u8::MAX),
    }
}
