//! Drives the node of one port: what it wants done is done, and what comes is told it.
//!
//! ```text
//!   way to the SA (Subnet) ──MADs, facts──►  ┌──────┐  ◄──answers── queue pairs (Pairs)
//!                          ◄──MADs─────────  │ Node │  ──frames──►
//!                                            └──────┘
//! ```
//!
//! It owns the queue pairs. What cannot be done is answered with an `errno`, and said to the log in full.

use crate::clock::Clock;
use crate::pairs::{self, QueuePairs};
use crate::words;
use rpcrdma_fabric::datagram::{
    AddressVector, Arrival, DatagramCounts, Datagrams, LinkChange, PairWanted, Unsent,
};
use rpcrdma_ipoib::gid::{Gid, Guid, Lid};
use rpcrdma_ipoib::mtu::Mtu;
use rpcrdma_ipoib::node::{LinkId, LinkStatus, Node, Opening, Origin, Output};
use rpcrdma_ipoib::packet::Udp;
use rpcrdma_ipoib::time::Moment;
use rpcrdma_umad::{Class, Event, Reply, Subnet, SubnetCounts, Target};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use tracing::{debug, warn};

/// How long a real kernel is to wait for the reply to a MAD: longer than the node does itself, so that none is thrown away
/// that it would still take.
const REPLY: Duration = Duration::from_secs(10);

/// Something that concerns whoever speaks IP on the links, or the log.
#[derive(Debug)]
pub(crate) enum News {
    /// See the node's output of this name.
    Node(Output),
    /// The way to the SA is gone: the port is opened again, each second until it is there.
    Ended(String),
    /// It is.
    Back,
    /// The port has another GUID: what is made of that is another one, too.
    OtherGuid,
}

/// Makes the way to the SA again: after its device was gone.
pub(crate) type Reopen = Box<dyn FnMut() -> Result<Box<dyn Subnet + Send>, String> + Send>;

/// What does not say takes part in the smaller of the two MTUs that a link can have.
const MTU: Mtu = Mtu::M2048;
/// Events of the way to the SA taken in a turn: the rest of control comes to its own.
const EVENTS: usize = 256;
/// The way to the SA is tried again after so long, and so on.
const AGAIN: Duration = Duration::from_secs(1);

/// A link's queue pair.
#[derive(Default)]
struct Queue {
    pair: Option<Box<dyn Datagrams + Send>>,
    /// What those before it have counted.
    before: DatagramCounts,
}

impl Queue {
    fn counts(&self) -> DatagramCounts {
        let mut counts = self.before;
        if let Some(pair) = &self.pair {
            counts.add(&pair.counts());
        }
        counts
    }

    /// Has another queue pair from now on, or none.
    fn set(&mut self, pair: Option<Box<dyn Datagrams + Send>>) {
        self.before = self.counts();
        self.pair = pair;
    }
}

/// One port.
pub(crate) struct Driver {
    node: Node,
    clock: Clock,
    subnet: Box<dyn Subnet + Send>,
    pairs: QueuePairs,
    device: Option<String>,
    number: u8,
    /// By link.
    queues: Vec<Queue>,
    frame: Vec<u8>,
    unsent: u64,
    /// What the ways to the SA before this one have counted.
    before: SubnetCounts,
    reopen: Reopen,
    /// The port's GUID, as it was last told of.
    guid: Guid,
    /// There is no way to the SA; the next attempt.
    ended: Option<Instant>,
    /// Events of the way to the SA were left for the next turn, which is due at once.
    more: Option<Instant>,
    /// When queue pairs that were gone were last made anew.
    renewed: Option<Instant>,
    /// The time, as it was told last.
    turned: Instant,
}

impl Driver {
    pub(crate) fn new(
        node: Node,
        clock: Clock,
        subnet: Box<dyn Subnet + Send>,
        pairs: QueuePairs,
        (device, number): (Option<String>, u8),
        reopen: Reopen,
    ) -> Self {
        let driver = Self {
            guid: subnet.facts().guid,
            node,
            clock,
            subnet,
            pairs,
            device,
            number,
            queues: Vec::new(),
            frame: Vec::new(),
            unsent: 0,
            before: SubnetCounts::default(),
            reopen,
            ended: None,
            more: None,
            renewed: None,
            turned: clock.start(),
        };
        driver.warn_if_deaf();
        driver
    }

    /// Without reports a group that is made later is found by asking alone.
    fn warn_if_deaf(&self) {
        if !self.subnet.hears_reports() {
            warn!(
                "port {}: another program of this host has its subnet administrator's reports: groups that come and go are \
                 found by asking alone",
                self.number
            );
        }
    }

    pub(crate) const fn node(&self) -> &Node {
        &self.node
    }

    /// The node, to be told something; [`Driver::work`] afterwards.
    pub(crate) fn tell(&mut self, tell: impl FnOnce(&mut Node, Moment), now: Instant) {
        tell(&mut self.node, self.clock.moment(now));
    }

    /// Frames that could not be sent.
    pub(crate) const fn unsent(&self) -> u64 {
        self.unsent
    }

    /// The queue pair of a link.
    pub(crate) fn pair(&self, link: LinkId) -> Option<&(dyn Datagrams + Send)> {
        self.queues.get(usize::from(link.0))?.pair.as_deref()
    }

    /// What came and went by a link's queue pairs.
    pub(crate) fn pair_counts(&self, link: LinkId) -> DatagramCounts {
        let queue = self.queues.get(usize::from(link.0));
        queue.map(Queue::counts).unwrap_or_default()
    }

    /// Management datagrams that came and were not handed out.
    pub(crate) fn subnet_counts(&self) -> SubnetCounts {
        let now = self.subnet.counts();
        SubnetCounts {
            dropped: self.before.dropped + now.dropped,
            strays: self.before.strays + now.strays,
        }
    }

    /// The port's GUID, as far as it is known.
    pub(crate) fn guid(&self) -> Guid {
        self.subnet.facts().guid
    }

    /// The way back to where a frame came from.
    pub(crate) fn way_back(&self, link: LinkId, from: &Arrival) -> AddressVector {
        let q_key = self.pair(link).map_or(0, |pair| pair.facts().q_key);
        AddressVector::reply(from, q_key)
    }

    /// Tells the node of the frame that was received last; the datagram in it. [`Driver::work`] afterwards.
    pub(crate) fn frame_came(
        &mut self,
        link: LinkId,
        from: &Arrival,
        now: Instant,
    ) -> Option<Udp<'_>> {
        let origin = Origin {
            lid: Lid(from.lid),
            gid: from.gid.map(Gid),
            group: from.to.filter(|_| from.is_multicast()).map(Gid),
            qpn: from.queue_pair,
        };
        let now = self.clock.moment(now);
        self.node.frame_came(now, link, &origin, &self.frame)
    }

    /// Takes what came from the SA and the devices, and lets time pass. Frames are taken apart, by [`Driver::receive`].
    pub(crate) fn turn(&mut self, now: Instant, news: &mut impl FnMut(News)) {
        let moment = self.clock.moment(now);
        self.turned = now;
        self.try_again(now, news);
        self.more = Some(now);
        for _ in 0..EVENTS {
            let Some(event) = self.subnet.take() else {
                self.more = None;
                break;
            };
            if let Event::Ended(fault) = &event {
                self.ended = Some(now + AGAIN);
                news(News::Ended(fault.to_string()));
            }
            self.heard(event, moment);
        }
        let guid = self.guid();
        if std::mem::replace(&mut self.guid, guid) != guid {
            news(News::OtherGuid);
        }
        let mut changed = false;
        while let Some((name, change)) = self.pairs.change() {
            let device = self.device.as_deref().is_none_or(|it| it == name.device);
            if device && (name.number == 0 || name.number == self.number) {
                changed = true;
                self.changed(change, moment);
            }
        }
        if changed {
            self.subnet.ask_facts();
        }
        self.renew(now, news);
        if self.node.wake().is_some_and(|due| due <= moment) {
            self.node.pass(moment);
        }
        self.work(now, news);
    }

    /// Has the node make queue pairs that are gone anew: it drops them when the port is in no partition, which it then is
    /// in again. A way to the SA that has ended says so itself.
    fn renew(&mut self, now: Instant, news: &mut impl FnMut(News)) {
        if !self.has_gone() || self.renewed.is_some_and(|last| now < last + AGAIN) {
            return;
        }
        self.renewed = Some(now);
        warn!(
            "port {}: a queue pair is gone: it is made anew",
            self.number
        );
        let moment = self.clock.moment(now);
        let facts = self.subnet.facts().for_node(MTU);
        let mut none = facts.clone();
        none.p_keys.clear();
        self.node.port_is(moment, none);
        self.work(now, news);
        self.node.port_is(moment, facts);
    }

    /// A queue pair is gone, and its port is not known to be.
    fn has_gone(&self) -> bool {
        self.ended.is_none() && self.open_pairs().any(|pair| pair.is_gone())
    }

    fn open_pairs(&self) -> impl Iterator<Item = &(dyn Datagrams + Send)> {
        self.queues.iter().filter_map(|queue| queue.pair.as_deref())
    }

    /// When queue pairs are to be made anew.
    fn renewal(&self) -> Option<Instant> {
        let next = self.renewed.map_or(self.turned, |last| last + AGAIN);
        self.has_gone().then_some(next)
    }

    fn try_again(&mut self, now: Instant, news: &mut impl FnMut(News)) {
        if self.ended.is_some_and(|due| due <= now) {
            self.ended = Some(now + AGAIN);
            if let Ok(way) = (self.reopen)() {
                self.before = self.subnet_counts();
                self.subnet = way;
                self.warn_if_deaf();
                self.ended = None;
                news(News::Back);
            }
        }
    }

    fn heard(&mut self, event: Event, now: Moment) {
        match event {
            Event::Arrived(came) if came.class == Class::Administration => {
                self.node.mad_came(now, came.source.lid, &came.mad);
            }
            // The node's own timers say when an answer is late.
            Event::Arrived(_) | Event::Undelivered { .. } => {}
            Event::Facts(facts) => self.node.port_is(now, facts.for_node(MTU)),
            // A port that is gone is in no partition: its links fall, and their queue pairs go with it.
            Event::Ended(_) => {
                let mut facts = self.subnet.facts().for_node(MTU);
                facts.p_keys.clear();
                self.node.port_is(now, facts);
            }
        }
    }

    fn changed(&mut self, change: LinkChange, now: Moment) {
        match change {
            LinkChange::Reregister => self.node.reregister(now),
            // What has changed is in the facts.
            LinkChange::Down
            | LinkChange::Up
            | LinkChange::Lid
            | LinkChange::SubnetManager
            | LinkChange::PKeys
            | LinkChange::Gids
            | LinkChange::Gone => {}
        }
    }

    /// Does what the node wants done. The last step of whatever was told it.
    pub(crate) fn work(&mut self, now: Instant, news: &mut impl FnMut(News)) {
        let now = self.clock.moment(now);
        while let Some(output) = self.node.take() {
            match output {
                Output::Mad { to, sl, bytes } => self.send_mad(to, sl, &bytes),
                Output::Open(opening) => self.open(&opening, now),
                Output::Close { link } => self.close(link),
                Output::Attach(to) => {
                    let group = pairs::group(&to);
                    let done = self.with_pair(to.link, |pair| pair.attach(group));
                    self.node.attached(now, to, done);
                }
                Output::Detach(from) => {
                    let group = pairs::group(&from);
                    let done = self.with_pair(from.link, |pair| pair.detach(group));
                    self.node.detached(now, from, done);
                }
                Output::Frame { link, to, bytes } => {
                    self.send(link, &pairs::address_vector(&to), &bytes);
                }
                other => news(News::Node(other)),
            }
        }
    }

    /// The next frame of a link that came; `false`: no more.
    pub(crate) fn receive(&mut self, link: LinkId) -> Option<Arrival> {
        let queue = self.queues.get_mut(usize::from(link.0))?;
        queue.pair.as_mut()?.receive(&mut self.frame)
    }

    /// Sends a frame to one port or group.
    pub(crate) fn send(&mut self, link: LinkId, to: &AddressVector, frame: &[u8]) {
        let queue = self.queues.get_mut(usize::from(link.0));
        let sent = match queue.and_then(|queue| queue.pair.as_mut()) {
            Some(pair) => pair.send(frame, to),
            None => Err(Unsent::Gone),
        };
        if let Err(why) = sent {
            self.unsent += 1;
            debug!("{}: a frame was not sent: {why}", self.of(link));
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let node = self.node.wake().and_then(|at| self.clock.instant(at));
        let all = node.into_iter().chain(self.ended).chain(self.more);
        all.chain(self.renewal()).min()
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let pairs = self.open_pairs().map(|pair| pair.descriptor());
        let fabric = self.pairs.descriptor();
        pairs.chain(fabric).chain([self.subnet.as_fd()])
    }

    fn send_mad(&mut self, to: Lid, sl: u8, mad: &[u8]) {
        let target = Target { lid: to, sl };
        let sent = self
            .subnet
            .send(Class::Administration, target, mad, Reply::Within(REPLY));
        if let Err(fault) = sent {
            debug!("a management datagram was not sent: {fault}");
        }
    }

    fn open(&mut self, opening: &Opening, now: Moment) {
        let made = self.make(opening);
        self.node.queue_opened(now, opening.link, made);
    }

    fn make(&mut self, opening: &Opening) -> Result<u32, i32> {
        let Some(pairs) = self.pairs.maker() else {
            return Ok(0);
        };
        let wanted = PairWanted {
            device: self.device.clone(),
            link: self.number,
            p_key: opening.p_key.0,
            q_key: opening.q_key.0,
            ..PairWanted::default()
        };
        let place = usize::from(opening.link.0);
        if self.queues.len() <= place {
            self.queues.resize_with(place + 1, Queue::default);
        }
        match pairs.open(&wanted) {
            Ok(pair) => {
                let number = pair.facts().queue_pair;
                self.queues[place].set(Some(pair));
                Ok(number)
            }
            Err(failure) => {
                warn!("no queue pair in partition {}: {failure}", opening.p_key);
                Err(pairs::errno(&failure))
            }
        }
    }

    fn close(&mut self, link: LinkId) {
        if let Some(queue) = self.queues.get_mut(usize::from(link.0)) {
            queue.set(None);
        }
    }

    fn with_pair(
        &mut self,
        link: LinkId,
        act: impl FnOnce(&mut dyn Datagrams) -> Result<(), rpcrdma_fabric::datagram::Failure>,
    ) -> Result<(), i32> {
        if self.pairs.made_by().is_none() {
            return Ok(());
        }
        let queue = self.queues.get_mut(usize::from(link.0));
        let Some(pair) = queue.and_then(|queue| queue.pair.as_mut()) else {
            return Err(19); // ENODEV
        };
        act(&mut **pair).map_err(|failure| {
            warn!("{}: {failure}", self.of(link));
            pairs::errno(&failure)
        })
    }

    /// What a link is called in the log.
    fn of(&self, link: LinkId) -> String {
        match self.node.link_status(link) {
            Some(LinkStatus { spec, .. }) => {
                format!("partition {}, {}", spec.p_key, words::ip(spec.family))
            }
            None => format!("port {}", self.number),
        }
    }
}

#[cfg(test)]
mod tests;
