//! A played manager and device; the queue pair is one of the memory fabric.

use super::*;
use log::Log;
use rpcrdma_fabric::datagram::{
    DatagramCounts, DatagramFabric, Datagrams, GidOctets, Group as Multicast, GroupLimits, Link,
    PairWanted, Unsent,
};
use rpcrdma_memory::{MemoryDatagrams, MemoryFabric};
use std::sync::{Arc, Mutex};

#[path = "../../tests/links/log.rs"]
mod log;

const WANTED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(239, 1, 1, 1));
const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(239, 1, 1, 2));

/// What the manager was told, what it is to say, and what the device does.
#[derive(Default)]
struct Manager {
    told: Vec<(&'static str, IpAddr)>,
    says: VecDeque<(IpAddr, Standing)>,
    changes: VecDeque<(LinkName, LinkChange)>,
    /// The GID table.
    gids: Vec<GidOctets>,
    /// Devices that there were.
    opened: usize,
    /// There is no device.
    absent: bool,
}

type Shared = Arc<Mutex<Manager>>;

struct Played {
    manager: Shared,
    pair: MemoryDatagrams,
}

struct Device(Shared);

impl Pairs for Device {
    fn open(&mut self, _: &PairWanted) -> Result<Box<dyn Datagrams + Send>, Failure> {
        Err(FailureKind::Unsupported.because("managed pairs alone"))
    }

    fn link(&self, device: Option<&str>, number: u8) -> Option<Link> {
        let gids = self.0.lock().unwrap().gids.clone();
        let link = |device: &str| Link {
            device: device.to_owned(),
            number,
            up: true,
            ethernet: true,
            lid: 0,
            sm_lid: 0,
            sm_service_level: 0,
            gids,
            p_keys: vec![0xFFFF],
            mtu: 4096,
            limits: GroupLimits::default(),
        };
        device.map(link)
    }

    fn change(&mut self) -> Option<(LinkName, LinkChange)> {
        self.0.lock().unwrap().changes.pop_front()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

impl Memberships for Played {
    fn join(&mut self, group: IpAddr, _: Membership) -> Result<(), Failure> {
        self.manager.lock().unwrap().told.push(("join", group));
        Ok(())
    }

    fn leave(&mut self, group: IpAddr) -> Result<(), Failure> {
        self.manager.lock().unwrap().told.push(("leave", group));
        Ok(())
    }

    fn standing(&mut self) -> Option<(IpAddr, Standing)> {
        self.manager.lock().unwrap().says.pop_front()
    }

    fn memberships(&self) -> usize {
        0
    }
}

impl Datagrams for Played {
    fn facts(&self) -> &PairFacts {
        self.pair.facts()
    }

    fn attach(&mut self, group: Multicast) -> Result<(), Failure> {
        self.pair.attach(group)
    }

    fn detach(&mut self, group: Multicast) -> Result<(), Failure> {
        self.pair.detach(group)
    }

    fn attached(&self) -> usize {
        self.pair.attached()
    }

    fn send(&mut self, octets: &[u8], to: &AddressVector) -> Result<(), Unsent> {
        self.pair.send(octets, to)
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Arrival> {
        self.pair.receive(into)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.pair.descriptor()
    }

    fn is_gone(&self) -> bool {
        self.pair.is_gone()
    }

    fn counts(&self) -> DatagramCounts {
        self.pair.counts()
    }
}

/// A link and its manager.
struct Bench {
    ethernet: Ethernet,
    manager: Shared,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let manager = Shared::default();
        let of = Arc::clone(&manager);
        // The queue pair lives as long as its node.
        let mut node = MemoryFabric::new();
        let reopen = move || {
            if of.lock().unwrap().absent {
                return Err("no device".to_owned());
            }
            of.lock().unwrap().opened += 1;
            let wanted = PairWanted {
                link: 1,
                p_key: 0xFFFF,
                ..PairWanted::default()
            };
            let pair = node.open_pair(&wanted).map_err(|it| it.to_string())?;
            of.lock().unwrap().gids = vec![[0; 16], pair.facts().gid];
            let pair = Played {
                manager: Arc::clone(&of),
                pair,
            };
            Ok(Footing::new(
                Box::new(pair),
                Box::new(Device(Arc::clone(&of))),
            ))
        };
        Self {
            ethernet: Ethernet::new("e", Box::new(reopen)).unwrap(),
            manager,
            now: Instant::now(),
        }
    }

    fn turn(&mut self, after: Duration) {
        self.now += after;
        self.ethernet.turn(self.now);
    }

    /// Something has changed of a link of the device.
    fn changed(&mut self, number: u8, change: LinkChange) {
        let device = self.ethernet.facts().device.clone();
        let name = LinkName { device, number };
        self.manager
            .lock()
            .unwrap()
            .changes
            .push_back((name, change));
        self.turn(Duration::ZERO);
    }

    /// What the manager was told since.
    fn told(&self) -> Vec<(&'static str, IpAddr)> {
        std::mem::take(&mut self.manager.lock().unwrap().told)
    }

    fn join(&mut self) {
        self.ethernet.join(WANTED, self.now);
        self.ethernet.send_group(OTHER, vec![0; 8], self.now);
        assert_eq!(self.told(), [("join", WANTED), ("join", OTHER)]);
    }

    fn all_joined(&mut self) {
        let to = AddressVector::of_group(
            Multicast {
                mgid: [0xFF; 16],
                mlid: 0xC001,
            },
            1,
        );
        for group in [WANTED, OTHER] {
            let said = (group, Standing::Joined(to));
            self.manager.lock().unwrap().says.push_back(said);
        }
        self.turn(Duration::ZERO);
        assert!(self.ethernet.groups().all(|(_, _, joined)| joined));
    }
}

#[test]
fn a_link_is_as_its_port() {
    let mut bench = Bench::new();
    assert_eq!(bench.ethernet.trouble(), None);
    let down = Some("its port is down");
    for (number, change, trouble) in [
        (2, LinkChange::Down, None),
        (1, LinkChange::Down, down),
        (2, LinkChange::Up, down),
        (1, LinkChange::Up, None),
    ] {
        bench.changed(number, change);
        assert_eq!(bench.ethernet.trouble(), trouble, "{number}: {change:?}");
    }
}

#[test]
fn a_device_that_was_gone_is_looked_for_and_joins_what_was_wanted() {
    let mut bench = Bench::new();
    bench.join();
    bench.all_joined();
    bench.manager.lock().unwrap().absent = true;
    bench.changed(0, LinkChange::Gone);
    assert_eq!(bench.ethernet.trouble(), Some("its device is gone"));
    let left: Vec<_> = bench.ethernet.groups().collect();
    assert_eq!(left, [(WANTED, Membership::Full, false)]);
    assert_eq!(bench.ethernet.descriptors().count(), 0);
    assert!(bench.ethernet.receive().is_none());
    assert_eq!(bench.ethernet.deadline(), Some(bench.now + AGAIN));
    bench.manager.lock().unwrap().absent = false;
    bench.turn(AGAIN / 2);
    assert!(bench.ethernet.trouble().is_some(), "not before its time");
    bench.turn(AGAIN / 2);
    assert_eq!(bench.ethernet.trouble(), None);
    assert_eq!(bench.told(), [("join", WANTED)]);
    assert_eq!(bench.manager.lock().unwrap().opened, 2);
}

#[test]
fn a_link_whose_address_has_moved_joins_from_where_it_is_now() {
    let mut bench = Bench::new();
    bench.join();
    bench.all_joined();
    bench.manager.lock().unwrap().gids.push([7; 16]);
    bench.changed(1, LinkChange::Gids);
    assert_eq!(bench.ethernet.trouble(), None, "another address came");
    bench.manager.lock().unwrap().absent = true;
    bench.manager.lock().unwrap().gids.swap(0, 1);
    bench.changed(1, LinkChange::Gids);
    let trouble = bench.ethernet.trouble();
    assert_eq!(trouble, Some("its address is not the port's any more"));
    bench.manager.lock().unwrap().absent = false;
    bench.turn(AGAIN);
    assert_eq!(bench.ethernet.trouble(), None);
    assert_eq!(bench.told(), [("join", WANTED)]);
}

#[test]
fn a_group_of_which_nothing_is_said_is_not_joined() {
    let mut bench = Bench::new();
    bench.join();
    assert_eq!(bench.ethernet.deadline(), Some(bench.now + ANSWER));
    bench.turn(ANSWER - Duration::from_millis(1));
    assert_eq!(bench.told(), []);
    bench.turn(Duration::from_millis(1));
    assert_eq!(bench.told(), [("leave", WANTED), ("leave", OTHER)]);
    let counts = *bench.ethernet.counts();
    assert_eq!((counts.failed_joins, counts.dropped), (2, 1));
    bench.turn(PAUSE.0);
    assert_eq!(bench.told(), [("join", WANTED), ("join", OTHER)]);
    bench.all_joined();
}

#[test]
fn a_group_that_cannot_be_joined_is_said_once_until_it_is() {
    let log = Log::default();
    let mut bench = Bench::new();
    bench.ethernet.join(WANTED, bench.now);
    log.of(|| {
        for _ in 0..10 {
            let failure = FailureKind::Refused.because("no");
            let said = (WANTED, Standing::Failed(failure));
            bench.manager.lock().unwrap().says.push_back(said);
            bench.turn(Duration::ZERO);
            bench.turn(PAUSE.1);
        }
    });
    assert_eq!(bench.ethernet.counts().failed_joins, 10);
    assert_eq!(log.warnings().len(), 1, "{:?}", log.warnings());
    assert!(log.warnings()[0].starts_with("link e: group 239.1.1.1 is not joined"));
    log.of(|| {
        bench.ethernet.send_group(OTHER, vec![0; 8], bench.now);
        bench.all_joined();
        bench.changed(0, LinkChange::Gone);
        bench.turn(ANSWER);
        bench.turn(ANSWER);
    });
    assert_eq!(log.warnings().len(), 2, "{:?}", log.warnings());
}

#[test]
fn that_there_are_too_many_groups_is_said_once() {
    let log = Log::default();
    let mut bench = Bench::new();
    log.of(|| {
        for last in 0..u32::try_from(GROUPS).unwrap() + 100 {
            let group = std::net::Ipv4Addr::from_bits(0xEF01_0000 + last);
            bench
                .ethernet
                .send_group(group.into(), vec![0; 8], bench.now);
        }
    });
    let counts = bench.ethernet.counts();
    assert_eq!((counts.failed_joins, counts.dropped), (100, 100));
    assert_eq!(log.warnings().len(), 1);
}
