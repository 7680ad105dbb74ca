//! Where one queue pair's datagrams wait for its owner.

use rpcrdma_fabric::bell::Bell;
use rpcrdma_fabric::datagram::{Arrival, DatagramCounts};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A bounded queue. Filled by senders' threads, emptied by the owner's.
#[derive(Debug)]
pub(super) struct Mailbox {
    inside: Mutex<Inside>,
    room: usize,
    bell: Bell,
}

#[derive(Debug, Default)]
struct Inside {
    waiting: VecDeque<(Arrival, Arc<[u8]>)>,
    counts: DatagramCounts,
}

impl Mailbox {
    pub(super) fn new(room: u32) -> io::Result<Mailbox> {
        Ok(Mailbox {
            inside: Mutex::default(),
            room: room as usize,
            bell: Bell::new()?,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a datagram in, or counts that there was no room for it.
    pub(super) fn put(&self, arrival: Arrival, octets: &Arc<[u8]>) {
        let mut inside = self.lock();
        if inside.waiting.len() >= self.room {
            inside.counts.overrun += 1;
            return;
        }
        inside.waiting.push_back((arrival, Arc::clone(octets)));
        if inside.waiting.len() == 1 {
            self.bell.ring();
        }
    }

    /// The oldest. With none the bell is silent until the next is put in: both under one lock.
    pub(super) fn take(&self) -> Option<(Arrival, Arc<[u8]>)> {
        let mut inside = self.lock();
        let Some((arrival, octets)) = inside.waiting.pop_front() else {
            self.bell.hush();
            return None;
        };
        inside.counts.received += 1;
        inside.counts.received_octets += octets.len() as u64;
        Some((arrival, octets))
    }

    pub(super) fn count(&self, what: impl FnOnce(&mut DatagramCounts)) {
        what(&mut self.lock().counts);
    }

    pub(super) fn counts(&self) -> DatagramCounts {
        self.lock().counts
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
