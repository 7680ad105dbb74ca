//! What the owner of a queue pair sleeps on: one descriptor for all that can happen to it.

use crate::error::Fault;
use rpcrdma_fabric::bell::Bell;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Readable with any of the descriptors that were added, and when its bell was rung.
#[derive(Debug)]
pub(super) struct Watch {
    epoll: OwnedFd,
    bell: Arc<Bell>,
}

impl Watch {
    pub(super) fn new() -> Result<Watch, Fault> {
        let watch = Watch {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)
                .map_err(|error| system("epoll_create", &error.into()))?,
            bell: Arc::new(Bell::new().map_err(|error| system("eventfd", &error))?),
        };
        watch.add(watch.bell.as_fd())?;
        Ok(watch)
    }

    pub(super) fn add(&self, descriptor: BorrowedFd<'_>) -> Result<(), Fault> {
        let data = EventData::new_u64(0);
        epoll::add(&self.epoll, descriptor, data, EventFlags::IN)
            .map_err(|error| system("epoll_ctl", &error.into()))
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// For whoever has news, from any thread.
    pub(super) fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// Not to be woken by these any more, nor by what was rung so far. The descriptors of a device
    /// that is gone, and events that nobody took, would keep ours readable for ever; so would what
    /// is rung by a thread that ends.
    pub(super) fn fall_silent(&self, descriptors: [BorrowedFd<'_>; 2]) {
        for descriptor in descriptors {
            // It may have been taken out before.
            let _ = epoll::delete(&self.epoll, descriptor);
        }
        self.bell.hush();
    }
}

fn system(call: &'static str, error: &std::io::Error) -> Fault {
    Fault {
        call,
        errno: error.raw_os_error().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn is_readable(watch: &Watch) -> bool {
        let descriptor = watch.descriptor();
        let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
        poll(&mut descriptors, Some(&Timespec::default())).expect("a descriptor") == 1
    }

    /// Bells in place of completion channels: readable until somebody takes what is there.
    fn watched() -> (Watch, [Bell; 2]) {
        let watch = Watch::new().expect("descriptors");
        let queues = [(); 2].map(|()| Bell::new().expect("a descriptor"));
        for queue in &queues {
            watch.add(queue.as_fd()).expect("watched");
        }
        (watch, queues)
    }

    #[test]
    fn each_of_them_wakes() {
        let (watch, queues) = watched();
        assert!(!is_readable(&watch));
        for bell in queues.iter().chain([&**watch.bell()]) {
            bell.ring();
            assert!(is_readable(&watch));
            bell.hush();
            assert!(!is_readable(&watch));
        }
    }

    /// Events that nobody will take wake nobody, nor does a resolver's last word; and to be told
    /// again, each time somebody looks, changes nothing.
    #[test]
    fn what_is_over_keeps_nobody_awake() {
        let (watch, queues) = watched();
        queues.iter().for_each(Bell::ring);
        watch.bell().ring();
        for _ in 0..2 {
            watch.fall_silent(queues.each_ref().map(AsFd::as_fd));
            assert!(!is_readable(&watch));
            queues.iter().for_each(Bell::ring);
            assert!(!is_readable(&watch));
            // A thread that has not ended yet: heard, and hushed by the next look.
            watch.bell().ring();
            assert!(is_readable(&watch));
        }
    }
}
