//! Lcores on EAL's workers, in EAL's memory. There is one EAL per process: one test.

mod support;

use core_affinity::CoreId;
use rpcrdma_fabric::arena::{Pages, Tract};
use rpcrdma_lcore::Idle;
use rpcrdma_lcore::eal::{self, Eal, Level, Socket};
use std::sync::Arc;
use std::time::Duration;
use support::threaded::{Threaded, why_not};

const ARENA_BYTES: u64 = 1 << 20;

/// EAL of one worker, without huge pages.
fn start(processor: usize) -> &'static Eal {
    let prefix = format!("lcore-test-{}", std::process::id());
    let arguments = ["--no-huge", "--no-shconf", "--no-pci", "--no-telemetry"];
    let arguments = arguments.into_iter().chain(["-m", "64"]);
    let arguments = arguments.chain(["--file-prefix", &prefix]);
    let arguments: Vec<_> = arguments.map(str::to_owned).collect();
    let hear = |level: Level, line: &str| assert!(level > Level::Error, "{line}");
    Eal::start(&[processor], &[processor], &arguments, hear).expect("EAL")
}

/// An lcore on EAL's worker of this processor, in EAL's memory.
fn place(core: CoreId, tract: &mut Tract) -> Threaded {
    let arena = tract.carve(ARENA_BYTES).expect("room");
    assert_eq!(arena.pages(), Pages::Ordinary);
    let spin = Duration::ZERO;
    let idle = Idle::Adaptive { spin };
    Threaded::start(Some(core), Arc::new(arena), idle, || {
        assert_eq!(eal::current(), Some(1), "a worker of EAL");
        let thread = rustix::thread::name()?;
        assert_eq!(thread.as_c_str(), c"lcore-test");
        Ok(())
    })
}

#[test]
fn an_lcore_of_eal_lives_and_ends_as_on_a_thread() {
    let cores = core_affinity::get_core_ids().expect("processors");
    let core = cores[0];
    let eal = start(core.id);
    let mut tract = eal::tract(eal, "lcore-test", 4 * ARENA_BYTES, Socket::Any).expect("64 MiB");
    place(core, &mut tract).panics();
    serves(place(core, &mut tract));
    assert_eq!(why_not(Some(core)), "no memory");
    let nowhere = why_not(Some(CoreId { id: 100_000 }));
    assert!(nowhere.contains("100000"), "{nowhere}");
    assert!(!eal.end(), "there is memory of it");
    drop(tract);
    // DPDK leaves it behind.
    let _ = std::fs::remove_dir(eal.runtime_directory());
    assert!(eal.end(), "all of it was given back");
}

/// On the same worker, which has outlived the panic.
fn serves(mut placed: Threaded) {
    placed.connect();
    assert!(!placed.running.is_over());
    placed.sleeps_again();
    placed.stop();
}
