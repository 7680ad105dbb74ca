//! A subnet manager and nodes beside it: what one says the other hears at once, and what a node does is kept.

use rpcrdma_ipoib::gid::{Gid, Guid, Lid};
use rpcrdma_ipoib::group::Attributes;
use rpcrdma_ipoib::join::JoinState;
use rpcrdma_ipoib::mad::{
    AttributeId, Mad, McMember, McMemberTemplate, Method, Status, TABLE_BYTES, Tid, emit,
};
use rpcrdma_ipoib::mgid::{Family, Scope, broadcast};
use rpcrdma_ipoib::mtu::Mtu;
use rpcrdma_ipoib::node::{
    AddressNews, AddressVector, Attachment, Fate, LinkId, Node, Origin, Output,
};
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_ipoib::port::PortFacts;
use rpcrdma_ipoib::sa::Chance;
use rpcrdma_ipoib::settings::{Creation, LinkSpec, Settings};
use rpcrdma_ipoib::small_sa::{Capacity, Partition, SmallSa, SubnetPort};
use rpcrdma_ipoib::time::Moment;
use rpcrdma_ipoib::trouble::{Failure, Trouble};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The first link that a test adds.
pub(crate) const LINK: LinkId = LinkId(0);
/// The partition of the document's examples.
pub(crate) const SIX: PKey = PKey(0x8006);
/// The subnet manager.
pub(crate) const MANAGER: Lid = Lid(1);
const PREFIX: u64 = 0xFE80_0000_0000_0000;

pub(crate) fn gid(guid: u64) -> Gid {
    Gid::of_port(PREFIX, Guid(guid))
}

pub(crate) fn mgid(text: &str) -> Gid {
    let address: std::net::Ipv6Addr = text.parse().expect("an MGID");
    Gid(address.octets())
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// A request as the subnet manager got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) mgid: Option<Gid>,
    pub(crate) port_gid: Option<Gid>,
    pub(crate) state: Option<JoinState>,
}

/// Something that a node did, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Asked(Asked),
    Output(Output),
}

/// A node with what it did.
pub(crate) struct Seat {
    pub(crate) node: Node,
    pub(crate) facts: PortFacts,
    pub(crate) deeds: Vec<Deed>,
    pub(crate) attached: BTreeSet<Gid>,
    /// The payloads of the datagrams that came.
    pub(crate) got: Vec<Vec<u8>>,
    /// What the device answers from now on.
    pub(crate) device: Result<(), i32>,
}

pub(crate) struct Bed {
    pub(crate) now: Moment,
    pub(crate) sa: SmallSa,
    pub(crate) seats: Vec<Seat>,
    /// The subnet manager answers nothing.
    pub(crate) deaf: bool,
    /// The subnet manager answers this to everything, so often.
    pub(crate) statuses: Vec<Status>,
    /// The subnet manager answers this to every request about a membership by a method.
    pub(crate) refused: Option<(Method, Status)>,
    /// The subnet manager's answers are changed on their way: this often of a hundred, and by what is drawn.
    pub(crate) garbled: Option<(Chance, u64)>,
    /// Attachments that are not answered yet.
    pub(crate) held_back: Option<Vec<Attachment>>,
    /// Each answer comes twice.
    pub(crate) twice: bool,
}

pub(crate) fn spec(p_key: PKey) -> LinkSpec {
    LinkSpec {
        p_key,
        family: Family::V4,
        create: None,
        router: false,
    }
}

pub(crate) fn attributes(p_key: PKey) -> Attributes {
    Attributes::of_creation(&Creation::default(), p_key)
}

impl Bed {
    /// Partitions 0x7FFF and 6 of everybody, each with its IPv4 broadcast group.
    pub(crate) fn new() -> Self {
        let mut bed = Self::bare();
        for p_key in [PKey::DEFAULT, SIX] {
            bed.administer(Scope::LINK_LOCAL, attributes(p_key));
        }
        bed
    }

    /// The same without groups.
    pub(crate) fn bare() -> Self {
        let mut sa = SmallSa::new(MANAGER, gid(1), Capacity::default());
        sa.set_partition(Partition::of_all(PKey::DEFAULT));
        sa.set_partition(Partition::of_all(SIX));
        Self {
            now: Moment(1_000),
            sa,
            seats: Vec::new(),
            deaf: false,
            statuses: Vec::new(),
            refused: None,
            garbled: None,
            held_back: None,
            twice: false,
        }
    }

    /// The administrator makes an IPv4 broadcast group.
    pub(crate) fn administer(&mut self, scope: Scope, attributes: Attributes) {
        let mgid = broadcast(Family::V4, scope, attributes.p_key);
        let attributes = Attributes {
            scope,
            ..attributes
        };
        self.sa.preconfigure(mgid, attributes).expect("room");
    }

    /// A node whose port is active.
    pub(crate) fn seat(&mut self, settings: Settings) -> usize {
        self.seat_of(settings, Mtu::M2048)
    }

    pub(crate) fn seat_of(&mut self, settings: Settings, mtu: Mtu) -> usize {
        let number = 10 + u16::try_from(self.seats.len()).expect("few");
        let (lid, gid) = (Lid(number), gid(number.into()));
        self.sa.add_port(SubnetPort { gid, lid, mtu });
        let facts = PortFacts {
            gid,
            lid,
            sm_lid: self.sa.lid(),
            sm_sl: 0,
            active: true,
            mtu,
            p_keys: self.sa.p_keys(gid),
        };
        let mut node = Node::new(settings, number.into());
        node.port_is(self.now, facts.clone());
        self.seats.push(Seat {
            node,
            facts,
            deeds: Vec::new(),
            attached: BTreeSet::new(),
            got: Vec::new(),
            device: Ok(()),
        });
        self.seats.len() - 1
    }

    /// A node with a link that is up.
    pub(crate) fn up(&mut self, spec: LinkSpec) -> usize {
        let at = self.seat(Settings::default());
        self.add_link(at, spec);
        at
    }

    pub(crate) fn add_link(&mut self, at: usize, spec: LinkSpec) {
        self.seats[at].node.add_link(self.now, spec).expect("room");
        self.run();
    }

    pub(crate) fn join(&mut self, at: usize, address: &str) {
        self.seats[at]
            .node
            .join(self.now, LINK, ip(address))
            .expect("a group");
        self.run();
    }

    pub(crate) fn leave(&mut self, at: usize, address: &str) {
        self.seats[at]
            .node
            .leave(self.now, LINK, ip(address))
            .expect("a group");
        self.run();
    }

    pub(crate) fn send(&mut self, at: usize, address: &str) -> Fate {
        let node = &mut self.seats[at].node;
        let fate = node.send(self.now, LINK, ip(address), vec![7; 64]);
        self.run();
        fate.expect("a group")
    }

    /// Tells a node what its port is like now.
    pub(crate) fn tell_port(&mut self, at: usize) {
        let seat = &mut self.seats[at];
        seat.node.port_is(self.now, seat.facts.clone());
        self.run();
    }

    /// Lets everything happen that needs no time.
    pub(crate) fn run(&mut self) {
        while self.turn() {}
    }

    fn turn(&mut self) -> bool {
        let mut busy = false;
        for at in 0..self.seats.len() {
            while let Some(output) = self.seats[at].node.take() {
                busy = true;
                self.obey(at, output);
            }
        }
        while let Some((to, report)) = self.sa.next_report() {
            busy = true;
            let to = self.seats.iter_mut().find(|seat| seat.facts.lid == to);
            if let Some(seat) = to {
                seat.node.mad_came(self.now, self.sa.lid(), &report);
            }
        }
        busy
    }

    fn obey(&mut self, at: usize, output: Output) {
        let now = self.now;
        let seat = &mut self.seats[at];
        let device = seat.device;
        match output {
            Output::Mad { to, ref bytes, .. } if to == self.sa.lid() => {
                seat.deeds.push(Deed::Asked(asked(bytes)));
                let lid = seat.facts.lid;
                let Some(mut reply) = self.reply(lid, bytes) else {
                    return;
                };
                self.garble(&mut reply);
                for _ in 0..1 + u8::from(self.twice) {
                    self.seats[at].node.mad_came(now, to, &reply);
                }
                return;
            }
            Output::Open(opening) => {
                let made = device.map(|()| queue_pair(at));
                seat.node.queue_opened(now, opening.link, made);
            }
            Output::Attach(to) if self.held_back.is_some() => {
                self.held_back.get_or_insert_default().push(to);
            }
            Output::Attach(to) => {
                if device.is_ok() {
                    assert!(seat.attached.insert(to.mgid), "attached twice");
                }
                seat.node.attached(now, to, device);
            }
            Output::Detach(from) => {
                assert!(seat.attached.remove(&from.mgid), "not attached");
                seat.node.detached(now, from, device);
            }
            Output::Close { .. } => seat.attached.clear(),
            Output::Frame {
                ref to, ref bytes, ..
            } => self.carry(at, to, bytes),
            _ => {}
        }
        self.seats[at].deeds.push(Deed::Output(output));
    }

    /// Brings a frame to whoever it is for.
    fn carry(&mut self, from: usize, to: &AddressVector, bytes: &[u8]) {
        let group = to.gid.is_multicast().then_some(to.gid);
        let origin = Origin {
            lid: self.seats[from].facts.lid,
            gid: Some(self.seats[from].facts.gid),
            group,
            qpn: queue_pair(from),
        };
        for at in 0..self.seats.len() {
            let seat = &mut self.seats[at];
            let its = match group {
                // the sender itself too: so does a device
                Some(group) => seat.attached.contains(&group),
                None => {
                    let facts = &seat.facts;
                    (facts.gid, facts.lid, queue_pair(at)) == (to.gid, to.lid, to.qpn)
                }
            };
            if its && let Some(datagram) = seat.node.frame_came(self.now, LINK, &origin, bytes) {
                seat.got.push(datagram.payload.to_vec());
            }
        }
    }

    fn garble(&mut self, reply: &mut Vec<u8>) {
        let Some((chance, percent)) = &mut self.garbled else {
            return;
        };
        if chance.below(100) >= *percent {
            return;
        }
        let length = reply.len() as u64;
        for _ in 0..=chance.below(4) {
            let at = usize::try_from(chance.below(length)).expect("a length");
            reply[at] = chance.word().to_be_bytes()[0];
        }
        if chance.below(4) == 0 {
            reply.truncate(usize::try_from(chance.below(length)).expect("a length"));
        }
    }

    fn reply(&mut self, from: Lid, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.deaf {
            return None;
        }
        let mad = Mad::parse(bytes, TABLE_BYTES).expect("a datagram of a node's");
        if mad.method.is_response() {
            return None;
        }
        let membership = mad.attribute == AttributeId::MC_MEMBER_RECORD;
        let refused = self.refused.filter(|it| membership && it.0 == mad.method);
        match self.statuses.pop().or(refused.map(|it| it.1)) {
            Some(status) => Some(emit::reply::<McMember>(&mad, status, None).to_vec()),
            None => self.sa.answer(from, bytes),
        }
    }

    /// Lets time pass, with everything that it brings.
    pub(crate) fn pass(&mut self, ms: u64) {
        let end = self.now.after(ms);
        loop {
            let wakes = self.seats.iter().filter_map(|seat| seat.node.wake());
            let Some(next) = wakes.min().filter(|next| *next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            for seat in &mut self.seats {
                seat.node.pass(self.now);
            }
            self.run();
        }
        self.now = end;
    }

    /// A member that is none of the nodes, with the broadcast group's attributes unless others are given.
    pub(crate) fn stranger(&mut self, method: Method, group: &str, attributes: Attributes) {
        let port = SubnetPort {
            gid: gid(90),
            lid: Lid(90),
            mtu: Mtu::M4096,
        };
        self.sa.add_port(port);
        let join_state = Some(JoinState::FULL);
        let whole = attributes.creating(mgid(group), port.gid);
        let asked = match method {
            Method::Set => whole,
            _ => rpcrdma_ipoib::group::naming(mgid(group), port.gid),
        };
        let asked = McMemberTemplate {
            join_state,
            ..asked
        };
        let reply = self
            .sa
            .answer(port.lid, &emit::request(method, Tid(1), &asked));
        let reply = reply.expect("an answer");
        let status = Mad::parse(&reply, TABLE_BYTES).expect("a datagram").status;
        assert_eq!(status, Status::Ok);
        self.run();
    }

    /// What the subnet manager holds for a node's port in a group: the four bits.
    pub(crate) fn held(&self, at: usize, group: &str) -> u8 {
        let key = (mgid(group), self.seats[at].facts.gid);
        let mut members = self.sa.members();
        let its = members.find(|it| (it.0, it.1) == key);
        its.map_or(0, |(_, _, state)| state.bits())
    }
}

/// The number of a seat's one queue pair.
fn queue_pair(at: usize) -> u32 {
    0x48 + u32::try_from(at).expect("few")
}

fn asked(bytes: &[u8]) -> Asked {
    let mad = Mad::parse(bytes, TABLE_BYTES).expect("a datagram");
    let names = mad.template::<McMemberTemplate>().unwrap_or_default();
    Asked {
        method: mad.method,
        mgid: names.mgid,
        port_gid: names.port_gid,
        state: names.join_state,
    }
}

impl Seat {
    /// The requests so far that are about a membership and by this method.
    pub(crate) fn asked(&self, method: Method) -> Vec<Asked> {
        let asked = self.deeds.iter().filter_map(|deed| match deed {
            Deed::Asked(asked) => Some(*asked),
            Deed::Output(_) => None,
        });
        asked
            .filter(|it| it.method == method && it.mgid.is_some())
            .collect()
    }

    /// The requests by a method about one group.
    pub(crate) fn asked_of(&self, method: Method, group: &str) -> usize {
        let group = Some(mgid(group));
        self.asked(method)
            .iter()
            .filter(|it| it.mgid == group)
            .count()
    }

    /// Where frames went so far.
    pub(crate) fn frames(&self) -> Vec<AddressVector> {
        let frames = self.deeds.iter().filter_map(|deed| match deed {
            Deed::Output(Output::Frame { to, .. }) => Some(*to),
            _ => None,
        });
        frames.collect()
    }

    /// What was told for the log so far.
    pub(crate) fn troubles(&self) -> Vec<Trouble> {
        let told = self.deeds.iter().filter_map(|deed| match deed {
            Deed::Output(Output::Trouble(trouble)) => Some(*trouble),
            _ => None,
        });
        told.collect()
    }

    /// What became of its addresses so far.
    pub(crate) fn address_news(&self) -> Vec<AddressNews> {
        let told = self.deeds.iter().filter_map(|deed| match deed {
            Deed::Output(Output::Address { news, .. }) => Some(*news),
            _ => None,
        });
        told.collect()
    }

    /// The frames that it sent so far.
    pub(crate) fn sent(&self) -> Vec<&[u8]> {
        let frames = self.deeds.iter().filter_map(|deed| match deed {
            Deed::Output(Output::Frame { bytes, .. }) => Some(&bytes[..]),
            _ => None,
        });
        frames.collect()
    }

    /// The failures among them.
    pub(crate) fn failures(&self) -> Vec<Failure> {
        let failed = self.troubles().into_iter().filter_map(|it| match it {
            Trouble::Failed(failure) => Some(failure),
            _ => None,
        });
        failed.collect()
    }

    /// Where in the order of things something was first done.
    pub(crate) fn when(&self, what: impl Fn(&Deed) -> bool) -> usize {
        self.deeds.iter().position(what).expect("it was done")
    }
}
