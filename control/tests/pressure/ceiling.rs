//! Memory has a ceiling, and what does not fit below it waits, in order, for as long as it takes.

use crate::support::appliance::{Appliance, machine};
use crate::support::octets::success;
use crate::support::octets::{Two, head, payload, word};
use crate::support::peer::Peer;
use crate::support::tcp::{Server, Stream, nfs_null, nfs_write, nfs_write_reply};
use crate::{Way, gateways, on_lcores};
use std::sync::Mutex;
use std::thread;

/// What each client writes.
const BYTES: u32 = 1 << 20;
const CLIENTS: u32 = 200;

/// 200 clients write 1 MiB each at the same time, through memory for some ten of them, to a
/// backend that answers one at a time.
#[test]
fn two_hundred_writers_and_a_slow_backend_stay_below_the_ceiling() {
    two_hundred_writers(1, 32);
}

/// The same where most Calls are made on one lcore and served on another: on two, if the
/// machine has as many.
#[test]
fn two_hundred_writers_on_two_lcores_stay_below_the_ceiling() {
    two_hundred_writers(machine().cores.len().min(2), 24);
}

fn two_hundred_writers(lcores: usize, memory_mib: u32) {
    let server = Server::new();
    let appliance = on_lcores(lcores, server.address(), memory_mib, 2 * CLIENTS, 2);
    let idle = appliance.state().in_use();
    let data = payload(BYTES, 0);
    thread::scope(|scope| {
        let (server, data) = (&server, &data);
        scope.spawn(move || answer_one_at_a_time(server, data));
        for xid in 0..CLIENTS {
            let address = appliance.back();
            scope.spawn(move || {
                let mut client = Stream::to(address);
                client.send(&nfs_write(xid, data));
                assert_eq!(client.record(), Some(nfs_write_reply(xid, BYTES)));
            });
        }
    });
    let state = appliance.state();
    for (peak, ceiling) in state.peaks() {
        assert!(peak <= ceiling, "{peak} of {ceiling} octets");
    }
    let waits = state.counter("memory_waits") + state.counter("upper_memory_waits");
    assert!(waits > 0, "somebody had to wait");
    assert_eq!(state.counter("calls_in"), u64::from(CLIENTS));
    assert_eq!(state.counter("replies_in"), u64::from(CLIENTS));
    appliance.until_in_use(&idle);
}

/// A backend with as many connections as come, and one thing done at a time.
fn answer_one_at_a_time(server: &Server, data: &[u8]) {
    let one = Mutex::new(());
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let mut stream = server.accept();
            let one = &one;
            scope.spawn(move || {
                let record = stream.record().expect("a call");
                let xid = word(&record, 0);
                let _turn = one.lock().expect("nobody has panicked");
                assert!(
                    record == nfs_write(xid, data),
                    "the very octets of the client"
                );
                stream.send(&nfs_write_reply(xid, BYTES));
                assert_eq!(stream.record(), None, "the client leaves");
            });
        }
    });
}

/// Admission is all or nothing: with as many Calls in flight as there are credits, the client's
/// socket is not read; each answer lets one more in, in order.
#[test]
fn what_is_not_admitted_stays_in_the_socket() {
    const CREDITS: u32 = 4;
    let mut way = Way::new(CREDITS);
    let calls = 2..2 + 8 * CREDITS;
    for xid in calls.clone() {
        way.client.send(&nfs_null(xid));
    }
    for xid in calls.clone() {
        if xid < calls.start + CREDITS {
            assert_eq!(way.backend.record(), Some(nfs_null(xid)));
            continue;
        }
        let before = way.appliance.state();
        let connections = before.0.lcores.iter().flat_map(|lcore| &lcore.connections);
        let used: Vec<u32> = connections.map(|it| it.credits_used).collect();
        assert_eq!(used, [CREDITS; 2], "both ends have what was granted");
        assert!(way.backend.is_silent(), "no more than was granted");
        way.backend.send(&success(xid - CREDITS));
        assert_eq!(way.client.record(), Some(success(xid - CREDITS)));
        assert_eq!(way.backend.record(), Some(nfs_null(xid)));
    }
    for xid in calls.end - CREDITS..calls.end {
        way.backend.send(&success(xid));
        assert_eq!(way.client.record(), Some(success(xid)));
    }
    way.client.close();
    assert_eq!(way.backend.record(), None);
    way.ends_clean();
}

/// Peers whose long Calls wait for memory: whoever leaves makes no difference to the others, and
/// those that stay are served in the order they came.
#[test]
fn a_call_that_waits_for_memory_goes_with_its_peer() {
    let server = Server::new();
    let appliance = gateways(server.address(), 12, 32, 2);
    let idle = appliance.state().in_use();
    let mut served = Vec::new();
    let mut waiting = Vec::new();
    for xid in 1.. {
        let mut peer = Peer::new(&appliance);
        peer.connect("nfs");
        let waits = appliance.state().counter("memory_waits");
        let record = nfs_write(xid, &payload(BYTES, xid));
        let chunk = peer.readable(&record);
        peer.send(&head(Two, xid).procedure(1).read(0, chunk).with(&[]));
        let (fetched, waits) = fetched_or_waits(&appliance, xid, waits);
        if fetched {
            let mut stream = server.accept();
            assert!(stream.record() == Some(record));
            served.push((xid, peer, stream));
        } else {
            assert!(waits);
            waiting.push((xid, peer, record));
        }
        if waiting.len() == 3 {
            break;
        }
    }
    assert!(served.len() >= 4, "{} fit below the ceiling", served.len());
    // The first of those that wait leaves; the backend answers; the second is next.
    let (_, mut first, _) = waiting.remove(0);
    first.leave();
    for (xid, peer, mut stream) in served {
        let mut peer = peer;
        stream.send(&nfs_write_reply(xid, BYTES));
        peer.answer();
        peer.leave();
        assert_eq!(stream.record(), None);
    }
    for (xid, mut peer, record) in waiting {
        let mut stream = server.accept();
        assert!(stream.record() == Some(record), "served in order");
        stream.send(&nfs_write_reply(xid, BYTES));
        peer.answer();
        peer.leave();
        assert_eq!(stream.record(), None);
    }
    for (peak, ceiling) in appliance.state().peaks() {
        assert!(peak <= ceiling, "{peak} of {ceiling} octets");
    }
    appliance.until_in_use(&idle);
}

/// Whether so many Calls have been handed up, or somebody more waits for memory.
fn fetched_or_waits(appliance: &Appliance, calls: u32, waits: u64) -> (bool, bool) {
    appliance.until("a call fetched, or waiting", |state| {
        let fetched = state.counter("calls_in") >= u64::from(calls);
        let more = state.counter("memory_waits") > waits;
        (fetched || more).then_some((fetched, more))
    })
}
