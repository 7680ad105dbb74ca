//! How the clients of a back wait for the way to its upstream, on a fabric that takes its time.

#[path = "support/mod.rs"]
mod support;

use rpcrdma_config::plan::Upstream;
use rpcrdma_fabric::connect::{ConnectionId, Event, Fabric};
use rpcrdma_memory::{Error, MemoryFabric};
use rpcrdmad::supervise::{Handle, Supervisor};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use support::appliance::plan;
use support::octets::{BENCHMARK, call, success};
use support::tcp::Stream;
use support::twisted::{Twist, Twisted};
use support::until;

/// What a test sees of a [`Slow`] fabric, and tells it.
#[derive(Default)]
struct Desk {
    /// Nothing is found while this is set.
    held: AtomicBool,
    /// Connections whose way is being looked for.
    looking: AtomicUsize,
    /// Most there ever were.
    peak: AtomicUsize,
    abandoned: AtomicUsize,
    /// Addresses that were looked for, in order.
    asked: Mutex<Vec<String>>,
    /// The one address that there is a way to; empty: all.
    good: Mutex<String>,
}

/// Addresses that are found when a test says so, or are not.
struct Slow {
    desk: Arc<Desk>,
    looking: HashSet<ConnectionId>,
    lost: HashSet<ConnectionId>,
    found: Vec<Event>,
}

impl Slow {
    fn forget(&mut self, connection: ConnectionId) {
        if self.looking.remove(&connection) {
            self.desk.looking.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// One event that a test lets out by now.
    fn release(&mut self, inner: &mut MemoryFabric) -> Option<Event> {
        if self.desk.held.load(Ordering::SeqCst) {
            return None;
        }
        let event = self.found.pop()?;
        let Event::Resolved { connection } = event else {
            return Some(event);
        };
        self.forget(connection);
        if self.lost.remove(&connection) {
            inner.abandon(connection);
            let reason = "no way there".to_owned();
            return Some(Event::Rejected { connection, reason });
        }
        Some(event)
    }
}

impl Twist for Slow {
    fn resolve(&mut self, inner: &mut MemoryFabric, address: &str) -> Result<ConnectionId, Error> {
        let connection = inner.resolve(address)?;
        self.looking.insert(connection);
        let looking = self.desk.looking.fetch_add(1, Ordering::SeqCst) + 1;
        self.desk.peak.fetch_max(looking, Ordering::SeqCst);
        self.desk.asked.lock().unwrap().push(address.to_owned());
        let good = self.desk.good.lock().unwrap();
        if !good.is_empty() && *good != address {
            self.lost.insert(connection);
        }
        Ok(connection)
    }

    fn abandon(&mut self, inner: &mut MemoryFabric, connection: ConnectionId) {
        self.found
            .retain(|event| *event != Event::Resolved { connection });
        // Before the count of those looked for falls, which is what tests wait for.
        self.desk.abandoned.fetch_add(1, Ordering::SeqCst);
        self.forget(connection);
        inner.abandon(connection);
    }

    fn poll(&mut self, inner: &mut MemoryFabric) -> Option<Event> {
        while let Some(event) = inner.poll() {
            match event {
                Event::Resolved { .. } => self.found.insert(0, event),
                other => return Some(other),
            }
        }
        self.release(inner)
    }
}

/// An appliance with a back that leads to the built-in program.
struct Scene {
    desk: Arc<Desk>,
    handle: Handle,
    back: SocketAddr,
    control: JoinHandle<Result<(), String>>,
}

impl Scene {
    /// `upstream` as it would be in a fabric with IP addresses; the service listens at `listen`.
    fn new(desk: Desk, upstream: Option<Upstream>, listen: &str) -> Scene {
        let mut plan = plan(
            "[[back]]\nname = 'b'\nlisten = '127.0.0.1:0'\nupstream = 's'\n\
             [[service]]\nname = 's'\nlisten = 's'\n\
             [runtime]\nmemory_mib = 32\nconnections_max = 128\nlcores = 1\n[transport]\ncredits = 4\n",
        );
        plan.services[0].listen = listen.to_owned();
        if let Some(upstream) = upstream {
            plan.backs[0].upstream = upstream;
        }
        let desk = Arc::new(desk);
        let fabric = Twisted::new(Slow {
            desk: Arc::clone(&desk),
            looking: HashSet::new(),
            lost: HashSet::new(),
            found: Vec::new(),
        });
        let supervisor = Supervisor::start(plan, fabric).expect("an appliance");
        let handle = supervisor.handle();
        let back = supervisor.back_addresses()[0].1;
        let run = move || supervisor.run(None).map_err(|error| format!("{error:#}"));
        Scene {
            desk,
            handle,
            back,
            control: std::thread::spawn(run),
        }
    }

    /// Waits until so many ways are being looked for.
    fn until_looking(&self, count: usize) {
        until("ways being looked for", || {
            (self.desk.looking.load(Ordering::SeqCst) == count).then_some(())
        });
    }

    fn asked(&self) -> Vec<String> {
        self.desk.asked.lock().unwrap().clone()
    }

    fn end(self) {
        self.handle.drain();
        let ended = self.control.join().expect("no panic");
        ended.expect("an orderly end");
    }
}

fn held() -> Desk {
    Desk {
        held: AtomicBool::new(true),
        ..Desk::default()
    }
}

fn is_answered(client: &mut Stream, xid: u32) {
    client.send(&call(xid, BENCHMARK, 1, 0));
    assert_eq!(client.record(), Some(success(xid)));
}

#[test]
fn a_crowd_waits_few_at_a_time_and_all_are_answered() {
    let scene = Scene::new(held(), None, "s");
    let mut clients: Vec<_> = (0..50).map(|_| Stream::to(scene.back)).collect();
    scene.until_looking(32);
    scene.desk.held.store(false, Ordering::SeqCst);
    for (client, xid) in clients.iter_mut().zip(1..) {
        is_answered(client, xid);
    }
    assert_eq!(scene.desk.peak.load(Ordering::SeqCst), 32);
    drop(clients);
    scene.end();
}

#[test]
fn one_who_leaves_while_waiting_is_forgotten() {
    let scene = Scene::new(held(), None, "s");
    let leaving = Stream::to(scene.back);
    scene.until_looking(1);
    leaving.close();
    scene.until_looking(0);
    assert_eq!(scene.desk.abandoned.load(Ordering::SeqCst), 1);
    scene.desk.held.store(false, Ordering::SeqCst);
    is_answered(&mut Stream::to(scene.back), 7);
    scene.end();
}

#[test]
fn who_still_waits_at_the_end_is_shown_out() {
    let scene = Scene::new(held(), None, "s");
    let mut waiting = Stream::to(scene.back);
    scene.until_looking(1);
    let desk = Arc::clone(&scene.desk);
    scene.end();
    assert_eq!(waiting.record(), None);
    assert_eq!(desk.abandoned.load(Ordering::SeqCst), 1);
}

#[test]
fn a_client_whose_upstream_is_not_found_is_shown_out() {
    let desk = Desk {
        good: Mutex::new("elsewhere".to_owned()),
        ..Desk::default()
    };
    let scene = Scene::new(desk, None, "s");
    assert_eq!(Stream::to(scene.back).record(), None);
    assert_eq!(scene.asked(), ["s"]);
    scene.end();
}

#[test]
fn each_address_of_a_name_is_tried_until_there_is_a_way() {
    // Whatever this machine's resolver says of its own name, in whichever order.
    let all: Vec<String> = std::net::ToSocketAddrs::to_socket_addrs(&("localhost", 20049))
        .expect("localhost has addresses")
        .map(|address| address.to_string())
        .collect();
    let last = all.last().expect("at least one").clone();
    let desk = Desk {
        good: Mutex::new(last.clone()),
        ..Desk::default()
    };
    let upstream = Upstream::Host {
        host: "localhost".to_owned(),
        port: 20049,
    };
    let scene = Scene::new(desk, Some(upstream), &last);
    is_answered(&mut Stream::to(scene.back), 9);
    assert_eq!(scene.asked(), all);
    scene.end();
}

#[test]
fn a_name_without_an_address_shows_its_clients_out() {
    let upstream = Upstream::Host {
        // No name may have a label of this length (RFC 1035 section 2.3.4): no server is asked.
        host: "x".repeat(64),
        port: 20049,
    };
    let scene = Scene::new(Desk::default(), Some(upstream), "s");
    assert_eq!(Stream::to(scene.back).record(), None);
    assert!(scene.asked().is_empty());
    scene.end();
}
