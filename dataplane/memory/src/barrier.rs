//! The order between "I have put something there" and "are you asleep?".
//!
//! Going to sleep is: say so, then look once more. Putting something there is: put it, then
//! look whether somebody said so. For none to miss the other, each side's write has to be
//! ordered before its read, which on every processor takes a full barrier on both sides; and a
//! full barrier waits until the cache lines just written have come from the other core, some
//! hundred nanoseconds, on every turn of a busy lcore.
//!
//! The two sides are not equally frequent. So the rare one (going to sleep) pays for both: the
//! `membarrier` call makes every other running thread of the process execute a full barrier.
//! The busy side then needs to keep the compiler from reordering, and nothing else. Where the
//! system refuses `membarrier`, both sides use a full barrier.

use std::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

const UNKNOWN: u8 = 0;
const ASYMMETRIC: u8 = 1;
const SYMMETRIC: u8 = 2;

static KIND: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Chooses the kind of barrier for this process. Called before any port exists, so that no
/// thread can still be using the other kind.
pub(crate) fn prepare() {
    if KIND.load(Ordering::Relaxed) == UNKNOWN {
        let kind = if register() { ASYMMETRIC } else { SYMMETRIC };
        KIND.store(kind, Ordering::SeqCst);
    }
}

#[cfg(not(miri))]
fn register() -> bool {
    use rustix::thread::{MembarrierCommand, membarrier};
    membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
}

#[cfg(miri)]
fn register() -> bool {
    false
}

/// The busy side's barrier, between its write and its read.
#[inline]
pub(crate) fn light() {
    if KIND.load(Ordering::Relaxed) == ASYMMETRIC {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The sleeper's barrier, between its write and its read.
#[cold]
pub(crate) fn heavy() {
    #[cfg(not(miri))]
    if KIND.load(Ordering::Relaxed) == ASYMMETRIC {
        use rustix::thread::{MembarrierCommand, membarrier};
        let done = membarrier(MembarrierCommand::PrivateExpedited);
        debug_assert!(done.is_ok(), "registered in `prepare`: {done:?}");
    }
    fence(Ordering::SeqCst);
}
