//! A subnet within this process: a small administrator, and a way to it for each port.
//!
//! Ports are nodes of the memory fabric, in the partitions that the links of this process name; the administrator has no broadcast group of its
//! own, so the first link that may creates it. A request is answered before `send` returns; the answer waits to be taken.

use rpcrdma_fabric::bell::Bell;
use rpcrdma_fabric::datagram::DatagramFabric;
use rpcrdma_ipoib::gid::{Gid, Guid, Lid};
use rpcrdma_ipoib::mad::{self, Method, Notice, Tid, emit};
use rpcrdma_ipoib::mtu::Mtu;
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_ipoib::small_sa::{Capacity, Partition, SmallSa, SubnetPort};
use rpcrdma_memory::{LinkSettings, MemoryFabric};
use rpcrdma_umad::{
    Arrived, Class, Event, Facts, Fault, PortMtu, PortState, Reply, Source, Subnet, Target,
};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What waits for a port at most: reports beyond are lost, as they may be.
const EVENTS: usize = 1024;
/// Where the administrator is said to be; ports have higher LIDs.
const SM: Lid = Lid(0xBFFF);

/// The subnet.
pub struct MemorySubnet {
    fabric: MemoryFabric,
    p_keys: Vec<PKey>,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    sa: SmallSa,
    /// By LID.
    ports: BTreeMap<Lid, Line>,
}

/// A port, and what waits for it.
struct Line {
    facts: Facts,
    /// They wait for it, before all else.
    asked: bool,
    events: VecDeque<Event>,
    bell: Arc<Bell>,
}

/// The way of one port to the administrator.
pub(crate) struct MemoryPort {
    shared: Arc<Mutex<Shared>>,
    bell: Arc<Bell>,
    facts: Facts,
}

impl MemorySubnet {
    /// One with these partitions, which every port is a full member of.
    #[must_use]
    pub fn new(p_keys: Vec<PKey>) -> Self {
        let mut sa = SmallSa::new(SM, own_gid(), Capacity::default());
        sa.offer_send_only_full(true);
        for &p_key in &p_keys {
            sa.set_partition(Partition::of_all(p_key));
        }
        Self {
            fabric: MemoryFabric::new(),
            p_keys,
            shared: Arc::new(Mutex::new(Shared {
                sa,
                ports: BTreeMap::new(),
            })),
        }
    }

    /// Adds a port: its way to the administrator, and its node of the fabric.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub(crate) fn add_port(&mut self) -> io::Result<(MemoryPort, MemoryFabric)> {
        let fabric = self.add_stranger();
        let link = fabric
            .link(None, 1)
            .map_err(|failure| io::Error::other(failure.to_string()))?;
        let gid = Gid(link.gids.first().copied().unwrap_or_default());
        let lid = Lid(link.lid);
        let bell = Arc::new(Bell::new()?);
        let mut shared = lock(&self.shared);
        shared.sa.add_port(SubnetPort {
            gid,
            lid,
            mtu: Mtu::M4096,
        });
        let facts = facts(gid, lid, self.p_keys.clone());
        let mut line = Line {
            facts: facts.clone(),
            asked: false,
            events: VecDeque::new(),
            bell: Arc::clone(&bell),
        };
        line.ask();
        shared.ports.insert(lid, line);
        drop(shared);
        let port = MemoryPort {
            shared: Arc::clone(&self.shared),
            bell,
            facts,
        };
        Ok((port, fabric))
    }

    /// A node without a way to the administrator, who does not know it: somebody who attaches and sends as he likes.
    pub fn add_stranger(&mut self) -> MemoryFabric {
        let fabric = self.fabric.clone();
        let p_keys = self.p_keys.iter().map(|p_key| p_key.0).collect();
        fabric.set_link(LinkSettings {
            p_keys,
            sm_lid: SM.0,
            ..LinkSettings::default()
        });
        fabric
    }

    /// Has a report of the administrator come to every port, whether or not what it tells of has happened. For how many there
    /// was no room: it is lost there, as reports may be.
    pub fn report(&self, event: mad::Event) -> usize {
        let notice = Notice::of_event(event, SM, own_gid());
        let mad = emit::whole(Method::Report, Tid(1), &notice);
        let mut shared = lock(&self.shared);
        let lines = shared.ports.values_mut();
        let full = lines.map(|line| usize::from(!line.put(mad.to_vec())));
        full.sum()
    }

    /// Has a port be another: `number` counts in the order in which they were added, and one that there is not stays as it is.
    /// It is told, and the administrator takes it for another port where its GID is another one. The LID stays.
    pub fn change(&self, number: usize, change: impl FnOnce(&mut Facts)) {
        let mut shared = lock(&self.shared);
        let Some((lid, line)) = shared.ports.iter_mut().nth(number) else {
            return;
        };
        let lid = *lid;
        change(&mut line.facts);
        line.facts.lid = lid;
        line.ask();
        let (gid, mtu) = (line.facts.gid(), Mtu::M4096);
        shared.sa.add_port(SubnetPort { gid, lid, mtu });
    }

    /// What has come to the ports, and waits to be taken.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let shared = lock(&self.shared);
        shared.ports.values().map(Line::waiting).sum()
    }
}

/// The administrator's.
fn own_gid() -> Gid {
    Gid::of_port(PREFIX, Guid(SM.0.into()))
}

/// Whoever held it and panicked left nothing half done that matters to others.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The prefix of subnets that were given none (IBA 4.1.1).
const PREFIX: u64 = 0xFE80 << 48;

fn facts(gid: Gid, lid: Lid, p_keys: Vec<PKey>) -> Facts {
    Facts {
        state: PortState::Active,
        lid,
        lmc: 0,
        sm_lid: SM,
        sm_sl: 0,
        gid_prefix: gid.prefix(),
        guid: gid.guid(),
        p_keys,
        capabilities: 0,
        rate_mbps: 0,
        mtu: Some(PortMtu {
            active: Mtu::M4096,
            most: Mtu::M4096,
        }),
        is_infiniband: true,
    }
}

impl Shared {
    fn put(&mut self, to: Lid, mad: Vec<u8>) {
        if let Some(line) = self.ports.get_mut(&to) {
            line.put(mad);
        }
    }
}

impl Line {
    fn waiting(&self) -> usize {
        self.events.len() + usize::from(self.asked)
    }

    /// Has what is known of the port come, once for all who ask before it is taken.
    fn ask(&mut self) {
        self.asked = true;
        self.bell.ring();
    }

    /// Has a datagram of the administrator come. Whether there was room for it.
    fn put(&mut self, mad: Vec<u8>) -> bool {
        let room = self.waiting() < EVENTS;
        if room {
            self.events.push_back(Event::Arrived(Arrived {
                class: Class::Administration,
                source: Source {
                    lid: SM,
                    sl: 0,
                    queue_pair: 1,
                    gid: None,
                },
                mad,
            }));
            self.bell.ring();
        }
        room
    }
}

impl Subnet for MemoryPort {
    fn send(&mut self, class: Class, to: Target, mad: &[u8], _: Reply) -> Result<(), Fault> {
        if class != Class::Administration || to.lid != SM {
            // Nobody is there: silence.
            return Ok(());
        }
        let mut shared = lock(&self.shared);
        if let Some(answer) = shared.sa.answer(self.facts.lid, mad) {
            shared.put(self.facts.lid, answer);
        }
        while let Some((lid, report)) = shared.sa.next_report() {
            shared.put(lid, report);
        }
        Ok(())
    }

    fn take(&mut self) -> Option<Event> {
        self.bell.hush();
        let mut shared = lock(&self.shared);
        let line = shared.ports.get_mut(&self.facts.lid)?;
        if !std::mem::take(&mut line.asked) {
            return line.events.pop_front();
        }
        self.facts = line.facts.clone();
        Some(Event::Facts(Box::new(self.facts.clone())))
    }

    fn ask_facts(&mut self) {
        let mut shared = lock(&self.shared);
        if let Some(line) = shared.ports.get_mut(&self.facts.lid) {
            line.ask();
        }
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }
}

impl AsFd for MemoryPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (*self.bell).as_fd()
    }
}

impl Drop for MemoryPort {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.sa.remove_port(self.facts.lid);
        shared.ports.remove(&self.facts.lid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpcrdma_ipoib::mad::{Mad, TABLE_BYTES};

    #[test]
    fn a_report_comes_to_every_port_that_has_room() {
        let mut subnet = MemorySubnet::new(vec![PKey::DEFAULT]);
        let [mut near, _far] = [(); 2].map(|()| subnet.add_port().unwrap().0);
        assert_eq!(subnet.waiting(), 2, "the facts of each");
        let event = mad::Event::GroupDeleted(own_gid());
        for _ in 1..EVENTS {
            assert_eq!(subnet.report(event), 0);
        }
        assert_eq!((subnet.report(event), subnet.waiting()), (2, 2 * EVENTS));
        assert!(matches!(near.take(), Some(Event::Facts(_))));
        assert_eq!((subnet.report(event), subnet.waiting()), (1, 2 * EVENTS));
        let Some(Event::Arrived(came)) = near.take() else {
            panic!("a report");
        };
        let mad = Mad::parse(&came.mad, TABLE_BYTES).unwrap();
        assert_eq!((mad.method, came.source.lid), (Method::Report, SM));
        assert_eq!(mad.record::<Notice>().unwrap().event(), Some(event));
    }
}
