//! Lcores on EAL's workers, in EAL's memory. There is one EAL per process: one test.

mod support;

use core_affinity::CoreId;
use rpcrdma_fabric::arena::{Arena, Pages, Tract};
use rpcrdma_lcore::eal::{self, Eal, Level, Socket};
use rpcrdma_lcore::{
    Bell, ConnectionNumber, Exit, Idle, Line, Notice, Places, Running, SeatOrder, Snapshot, spawn,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{Do, Parts, PlayedPort, Probe, Stage, lcore, session};

const ARENA_BYTES: u64 = 1 << 20;

struct Placed {
    line: Line<(), Probe>,
    stage: Arc<Mutex<Stage>>,
    running: Running,
}

/// An lcore on EAL's worker of this processor.
fn place(core: CoreId, arena: Arena) -> Placed {
    let Parts {
        link,
        line,
        stage,
        waker,
        control,
    } = Parts::new(Places::default());
    let idle = Idle::Adaptive {
        spin: Duration::ZERO,
    };
    let port_stage = Arc::clone(&stage);
    let running = spawn(Some(core), "lcore-test".to_owned(), control, move || {
        assert_eq!(eal::current(), Some(1), "a worker of EAL");
        let thread = rustix::thread::name()?;
        assert_eq!(thread.as_c_str(), c"lcore-test");
        Ok(lcore(link, port_stage, waker, Arc::new(arena), idle))
    });
    Placed {
        line,
        stage,
        running: running.expect("started"),
    }
}

impl Placed {
    /// The next notice; `None` when the lcore has ended.
    fn notice(&mut self) -> Option<Notice<Probe>> {
        loop {
            if let Some(notice) = self.line.poll() {
                return Some(notice);
            }
            if self.line.is_over() {
                return None;
            }
            std::thread::yield_now();
        }
    }

    fn connect(&mut self) -> rpcrdma_lcore::SeatId {
        let seat = self.line.adopt(ConnectionNumber(1), (), None, session());
        let seat = seat.map_err(|_| "full").expect("a seat");
        assert!(matches!(self.notice(), Some(Notice::Adopted { .. })));
        let told = self.line.tell(seat, SeatOrder::Established { peer: None });
        assert!(told.is_ok());
        seat
    }
}

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

#[test]
fn an_lcore_of_eal_lives_and_ends_as_on_a_thread() {
    let cores = core_affinity::get_core_ids().expect("processors");
    let core = cores[0];
    let eal = start(core.id);
    let mut tract = eal::tract(eal, "lcore-test", 4 * ARENA_BYTES, Socket::Any).expect("64 MiB");
    panics(core, &mut tract);
    stops(core, &mut tract);
    fails(core);
    assert!(!eal.end(), "there is memory of it");
    drop(tract);
    // DPDK leaves it behind.
    let _ = std::fs::remove_dir(eal.runtime_directory());
    assert!(eal.end(), "all of it was given back");
}

fn carve(tract: &mut Tract) -> Arena {
    let arena = tract.carve(ARENA_BYTES).expect("room");
    assert_eq!(arena.pages(), Pages::Ordinary);
    arena
}

fn panics(core: CoreId, tract: &mut Tract) {
    let mut placed = place(core, carve(tract));
    let seat = placed.connect();
    let told = placed.line.tell(seat, SeatOrder::Upper(Do::Panic));
    assert!(told.is_ok());
    assert!(placed.notice().is_none());
    assert_eq!(placed.running.join(), Exit::Panicked("as told".to_owned()));
    assert!(placed.stage.lock().expect("not poisoned").dropped);
}

/// On the same worker, which has outlived that.
fn stops(core: CoreId, tract: &mut Tract) {
    let mut placed = place(core, carve(tract));
    placed.connect();
    assert!(!placed.running.is_over());
    let asked = placed.line.survey(Box::new(Snapshot::with_room(4)));
    assert!(asked.is_ok());
    assert!(matches!(placed.notice(), Some(Notice::Snapshot(_))));
    assert!(placed.line.stop(Duration::from_secs(60)));
    while let Some(notice) = placed.notice() {
        assert!(matches!(notice, Notice::Closed { .. }));
    }
    assert_eq!(placed.running.join(), Exit::Stopped);
    assert!(placed.stage.lock().expect("not poisoned").dropped);
}

fn fails(core: CoreId) {
    let control = Arc::new(Bell::new().expect("a bell"));
    let make = || -> std::io::Result<rpcrdma_lcore::Lcore<PlayedPort, Probe>> {
        Err(std::io::Error::other("no memory"))
    };
    let error = spawn(Some(core), "broken".to_owned(), Arc::clone(&control), make);
    assert_eq!(error.expect_err("make failed").to_string(), "no memory");
    let nowhere = Some(CoreId { id: 100_000 });
    let error = spawn(nowhere, "nowhere".to_owned(), control, make);
    let error = error.expect_err("no such worker").to_string();
    assert!(error.contains("100000"), "{error}");
}
