//! Jobs on EAL's workers.

use crate::fault::Fault;
use crate::ffi;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One of EAL's worker lcores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lcore {
    /// Its number in EAL; the main lcore has number 0.
    pub id: u32,
    /// The processor that EAL pinned it to.
    pub processor: usize,
}

/// A job that was launched. Dropped, the job goes on.
#[derive(Debug)]
pub struct Task {
    lcore: Lcore,
}

type Boxed = Box<dyn FnOnce() + Send>;

impl Task {
    /// Has a worker run `job`, on its own thread, where it is pinned. The caller holds EAL.
    pub(crate) fn launch(lcore: Lcore, job: Boxed) -> Result<Task, Fault> {
        // A box of a box: one thin pointer for C.
        let argument = Box::into_raw(Box::new(job));
        // SAFETY: `run` is what takes such an argument, once.
        let status = unsafe { ffi::shim_lcore_launch(lcore.id, run, argument.cast()) };
        if status < 0 {
            // SAFETY: made above, and not taken by anybody: nothing was launched.
            drop(unsafe { Box::from_raw(argument) });
            return Err(Fault::of("rte_eal_remote_launch", status));
        }
        Ok(Task { lcore })
    }

    /// The worker that runs it.
    #[must_use]
    pub fn lcore(&self) -> Lcore {
        self.lcore
    }

    /// The worker waits for a job again.
    #[must_use]
    pub fn is_over(&self) -> bool {
        ffi::shim_lcore_waits(self.lcore.id) != 0
    }

    /// Waits for its end. DPDK does this by polling: to be called when the end is near.
    pub fn join(self) {
        ffi::shim_lcore_join(self.lcore.id);
    }
}

/// The number of the lcore that calls; `None` on a thread that EAL does not know.
#[must_use]
pub fn current() -> Option<u32> {
    Some(ffi::shim_lcore_current()).filter(|&id| id != u32::MAX)
}

extern "C" fn run(argument: *mut c_void) -> c_int {
    // SAFETY: made by `launch` of a box, and given to one worker, which calls this once.
    let job = unsafe { Box::from_raw(argument.cast::<Boxed>()) };
    // Nothing may unwind into DPDK. The hook has printed the panic by now.
    c_int::from(catch_unwind(AssertUnwindSafe(job)).is_err())
}
