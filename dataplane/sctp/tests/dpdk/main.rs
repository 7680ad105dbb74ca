//! Packets by ports of DPDK: a cable that leads back (net_ring), and shared memory (net_memif).
//! There is one EAL per process: one test.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test uses part of what they share"
)]

mod bed;
#[path = "../support/mod.rs"]
mod support;

use bed::{at, connector, discarded, eal, listener, open, plan, talk, tidy};
use dpdk_sys::Eal;
use rpcrdma_sctp::{DISCARDS, Error, EtherPort, Frames, Llp, Ports, Settings, Usrsctp};
use std::io::ErrorKind;
use std::time::{Duration, Instant};
use support::{Pair, is_absent};

#[test]
fn ports_carry_packets() {
    if is_absent() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("memif");
    let memif =
        |name: &str, role: &str| format!("{name},role={role},id=0,socket={}", socket.display());
    let ports = [
        "net_ring0".to_owned(),
        memif("net_memif0", "server"),
        memif("net_memif1", "client"),
    ];
    let eal = eal(directory.path(), &ports);
    let ring = open(eal, "net_ring0", "10.9.0.1/24");
    what_no_port_can_do_is_refused(eal, &ring);
    one_port_has_many_endpoints(&ring);
    two_endpoints_at_one_address(&ring);
    a_sleeping_lcore_looks_again_soon(&ring);
    two_ports_find_each_other(eal);
    tidy(eal);
}

/// What cannot be is said when it is asked for.
fn what_no_port_can_do_is_refused(eal: &'static Eal, port: &EtherPort) {
    let refused = |name, address| {
        let error = EtherPort::open(eal, &plan(name, address)).expect_err("refused");
        assert!(
            error.to_string().starts_with(&format!("port {name}: ")),
            "{error}"
        );
    };
    refused("net_ring9", "10.9.0.1/24");
    refused("net_ring0", "10.9.0.1/24");
    assert!(Ports::new(Vec::new()).is_err());
    let ports = Ports::new(vec![port.clone()]).expect("one");
    let elsewhere = ([10, 9, 0, 2], 9899).into();
    match Usrsctp::at_port(&ports, elsewhere, true, Settings::default()) {
        Err(Error::Os { source, .. }) => assert_eq!(source.kind(), ErrorKind::AddrNotAvailable),
        other => panic!("{other:?}"),
    }
}

/// Two endpoints on one port, whose own frames come back to it.
fn one_port_has_many_endpoints(port: &EtherPort) {
    let pair = talk(Pair::of(listener(port), connector(port)));
    let frames = pair.server.llp.frames();
    assert!(frames.came > 3_000, "{frames:?}");
    assert_eq!(frames.requests, 0, "itself is known: {frames:?}");
    assert_eq!(discarded(&pair.server.llp, "frame-no-port"), 0);
}

/// The first at a UDP port has it, until it is gone; the other hears nothing.
fn two_endpoints_at_one_address(port: &EtherPort) {
    let now = Instant::now();
    let (first, mut second) = (listener(port), listener(port));
    let mut pair = Pair::of(first, connector(port));
    pair.up_by(at(port, 9899));
    nobody_hears_there(port, &mut pair, &second);
    second.turn(now, &mut |event| panic!("{event:?}"));
    drop(pair);
    drop(second);
    talk(Pair::of(listener(port), connector(port)));
}

/// What is for a UDP port without an endpoint is counted, and told by one endpoint for all.
fn nobody_hears_there(port: &EtherPort, pair: &mut Pair, deaf: &Usrsctp) {
    let now = Instant::now();
    let asked = pair.client.llp.associate(at(port, 7), now);
    asked.expect("asked for");
    pair.until(|pair| discarded(&pair.server.llp, "frame-no-port") >= 1);
    assert_eq!(
        pair.client.llp.discards(),
        [0; DISCARDS.len()],
        "told by the first"
    );
    assert_eq!(deaf.discards(), [0; DISCARDS.len()]);
    let frames = pair.server.llp.frames();
    assert!(
        frames.came > 3_000 && frames.sent >= frames.came,
        "{frames:?}"
    );
    let told_by_others = [pair.client.llp.frames(), deaf.frames()];
    assert_eq!(told_by_others, [Frames::default(); 2]);
}

/// Nothing announces what comes to a port.
fn a_sleeping_lcore_looks_again_soon(port: &EtherPort) {
    let now = Instant::now();
    let deadline = listener(port).deadline().expect("it looks again");
    assert!(deadline > now && deadline <= Instant::now() + Duration::from_millis(1));
}

/// Two ports joined by shared memory, over IPv6: neighbours are found.
fn two_ports_find_each_other(eal: &'static Eal) {
    let here = open(eal, "net_memif0", "2001:db8:9::1/64");
    let there = open(eal, "net_memif1", "2001:db8:9::2/64");
    let pair = talk(Pair::of(listener(&here), connector(&there)));
    assert!(here.is_up() && there.is_up());
    for end in [&pair.server, &pair.client] {
        let frames = end.llp.frames();
        assert!(frames.came > 3_000, "{frames:?}");
        assert!(frames.came_bytes > 60 * frames.came, "{frames:?}");
        assert!(frames.requests >= 1 && frames.answers >= 1, "{frames:?}");
        assert_eq!(end.llp.discards(), [0; DISCARDS.len()]);
    }
}
