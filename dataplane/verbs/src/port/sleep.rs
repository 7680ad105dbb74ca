//! Sleeping until there is something, without missing it.
//!
//! Two things can wake a port: the completion channel, and the bell that control and the
//! registrar ring. One epoll instance stands for both. The bell is rung always, and hushed before
//! its ring is found empty; the channel has to be asked. To arm is to ask, then to look once
//! more: what came before the asking is found by the look, what comes after it speaks.

use super::VerbsPort;
use crate::expose::Means;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// One descriptor that is readable when any of `descriptors` is.
pub(super) fn watch(descriptors: [BorrowedFd<'_>; 2]) -> io::Result<OwnedFd> {
    let instance = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for descriptor in descriptors {
        epoll::add(&instance, descriptor, EventData::new_u64(0), EventFlags::IN)?;
    }
    Ok(instance)
}

impl VerbsPort {
    /// Asks to be woken. False when there is something already.
    pub(super) fn fall_asleep(&mut self) -> bool {
        self.post_batch();
        self.armed = true;
        self.poller.quiet();
        let armed = self.poller.arm();
        let nothing = armed
            && self.settling.is_none()
            && !self.poller.has_next()
            && self.late.is_empty()
            && !self.inbox.has_notice()
            && !self.means.has_answer();
        if !nothing {
            self.rise();
        } else if let Means::Regions(regions) = &mut self.means {
            regions.settle_down();
        }
        nothing
    }

    /// Awake: the descriptor is to be quiet again. An event that comes for what is being looked at
    /// now ends the next sleep early, no more.
    #[cold]
    pub(super) fn rise(&mut self) {
        self.armed = false;
        self.poller.quiet();
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
