//! A subnet on one thread: nodes, subnet managers, the network between them, a clock that jumps from event to event.

use crate::device::Device;
use crate::plan::{Act, LONGEST_DELAY_MS, Weather};
use rpcrdma_ipoib::gid::{Gid, Guid, Lid};
use rpcrdma_ipoib::group::{Attributes, naming};
use rpcrdma_ipoib::join::JoinState;
use rpcrdma_ipoib::mad::{
    Event, Mad, McMember, McMemberTemplate, Method, Notice, Status, TABLE_BYTES, Tid, emit,
};
use rpcrdma_ipoib::mgid::{Family, Scope, broadcast, of_address};
use rpcrdma_ipoib::mtu::Mtu;
use rpcrdma_ipoib::node::{Attachment, LinkId, Node, Origin, Output};
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_ipoib::port::PortFacts;
use rpcrdma_ipoib::sa::Chance;
use rpcrdma_ipoib::settings::{Creation, Limits, LinkSpec, Settings, Timing};
use rpcrdma_ipoib::small_sa::{Capacity, Partition, SmallSa, SubnetPort};
use rpcrdma_ipoib::time::{Moment, Pace};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub(crate) const NODES: usize = 3;
const STRANGER: Lid = Lid(90);
const PREFIX: u64 = 0xFE80_0000_0000_0000;
pub(crate) const SIX: PKey = PKey(0x8006);

/// Times short enough to see each of them pass often; none is shorter than a datagram's way.
pub(crate) const TIMING: Timing = Timing {
    reply_ms: 200,
    pause_ms: 1_500,
    tries: 4,
    verify_ms: 4_000,
    cache_ms: 3_000,
    idle_ms: 5_000,
    wait_ms: 1_000,
    linger_ms: 2 * LONGEST_DELAY_MS + 200,
    close_ms: 60_000,
    check_ms: 300,
    probes: 3,
    again_ms: 500,
};

/// Something on its way.
pub(crate) enum Post {
    /// A datagram to a subnet manager.
    ToSa(usize, Lid, Vec<u8>),
    /// A datagram to a node, from a LID.
    ToNode(usize, Lid, Vec<u8>),
    /// A frame to a node's queue pair of a link.
    Frame(usize, LinkId, Origin, Vec<u8>),
    /// A port changes: up or down.
    Port(usize, bool),
    /// A port is in the second partition again.
    Readmit(usize),
    /// A node learns what its port is like.
    Learn(usize),
    /// A node's device has done what it was told.
    Word(usize, Word),
    /// A node's user has changed its mind.
    Leave(usize, LinkId, IpAddr),
    /// A node is told to register anew.
    Reregister(usize),
}

/// What a device says.
pub(crate) enum Word {
    Opened(LinkId, Result<u32, i32>),
    Attached(Attachment, Result<(), i32>),
    Detached(Attachment, Result<(), i32>),
}

/// A node with its port, its device, and what its users want.
pub(crate) struct Seat {
    pub(crate) node: Node,
    pub(crate) device: Device,
    pub(crate) gid: Gid,
    pub(crate) lid: Lid,
    pub(crate) up: bool,
    pub(crate) wanted: BTreeSet<(LinkId, IpAddr)>,
    /// Its device says nothing before that: it answers in order.
    said: Moment,
}

pub(crate) struct World {
    pub(crate) now: Moment,
    pub(crate) chance: Chance,
    pub(crate) weather: Weather,
    pub(crate) seats: Vec<Seat>,
    /// The subnet managers; one at a time is the master.
    pub(crate) sas: [SmallSa; 2],
    pub(crate) master: usize,
    paused: Moment,
    posts: BTreeMap<(Moment, u64), Post>,
    order: u64,
    expelled: BTreeSet<usize>,
    next_lid: u16,
}

pub(crate) fn gid(guid: u64) -> Gid {
    Gid::of_port(PREFIX, Guid(guid))
}

fn manager(lid: u16, trusting: bool) -> SmallSa {
    let mut sa = SmallSa::new(Lid(lid), gid(lid.into()), Capacity::default());
    sa.offer_send_only_full(lid == 1);
    sa.tell_kinds(trusting);
    sa.set_partition(Partition::of_all(PKey::DEFAULT));
    sa.set_partition(Partition::of_all(SIX));
    let attributes = Attributes::of_creation(&Creation::default(), PKey::DEFAULT);
    let mgid = broadcast(Family::V4, Scope::LINK_LOCAL, PKey::DEFAULT);
    sa.preconfigure(mgid, attributes).expect("room");
    sa.add_port(port(STRANGER, gid(90)));
    sa
}

const fn port(lid: Lid, gid: Gid) -> SubnetPort {
    SubnetPort {
        gid,
        lid,
        mtu: Mtu::M2048,
    }
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let seats = (0..NODES).map(|at| Seat {
            node: node(at, seed, chance.below(2) == 0),
            device: Device::default(),
            gid: gid(10 + at as u64),
            lid: Lid(10 + at as u16),
            up: true,
            wanted: BTreeSet::new(),
            said: Moment(0),
        });
        let trusting = seed.is_multiple_of(2);
        let mut world = Self {
            now: Moment(0),
            seats: seats.collect(),
            chance,
            weather: Weather::FAIR,
            sas: [manager(1, trusting), manager(2, trusting)],
            master: 0,
            paused: Moment(0),
            posts: BTreeMap::new(),
            order: 0,
            expelled: BTreeSet::new(),
            next_lid: 20,
        };
        for at in 0..NODES {
            world.plug(at);
            world.post(0, Post::Learn(at));
        }
        world.number();
        world
    }

    pub(crate) fn post(&mut self, after_ms: u64, post: Post) {
        self.order += 1;
        self.posts
            .insert((self.now.after(after_ms), self.order), post);
    }

    /// A datagram on its way: perhaps lost, perhaps twice, each time with a delay of its own.
    fn mail(&mut self, make: impl Fn() -> Post) {
        let copies = if self.chance.below(100) < self.weather.lost {
            0
        } else if self.chance.below(100) < self.weather.twice {
            2
        } else {
            1
        };
        for _ in 0..copies {
            let delay = self.chance.below(self.weather.delay_ms);
            self.post(delay, make());
        }
    }

    /// The port is in the subnet of the master, or of nobody.
    fn plug(&mut self, at: usize) {
        let seat = &self.seats[at];
        let (lid, gid, up) = (seat.lid, seat.gid, seat.up);
        for (index, sa) in self.sas.iter_mut().enumerate() {
            sa.remove_port(lid);
            if up && index == self.master {
                sa.add_port(port(lid, gid));
            }
        }
    }

    fn facts(&self, at: usize) -> PortFacts {
        let seat = &self.seats[at];
        let sa = &self.sas[self.master];
        PortFacts {
            gid: seat.gid,
            lid: seat.lid,
            sm_lid: sa.lid(),
            sm_sl: 0,
            active: seat.up,
            mtu: Mtu::M2048,
            p_keys: sa.p_keys(seat.gid),
        }
    }

    /// Lets time pass until a moment.
    pub(crate) fn run_until(&mut self, end: Moment) {
        loop {
            let post = self.posts.first_key_value().map(|(key, _)| key.0);
            let wakes = self.seats.iter().filter_map(|seat| seat.node.wake());
            let Some(next) = wakes.chain(post).min().filter(|next| *next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            if let Some((_, post)) = self
                .posts
                .first_entry()
                .filter(|it| it.key().0 <= self.now)
                .map(|it| it.remove_entry())
            {
                self.deliver(post);
            }
            for at in 0..NODES {
                if self.seats[at]
                    .node
                    .wake()
                    .is_some_and(|wake| wake <= self.now)
                {
                    let now = self.now;
                    self.seats[at].node.pass(now);
                }
                self.drain(at);
            }
        }
        self.now = end;
    }

    fn deliver(&mut self, post: Post) {
        let now = self.now;
        match post {
            Post::ToSa(index, from, bytes) => self.ask(index, from, &bytes),
            Post::ToNode(at, from, bytes) => self.seats[at].node.mad_came(now, from, &bytes),
            Post::Frame(at, link, from, bytes) => self.arrive(at, link, &from, &bytes),
            Post::Port(at, up) => {
                self.seats[at].up = up;
                self.plug(at);
                let late = self.chance.below(100);
                self.post(late, Post::Learn(at));
            }
            Post::Readmit(at) => {
                self.expelled.remove(&at);
                self.set_six();
                self.post(0, Post::Learn(at));
            }
            Post::Learn(at) => {
                let facts = self.facts(at);
                self.seats[at].node.port_is(now, facts);
            }
            Post::Word(at, word) => self.hear(at, word),
            Post::Leave(at, link, address) => self.leave(at, link, address),
            Post::Reregister(at) => self.seats[at].node.reregister(now),
        }
    }

    /// A request reaches a subnet manager, which may be the master no more, or say nothing.
    fn ask(&mut self, index: usize, from: Lid, bytes: &[u8]) {
        let connected = self
            .seats
            .iter()
            .find(|seat| seat.lid == from)
            .is_some_and(|seat| seat.up);
        if index != self.master || self.paused > self.now || !connected {
            return;
        }
        let busy = self.chance.below(100) < self.weather.busy;
        let reply = if busy {
            let mad = Mad::parse(bytes, TABLE_BYTES).expect("one that a node made");
            let status = [Status::Busy, Status::NoResources][self.chance.below(2) as usize];
            (!mad.method.is_response())
                .then(|| emit::reply::<McMember>(&mad, status, None).to_vec())
        } else {
            self.sas[index].answer(from, bytes)
        };
        if let Some(reply) = reply {
            self.send_to(index, from, &reply);
        }
        self.reports(index);
    }

    fn reports(&mut self, index: usize) {
        while let Some((to, report)) = self.sas[index].next_report() {
            self.send_to(index, to, &report);
        }
    }

    fn send_to(&mut self, index: usize, to: Lid, bytes: &[u8]) {
        let from = self.sas[index].lid();
        let at = self.seats.iter().position(|seat| seat.lid == to && seat.up);
        if let Some(at) = at {
            self.mail(|| Post::ToNode(at, from, bytes.to_vec()));
        }
    }

    /// Does what a node wants done, and checks that it may.
    pub(crate) fn drain(&mut self, at: usize) {
        while let Some(output) = self.seats[at].node.take() {
            let refuse = self.chance.below(100) < self.weather.refused;
            let seat = &mut self.seats[at];
            match output {
                Output::Mad { to, bytes, .. } => {
                    seat.device.watch(&seat.node, &bytes);
                    let from = seat.lid;
                    let index = self.sas.iter().position(|sa| sa.lid() == to);
                    let up = seat.up;
                    if let (Some(index), true) = (index, up) {
                        self.mail(|| Post::ToSa(index, from, bytes.clone()));
                    }
                }
                Output::Open(opening) => {
                    let made = seat.device.open(&opening, refuse);
                    self.say(at, Word::Opened(opening.link, made));
                }
                Output::Close { link } => seat.device.close(link),
                Output::Attach(to) => {
                    seat.device.check_member(&seat.node, &to);
                    let done = seat.device.attach(to, refuse);
                    self.say(at, Word::Attached(to, done));
                }
                Output::Detach(from) => {
                    let done = seat.device.detach(from);
                    self.say(at, Word::Detached(from, done));
                }
                Output::Frame { link, to, bytes } => {
                    seat.device.send(link, &to);
                    self.carry(at, link, &to, &bytes);
                }
                Output::Address { ip, news, .. } => self.watch_news(at, ip, news),
                Output::Link { .. } | Output::Member { .. } | Output::Trouble(_) => {}
            }
        }
    }

    /// A device answers soon, and in order.
    fn say(&mut self, at: usize, word: Word) {
        let soon = self.now.after(self.chance.below(20));
        let seat = &mut self.seats[at];
        seat.said = seat.said.max(soon);
        let after = seat.said.since(self.now);
        self.post(after, Post::Word(at, word));
    }

    fn hear(&mut self, at: usize, word: Word) {
        let (now, node) = (self.now, &mut self.seats[at].node);
        match word {
            Word::Opened(link, made) => node.queue_opened(now, link, made),
            Word::Attached(to, done) => node.attached(now, to, done),
            Word::Detached(from, done) => node.detached(now, from, done),
        }
    }

    pub(crate) fn act(&mut self, act: Act) {
        let at = self.chance.below(NODES as u64) as usize;
        let now = self.now;
        match act {
            Act::Join => {
                let (link, address) = self.draw_address();
                self.seats[at].wanted.insert((link, address));
                let joined = self.seats[at].node.join(now, link, address);
                joined.expect("room");
                // a short stay: the leave is on the heels of the join
                if self.chance.below(2) == 0 {
                    let stay = self.chance.below(2 * LONGEST_DELAY_MS);
                    self.post(stay, Post::Leave(at, link, address));
                }
            }
            Act::Leave => {
                let wanted = self.seats[at].wanted.iter();
                let all: Vec<_> = wanted.copied().collect();
                if !all.is_empty() {
                    let (link, address) = all[self.chance.below(all.len() as u64) as usize];
                    self.leave(at, link, address);
                }
            }
            Act::Send => {
                let (link, address) = self.draw_address();
                let sent = self.seats[at].node.send(now, link, address, vec![0; 64]);
                sent.expect("a link and a group of it");
            }
            Act::Restart => self.sas[self.master].forget(),
            Act::RestartTold => {
                self.sas[self.master].forget();
                for at in 0..NODES {
                    let late = self.chance.below(100);
                    self.post(late, Post::Reregister(at));
                }
            }
            Act::Failover => self.fail_over(),
            Act::Pause => self.paused = now.after(self.chance.below(6_000)),
            Act::Flap => {
                self.post(0, Post::Port(at, false));
                let back = self.chance.below(2_000);
                self.post(back, Post::Port(at, true));
            }
            Act::Readdress => self.readdress(at),
            Act::Expel => {
                self.expelled.insert(at);
                self.set_six();
                self.post(0, Post::Learn(at));
                let back = self.chance.below(3_000);
                self.post(back, Post::Readmit(at));
            }
            Act::Storm => self.storm(at),
            Act::Stranger => self.stranger(),
        }
        self.drain_all();
    }

    fn leave(&mut self, at: usize, link: LinkId, address: IpAddr) {
        self.seats[at].wanted.remove(&(link, address));
        let left = self.seats[at].node.leave(self.now, link, address);
        left.expect("a group");
    }

    fn drain_all(&mut self) {
        for at in 0..NODES {
            self.drain(at);
        }
    }

    /// One of a few addresses, on one of the links.
    fn draw_address(&mut self) -> (LinkId, IpAddr) {
        let group = 3 + self.chance.below(5) as u16;
        match self.chance.below(2) {
            0 => (LinkId(0), IpAddr::from([239, 1, 0, group as u8])),
            _ => (LinkId(1), IpAddr::from([0xFF02, 0, 0, 0, 0, 0, 0, group])),
        }
    }

    fn fail_over(&mut self) {
        self.sas[self.master].forget();
        self.master = 1 - self.master;
        self.sas[self.master].forget();
        self.set_six();
        for at in 0..NODES {
            self.plug(at);
            let late = self.chance.below(500);
            self.post(late, Post::Learn(at));
        }
    }

    fn readdress(&mut self, at: usize) {
        let old = self.seats[at].lid;
        self.sas[self.master].remove_port(old);
        self.next_lid += 1;
        if self.next_lid == STRANGER.0 {
            self.next_lid += 1;
        }
        self.seats[at].lid = Lid(self.next_lid);
        self.plug(at);
        self.post(0, Post::Learn(at));
    }

    /// The second partition has everybody but the expelled; a subnet manager drops who is not in it any more.
    fn set_six(&mut self) {
        let mut six = Partition::of_all(SIX);
        six.everybody = false;
        six.full.insert(gid(90));
        for (at, seat) in self.seats.iter().enumerate() {
            if !self.expelled.contains(&at) {
                six.full.insert(seat.gid);
            }
        }
        self.sas[self.master].set_partition(six);
    }

    /// Reports of groups that are there and that are not, created and deleted: hundreds at once.
    fn storm(&mut self, at: usize) {
        let from = self.sas[self.master].lid();
        for _ in 0..300 {
            let (link, address) = self.draw_address();
            let p_key = if link.0 == 0 { PKey::DEFAULT } else { SIX };
            let mgid = of_address(address, Scope::LINK_LOCAL, p_key).expect("a group");
            let event = match self.chance.below(2) {
                0 => Event::GroupCreated(mgid),
                _ => Event::GroupDeleted(mgid),
            };
            let notice = Notice::of_event(event, from, Gid::default());
            let report = emit::whole(Method::Report, Tid(1), &notice);
            self.mail(|| Post::ToNode(at, from, report.to_vec()));
        }
    }

    /// A member that is none of the nodes: it makes groups come and go.
    fn stranger(&mut self) {
        let (link, address) = self.draw_address();
        let p_key = if link.0 == 0 { PKey::DEFAULT } else { SIX };
        let mgid = of_address(address, Scope::LINK_LOCAL, p_key).expect("a group");
        let creation = Attributes::of_creation(&Creation::default(), p_key);
        let join_state = Some(JoinState::FULL);
        let (method, asked) = match self.chance.below(2) {
            0 => (Method::Set, creation.creating(mgid, gid(90))),
            _ => (Method::Delete, naming(mgid, gid(90))),
        };
        let asked = McMemberTemplate {
            join_state,
            ..asked
        };
        let octets = emit::request(method, Tid(1), &asked);
        // what it is answered is its own affair
        let _ = self.sas[self.master].answer(STRANGER, &octets);
        self.reports(self.master);
    }

    /// Nothing bad happens any more; what was bad for a time is over.
    pub(crate) fn clear_up(&mut self) {
        self.weather = Weather::FAIR;
        self.paused = self.now;
        let mut after = 0;
        for (due, _) in self.posts.keys() {
            after = after.max(due.since(self.now));
        }
        self.run_until(self.now.after(after + 1));
    }
}

/// A node with two links: the first is the administrator of the second's broadcast group, the last one is a router.
fn node(at: usize, seed: u64, send_only_full: bool) -> Node {
    let settings = Settings {
        timing: TIMING,
        limits: Limits {
            waiting: 4,
            reports: Pace {
                per_second: 50,
                burst: 100,
            },
            ..Limits::default()
        },
        send_only_full,
        ..Settings::default()
    };
    let mut node = Node::new(settings, seed.wrapping_mul(31).wrapping_add(at as u64));
    let router = at == NODES - 1;
    for (p_key, family, create) in [
        (PKey::DEFAULT, Family::V4, None),
        (SIX, Family::V6, (at == 0).then(Creation::default)),
    ] {
        let spec = LinkSpec {
            p_key,
            family,
            create,
            router,
        };
        node.add_link(Moment(0), spec).expect("room");
    }
    node
}
