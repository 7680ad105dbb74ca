//! A queue pair on its way: made by control, used by a port, given back to control.
//!
//! The queue pair and its connection-manager id belong together and are destroyed together, by
//! control, and only when no lcore can post to it any more. So the endpoint shares them with
//! control as long as it lives, and its end, wherever that happens, is how control learns that it
//! may destroy them:
//!
//! ```text
//!   control: take ──► Endpoint ──► port: adopt ... hand back ──► drop ─┐
//!                        '──────────── never adopted ────────────────► Seat: vacated ──► control: destroy
//! ```
//!
//! The drop itself calls nothing of the device: it puts the share down in the [`Seat`] and rings.
//! Only where control itself is gone are both destroyed there and then.

use crate::bell::Bell;
use crate::object::QueuePair;
use crate::port::{Books, Rail};
use rpcrdma_fabric::connect::ConnectionId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A queue pair that was made for a port. See [`rpcrdma_fabric::Port::adopt`].
#[derive(Debug)]
pub struct Endpoint {
    connection: ConnectionId,
    rail: Rail,
    books: Option<Books>,
    inline_bytes: u32,
    /// Both until the end.
    share: Option<(Arc<QueuePair>, Arc<Seat>)>,
}

/// What control and the endpoint have in common.
#[derive(Debug)]
pub(crate) struct Seat {
    vacated: AtomicBool,
    /// The endpoint's share of the queue pair, once it is done with it.
    left: Mutex<Option<Arc<QueuePair>>>,
    /// Control's.
    bell: Arc<Bell>,
}

impl Seat {
    pub(crate) fn new(bell: Arc<Bell>) -> Arc<Seat> {
        Arc::new(Seat {
            vacated: AtomicBool::new(false),
            left: Mutex::new(None),
            bell,
        })
    }

    /// The endpoint is gone: nobody posts to the queue pair any more.
    pub(crate) fn is_vacated(&self) -> bool {
        self.vacated.load(Ordering::Acquire)
    }

    /// Lets go of the share that was left.
    pub(crate) fn clear(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = None;
    }

    #[cold]
    fn vacate(&self, share: Arc<QueuePair>) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = Some(share);
        drop(left);
        self.vacated.store(true, Ordering::Release);
        self.bell.ring();
    }
}

impl Endpoint {
    pub(crate) fn new(
        connection: ConnectionId,
        pair: Arc<QueuePair>,
        books: Books,
        seat: Arc<Seat>,
    ) -> Endpoint {
        Endpoint {
            connection,
            rail: pair.rail(),
            inline_bytes: pair.inline_bytes(),
            books: Some(books),
            share: Some((pair, seat)),
        }
    }

    /// One whose queue pair is nobody's.
    #[cfg(any(test, feature = "stand-in"))]
    pub(crate) fn stand_in(
        connection: ConnectionId,
        rail: Rail,
        books: Books,
        inline_bytes: u32,
    ) -> Endpoint {
        Endpoint {
            connection,
            rail,
            books: Some(books),
            inline_bytes,
            share: None,
        }
    }

    /// What control calls the connection.
    pub(crate) fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// How it is posted to: for as long as the endpoint lives.
    pub(crate) fn rail(&self) -> Rail {
        self.rail
    }

    /// Longest message that this queue pair sends inline, octets.
    pub(crate) fn inline_bytes(&self) -> u32 {
        self.inline_bytes
    }

    /// The memory for its books, once.
    pub(crate) fn take_books(&mut self) -> Option<Books> {
        self.books.take()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Some((pair, seat)) = self.share.take() {
            seat.vacate(pair);
        }
    }
}
