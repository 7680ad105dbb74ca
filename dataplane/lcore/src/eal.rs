//! Lcores of DPDK's EAL, and arenas in its memory.
//!
//! EAL starts its worker threads itself, pins them, and hands out jobs. What an lcore does is the
//! same as on a thread of ours, to the letter: the same making, the same loop, the same end.
//! Once [`Eal::start`] has succeeded, [`crate::spawn`] gives an lcore that is to be pinned to the
//! worker of its processor; before, and in a process that never starts EAL, to a new thread.
//!
//! # Panics
//!
//! A panic is caught before it could reach C, and ends as it does on a thread: in
//! [`crate::Exit::Panicked`], with the port gone. The worker waits for another job then.

mod tract;

pub use dpdk_sys::{
    COUNTERS_MAX, Eal, Fault, Level, NAME_BYTES, Socket, Zone, answer, current, hush, version,
};
pub use tract::tract;

use crate::thread::Exit;
use dpdk_sys::Task;
use std::io;
use std::sync::{Arc, OnceLock};

/// An lcore on a worker of EAL.
#[derive(Debug)]
pub(crate) struct Worker {
    task: Task,
    exit: Arc<OnceLock<Exit>>,
}

impl Worker {
    /// Has EAL's worker on `processor` live this life.
    pub(crate) fn launch(
        eal: &'static Eal,
        processor: usize,
        life: impl FnOnce() -> Exit + Send + 'static,
    ) -> io::Result<Worker> {
        let mut workers = eal.workers().iter();
        let Some(&lcore) = workers.find(|worker| worker.processor == processor) else {
            let why = format!("EAL has no worker on processor {processor}");
            return Err(io::Error::other(why));
        };
        let exit = Arc::new(OnceLock::new());
        let told = Told(Arc::clone(&exit));
        let job = move || {
            let _ = told.0.set(life());
        };
        let task = eal.launch(lcore, job).map_err(io::Error::other)?;
        Ok(Worker { task, exit })
    }

    pub(crate) fn is_over(&self) -> bool {
        self.exit.get().is_some()
    }

    pub(crate) fn join(self) -> Exit {
        // Sleeps, which EAL's own waiting does not.
        let exit = self.exit.wait().clone();
        self.task.join();
        exit
    }
}

/// Where the exit is told. Whoever waits for it is told something in any case.
struct Told(Arc<OnceLock<Exit>>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.set(Exit::Panicked("no words".to_owned()));
    }
}
