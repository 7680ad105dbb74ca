//! Objects of rdma-core, each with an owner that destroys it, once and in the right order.
//!
//! ```text
//!   QueuePair (with its rdma_cm_id) ──► Objects of a port: windows, completion queue, regions
//!                                           '──► Device: protection domain, context
//! ```
//!
//! An arrow is an `Arc`: nothing is destroyed while something stands on it. Who holds a raw
//! pointer to one of these holds the `Arc` beside it.

mod device;
mod pair;
mod queue;
mod region;
mod window;

pub(crate) use device::{Context, Device, do_not_wait_borrowed};
pub(crate) use pair::{Depths, QueuePair, try_inline};
pub(crate) use queue::CompletionQueue;
pub(crate) use region::{Region, Rights};
pub(crate) use window::Window;

use crate::expose;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Everything of one port. The fields are dropped in this order.
#[derive(Debug)]
pub(crate) struct Objects {
    /// By address: a port knows them by that alone.
    windows: Mutex<HashMap<usize, Window>>,
    pub(crate) queue: CompletionQueue,
    /// Of the arena, and of what is sent from beside it.
    pub(crate) arena: Arc<Region>,
    pub(crate) outbox: Arc<Region>,
    pub(crate) device: Arc<Device>,
}

impl Objects {
    pub(crate) fn new(queue: CompletionQueue, arena: Arc<Region>, outbox: Arc<Region>) -> Objects {
        Objects {
            windows: Mutex::default(),
            device: Arc::clone(queue.device()),
            queue,
            arena,
            outbox,
        }
    }

    fn windows(&self) -> MutexGuard<'_, HashMap<usize, Window>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a window, and keeps it.
    pub(crate) fn add_window(&self) -> Result<expose::Window, crate::Fault> {
        let window = Window::new(&self.device)?;
        let name = window.name();
        self.windows().insert(name.object.0.addr(), window);
        Ok(name)
    }

    /// Destroys a window, bound or not.
    pub(crate) fn remove_window(&self, name: expose::Window) {
        self.windows().remove(&name.object.0.addr());
    }
}

/// Every destructor says here how it went. One that fails means that something still stands on
/// the object: a mistake of ours. On a device that is gone the kernel has destroyed everything
/// already, and says so.
pub(crate) fn note_destroyed(call: &'static str, returned: i32) {
    let outcome = crate::Fault::check(call, returned);
    let gone = |fault: &crate::Fault| [libc::EIO, libc::ENODEV].contains(&fault.errno);
    debug_assert!(
        outcome.as_ref().err().is_none_or(gone),
        "{}",
        outcome.unwrap_err()
    );
}
