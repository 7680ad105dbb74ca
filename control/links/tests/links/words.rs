//! What is said to the log: a start and an end that go well without a warning, what is wrong once.

use crate::bench::{Bench, addressed};
use crate::log::Log;
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_links::MemorySubnet;
use rpcrdma_umad::PortState;
use std::time::Duration;

const NO_GROUP: &str = "link l0: IPv4 is down: the partition has no broadcast group, and this node is not its administrator";

const INACTIVE: &str = "link l0: IPv4 is down: the port is not active";

#[test]
fn a_start_and_an_end_that_go_well_are_no_warnings() {
    let log = Log::default();
    log.of(|| {
        let mut plans = addressed(&["10.1.0.1/24", "10.1.0.2/24"]);
        plans.iter_mut().for_each(|plan| plan.ipv6 = true);
        let mut bench = Bench::of(&plans);
        bench.until("all addresses are used", |links| {
            (0..2).all(|link| links.addresses(link).count() == 2)
        });
        let to = "239.9.9.9:111".parse().unwrap();
        bench.links.send(0, 700, to, b"?", bench.now).unwrap();
        bench.pass(Duration::from_secs(2), |_| {});
        bench.links.close(bench.now);
        bench.until("all is left", |links| links.is_closed());
    });
    assert_eq!(log.warnings(), [""; 0]);
}

#[test]
fn section_7_a_broadcast_group_that_is_missing_is_said_once() {
    let log = Log::default();
    log.of(|| {
        let mut plans = addressed(&["10.1.0.1/24"]);
        plans[0].administrator = None;
        let mut bench = Bench::of(&plans);
        bench.pass(Duration::from_secs(60), |_| {});
        assert_eq!(log.warnings(), [NO_GROUP]);
    });
}

/// A reason is news again once the link was up.
#[test]
fn a_port_that_is_down_is_said_each_time() {
    let log = Log::default();
    log.of(|| {
        let mut subnet = MemorySubnet::new(vec![PKey::DEFAULT]);
        let mut bench = Bench::start_in(&mut subnet, &addressed(&["10.1.0.1/24"]));
        bench.until("it is up", |links| links.status()[0].is_up());
        for _ in 0..2 {
            subnet.change(0, |facts| facts.state = PortState::Down);
            bench.until("it is down", |links| !links.status()[0].is_up());
            bench.pass(Duration::from_secs(60), |_| {});
            subnet.change(0, |facts| facts.state = PortState::Active);
            bench.until("it is up", |links| links.status()[0].is_up());
        }
    });
    assert_eq!(log.warnings(), [INACTIVE; 2]);
}

#[test]
fn rfc5227_2_1_1_an_address_that_stays_taken_is_said_once() {
    let log = Log::default();
    log.of(|| {
        let mut bench = Bench::of(&addressed(&["10.1.0.1/24", "10.1.0.1/24"]));
        bench.pass(Duration::from_secs(300), |_| {});
    });
    let warnings = log.warnings();
    let [taken] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    assert!(
        taken.contains("10.1.0.1 is not used, since another node"),
        "{taken}"
    );
}
