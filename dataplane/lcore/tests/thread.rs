//! Lcores on threads of their own: sleep, wake-ups, panics.

mod support;

use rpcrdma_lcore::{
    Bell, ConnectionNumber, Exit, Idle, Line, Notice, Places, Running, SeatOrder, Snapshot, spawn,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{Do, Parts, Probe, Stage, arena, lcore, session};

/// Longer than anything here takes, on however busy a machine.
const PATIENCE: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

struct Threaded {
    line: Line<(), Probe>,
    control: Arc<Bell>,
    waker: Arc<Bell>,
    stage: Arc<Mutex<Stage>>,
    running: Running,
}

impl Threaded {
    fn start(idle: Idle) -> Threaded {
        let Parts {
            link,
            line,
            stage,
            waker,
            control,
        } = Parts::new(Places::default());
        let (port_stage, port_waker) = (Arc::clone(&stage), Arc::clone(&waker));
        let core = core_affinity::get_core_ids().and_then(|cores| cores.into_iter().next());
        let name = "lcore-test".to_owned();
        let running = spawn(core, name, Arc::clone(&control), move || {
            Ok(lcore(link, port_stage, port_waker, arena(1 << 20), idle))
        });
        Threaded {
            line,
            control,
            waker,
            stage,
            running: running.expect("started"),
        }
    }

    /// Waits for the next notice; `None` when the lcore has ended.
    fn notice(&mut self) -> Option<Notice<Probe>> {
        loop {
            self.control.doze();
            let notice = self.line.poll();
            let over = self.line.is_over();
            if notice.is_some() || over {
                self.control.rise();
                return notice;
            }
            let mut bell = [PollFd::new(&*self.control, PollFlags::IN)];
            assert_eq!(
                poll(&mut bell, Some(&PATIENCE)),
                Ok(1),
                "the lcore is stuck"
            );
            self.control.rise();
        }
    }

    fn survey(&mut self) -> Box<Snapshot<Probe>> {
        let asked = self.line.survey(Box::new(Snapshot::with_room(4)));
        assert!(asked.is_ok());
        match self.notice() {
            Some(Notice::Snapshot(snapshot)) => snapshot,
            _ => panic!("a snapshot was asked for"),
        }
    }

    /// Returns when the lcore has slept more often than now.
    fn sleeps_again(&mut self) {
        let before = self.survey().turns.sleeps;
        while self.survey().turns.sleeps == before {}
    }

    fn connect(&mut self) -> rpcrdma_lcore::SeatId {
        let seat = self.line.adopt(ConnectionNumber(1), (), None, session());
        let seat = seat.map_err(|_| "full").expect("a seat");
        assert!(matches!(self.notice(), Some(Notice::Adopted { .. })));
        let told = self.line.tell(seat, SeatOrder::Established { peer: None });
        assert!(told.is_ok());
        seat
    }

    fn stop(mut self) {
        assert!(self.line.stop(Duration::from_secs(60)));
        while let Some(notice) = self.notice() {
            assert!(matches!(notice, Notice::Closed { .. }));
        }
        assert_eq!(self.running.join(), Exit::Stopped);
        let stage = self.stage.lock().expect("not poisoned");
        assert!(stage.dropped);
    }
}

#[test]
fn a_sleeping_lcore_is_woken_by_orders_sockets_and_its_port() {
    let spin = Duration::ZERO;
    let mut threaded = Threaded::start(Idle::Adaptive { spin });
    let seat = threaded.connect();
    threaded.sleeps_again();

    let (mut far, near) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let told = threaded.line.tell(seat, SeatOrder::Upper(Do::Watch(near)));
    assert!(told.is_ok());
    assert!(matches!(
        threaded.notice(),
        Some(Notice::Upper { notice: 1000, .. })
    ));
    std::io::Write::write_all(&mut far, b"x").expect("room");
    assert!(matches!(
        threaded.notice(),
        Some(Notice::Upper { notice: 1000, .. })
    ));

    let token = threaded.stage.lock().expect("not poisoned").tokens[0].expect("a token");
    let gone = rpcrdma_fabric::Completion {
        token,
        id: rpcrdma_fabric::WorkId(0),
        outcome: rpcrdma_fabric::Outcome::Disconnected,
    };
    let stage = Arc::clone(&threaded.stage);
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
    let mut threaded = Threaded::start(Idle::Spin);
    for _ in 0..100 {
        assert_eq!(threaded.survey().turns.sleeps, 0);
    }
    threaded.stop();
}

#[test]
fn a_panic_ends_the_lcore_and_its_connections_and_nothing_else() {
    let mut threaded = Threaded::start(Idle::Adaptive {
        spin: Duration::from_millis(1),
    });
    let seat = threaded.connect();
    let told = threaded.line.tell(seat, SeatOrder::Upper(Do::Panic));
    assert!(told.is_ok());
    assert!(threaded.notice().is_none());
    assert_eq!(
        threaded.running.join(),
        Exit::Panicked("as told".to_owned())
    );
    let stage = threaded.stage.lock().expect("not poisoned");
    assert!(stage.dropped, "which disconnects them");
}

#[test]
fn what_cannot_start_says_why() {
    let control = Arc::new(Bell::new().expect("a bell"));
    let core = Some(core_affinity::CoreId { id: 100_000 });
    let parts = Parts::new(Places::default());
    let make = move || {
        let (stage, waker) = (parts.stage, parts.waker);
        Ok(lcore(parts.link, stage, waker, arena(1 << 20), Idle::Spin))
    };
    let error = spawn(core, "nowhere".to_owned(), Arc::clone(&control), make);
    let error = error.expect_err("no such processor");
    assert!(error.to_string().contains("100000"), "{error}");

    let make = || -> std::io::Result<rpcrdma_lcore::Lcore<support::PlayedPort, Probe>> {
        Err(std::io::Error::other("no memory"))
    };
    let error = spawn(None, "broken".to_owned(), control, make).expect_err("make failed");
    assert_eq!(error.to_string(), "no memory");
}
