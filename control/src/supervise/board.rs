//! Where the control thread hangs out the state of the appliance for other threads to read.

use crate::metrics::Family;
use crate::status::Document;
use rpcrdma_lcore::Bell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a reader waits for a fresh state before it takes the last one.
const PATIENCE: Duration = Duration::from_secs(1);

/// What hangs there.
#[derive(Default)]
struct Posted {
    /// How many times something was posted.
    edition: u64,
    document: Document,
    families: Vec<Family>,
}

/// The board.
pub struct Board {
    bell: Arc<Bell>,
    posted: Mutex<Posted>,
    changed: Condvar,
    /// Editions asked for.
    wanted: AtomicU64,
    drain: AtomicBool,
    reload: AtomicBool,
}

impl Board {
    pub(super) fn new(bell: Arc<Bell>) -> Arc<Self> {
        Arc::new(Self {
            bell,
            posted: Mutex::default(),
            changed: Condvar::new(),
            wanted: AtomicU64::new(0),
            drain: AtomicBool::new(false),
            reload: AtomicBool::new(false),
        })
    }

    /// The state, as of now where the control thread answers in time.
    pub fn document(&self) -> Document {
        self.fresh().document.clone()
    }

    /// The counters, as of now where the control thread answers in time.
    pub fn families(&self) -> Vec<Family> {
        self.fresh().families.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Posted> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fresh(&self) -> MutexGuard<'_, Posted> {
        let posted = self.lock();
        // The survey under way may have passed what happened just now: the one after it has not.
        let wanted = posted.edition + 2;
        self.wanted.fetch_max(wanted, Ordering::Relaxed);
        self.bell.ring();
        let stale = |posted: &mut Posted| posted.edition < wanted;
        let waited = self.changed.wait_timeout_while(posted, PATIENCE, stale);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Somebody waits for an edition that is not out yet.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > self.lock().edition
    }

    pub(super) fn post(&self, document: Document, families: Vec<Family>) {
        let mut posted = self.lock();
        posted.edition += 1;
        posted.document = document;
        posted.families = families;
        drop(posted);
        self.changed.notify_all();
    }

    pub(super) fn ask_to_drain(&self) {
        self.drain.store(true, Ordering::Relaxed);
        self.bell.ring();
    }

    pub(super) fn ask_to_reload(&self) {
        self.reload.store(true, Ordering::Relaxed);
        self.bell.ring();
    }

    /// Somebody has asked since this was last called.
    pub(super) fn takes_reload(&self) -> bool {
        self.reload.swap(false, Ordering::Relaxed)
    }

    pub(super) fn wants_drain(&self) -> bool {
        self.drain.load(Ordering::Relaxed)
    }
}
