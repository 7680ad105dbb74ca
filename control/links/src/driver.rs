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
use crate::pairs::{self, Pairs};
use rpcrdma_fabric::datagram::{AddressVector, Arrival, Datagrams, LinkChange, PairWanted, Unsent};
use rpcrdma_ipoib::gid::{Gid, Guid, Lid};
use rpcrdma_ipoib::mtu::Mtu;
use rpcrdma_ipoib::node::{LinkId, Node, Opening, Origin, Output};
use rpcrdma_ipoib::packet::{HardwareAddress, Udp};
use rpcrdma_ipoib::time::Moment;
use rpcrdma_umad::{Class, Event, Reply, Subnet, Target};
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
}

/// Makes the way to the SA again: after its device was gone.
pub(crate) type Reopen = Box<dyn FnMut() -> Result<Box<dyn Subnet + Send>, String> + Send>;

/// What does not say takes part in the smaller of the two MTUs that a link can have.
const MTU: Mtu = Mtu::M2048;
/// Events of the way to the SA taken in a turn: the rest of control comes to its own.
const EVENTS: usize = 256;
/// The way to the SA is tried again after so long, and so on.
const AGAIN: Duration = Duration::from_secs(1);

/// One port.
pub(crate) struct Driver {
    node: Node,
    clock: Clock,
    subnet: Box<dyn Subnet + Send>,
    /// `None`: groups are joined, and nothing is sent or received.
    pairs: Option<Box<dyn Pairs + Send>>,
    device: Option<String>,
    number: u8,
    /// By link.
    open: Vec<Option<Box<dyn Datagrams + Send>>>,
    frame: Vec<u8>,
    unsent: u64,
    reopen: Reopen,
    /// There is no way to the SA; the next attempt.
    ended: Option<Instant>,
    /// Events of the way to the SA were left for the next turn, which is due at once.
    more: Option<Instant>,
    /// When queue pairs that were gone were last made anew.
    renewed: Option<Instant>,
}

impl Driver {
    pub(crate) fn new(
        node: Node,
        clock: Clock,
        subnet: Box<dyn Subnet + Send>,
        pairs: Option<Box<dyn Pairs + Send>>,
        (device, number): (Option<String>, u8),
        reopen: Reopen,
    ) -> Self {
        Self {
            node,
            clock,
            subnet,
            pairs,
            device,
            number,
            open: Vec::new(),
            frame: Vec::new(),
            unsent: 0,
            reopen,
            ended: None,
            more: None,
            renewed: None,
        }
    }

    pub(crate) const fn node(&self) -> &Node {
        &self.node
    }

    /// The node, to be told something; [`Driver::work`] afterwards.
    pub(crate) fn tell(&mut self, tell: impl FnOnce(&mut Node, Moment), now: Instant) {
        tell(&mut self.node, self.clock.moment(now));
    }

    /// The octets of the frame that was told of last.
    pub(crate) fn frame(&self) -> &[u8] {
        &self.frame
    }

    /// Frames that could not be sent.
    pub(crate) const fn unsent(&self) -> u64 {
        self.unsent
    }

    /// The queue pair of a link.
    pub(crate) fn pair(&self, link: LinkId) -> Option<&(dyn Datagrams + Send)> {
        self.open.get(usize::from(link.0))?.as_deref()
    }

    /// The port's GUID, as far as it is known.
    pub(crate) fn guid(&self) -> Guid {
        self.subnet.facts().guid
    }

    /// Where a link's queue pair is.
    pub(crate) fn hardware(&self, link: LinkId) -> Option<HardwareAddress> {
        let facts = self.pair(link)?.facts();
        Some(HardwareAddress::datagrams(facts.queue_pair, Gid(facts.gid)))
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
        let mut changed = false;
        while let Some((name, change)) = self.pairs.as_mut().and_then(|pairs| pairs.change()) {
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
        self.ended.is_none() && self.open.iter().flatten().any(|pair| pair.is_gone())
    }

    /// When queue pairs are to be made anew.
    fn renewal(&self) -> Option<Instant> {
        let at_once = Instant::now;
        let next = || self.renewed.map_or_else(at_once, |last| last + AGAIN);
        self.has_gone().then(next)
    }

    fn try_again(&mut self, now: Instant, news: &mut impl FnMut(News)) {
        if self.ended.is_some_and(|due| due <= now) {
            self.ended = Some(now + AGAIN);
            if let Ok(way) = (self.reopen)() {
                self.subnet = way;
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
        let pair = self.open.get_mut(usize::from(link.0))?.as_mut()?;
        pair.receive(&mut self.frame)
    }

    /// Sends a frame to one port or group.
    pub(crate) fn send(&mut self, link: LinkId, to: &AddressVector, frame: &[u8]) {
        let pair = self.open.get_mut(usize::from(link.0));
        let sent = match pair.and_then(Option::as_mut) {
            Some(pair) => pair.send(frame, to),
            None => Err(Unsent::Gone),
        };
        if let Err(why) = sent {
            self.unsent += 1;
            debug!("link {}: a frame was not sent: {why}", link.0);
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let node = self.node.wake().and_then(|at| self.clock.instant(at));
        let all = node.into_iter().chain(self.ended).chain(self.more);
        all.chain(self.renewal()).min()
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let pairs = self.open.iter().flatten().map(|pair| pair.descriptor());
        let fabric = self.pairs.as_ref().and_then(|it| it.descriptor());
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
        let Some(pairs) = &mut self.pairs else {
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
        if self.open.len() <= place {
            self.open.resize_with(place + 1, || None);
        }
        match pairs.open(&wanted) {
            Ok(pair) => {
                let number = pair.facts().queue_pair;
                self.open[place] = Some(pair);
                Ok(number)
            }
            Err(failure) => {
                warn!("no queue pair in partition {}: {failure}", opening.p_key);
                Err(pairs::errno(&failure))
            }
        }
    }

    fn close(&mut self, link: LinkId) {
        if let Some(place) = self.open.get_mut(usize::from(link.0)) {
            *place = None;
        }
    }

    fn with_pair(
        &mut self,
        link: LinkId,
        act: impl FnOnce(&mut dyn Datagrams) -> Result<(), rpcrdma_fabric::datagram::Failure>,
    ) -> Result<(), i32> {
        if self.pairs.is_none() {
            return Ok(());
        }
        let pair = self.open.get_mut(usize::from(link.0));
        let Some(pair) = pair.and_then(Option::as_mut) else {
            return Err(19); // ENODEV
        };
        act(&mut **pair).map_err(|failure| {
            warn!("link {}: {failure}", link.0);
            pairs::errno(&failure)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemorySubnet;
    use rpcrdma_fabric::bell::Bell;
    use rpcrdma_fabric::datagram::DatagramFabric;
    use rpcrdma_ipoib::link::LinkState;
    use rpcrdma_ipoib::mgid::Family;
    use rpcrdma_ipoib::pkey::PKey;
    use rpcrdma_ipoib::settings::{Creation, LinkSpec, Settings};
    use rpcrdma_memory::MemoryFabric;
    use rpcrdma_umad::{Facts, Fault, PortState};
    use std::collections::VecDeque;

    /// A way that says what it was told to say.
    struct Played {
        facts: Facts,
        events: VecDeque<Event>,
        bell: Bell,
    }

    impl Played {
        fn new(state: PortState, mut events: VecDeque<Event>) -> Box<Self> {
            let facts = Facts {
                state,
                lid: Lid(5),
                lmc: 0,
                sm_lid: Lid(1),
                sm_sl: 0,
                gid_prefix: 0xFE80 << 48,
                guid: Guid(7),
                p_keys: vec![PKey::DEFAULT],
                capabilities: 0,
                rate_mbps: 0,
                mtu: None,
                is_infiniband: true,
            };
            events.push_front(Event::Facts(Box::new(facts.clone())));
            let bell = Bell::new().unwrap();
            Box::new(Self {
                facts,
                events,
                bell,
            })
        }
    }

    impl Subnet for Played {
        fn send(&mut self, _: Class, _: Target, _: &[u8], _: Reply) -> Result<(), Fault> {
            Ok(())
        }

        fn take(&mut self) -> Option<Event> {
            self.events.pop_front()
        }

        fn ask_facts(&mut self) {}

        fn facts(&self) -> &Facts {
            &self.facts
        }
    }

    impl AsFd for Played {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.bell.as_fd()
        }
    }

    #[test]
    fn a_storm_is_taken_in_portions() {
        let facts = Played::new(PortState::Active, VecDeque::new()).facts;
        let event = || Event::Facts(Box::new(facts.clone()));
        let way = Played::new(PortState::Active, (0..EVENTS).map(|_| event()).collect());
        let now = Instant::now();
        let node = Node::new(Settings::default(), 1);
        let reopen = Box::new(|| Err(String::new()));
        let mut driver = Driver::new(node, Clock::starting(now), way, None, (None, 1), reopen);
        driver.turn(now, &mut |_| {});
        assert_eq!(driver.deadline(), Some(now), "one is left");
        driver.turn(now, &mut |_| {});
        assert_eq!(driver.more, None);
    }

    #[test]
    fn a_port_that_was_gone_is_opened_again() {
        let ended = Event::Ended(Fault {
            call: "umad_recv",
            errno: 19,
        });
        let mut attempts = 0;
        let reopen = move || {
            attempts += 1;
            match attempts {
                1 => Err("still gone".to_owned()),
                _ => Ok(Played::new(PortState::Active, VecDeque::new()) as Box<dyn Subnet + Send>),
            }
        };
        let way = Played::new(PortState::Active, VecDeque::from([ended]));
        let mut now = Instant::now();
        let node = Node::new(Settings::default(), 1);
        let clock = Clock::starting(now);
        let place = (None, 1);
        let mut driver = Driver::new(node, clock, way, None, place, Box::new(reopen));
        let mut told = Vec::new();
        driver.turn(now, &mut |news| told.push(news));
        assert!(matches!(told[..], [News::Ended(_)]), "{told:?}");
        for again in [true, false] {
            let due = driver.ended.expect("tried again");
            assert_eq!(driver.deadline(), Some(due));
            now = due;
            driver.turn(now, &mut |_| {});
            assert_eq!(driver.ended.is_some(), again);
        }
    }

    /// A queue pair of a node that is no more.
    fn gone() -> Box<dyn Datagrams + Send> {
        let wanted = PairWanted {
            p_key: 0xFFFF,
            ..PairWanted::default()
        };
        Box::new(MemoryFabric::new().open_pair(&wanted).unwrap())
    }

    #[test]
    fn queue_pairs_that_are_gone_are_made_anew_once_a_second() {
        let mut subnet = MemorySubnet::new(vec![PKey::DEFAULT]);
        let (way, fabric) = subnet.add_port().unwrap();
        let start = Instant::now();
        let clock = Clock::starting(start);
        let mut driver = Driver::new(
            Node::new(Settings::default(), 1),
            clock,
            Box::new(way),
            Some(Box::new(fabric)),
            (None, 1),
            Box::new(|| Err("it never ends".to_owned())),
        );
        let spec = LinkSpec {
            p_key: PKey::DEFAULT,
            family: Family::V4,
            create: Some(Creation::default()),
            router: false,
        };
        let mut link = None;
        driver.tell(|node, at| link = node.add_link(at, spec).ok(), start);
        let link = link.unwrap();
        let mut now = start;
        let is_whole = |driver: &Driver| {
            let state = driver.node().link_status(link).map(|it| it.state);
            let pair = driver.pair(link).is_some_and(|pair| !pair.is_gone());
            pair && state == Some(LinkState::Up)
        };
        let until_whole = |driver: &mut Driver, now: &mut Instant| {
            let most = *now + Duration::from_secs(60);
            while !is_whole(driver) {
                assert!(*now < most, "{:?}", driver.node().link_status(link));
                *now += Duration::from_millis(10);
                driver.turn(*now, &mut |_| {});
            }
        };
        until_whole(&mut driver, &mut now);
        driver.open[usize::from(link.0)] = Some(gone());
        until_whole(&mut driver, &mut now);
        let first = driver.renewed.expect("it was gone");
        driver.open[usize::from(link.0)] = Some(gone());
        driver.turn(first + AGAIN / 2, &mut |_| {});
        assert_eq!(driver.renewed, Some(first), "not before its time");
        assert!(driver.deadline().is_some_and(|due| due <= first + AGAIN));
        until_whole(&mut driver, &mut now);
        assert!(driver.renewed >= Some(first + AGAIN));
    }
}
