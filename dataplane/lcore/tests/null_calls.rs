//! The real engine over the memory fabric on two lcores: NULL calls from one to the other.

mod pair;

use pair::{Caller, Host, client, server};
use rpcrdma_engine::{CloseReason, Counters};
use rpcrdma_fabric::pool::Usage;
use rpcrdma_lcore::{Ending, Exit, Idle, Lcore, Snapshot, spawn};
use rpcrdma_memory::{MemoryFabric, MemoryPort};
use rpcrdma_upper::Upper;
use rpcrdma_upper::program::Service;
use rpcrdma_wire::Version;
use std::sync::Arc;
use std::time::Duration;

/// Both lcores and control on one thread, turn by turn.
struct Pair {
    client: Host<Caller>,
    server: Host<Service>,
    lcores: (Lcore<MemoryPort, Caller>, Lcore<MemoryPort, Service>),
}

impl Pair {
    fn new(version: Version, total: u32) -> Pair {
        let fabric = MemoryFabric::new();
        let (server, server_parts) = server(&fabric, version);
        let (client, client_parts) = client(&fabric, total);
        let lcores = (
            client_parts.lcore(Idle::Spin),
            server_parts.lcore(Idle::Spin),
        );
        Pair {
            client,
            server,
            lcores,
        }
    }

    /// Steps until `done`, which must come about in so many steps.
    fn until(&mut self, done: impl Fn(&Pair) -> bool) {
        for _ in 0..100_000 {
            self.client.step();
            self.lcores.0.turn();
            self.server.step();
            self.lcores.1.turn();
            if done(self) {
                return;
            }
        }
        panic!("it does not come about");
    }

    fn surveys(&mut self) -> (Box<Snapshot<Caller>>, Box<Snapshot<Service>>) {
        self.client.survey();
        self.server.survey();
        self.until(|pair| pair.client.snapshot.is_some() && pair.server.snapshot.is_some());
        let client = self.client.snapshot.take().expect("seen");
        (client, self.server.snapshot.take().expect("seen"))
    }
}

/// What must be the same on both ends when all calls were answered.
fn assert_balanced(caller: &Counters, server: &Counters, calls: u64) {
    assert_eq!(caller.calls_out, calls);
    assert_eq!(caller.replies_in, calls);
    assert_eq!(server.calls_in, calls);
    assert_eq!(server.replies_out, calls);
}

fn in_use<U: Upper>(snapshot: &Snapshot<U>) -> u64 {
    let Usage {
        in_use_bytes,
        foreign_releases,
        ..
    } = snapshot.memory;
    assert_eq!(foreign_releases, 0);
    in_use_bytes
}

#[test]
fn every_call_is_answered_in_version_two() {
    let mut pair = Pair::new(Version::Two, 1000);
    let before = pair.surveys();
    pair.client.connect();
    pair.until(|pair| pair.client.said == [1000]);
    let (client, server) = pair.surveys();
    assert_balanced(&client.counters, &server.counters, 1000);
    let row = client.connections[0];
    assert_eq!(row.version, Some(Version::Two));
    assert_eq!(row.calls_out.used, 0);
    assert_eq!(u32::from(pair::DEPTH), row.calls_out.granted);

    pair.client.close_all();
    pair.until(|pair| pair.client.ended.len() == 1 && pair.server.ended.len() == 1);
    assert_eq!(pair.client.ended[0].0, Ending::Closed(CloseReason::Local));
    assert_eq!(pair.server.ended[0].0, Ending::Closed(CloseReason::Peer));
    let after = pair.surveys();
    assert_eq!(
        in_use(&after.0),
        in_use(&before.0),
        "nothing leaks at the client"
    );
    assert_eq!(in_use(&after.1), in_use(&before.1), "nor at the server");
}

#[test]
fn a_server_of_version_one_is_fallen_back_to() {
    let mut pair = Pair::new(Version::One, 100);
    pair.client.connect();
    pair.until(|pair| pair.client.said == [100]);
    let (client, server) = pair.surveys();
    assert_eq!(client.connections[0].version, Some(Version::One));
    assert_eq!(client.counters.fallbacks, 1);
    assert_eq!(server.counters.replies_out, 100);
}

#[test]
fn many_connections_share_two_lcores() {
    /// So many that an lcore looks ahead at whose messages come next.
    const MANY: usize = 80;
    let mut pair = Pair::new(Version::Two, 50);
    for _ in 0..MANY {
        pair.client.connect();
    }
    pair.until(|pair| pair.client.said == [50; MANY]);
    let (client, server) = pair.surveys();
    assert_balanced(&client.counters, &server.counters, 50 * MANY as u64);
    assert_eq!(client.connections.len() + client.left_out, MANY);
}

#[test]
fn losing_a_connection_in_the_middle_ends_every_call_once() {
    for turns in (0..40).chain((40..400).step_by(24)) {
        let mut pair = Pair::new(Version::Two, 1_000_000);
        pair.client.connect();
        pair.until(|pair| pair.client.line.free_seats() < 1024);
        for _ in 0..turns {
            pair.client.step();
            pair.lcores.0.turn();
            pair.server.step();
            pair.lcores.1.turn();
        }
        pair.client.close_all();
        pair.until(|pair| pair.client.ended.len() == 1);
        let (_, session) = &pair.client.ended[0];
        let Caller {
            answered, failed, ..
        } = session.upper;
        let (client, _) = pair.surveys();
        assert_eq!(client.counters.replies_in, answered.into());
        assert_eq!(client.counters.calls_failed, failed.into());
        assert_eq!(in_use(&client), 0, "after {turns} turns");
    }
}

#[test]
fn two_threads_that_sleep_when_idle_answer_every_call() {
    let fabric = MemoryFabric::new();
    let (mut server, server_parts) = server(&fabric, Version::Two);
    let (mut client, client_parts) = client(&fabric, 20_000);
    let idle = Idle::Adaptive {
        spin: Duration::from_micros(20),
    };
    let names = ("serve".to_owned(), "call".to_owned());
    let serving = spawn(None, names.0, Arc::clone(&server.control), move || {
        Ok(server_parts.lcore(idle))
    });
    let calling = spawn(None, names.1, Arc::clone(&client.control), move || {
        Ok(client_parts.lcore(idle))
    });
    client.connect();
    while client.said.is_empty() {
        client.step();
        server.step();
        assert!(!client.line.is_over() && !server.line.is_over());
        std::thread::yield_now();
    }
    assert_eq!(client.said, [20_000]);
    let within = Duration::from_secs(60);
    assert!(client.line.stop(within) && server.line.stop(within));
    assert_eq!(calling.expect("started").join(), Exit::Stopped);
    assert_eq!(serving.expect("started").join(), Exit::Stopped);
    client.step();
    server.step();
    assert_eq!((client.ended.len(), server.ended.len()), (1, 1));
}
