//! A driver whose way to the SA is played, and one on the memory fabric.

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
        QueuePairs::Of(Box::new(fabric)),
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
