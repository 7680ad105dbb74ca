//! The memory fabric by itself, on two pinned cores: `cargo bench -p rpcrdma-memory`.
//!
//! Each line is the median of five runs, with the smallest and the largest. Not a test: the
//! figures depend on the state that the machine is in, see `rpcrdma_fabric::floor`.
#![expect(
    clippy::unwrap_used,
    reason = "a bench that cannot run says so by panicking"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::floor;
use rpcrdma_fabric::{Access, Completion, Octets, Outcome, Port, QueuePair, Token, WorkId};
use rpcrdma_memory::{MemoryFabric, Settings};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use support::{NOTHING, Node, connect, connect_to_itself, span};

/// Read before any thread is pinned: a pinned thread sees its own processor alone.
static CORES: LazyLock<Vec<core_affinity::CoreId>> =
    LazyLock::new(|| core_affinity::get_core_ids().unwrap_or_default());

fn pin(which: usize) {
    if let Some(&core) = CORES.get(which) {
        core_affinity::set_for_current(core);
    }
}

/// Runs five times; prints median, smallest, largest. Only what the command line names a part
/// of, if it names anything.
fn report(what: &str, unit: &str, mut run: impl FnMut() -> f64) {
    let mut wanted = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .peekable();
    if wanted.peek().is_some() && !wanted.any(|word| what.contains(&word)) {
        return;
    }
    let mut runs: Vec<f64> = (0..5).map(|_| run()).collect();
    runs.sort_by(f64::total_cmp);
    println!(
        "{what:<44} {:>10.2} {unit:<10} ({:.2} to {:.2})",
        runs[2], runs[0], runs[4]
    );
}

/// Nanoseconds for a cache line to the other core and back.
fn cache_line() -> f64 {
    const ROUNDS: u64 = 300_000;
    let ball = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            for n in 0..ROUNDS {
                while ball.load(Ordering::Acquire) != 2 * n + 1 {
                    std::hint::spin_loop();
                }
                ball.store(2 * n + 2, Ordering::Release);
            }
        });
        pin(0);
        let start = Instant::now();
        for n in 0..ROUNDS {
            ball.store(2 * n + 1, Ordering::Release);
            while ball.load(Ordering::Acquire) != 2 * n + 2 {
                std::hint::spin_loop();
            }
        }
        start.elapsed().as_nanos() as f64 / ROUNDS as f64
    })
}

fn ping_pong(octets: u32) -> f64 {
    const ROUNDS: usize = 100_000;
    let mut times = Vec::with_capacity(ROUNDS);
    let mut fabric = MemoryFabric::new();
    let record = |time| {
        times.push(time);
        times.len() < ROUNDS
    };
    floor::send_receive_ping_pong(&mut fabric, "floor", octets, pin, record).unwrap();
    times.drain(..ROUNDS / 10);
    times.sort();
    times[times.len() / 2].as_nanos() as f64
}

fn node(fabric: &MemoryFabric, bytes: u64) -> Node {
    let arena = Arc::new(Arena::map(bytes, Hugepages::Try).unwrap());
    arena.prefault().unwrap();
    let (id, port) = fabric
        .open_port_with(Arc::clone(&arena), &Settings::default())
        .unwrap();
    Node { id, port, arena }
}

/// Keeps the receives of its side posted, `depth` of them, and counts messages.
struct Sink {
    qps: Vec<QueuePair>,
    octets: u32,
    batch: [Completion; 64],
    got: u64,
}

impl Sink {
    fn new(node: &mut Node, qps: Vec<QueuePair>, octets: u32, depth: u64) -> Sink {
        for (n, &qp) in (0_u64..).zip(&qps) {
            for slot in 0..depth {
                let place = (n * depth + slot) % 4096 * 4096;
                node.receive(qp, span(place, octets), place).unwrap();
            }
        }
        Sink {
            qps,
            octets,
            batch: [NOTHING; 64],
            got: 0,
        }
    }

    /// Reaps once; calls `each` with the queue pair of every message.
    fn turn(&mut self, node: &mut Node, mut each: impl FnMut(&mut Node, QueuePair)) {
        let count = node.port.reap(&mut self.batch);
        for completion in &self.batch[..count] {
            if let Outcome::Received { .. } = completion.outcome {
                let qp = self.qps[completion.token.0 as usize];
                node.receive(qp, span(completion.id.0, self.octets), completion.id.0)
                    .unwrap();
                self.got += 1;
                each(node, qp);
            }
        }
    }
}

/// Millions of request and answer pairs a second, `depth` under way on each of `connections`.
fn exchange(octets: u32, depth: u64, connections: u32) -> f64 {
    const ROUNDS: u64 = 1_000_000;
    let mut fabric = MemoryFabric::new();
    rpcrdma_fabric::connect::Fabric::listen(&mut fabric, "b").unwrap();
    let (mut a, mut b) = (node(&fabric, 32 << 20), node(&fabric, 32 << 20));
    let pairs = (0..connections).map(|n| {
        let ((qa, _), (qb, _)) = connect(&mut fabric, &mut a, Token(n), &mut b, Token(n));
        (qa, qb)
    });
    let (qas, qbs): (Vec<_>, Vec<_>) = pairs.unzip();
    let over = AtomicBool::new(false);
    let mut near = Sink::new(&mut a, qas.clone(), octets, depth);
    let mut far = Sink::new(&mut b, qbs, octets, depth);
    let message = vec![1; octets as usize];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            while !over.load(Ordering::Relaxed) {
                far.turn(&mut b, |node, qp| {
                    node.port
                        .send(qp, &[Octets::Bytes(&message)], None, WorkId(0))
                        .unwrap();
                });
                b.port.ring();
            }
        });
        pin(0);
        for &qp in &qas {
            for _ in 0..depth {
                a.port
                    .send(qp, &[Octets::Bytes(&message)], None, WorkId(0))
                    .unwrap();
            }
        }
        a.port.ring();
        while near.got < ROUNDS / 10 {
            near.turn(&mut a, |node, qp| {
                node.port
                    .send(qp, &[Octets::Bytes(&message)], None, WorkId(0))
                    .unwrap();
            });
            a.port.ring();
        }
        near.got = 0;
        let start = Instant::now();
        while near.got < ROUNDS {
            near.turn(&mut a, |node, qp| {
                node.port
                    .send(qp, &[Octets::Bytes(&message)], None, WorkId(0))
                    .unwrap();
            });
            a.port.ring();
        }
        let rate = near.got as f64 / start.elapsed().as_secs_f64() / 1e6;
        over.store(true, Ordering::Relaxed);
        rate
    })
}

/// The same with both ends on one port.
fn exchange_on_one_core(octets: u32, depth: u64) -> f64 {
    const ROUNDS: u64 = 2_000_000;
    pin(0);
    let mut fabric = MemoryFabric::new();
    rpcrdma_fabric::connect::Fabric::listen(&mut fabric, "b").unwrap();
    let mut node = node(&fabric, 32 << 20);
    let (qa, qb) = connect_to_itself(&mut fabric, &mut node);
    // Tokens are 1 and 2.
    let mut sink = Sink::new(&mut node, vec![qa, qa, qb], octets, 0);
    for slot in 0..depth {
        node.receive(qa, span(slot * 4096, octets), slot * 4096)
            .unwrap();
        node.receive(
            qb,
            span((depth + slot) * 4096, octets),
            (depth + slot) * 4096,
        )
        .unwrap();
    }
    let message = vec![1; octets as usize];
    for _ in 0..depth {
        node.send(qa, &message, 0).unwrap();
    }
    let start = Instant::now();
    while sink.got < 2 * ROUNDS {
        sink.turn(&mut node, |node, qp| {
            node.port
                .send(qp, &[Octets::Bytes(&message)], None, WorkId(0))
                .unwrap();
        });
        node.port.ring();
    }
    ROUNDS as f64 / start.elapsed().as_secs_f64() / 1e6
}

/// Octets a nanosecond of RDMA Writes of `octets`, over eight blocks on each side.
fn write(octets: u32) -> f64 {
    pin(0);
    let mut fabric = MemoryFabric::new();
    rpcrdma_fabric::connect::Fabric::listen(&mut fabric, "b").unwrap();
    let bytes = u64::from(octets) * 8;
    let (mut a, mut b) = (node(&fabric, bytes), node(&fabric, bytes));
    let ((qa, _), (qb, _)) = connect(&mut fabric, &mut a, Token(0), &mut b, Token(0));
    let place = |n: u64| span(n * u64::from(octets), octets);
    let targets: Vec<_> = (0..8)
        .map(|n| b.port.expose(qb, place(n), Access::Write).unwrap())
        .collect();
    let rounds = (4_u64 << 30) / bytes;
    let start = Instant::now();
    for _ in 0..rounds {
        for (n, &target) in (0..).zip(&targets) {
            a.write(qa, place(n), target, 0).unwrap();
        }
    }
    (rounds * bytes) as f64 / start.elapsed().as_nanos() as f64
}

fn memcpy(octets: u32) -> f64 {
    floor::memcpy_bytes_per_second(octets, 8, Duration::from_millis(300)).unwrap() / 1e9
}

fn main() {
    assert!(
        CORES.len() >= 2,
        "two processors, or nothing here means anything"
    );
    report("cache line, there and back", "ns", cache_line);
    for octets in [8, 48, 112, 256, 1024, 4096] {
        report(&format!("ping-pong, {octets} octets, median"), "ns", || {
            ping_pong(octets)
        });
    }
    report("exchange, 80 octets, depth 1", "M/s", || exchange(80, 1, 1));
    report("exchange, 80 octets, depth 64", "M/s", || {
        exchange(80, 64, 1)
    });
    report("exchange, 80 octets, 1000 connections", "M/s", || {
        exchange(80, 1, 1000)
    });
    report("exchange on one core, 80 octets, depth 1", "M/s", || {
        exchange_on_one_core(80, 1)
    });
    report("exchange on one core, 80 octets, depth 64", "M/s", || {
        exchange_on_one_core(80, 64)
    });
    for octets in [4096, 65536, 1 << 20] {
        report(&format!("write, {octets} octets"), "GB/s", || write(octets));
        report(&format!("memcpy, {octets} octets"), "GB/s", || {
            memcpy(octets)
        });
    }
}
