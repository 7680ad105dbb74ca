//! Taking completions out of the completion queue, and asking to be woken by the next.
//!
//! By `ibv_cq_ex` where the provider has it, which hands out only what is asked for, else by
//! `ibv_poll_cq`. Which it is was decided when the queue was made. Either way what came is put
//! down a burst at a time, and handed out one by one as [`Seen`].

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use super::calls::Calls;
use super::status;
use super::ticket::Ticket;
use rdma_core_sys as rdma;
use rdma_core_sys::inline as ibv;
use rpcrdma_fabric::{Handle, WorkError};

/// Completions taken at once.
const BURST: usize = 32;

/// The completion queue of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// Polled by `ibv_poll_cq`.
    Plain(*mut rdma::ibv_cq),
    /// Polled by `ibv_start_poll` and what follows it.
    Extended(*mut rdma::ibv_cq_ex),
    /// Not polled any more: the device is gone.
    Closed,
}

/// One completion, as much of it as can be believed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Which request.
    pub(crate) ticket: Ticket,
    /// Zero is success.
    pub(crate) status: rdma::ibv_wc_status,
    /// Of a message received, octets.
    pub(crate) len: u32,
    /// The handle that a message received has invalidated.
    pub(crate) invalidated: Option<Handle>,
}

impl Seen {
    /// What went wrong, if anything.
    #[inline]
    pub(crate) fn error(&self) -> Option<WorkError> {
        (self.status != rdma::IBV_WC_SUCCESS).then(|| status::work_error(self.status))
    }
}

/// Takes completions in bursts and hands them out one by one.
pub(crate) struct Poller {
    queue: Queue,
    /// The flags that say that a Send has invalidated a handle, on this device: see
    /// [`crate::port`].
    invalidating: u32,
    burst: Box<[rdma::ibv_wc; BURST]>,
    /// How many of them were handed out, and are there.
    next: usize,
    filled: usize,
    /// The last burst was not full: the queue was empty then.
    emptied: bool,
    /// Events taken from the channel and not acknowledged.
    events: u32,
    channel: *mut rdma::ibv_comp_channel,
    calls: Calls,
}

// SAFETY: the objects it names may be used from any thread; this one uses them from one at a time.
unsafe impl Send for Poller {}

impl Poller {
    /// # Safety
    ///
    /// Queue and channel are alive for as long as the poller, the channel is the queue's and
    /// reads without waiting, and nobody else polls the one or reads the other.
    pub(crate) unsafe fn new(
        queue: Queue,
        channel: *mut rdma::ibv_comp_channel,
        invalidating: u32,
        calls: Calls,
    ) -> Poller {
        Poller {
            queue,
            invalidating,
            burst: Box::new([rdma::ibv_wc::default(); BURST]),
            next: 0,
            filled: 0,
            emptied: false,
            events: 0,
            channel,
            calls,
        }
    }

    /// A poller on a queue of the device that stands in for one, which has no channel and whose
    /// objects are never freed.
    #[cfg(any(test, feature = "stand-in"))]
    pub(crate) fn on_stand_in(queue: Queue, invalidating: u32, calls: Calls) -> Poller {
        // SAFETY: alive for ever, and the calls of the stand-in look at no channel.
        unsafe { Poller::new(queue, std::ptr::null_mut(), invalidating, calls) }
    }

    /// A reap begins: what is not here already is asked for.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.emptied = false;
    }

    /// All of a burst that emptied the queue has been handed out.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.emptied && self.next == self.filled
    }

    /// The next completion that is there. A burst that was not full emptied the queue, so the
    /// device is not asked again within the same reap.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Seen> {
        if self.next == self.filled {
            if self.emptied {
                return None;
            }
            self.next = 0;
            self.filled = self.poll();
            if self.filled == 0 {
                return None;
            }
            self.emptied = self.filled != BURST;
        }
        let completion = self.burst.get(self.next)?;
        self.next += 1;
        Some(Seen {
            ticket: Ticket(completion.wr_id),
            status: completion.status,
            len: completion.byte_len,
            invalidated: if completion.wc_flags & self.invalidating != 0 {
                // SAFETY: both readings of this field are numbers.
                Some(Handle(unsafe {
                    completion.__bindgen_anon_1.invalidated_rkey
                }))
            } else {
                None
            },
        })
    }

    #[inline]
    fn poll(&mut self) -> usize {
        match self.queue {
            Queue::Plain(queue) => self.poll_plain(queue),
            Queue::Extended(queue) => self.poll_extended(queue),
            Queue::Closed => 0,
        }
    }

    /// Whether there is one, taking it from the device but not out of here.
    pub(crate) fn has_next(&mut self) -> bool {
        self.begin();
        if self.next == self.filled && self.next().is_some() {
            self.next = 0;
        }
        self.next < self.filled
    }

    #[inline]
    fn poll_plain(&mut self, queue: *mut rdma::ibv_cq) -> usize {
        const COUNT: libc::c_int = 32;
        const { assert!(COUNT as usize == BURST) };
        // SAFETY: the queue is alive, and there is room for as many.
        let taken = unsafe { ibv::ibv_poll_cq(queue, COUNT, self.burst.as_mut_ptr()) };
        // Negative: the queue itself is broken, and the device with it, as its own event says.
        usize::try_from(taken).unwrap_or(0).min(BURST)
    }

    #[inline]
    fn poll_extended(&mut self, queue: *mut rdma::ibv_cq_ex) -> usize {
        let mut attributes = rdma::ibv_poll_cq_attr::default();
        // SAFETY: the queue is alive.
        if unsafe { ibv::ibv_start_poll(queue, &raw mut attributes) } != 0 {
            return 0;
        }
        let mut taken = 0;
        while let Some(place) = self.burst.get_mut(taken) {
            // SAFETY: polling has begun, so there is a current completion.
            unsafe { take_current(queue, place) };
            taken += 1;
            // SAFETY: as above. After the last one that there is room for none is taken.
            if taken == BURST || unsafe { ibv::ibv_next_poll(queue) } != 0 {
                break;
            }
        }
        // SAFETY: begun above.
        unsafe { ibv::ibv_end_poll(queue) };
        taken
    }

    fn plain(&self) -> Option<*mut rdma::ibv_cq> {
        match self.queue {
            Queue::Plain(queue) => Some(queue),
            Queue::Extended(queue) => Some(ibv::ibv_cq_ex_to_cq(queue)),
            Queue::Closed => None,
        }
    }

    /// Asks for an event with the next completion. False when that failed.
    pub(crate) fn arm(&mut self) -> bool {
        self.plain().is_none_or(|queue| {
            // SAFETY: the queue is alive.
            unsafe { ibv::ibv_req_notify_cq(queue, 0) == 0 }
        })
    }

    /// Never touches queue and channel again.
    pub(crate) fn close(&mut self) {
        self.quiet();
        self.acknowledge();
        self.queue = Queue::Closed;
        (self.next, self.filled) = (0, 0);
    }

    /// Takes the events that came, so that the channel's descriptor is quiet. They are
    /// acknowledged many at a time: that takes a lock.
    pub(crate) fn quiet(&mut self) {
        const AT_ONCE: u32 = 256;
        if self.queue == Queue::Closed {
            return;
        }
        // SAFETY: the channel is alive, and reads without waiting.
        while unsafe { self.calls.take_event(self.channel) } {
            self.events += 1;
        }
        if self.events >= AT_ONCE {
            self.acknowledge();
        }
    }

    fn acknowledge(&mut self) {
        let events = std::mem::take(&mut self.events);
        if let Some(queue) = self.plain().filter(|_| events > 0) {
            // SAFETY: the queue is alive, and so many events of it were taken.
            unsafe { (self.calls.ack_cq_events)(queue, events) };
        }
    }
}

impl Drop for Poller {
    /// The queue cannot be destroyed while events of it are not acknowledged.
    fn drop(&mut self) {
        self.close();
    }
}

/// Puts down the current completion, as much of it as is wanted.
///
/// # Safety
///
/// The queue is alive and being polled.
#[inline]
unsafe fn take_current(queue: *mut rdma::ibv_cq_ex, place: &mut rdma::ibv_wc) {
    // SAFETY: the caller's promise.
    place.wr_id = unsafe { (*queue).wr_id };
    // SAFETY: as above.
    place.status = unsafe { (*queue).status };
    place.wc_flags = 0;
    // Of anything but a message there is no more to know.
    if place.status == rdma::IBV_WC_SUCCESS && Ticket(place.wr_id).is_receive() {
        // SAFETY: as above.
        place.byte_len = unsafe { ibv::ibv_wc_read_byte_len(queue) };
        // SAFETY: as above.
        place.wc_flags = unsafe { ibv::ibv_wc_read_wc_flags(queue) };
        // SAFETY: as above.
        place.__bindgen_anon_1.invalidated_rkey =
            unsafe { ibv::ibv_wc_read_invalidated_rkey(queue) };
    }
}

#[cfg(test)]
pub(super) mod tests {
    use rpcrdma_fabric::Span;
    use rpcrdma_fabric::arena::Arena;

    /// Writes into an arena that no slice of is alive.
    pub(crate) fn fill(arena: &Arena, at: Span, octets: &[u8]) {
        // SAFETY: a test looks at its arena only between calls.
        assert!(unsafe { arena.fill(at, octets) });
    }

    /// What is in an arena.
    pub(crate) fn octets(arena: &Arena, at: Span) -> Vec<u8> {
        // SAFETY: as above.
        unsafe { arena.octets(at) }.to_vec()
    }
}
