//! Nodes on a subnet whose manager restarts, moves and falls silent, whose network loses, doubles, delays and reorders, and
//! whose ports come and go, and of which two are given the same address: all of it from a seed, on one thread, by a clock
//! that jumps.
//!
//! While it happens the device and the network watch that the rules are kept: nothing attached before it is joined, left
//! before it is detached, attached twice. When it is over, and time for one round of verification has passed, the
//! [`judge`] compares the nodes' belief with the subnet manager's tables and both with what was asked for.
//!
//! A failing run prints its seed: `RPCRDMA_SEEDS=17..18 cargo test -p rpcrdma-ipoib --test simulation`.

#![expect(
    clippy::cast_possible_truncation,
    reason = "small numbers drawn below small bounds"
)]

mod device;
mod judge;
mod plan;
mod wire;
mod world;

use plan::{Act, Weather};
use rpcrdma_ipoib::time::Moment;
use std::ops::Range;
use world::{TIMING, World};

/// How long everything takes to be found and mended: a round of verification, a join after a pause, and an idle sender.
const RECOVERY_MS: u64 =
    2 * TIMING.verify_ms + 2 * TIMING.pause_ms + TIMING.idle_ms + 3 * TIMING.linger_ms;

fn seeds(default: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var("RPCRDMA_SEEDS") else {
        return default;
    };
    let (first, last) = text.split_once("..").expect("two numbers");
    first.parse().expect("a number")..last.parse().expect("a number")
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    world.weather = Weather::draw(&mut world.chance);
    for _ in 0..60 {
        if world.chance.below(8) == 0 {
            world.weather = Weather::draw(&mut world.chance);
        }
        let act = Act::draw(&mut world.chance);
        world.act(act);
        let pause = world.chance.below(400);
        world.run_until(world.now.after(pause));
    }
    world.clear_up();
    world.run_until(world.now.after(RECOVERY_MS));
    judge::judge(&world);
    judge::judge_twins(&mut world);
    for at in 0..world.seats.len() {
        let now = world.now;
        world.seats[at].node.close(now);
        world.drain(at);
    }
    world.run_until(world.now.after(2_000));
    judge::judge_end(&world);
}

/// The seed of a run that fails, beside its message.
struct Blame(u64);

impl Drop for Blame {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.0);
        }
    }
}

#[test]
fn robustness_of_many_seeds() {
    let default = if cfg!(debug_assertions) {
        0..100
    } else {
        0..2_000
    };
    for seed in seeds(default) {
        let blame = Blame(seed);
        run(seed);
        drop(blame);
    }
}

#[test]
fn a_seed_replays_its_run() {
    let trace = |seed| {
        let mut world = World::new(seed);
        world.weather = Weather::draw(&mut world.chance);
        for _ in 0..30 {
            let act = Act::draw(&mut world.chance);
            world.act(act);
            world.run_until(world.now.after(100));
        }
        let status: Vec<_> = world.seats.iter().map(|seat| seat.node.status()).collect();
        (status, world.chance.word(), world.now)
    };
    assert_eq!(trace(5), trace(5));
    assert_eq!(trace(5).2, Moment(3_000));
}
