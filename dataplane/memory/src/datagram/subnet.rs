//! The subnet that all nodes of a family of fabrics are on.

use super::mailbox::Mailbox;
use super::settings::LinkSettings;
use crate::desk::Hatch;
use crate::fabric::DEVICE;
use rpcrdma_fabric::datagram::{
    AddressVector, Arrival, Failure, FailureKind, GidOctets, Group, Link, LinkChange,
    MULTICAST_QUEUE_PAIR, Unsent, is_multicast, p_keys_match,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// LIDs of ports: 1 to this (IBA 4.1.3). Multicast's follow.
const UNICAST_MOST: u16 = 0xBFFF;
/// Queue pairs 0 and 1 are of management.
const FIRST_PAIR: u32 = 2;
/// A Q_Key with this bit in a request stands for the queue pair's own (IBA 10.2.5).
const OWN_Q_KEY: u32 = 0x8000_0000;
/// The prefix of a subnet that was given none.
const PREFIX: u64 = 0xFE80 << 48;
/// GUIDs here are local ones (EUI-64 with that bit set), and count up.
const GUIDS: u64 = 0x0200_00FF_FE00_0000;

/// A node, by number. Never used twice in a subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Node(u64);

/// A node's link.
#[derive(Debug)]
struct Port {
    settings: LinkSettings,
    /// 0 where none is left.
    lid: u16,
    gid: GidOctets,
    changes: VecDeque<LinkChange>,
    hatch: Arc<Hatch>,
    /// Its queue pairs attached to each group, and all of these together.
    groups: HashMap<Group, u32>,
    attachments: u32,
}

impl Port {
    fn has_room(&self, group: Group) -> bool {
        let limits = self.settings.limits;
        let here = self.groups.get(&group).copied().unwrap_or(0);
        let room_for_group = here > 0 || (self.groups.len() as u64) < u64::from(limits.groups);
        room_for_group && here < limits.attachments_each && self.attachments < limits.attachments
    }

    fn count_attached(&mut self, group: Group) {
        *self.groups.entry(group).or_default() += 1;
        self.attachments += 1;
    }

    fn count_detached(&mut self, group: Group) {
        self.attachments = self.attachments.saturating_sub(1);
        let Some(here) = self.groups.get_mut(&group) else {
            return;
        };
        *here -= 1;
        if *here == 0 {
            self.groups.remove(&group);
        }
    }
}

/// A queue pair.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) node: Node,
    pub(super) p_key: u16,
    pub(super) q_key: u32,
    pub(super) mailbox: Arc<Mailbox>,
}

/// Everything that is on the subnet.
#[derive(Debug, Default)]
pub(crate) struct Subnet {
    numbers: u64,
    ports: HashMap<Node, Port>,
    lids: BTreeMap<u16, Node>,
    last_lid: u16,
    pairs: HashMap<u32, Entry>,
    last_pair: u32,
    /// In order of their queue pairs: what is sent to a group arrives in that order.
    attached: HashMap<Group, BTreeSet<u32>>,
}

impl Subnet {
    pub(crate) fn add_node(&mut self, hatch: Arc<Hatch>) -> Node {
        self.numbers += 1;
        let node = Node(self.numbers);
        let lid = self.free_lid();
        let gid = (u128::from(PREFIX) << 64) | u128::from(GUIDS + self.numbers);
        let port = Port {
            settings: LinkSettings::default(),
            lid,
            gid: gid.to_be_bytes(),
            changes: VecDeque::new(),
            hatch,
            groups: HashMap::new(),
            attachments: 0,
        };
        self.ports.insert(node, port);
        self.lids.insert(lid, node);
        node
    }

    pub(crate) fn remove_node(&mut self, node: Node) {
        if let Some(port) = self.ports.remove(&node) {
            self.lids.remove(&port.lid);
        }
    }

    /// The next LID after the one given last that nobody has.
    fn free_lid(&mut self) -> u16 {
        let following = self.last_lid.saturating_add(1)..=UNICAST_MOST;
        let free = following
            .chain(1..=self.last_lid)
            .find(|lid| !self.lids.contains_key(lid));
        self.last_lid = free.unwrap_or(self.last_lid);
        free.unwrap_or(0)
    }

    pub(super) fn link(&self, node: Node) -> Link {
        let port = self.ports.get(&node);
        let settings = port.map(|port| port.settings.clone()).unwrap_or_default();
        let lid = port.map_or(0, |port| port.lid);
        Link {
            device: DEVICE.to_owned(),
            number: 1,
            up: settings.up && lid != 0,
            ethernet: false,
            lid,
            sm_lid: settings.sm_lid,
            sm_service_level: 0,
            gids: port.map(|port| port.gid).into_iter().collect(),
            p_keys: settings.p_keys,
            mtu: settings.mtu,
            limits: settings.limits,
        }
    }

    pub(super) fn set_link(&mut self, node: Node, settings: LinkSettings) {
        let Some(port) = self.ports.get_mut(&node) else {
            return;
        };
        let before = std::mem::replace(&mut port.settings, settings);
        let now = &port.settings;
        let state = if now.up {
            LinkChange::Up
        } else {
            LinkChange::Down
        };
        let changed = [
            (before.up != now.up, state),
            (before.p_keys != now.p_keys, LinkChange::PKeys),
            (before.sm_lid != now.sm_lid, LinkChange::SubnetManager),
        ];
        for (_, change) in changed.into_iter().filter(|(changed, _)| *changed) {
            self.tell(node, change);
        }
    }

    pub(super) fn change_lid(&mut self, node: Node) {
        let lid = self.free_lid();
        let Some(port) = self.ports.get_mut(&node) else {
            return;
        };
        self.lids.remove(&port.lid);
        port.lid = lid;
        self.lids.insert(lid, node);
        self.tell(node, LinkChange::Lid);
    }

    /// Each change waits once, in the place of its last occurrence.
    pub(super) fn tell(&mut self, node: Node, change: LinkChange) {
        let Some(port) = self.ports.get_mut(&node) else {
            return;
        };
        port.changes.retain(|waiting| *waiting != change);
        port.changes.push_back(change);
        port.hatch.ring();
    }

    pub(super) fn next_change(&mut self, node: Node) -> Option<LinkChange> {
        self.ports.get_mut(&node)?.changes.pop_front()
    }

    pub(super) fn add_pair(&mut self, entry: Entry) -> Result<u32, Failure> {
        let port = self.ports.get(&entry.node);
        let port = port.ok_or_else(|| FailureKind::Gone.because("the node is gone"))?;
        if !port.settings.p_keys.contains(&entry.p_key) {
            return Err(FailureKind::NoPartition.because(format!(
                "P_Key {:#06x} is not in the link's table",
                entry.p_key
            )));
        }
        let following = self.last_pair.saturating_add(1).max(FIRST_PAIR)..MULTICAST_QUEUE_PAIR;
        let number = following
            .chain(FIRST_PAIR..=self.last_pair)
            .find(|number| !self.pairs.contains_key(number))
            .ok_or_else(|| FailureKind::Exhausted.because("no queue pair number is left"))?;
        self.last_pair = number;
        self.pairs.insert(number, entry);
        Ok(number)
    }

    pub(super) fn remove_pair(&mut self, number: u32) {
        let of_it = |(_, pairs): &(&Group, &BTreeSet<u32>)| pairs.contains(&number);
        let groups = self.attached.iter().filter(of_it);
        let groups: Vec<Group> = groups.map(|(group, _)| *group).collect();
        for group in groups {
            self.take_off(number, group);
        }
        self.pairs.remove(&number);
    }

    /// Attaches a queue pair; whether it was not attached before.
    pub(super) fn attach(&mut self, number: u32, group: Group) -> Result<bool, Failure> {
        let Group { mgid, mlid } = group;
        if !is_multicast(mgid) || !(0xC000..=0xFFFE).contains(&mlid) {
            return Err(FailureKind::Invalid.because("not the GID and LID of a group"));
        }
        if self.is_attached(number, group) {
            return Ok(false);
        }
        let gone = || FailureKind::Gone.because("the node is gone");
        let node = self.pairs.get(&number).ok_or_else(gone)?.node;
        let port = self.ports.get_mut(&node).ok_or_else(gone)?;
        if !port.has_room(group) {
            return Err(FailureKind::Exhausted.because(format!(
                "{} attachments to {} groups: there is room for no more",
                port.attachments,
                port.groups.len()
            )));
        }
        port.count_attached(group);
        self.attached.entry(group).or_default().insert(number);
        Ok(true)
    }

    fn is_attached(&self, number: u32, group: Group) -> bool {
        let pairs = self.attached.get(&group);
        pairs.is_some_and(|pairs| pairs.contains(&number))
    }

    fn port_of(&mut self, number: u32) -> Option<&mut Port> {
        let node = self.pairs.get(&number)?.node;
        self.ports.get_mut(&node)
    }

    pub(super) fn detach(&mut self, number: u32, group: Group) -> Result<(), Failure> {
        if !self.is_attached(number, group) {
            return Err(FailureKind::Invalid.because("not attached to this group"));
        }
        self.take_off(number, group);
        Ok(())
    }

    fn take_off(&mut self, number: u32, group: Group) {
        if let Some(pairs) = self.attached.get_mut(&group) {
            pairs.remove(&number);
            if pairs.is_empty() {
                self.attached.remove(&group);
            }
        }
        if let Some(port) = self.port_of(number) {
            port.count_detached(group);
        }
    }

    /// The pair's node is there.
    pub(super) fn has_node_of(&self, number: u32) -> bool {
        let pair = self.pairs.get(&number);
        pair.is_some_and(|pair| self.ports.contains_key(&pair.node))
    }

    /// Sends a datagram to whoever it is for.
    pub(super) fn send(&self, from: u32, octets: &[u8], to: &AddressVector) -> Result<(), Unsent> {
        let sender = self.pairs.get(&from).ok_or(Unsent::Gone)?;
        let port = self.ports.get(&sender.node).ok_or(Unsent::Gone)?;
        if !port.settings.up || port.lid == 0 {
            return Err(Unsent::LinkDown);
        }
        if octets.len() as u64 > u64::from(port.settings.mtu) {
            return Err(Unsent::TooLong);
        }
        let arrival = Arrival {
            lid: port.lid,
            gid: to.gid.map(|_| port.gid),
            to: to.gid,
            queue_pair: from,
            service_level: to.service_level,
        };
        let q_key = if to.q_key & OWN_Q_KEY == 0 {
            to.q_key
        } else {
            sender.q_key
        };
        let octets = Arc::from(octets);
        let letter = Letter {
            arrival,
            octets: &octets,
            p_key: sender.p_key,
            q_key,
        };
        match to.queue_pair {
            MULTICAST_QUEUE_PAIR => self.to_group(&letter, to),
            one => self.to_one(&letter, to, one),
        }
    }

    fn to_group(&self, letter: &Letter<'_>, to: &AddressVector) -> Result<(), Unsent> {
        let mgid = to.gid.filter(|gid| is_multicast(*gid));
        let mgid = mgid.ok_or(Unsent::Address)?;
        let group = Group { mgid, mlid: to.lid };
        for pair in self.attached.get(&group).into_iter().flatten() {
            self.deliver(letter, *pair);
        }
        Ok(())
    }

    /// Nobody there is as good as sent: that is how it is with datagrams.
    fn to_one(&self, letter: &Letter<'_>, to: &AddressVector, pair: u32) -> Result<(), Unsent> {
        if !(1..=UNICAST_MOST).contains(&to.lid) || pair > MULTICAST_QUEUE_PAIR {
            return Err(Unsent::Address);
        }
        let node = self.lids.get(&to.lid);
        if self.pairs.get(&pair).map(|entry| &entry.node) == node {
            self.deliver(letter, pair);
        }
        Ok(())
    }

    fn deliver(&self, letter: &Letter<'_>, pair: u32) {
        let Some(entry) = self.pairs.get(&pair) else {
            return;
        };
        let port = self.ports.get(&entry.node);
        if port.is_none_or(|port| !port.settings.up) {
            return;
        }
        if pair == letter.arrival.queue_pair {
            entry.mailbox.count(|counts| counts.echoes += 1);
        } else if !p_keys_match(letter.p_key, entry.p_key) {
            entry.mailbox.count(|counts| counts.wrong_p_key += 1);
        } else if letter.q_key != entry.q_key {
            entry.mailbox.count(|counts| counts.wrong_q_key += 1);
        } else {
            entry.mailbox.put(letter.arrival, letter.octets);
        }
    }
}

/// A datagram on its way.
struct Letter<'a> {
    arrival: Arrival,
    octets: &'a Arc<[u8]>,
    p_key: u16,
    q_key: u32,
}
