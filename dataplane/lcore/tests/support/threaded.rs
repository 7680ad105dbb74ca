//! An lcore that turns on a thread of its own, whoever made that thread.

use super::{Do, Parts, PlayedPort, Probe, Stage, lcore, session};
use core_affinity::CoreId;
use rpcrdma_fabric::arena::Arena;
use rpcrdma_lcore::{
    Bell, ConnectionNumber, Exit, Idle, Lcore, Line, Notice, Places, Running, SeatId, SeatOrder,
    Snapshot, spawn,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longer than anything here takes, on however busy a machine.
const PATIENCE: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// The lcore, and all that control has of it.
pub struct Threaded {
    pub line: Line<(), Probe>,
    pub control: Arc<Bell>,
    pub waker: Arc<Bell>,
    pub stage: Arc<Mutex<Stage>>,
    pub running: Running,
}

impl Threaded {
    /// Starts one on `core`, over all of `arena`; its thread does `first` before anything else.
    pub fn start(
        core: Option<CoreId>,
        arena: Arc<Arena>,
        idle: Idle,
        first: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Threaded {
        let Parts {
            link,
            line,
            stage,
            waker,
            control,
        } = Parts::new(Places::default());
        let (port_stage, port_waker) = (Arc::clone(&stage), Arc::clone(&waker));
        let name = "lcore-test".to_owned();
        let running = spawn(core, name, Arc::clone(&control), move || {
            first()?;
            Ok(lcore(link, port_stage, port_waker, arena, idle))
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
    pub fn notice(&mut self) -> Option<Notice<Probe>> {
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

    pub fn survey(&mut self) -> Box<Snapshot<Probe>> {
        let asked = self.line.survey(Box::new(Snapshot::with_room(4)));
        assert!(asked.is_ok());
        match self.notice() {
            Some(Notice::Snapshot(snapshot)) => snapshot,
            _ => panic!("a snapshot was asked for"),
        }
    }

    /// Returns when the lcore has slept more often than now.
    pub fn sleeps_again(&mut self) {
        let before = self.survey().turns.sleeps;
        while self.survey().turns.sleeps == before {}
    }

    /// Adopts and establishes a connection.
    pub fn connect(&mut self) -> SeatId {
        let seat = self.line.adopt(ConnectionNumber(1), (), None, session());
        let seat = seat.map_err(|_| "full").expect("a seat");
        assert!(matches!(self.notice(), Some(Notice::Adopted { .. })));
        let told = self.line.tell(seat, SeatOrder::Established { peer: None });
        assert!(told.is_ok());
        seat
    }

    /// A panic of its upper layer is the end of the lcore, and of its connections.
    pub fn panics(mut self) {
        let seat = self.connect();
        let told = self.line.tell(seat, SeatOrder::Upper(Do::Panic));
        assert!(told.is_ok());
        assert!(self.notice().is_none());
        self.ends(Exit::Panicked("as told".to_owned()));
    }

    /// Stops it.
    pub fn stop(mut self) {
        assert!(self.line.stop(Duration::from_secs(60)));
        while let Some(notice) = self.notice() {
            assert!(matches!(notice, Notice::Closed { .. }));
        }
        self.ends(Exit::Stopped);
    }

    fn ends(self, exit: Exit) {
        assert_eq!(self.running.join(), exit);
        let stage = self.stage.lock().expect("not poisoned");
        assert!(stage.dropped, "which disconnects them");
    }
}

/// Why an lcore does not start on `core` that finds no memory.
pub fn why_not(core: Option<CoreId>) -> String {
    let control = Arc::new(Bell::new().expect("a bell"));
    let make = || -> io::Result<Lcore<PlayedPort, Probe>> { Err(io::Error::other("no memory")) };
    let error = spawn(core, "lcore-test".to_owned(), control, make);
    error.expect_err("make fails").to_string()
}
