//! Lcores on threads of their own: sleep, wake-ups, panics.

mod support;

use core_affinity::CoreId;
use rpcrdma_fabric::{Completion, Outcome, WorkId};
use rpcrdma_lcore::{Idle, Notice, SeatOrder};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use support::threaded::{Threaded, why_not};
use support::{Do, arena};

/// An lcore pinned to the first processor.
fn start(idle: Idle) -> Threaded {
    let core = core_affinity::get_core_ids().and_then(|cores| cores.into_iter().next());
    Threaded::start(core, arena(1 << 20), idle, || Ok(()))
}

#[test]
fn a_sleeping_lcore_is_woken_by_orders_sockets_and_its_port() {
    let spin = Duration::ZERO;
    let mut threaded = start(Idle::Adaptive { spin });
    let seat = threaded.connect();
    threaded.sleeps_again();

    let (mut far, near) = UnixStream::pair().expect("a pair");
    let told = threaded.line.tell(seat, SeatOrder::Upper(Do::Watch(near)));
    assert!(told.is_ok());
    assert!(matches!(
        threaded.notice(),
        Some(Notice::Upper { notice: 1000, .. })
    ));
    far.write_all(b"x").expect("room");
    assert!(matches!(
        threaded.notice(),
        Some(Notice::Upper { notice: 1000, .. })
    ));

    let stage = Arc::clone(&threaded.stage);
    let token = stage.lock().expect("not poisoned").tokens[0].expect("a token");
    let gone = Completion {
        token,
        id: WorkId(0),
        outcome: Outcome::Disconnected,
    };
    stage
        .lock()
        .expect("not poisoned")
        .completions
        .push_back(gone);
    threaded.waker.ring();
    assert!(matches!(threaded.notice(), Some(Notice::Closed { .. })));
    assert!(threaded.survey().turns.wakeups > 0);
    threaded.stop();
}

#[test]
fn a_spinning_lcore_never_sleeps() {
    let mut threaded = start(Idle::Spin);
    for _ in 0..100 {
        assert_eq!(threaded.survey().turns.sleeps, 0);
    }
    threaded.stop();
}

#[test]
fn a_panic_ends_the_lcore_and_its_connections_and_nothing_else() {
    let spin = Duration::from_millis(1);
    start(Idle::Adaptive { spin }).panics();
}

#[test]
fn what_cannot_start_says_why() {
    assert_eq!(why_not(None), "no memory");
    let nowhere = why_not(Some(CoreId { id: 100_000 }));
    assert!(nowhere.contains("100000"), "{nowhere}");
}
