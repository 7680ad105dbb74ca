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
//! Control takes it from there ([`Seat::clear`]) and does not wait for the last share of the seat,
//! which the thread that dropped the endpoint may still have. Only where control itself is gone
//! are both destroyed there and then.

use crate::object::QueuePair;
use crate::port::{Books, Rail};
use rpcrdma_fabric::bell::Bell;
use rpcrdma_fabric::connect::ConnectionId;
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    left: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
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

    /// Destroys what was left here, if nobody else has a share of it.
    pub(crate) fn clear(&self) {
        let left = self.lock().take();
        // The lock is open again: destroying takes its time.
        drop(left);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<dyn Any + Send + Sync>>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn vacate(self: Arc<Seat>, share: Arc<dyn Any + Send + Sync>) {
        *self.lock() = Some(share);
        let bell = Arc::clone(&self.bell);
        self.vacated.store(true, Ordering::Release);
        drop(self);
        bell.ring();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Control's part is done when it has cleared the seat, though the lcore still has a share.
    #[test]
    fn what_is_left_is_controls_whoever_else_has_the_seat() {
        let bell = Arc::new(Bell::new().expect("a descriptor"));
        let seat = Seat::new(bell);
        let share: Arc<dyn Any + Send + Sync> = Arc::new(());
        let of_the_lcore = Arc::clone(&seat);
        assert!(!seat.is_vacated());
        Arc::clone(&seat).vacate(Arc::clone(&share));
        assert!(seat.is_vacated());
        assert_eq!(Arc::strong_count(&share), 2);
        seat.clear();
        assert_eq!(Arc::strong_count(&share), 1);
        drop((seat, of_the_lcore));
    }
}
