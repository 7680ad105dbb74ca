//! How a port that sleeps is woken: an eventfd, written only while somebody sleeps.

use crate::barrier;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The bell of one port.
#[derive(Debug)]
pub(crate) struct Bell {
    armed: AtomicBool,
    descriptor: OwnedFd,
}

impl Bell {
    pub(crate) fn new() -> std::io::Result<Bell> {
        use rustix::event::{EventfdFlags, eventfd};
        let descriptor = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Bell {
            armed: AtomicBool::new(false),
            descriptor,
        })
    }

    /// Wakes the port if it sleeps. What it shall find must have been stored before.
    #[inline]
    pub(crate) fn ring(&self) {
        barrier::light();
        if self.armed.load(Ordering::Relaxed) {
            self.strike();
        }
    }

    #[cold]
    #[inline(never)]
    fn strike(&self) {
        if self.armed.swap(false, Ordering::AcqRel) {
            // Fails only when the counter is full: then the descriptor is readable already.
            let _ = rustix::io::write(&self.descriptor, &1_u64.to_ne_bytes());
        }
    }

    /// The port will sleep unless it finds something after this call.
    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::Relaxed);
        barrier::heavy();
    }

    /// The port is awake. The descriptor is quiet afterwards, but for a stroke that was begun
    /// before: that one makes the next sleep end early, no more.
    pub(crate) fn disarm(&self) {
        if !self.armed.swap(false, Ordering::AcqRel) {
            let mut count = [0; 8];
            // Nothing there yet is fine too.
            let _ = rustix::io::read(&self.descriptor, &mut count);
        }
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Wakes the lcore of one port from any thread. To be used after something was put where that
/// lcore looks between [`Port::arm`](rpcrdma_fabric::Port::arm) and its sleep.
#[derive(Clone, Debug)]
pub struct Waker(pub(crate) Arc<crate::shared::Shared>);

impl Waker {
    /// Wakes it if it sleeps; costs next to nothing if it does not.
    pub fn wake(&self) {
        self.0.bell.ring();
    }
}
