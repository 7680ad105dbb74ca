//! A driver whose way to the SA is played, and one on the memory fabric.

use super::*;
use crate::memory::MemorySubnet;
use crate::pairs::Pairs;
use rpcrdma_fabric::bell::Bell;
use rpcrdma_fabric::datagram::{self as fabric, DatagramFabric, Failure, FailureKind, LinkName};
use rpcrdma_ipoib::link::LinkState;
use rpcrdma_ipoib::mgid::Family;
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_ipoib::settings::{Creation, LinkSpec, Settings};
use rpcrdma_memory::MemoryFabric;
use rpcrdma_umad::{Facts, Fault, PortState};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A way that says what it was told to say.
struct Played {
    facts: Facts,
    events: VecDeque<Event>,
    counts: SubnetCounts,
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
            counts: SubnetCounts {
                dropped: 3,
                strays: 2,
            },
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

    fn counts(&self) -> SubnetCounts {
        self.counts
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
    let mut driver = Driver::new(
        node,
        Clock::starting(now),
        way,
        QueuePairs::none(None),
        (None, 1),
        reopen,
    );
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
    let mut driver = Driver::new(
        node,
        clock,
        way,
        QueuePairs::none(None),
        place,
        Box::new(reopen),
    );
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
    let both = SubnetCounts {
        dropped: 6,
        strays: 4,
    };
    assert_eq!(driver.subnet_counts(), both, "of both ways");
}

/// A device that says what it was told to say, and makes no queue pairs.
struct Device(Arc<Mutex<VecDeque<LinkChange>>>);

impl Pairs for Device {
    fn open(&mut self, _: &PairWanted) -> Result<Box<dyn Datagrams + Send>, Failure> {
        Err(FailureKind::Unsupported.because("it is watched"))
    }

    fn link(&self, _: Option<&str>, _: u8) -> Option<fabric::Link> {
        None
    }

    fn change(&mut self) -> Option<(LinkName, LinkChange)> {
        let change = self.0.lock().unwrap().pop_front()?;
        let (device, number) = ("played".to_owned(), 1);
        Some((LinkName { device, number }, change))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// What the subnet administrator has forgotten is sure no more, and asked for again (IBA's client-reregister event).
#[test]
fn a_device_that_is_to_register_again_puts_what_is_joined_in_doubt() {
    let mut subnet = MemorySubnet::new(vec![PKey::DEFAULT]);
    let (way, _fabric) = subnet.add_port().unwrap();
    let changes = Arc::default();
    let mut now = Instant::now();
    let mut driver = Driver::new(
        Node::new(Settings::default(), 1),
        Clock::starting(now),
        Box::new(way),
        QueuePairs::none(Some(Box::new(Device(Arc::clone(&changes))))),
        (None, 1),
        Box::new(|| Err("it never ends".to_owned())),
    );
    let link = add_link(&mut driver, now);
    let state = |driver: &Driver| driver.node().link_status(link).unwrap().state;
    let mut states = |driver: &mut Driver| {
        let some = (0..20).map(|_| {
            now += Duration::from_millis(10);
            driver.turn(now, &mut |_| {});
            state(driver)
        });
        some.collect::<Vec<_>>()
    };
    assert_eq!(states(&mut driver).last(), Some(&LinkState::Up));
    for (change, doubts) in [(LinkChange::Gids, false), (LinkChange::Reregister, true)] {
        changes.lock().unwrap().push_back(change);
        let states = states(&mut driver);
        assert_eq!(states.contains(&LinkState::Degraded), doubts, "{change:?}");
        assert_eq!(states.last(), Some(&LinkState::Up));
    }
}

#[test]
fn what_a_queue_pair_counted_is_kept_when_there_is_another() {
    let mut fabric = MemoryFabric::new();
    let mut queue = Queue::default();
    for sent in 1..=3 {
        queue.set(Some(pair(&mut fabric)));
        let nowhere = AddressVector {
            lid: 0xBFFF,
            gid: None,
            queue_pair: 99,
            q_key: 0,
            service_level: 0,
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 0,
            rate: 0,
        };
        let pair = queue.pair.as_mut().unwrap();
        pair.send(b"?", &nowhere).unwrap();
        assert_eq!(queue.counts().sent, sent);
    }
    queue.set(None);
    assert_eq!(queue.counts().sent, 3);
}

/// A queue pair of a node that is no more.
fn gone() -> Box<dyn Datagrams + Send> {
    pair(&mut MemoryFabric::new())
}

fn pair(fabric: &mut MemoryFabric) -> Box<dyn Datagrams + Send> {
    let wanted = PairWanted {
        p_key: 0xFFFF,
        ..PairWanted::default()
    };
    Box::new(fabric.open_pair(&wanted).unwrap())
}

/// Adds the link that the port's partition has.
fn add_link(driver: &mut Driver, now: Instant) -> LinkId {
    let spec = LinkSpec {
        p_key: PKey::DEFAULT,
        family: Family::V4,
        create: Some(Creation::default()),
        router: false,
    };
    let mut link = None;
    driver.tell(|node, at| link = node.add_link(at, spec).ok(), now);
    link.unwrap()
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
        QueuePairs::Of(Box::new(fabric)),
        (None, 1),
        Box::new(|| Err("it never ends".to_owned())),
    );
    let link = add_link(&mut driver, start);
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
    driver.queues[usize::from(link.0)].set(Some(gone()));
    until_whole(&mut driver, &mut now);
    let first = driver.renewed.expect("it was gone");
    driver.queues[usize::from(link.0)].set(Some(gone()));
    driver.turn(first + AGAIN / 2, &mut |_| {});
    assert_eq!(driver.renewed, Some(first), "not before its time");
    assert!(driver.deadline().is_some_and(|due| due <= first + AGAIN));
    until_whole(&mut driver, &mut now);
    assert!(driver.renewed >= Some(first + AGAIN));
}
