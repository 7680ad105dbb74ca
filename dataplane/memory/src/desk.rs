//! Where one control thread finds what happened to its connections.

use rpcrdma_fabric::connect::Event;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The desk of one control thread, behind the registry's lock.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    pub(crate) events: VecDeque<Event>,
    pub(crate) hatch: Arc<Hatch>,
}

impl Desk {
    /// Puts an event on the desk.
    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
        self.hatch.ring();
    }
}

/// How others reach a control thread without that lock: they count what was lost, and ring.
#[derive(Debug)]
pub(crate) struct Hatch {
    /// Connections that have ended.
    losses: AtomicU32,
    /// It was rung since it was last hushed: most connections that end do so with others.
    rung: AtomicBool,
    /// `None`: no descriptors were left. Then whoever waits finds out when it looks next.
    descriptor: Option<OwnedFd>,
}

impl Default for Hatch {
    fn default() -> Hatch {
        Hatch {
            losses: AtomicU32::new(0),
            rung: AtomicBool::new(false),
            descriptor: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).ok(),
        }
    }
}

impl Hatch {
    /// One more connection has ended.
    pub(crate) fn tell_loss(&self) {
        self.losses.fetch_add(1, Ordering::Release);
        self.ring();
    }

    /// How many have ended so far.
    pub(crate) fn losses(&self) -> u32 {
        self.losses.load(Ordering::Acquire)
    }

    /// What is to be found must have been stored before.
    pub(crate) fn ring(&self) {
        if let Some(descriptor) = &self.descriptor
            && !self.rung.swap(true, Ordering::AcqRel)
        {
            // Fails only when the counter is full: then the descriptor is readable already.
            let _ = rustix::io::write(descriptor, &1_u64.to_ne_bytes());
        }
    }

    /// Silences the bell; look afterwards. One who has said that it was rung and has yet to
    /// strike makes the next wait end early, no more.
    pub(crate) fn hush(&self) {
        if let Some(descriptor) = &self.descriptor {
            self.rung.swap(false, Ordering::AcqRel);
            // Nothing there is fine too.
            let _ = rustix::io::read(descriptor, &mut [0; 8][..]);
        }
    }

    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(AsFd::as_fd)
    }
}
