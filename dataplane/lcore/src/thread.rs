//! An lcore's thread: pinned, named, and never taking the process down with it.
//!
//! It is a new one, or a worker of EAL where that was started: see `eal.rs`.

use crate::bell::Bell;
#[cfg(feature = "dpdk")]
use crate::eal::{Eal, Worker};
use crate::turn::Lcore;
use core_affinity::CoreId;
use rpcrdma_fabric::Port;
use rpcrdma_upper::Upper;
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Processors that a set of the C library has room for.
const MAX_CORES: usize = 1024;

/// A thread that runs an lcore.
#[derive(Debug)]
pub struct Running {
    carrier: Carrier,
}

/// What runs it.
#[derive(Debug)]
enum Carrier {
    Thread(JoinHandle<Exit>),
    #[cfg(feature = "dpdk")]
    Worker(Worker),
}

/// How an lcore ended. Its port is gone by then, so its connections are disconnected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Control said stop.
    Stopped,
    /// It panicked, with these words.
    Panicked(String),
}

/// Starts an lcore on a thread of its own, called `name`, pinned to `core` where one is given.
/// With the feature `dpdk`, once EAL was started, that thread is EAL's worker of that processor.
/// `make` runs on that thread, so that memory it touches first is near. `control` is rung when
/// the lcore ends, however it does; [`crate::Line::is_over`] is true then.
///
/// Processors must be read once, before the first pinned thread starts: afterwards
/// `core_affinity::get_core_ids` tells only the caller's own.
///
/// # Errors
///
/// The thread could not be started or pinned, or `make` failed. Nothing runs then.
pub fn spawn<P, U, F>(
    core: Option<CoreId>,
    name: String,
    control: Arc<Bell>,
    make: F,
) -> io::Result<Running>
where
    P: Port,
    U: Upper,
    F: FnOnce() -> io::Result<Lcore<P, U>> + Send + 'static,
{
    let (started, start) = sync_channel(1);
    let life = move |core| {
        let exit = live(core, &started, make);
        control.ring();
        exit
    };
    let running = Running {
        carrier: carry(core, name, life)?,
    };
    let error = match start.recv() {
        Ok(Ok(())) => return Ok(running),
        Ok(Err(error)) => error,
        Err(_) => io::Error::other("the lcore panicked while it was made"),
    };
    // It is ending. A worker can be given another lcore afterwards.
    let _ = running.join();
    Err(error)
}

/// Begins a life. It gets the processor it has to pin itself to.
fn carry(
    core: Option<CoreId>,
    name: String,
    life: impl FnOnce(Option<CoreId>) -> Exit + Send + 'static,
) -> io::Result<Carrier> {
    #[cfg(feature = "dpdk")]
    if let (Some(eal), Some(core)) = (Eal::running(), core) {
        let life = move || {
            // Names are for people alone; EAL has pinned its own.
            let _ = rename(&name);
            life(None)
        };
        return Worker::launch(eal, core.id, life).map(Carrier::Worker);
    }
    let thread = Builder::new().name(name).spawn(move || life(core))?;
    Ok(Carrier::Thread(thread))
}

#[cfg(feature = "dpdk")]
fn rename(name: &str) -> io::Result<()> {
    let name = std::ffi::CString::new(name)?;
    Ok(rustix::thread::set_name(&name)?)
}

/// The life of an lcore, from pinning to the drop of its port.
fn live<P: Port, U: Upper>(
    core: Option<CoreId>,
    started: &SyncSender<io::Result<()>>,
    make: impl FnOnce() -> io::Result<Lcore<P, U>>,
) -> Exit {
    let lived = catch_unwind(AssertUnwindSafe(|| {
        let mut lcore = match pin(core).and_then(|()| make()) {
            Ok(lcore) => lcore,
            Err(error) => {
                let _ = started.send(Err(error));
                return;
            }
        };
        // The receiver is there until it has this.
        let _ = started.send(Ok(()));
        lcore.run();
    }));
    match lived {
        Ok(()) => Exit::Stopped,
        Err(panic) => Exit::Panicked(words_of(&*panic)),
    }
}

fn pin(core: Option<CoreId>) -> io::Result<()> {
    let Some(core) = core else {
        return Ok(());
    };
    // The crate's own check is a panic that cannot be caught.
    if core.id < MAX_CORES && core_affinity::set_for_current(core) {
        return Ok(());
    }
    let id = core.id;
    Err(io::Error::other(format!(
        "cannot pin an lcore to processor {id}"
    )))
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let literal = panic.downcast_ref::<&str>().map(ToString::to_string);
    literal
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no words".to_owned())
}

impl Running {
    /// True when the lcore has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match &self.carrier {
            Carrier::Thread(thread) => thread.is_finished(),
            #[cfg(feature = "dpdk")]
            Carrier::Worker(worker) => worker.is_over(),
        }
    }

    /// Waits for its end.
    #[must_use]
    pub fn join(self) -> Exit {
        let panicked = |panic: Box<dyn Any + Send>| Exit::Panicked(words_of(&*panic));
        match self.carrier {
            Carrier::Thread(thread) => thread.join().unwrap_or_else(panicked),
            #[cfg(feature = "dpdk")]
            Carrier::Worker(worker) => worker.join(),
        }
    }
}
