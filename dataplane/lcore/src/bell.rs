//! Waking who sleeps: an event descriptor, and the word that makes ringing it rare.
//!
//! A thread that is about to sleep says so, then looks once more for work; who brings work
//! puts it down, then looks whether the other sleeps. Both put a full fence between their two
//! steps, so at least one of them sees the other: no work is slept through, and nobody who is
//! awake costs a system call.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// An event descriptor that one thread waits on and others ring.
#[derive(Debug)]
pub struct Bell {
    descriptor: OwnedFd,
    sleeping: AtomicBool,
}

impl Bell {
    /// A bell whose owner is awake.
    ///
    /// # Errors
    ///
    /// No descriptors are left.
    pub fn new() -> io::Result<Bell> {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        Ok(Bell {
            descriptor: eventfd(0, flags)?,
            sleeping: AtomicBool::new(false),
        })
    }

    /// The owner is about to sleep: from now on [`Bell::ring`] rings. Work that was put down
    /// before is visible to the owner when this returns.
    pub fn doze(&self) {
        self.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The owner is awake. True when the bell had rung; it is quiet again then.
    pub fn rise(&self) -> bool {
        if self.sleeping.swap(false, Ordering::Relaxed) {
            return false;
        }
        let mut count = [0; 8];
        // Not yet written, by who took the word and is about to: then it rings into our being
        // awake, which costs one short sleep later, not a lost wake-up.
        let _ = rustix::io::read(&self.descriptor, &mut count);
        true
    }

    /// Work was put down for the owner: wakes it when it sleeps, or is about to.
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::Relaxed) && self.sleeping.swap(false, Ordering::Relaxed) {
            // The counter cannot overflow: nobody can ring 2^64 times.
            let _ = rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes());
        }
    }
}

impl AsFd for Bell {
    /// Readable once the bell has rung.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn readable(bell: &Bell) -> bool {
        let mut fds = [PollFd::new(bell, PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut fds, Some(&now)).expect("poll") == 1
    }

    #[test]
    fn only_a_sleeper_is_rung() {
        let bell = Bell::new().expect("a bell");
        bell.ring();
        assert!(!readable(&bell), "its owner is awake");
        bell.doze();
        bell.ring();
        bell.ring();
        assert!(readable(&bell));
        assert!(bell.rise());
        assert!(!readable(&bell));
        bell.doze();
        assert!(!bell.rise(), "nobody rang");
    }
}
