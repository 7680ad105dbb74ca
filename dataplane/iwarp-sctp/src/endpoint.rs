//! A queue pair on its way: promised by control, made by a port, given back to control.
//!
//! There is nothing in it but names. The port makes what it needs when it adopts; control counts
//! the queue pairs that are out, and hears of each end by the endpoint's drop, wherever that is.

use crate::port::At;
use rpcrdma_fabric::bell::Bell;
use rpcrdma_fabric::connect::ConnectionId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A queue pair that was made for a port. See [`rpcrdma_fabric::Port::adopt`].
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) connection: ConnectionId,
    pub(crate) origin: Origin,
    seat: Arc<Seat>,
}

/// How a connection began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Here.
    Begun,
    /// With a request of a peer's, on this stream.
    Asked { request: u64, at: At },
}

/// What control and the endpoint have in common.
#[derive(Debug)]
pub(crate) struct Seat {
    vacated: AtomicBool,
    /// Control's.
    bell: Arc<Bell>,
}

impl Seat {
    /// The endpoint is gone: nobody posts to the queue pair any more.
    pub(crate) fn is_vacated(&self) -> bool {
        self.vacated.load(Ordering::Acquire)
    }
}

impl Endpoint {
    /// With control's half of it.
    pub(crate) fn new(
        connection: ConnectionId,
        origin: Origin,
        bell: Arc<Bell>,
    ) -> (Endpoint, Arc<Seat>) {
        let seat = Arc::new(Seat {
            vacated: AtomicBool::new(false),
            bell,
        });
        let endpoint = Endpoint {
            connection,
            origin,
            seat: Arc::clone(&seat),
        };
        (endpoint, seat)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.seat.vacated.store(true, Ordering::Release);
        self.seat.bell.ring();
    }
}
