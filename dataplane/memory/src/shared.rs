//! What others see of a port: its arena, its windows, its bell and its letter box.

use crate::bell::Bell;
use crate::lane::Lane;
use crate::window::Windows;
use rpcrdma_fabric::arena::Arena;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The shared half of a port; the other half belongs to its lcore.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Number of the port in its fabric.
    pub(crate) id: u32,
    pub(crate) arena: Arc<Arena>,
    pub(crate) windows: Windows,
    pub(crate) bell: Bell,
    /// The lcore is gone: no new connections.
    pub(crate) closed: AtomicBool,
    /// Something is in `severed` or `lanes`.
    news: AtomicBool,
    /// Queue pairs whose connection somebody else has ended, one bit each.
    severed: Box<[AtomicU64]>,
    /// New lanes. Locked by the control thread and, when there is news, by the lcore.
    lanes: Mutex<Vec<Lane>>,
}

impl Shared {
    pub(crate) fn new(
        id: u32,
        arena: Arc<Arena>,
        windows: u32,
        queue_pairs: u32,
    ) -> std::io::Result<Shared> {
        Ok(Shared {
            id,
            arena,
            windows: Windows::new(windows),
            bell: Bell::new()?,
            closed: AtomicBool::new(false),
            news: AtomicBool::new(false),
            severed: (0..queue_pairs.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
            lanes: Mutex::new(Vec::new()),
        })
    }

    /// Tells the lcore that the connection of one of its queue pairs has ended, and wakes it.
    pub(crate) fn tell_severed(&self, queue_pair: u32) {
        if let Some(word) = self.severed.get(queue_pair as usize / 64) {
            word.fetch_or(1 << (queue_pair % 64), Ordering::Release);
        }
        self.news.store(true, Ordering::Release);
        self.bell.ring();
    }

    /// Gives the lcore a lane to another port.
    pub(crate) fn give_lane(&self, lane: Lane) {
        self.lanes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(lane);
        self.news.store(true, Ordering::Release);
        self.bell.ring();
    }

    /// Whether there is something to take.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.news.load(Ordering::Relaxed)
    }

    /// Takes the new lanes, and every severed queue pair, in that order.
    pub(crate) fn take_news(&self, lane: impl FnMut(Lane), mut severed: impl FnMut(u32)) {
        if !self.news.swap(false, Ordering::Acquire) {
            return;
        }
        // The control thread holds this for the length of a push, once per pair of ports.
        let lanes = std::mem::take(&mut *self.lanes.lock().unwrap_or_else(PoisonError::into_inner));
        lanes.into_iter().for_each(lane);
        for (index, word) in (0_u32..).zip(&self.severed) {
            let mut bits = word.swap(0, Ordering::Acquire);
            while bits != 0 {
                severed(index * 64 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }
}
