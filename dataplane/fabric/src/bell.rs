//! An eventfd by which one thread is told to look for what another has put down.
//!
//! Rung at each occasion, asleep or not: the occasions are beginnings and ends of connections and
//! lost devices, never messages.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A bell. Readable from the first stroke on until it is hushed.
#[derive(Debug)]
pub struct Bell(OwnedFd);

impl Bell {
    /// A bell that is not rung yet.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn new() -> io::Result<Bell> {
        use rustix::event::{EventfdFlags, eventfd};
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        Ok(Bell(eventfd(0, flags)?))
    }

    /// What it announces must have been put down before.
    #[cold]
    pub fn ring(&self) {
        // Fails only when the counter is full: then it is readable already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Makes it unreadable. To be done before looking, so that nothing put down meanwhile is
    /// slept over.
    #[cold]
    pub fn hush(&self) {
        let mut count = [0; 8];
        // Nothing there is fine too.
        let _ = rustix::io::read(&self.0, &mut count);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
