//! A port of the verbs fabric: what one lcore polls.
//!
//! # The way of a message
//!
//! ```text
//!   send, read, write, expose, retire ──► pair (books) ──► batch ──ring──► flush ──► the device
//!   reap ◄── pair (books) ◄── poller (a burst of completions) ◄──────────────────────────┘
//! ```
//!
//! Every request gets a number in its queue pair's books and a [`ticket`](ticket) that leads back to
//! it: place, generation and number, in the 64 bits that the device gives back. No pointer goes
//! through the device, and nothing is searched or hashed.
//!
//! **Posting waits for `ring`.** What one queue pair is given in a row is one list, so one doorbell
//! (on software RDMA one system call), receives first. See [`batch`](batch).
//!
//! **Completions are rare.** A Send whose octets were copied, inline or into the [`outbox`](outbox),
//! is [`Posted::Done`] at once, and asks for no completion. What uses the arena's memory is
//! [`Posted::Pending`], and is told when the last request of its run completes, which speaks for
//! all before it: so a Reply's Writes and its Send cost one completion. Reads and retirements are
//! told by themselves, for somebody waits for each. One request in every quarter of the queue has
//! a completion in any case: without, a full queue would never be known to be empty again. See
//! [`pair`](pair) and [`reap`](reap).
//!
//! **Refused for want of room.** A silent completion makes room that no completion of the owner's
//! tells of, and so do a new window and a region that was registered: the owner hears
//! [`Outcome::Room`].
//!
//! **Two interfaces.** `ibv_wr_*` and `ibv_cq_ex` where the provider has them, lists and
//! `ibv_poll_cq` where not: decided for each queue pair and queue when it is made, one predictable
//! branch afterwards. See [`rail`](rail) and [`poller`](poller).
//!
//! # What a peer may do to us
//!
//! It reaches memory by exposures alone, and what it sends lands in posted receives. How memory
//! is exposed is [`crate::expose`]'s business. A handle that its Send has invalidated is believed
//! only when the device says, by a flag of the completion, that there was one: the field it stands
//! in has no meaning otherwise. What was found on devices at hand:
//!
//! | device | a plain Send | a Send With Invalidate |
//! |---|---|---|
//! | by the manual, mlx5 | no flag | `IBV_WC_WITH_INV`, and the key |
//! | rxe (kernel 6.12) | flags `IBV_WC_GRH`, field zero, also right after a Send With Invalidate | flags `IBV_WC_GRH` and bit 2, and the key |
//! | siw (kernel 6.12) | flags and field zero | the same: it does not tell |
//!
//! Bit 2 is the kernel's own number for this flag, which rxe writes into the user's completion,
//! where that number is `IBV_WC_IP_CSUM_OK`. No reliable connection of rxe's has another use for
//! it, so on rxe, and there alone, it is taken for what it is: see [`invalidating_flags`]. A key
//! that is told is still for the engine to judge, which knows what it exposed for which Call
//! (V2-19). Where it is not told, no peer is asked to (RFC 8797 3.2): a requester on siw wants no
//! invalidation, though a responder there does it for one that wants. A peer that does it unasked
//! has taken a region that is found exposed when the Reply is settled, and retired, which siw allows.
//!
//! Two devices hold accesses against less than was said, which no user of theirs can change:
//!
//! - rxe (kernel 6.12) checks the bounds of the region that a window is on, not of the window: who
//!   has any window of a connection reaches all of the lcore's arena by it, with the right that it
//!   was opened with. It checks which connection uses it, and which key.
//! - siw (kernel 6.12) lets be read what was registered to be written.
//!
//! And on iWARP devices but siw all of the arena is open to be written by a peer that is sent an RDMA
//! Read, for the handle of where it goes is on the wire, and has to have that right.
//!
//! So on software RDMA a peer is to be trusted as far as with `expose = "arena"`. rxe's extended
//! calls are not used: of rdma-core 44, `ibv_wr_set_sge_list` takes every element to be as long as the
//! first, and `ibv_next_poll` ends the poll that `ibv_end_poll` then ends once more.
//!
//! siw breaks two promises of completions, too, for which the port makes up. It completes what is
//! posted behind an RDMA Read as soon as that is sent, before the Read: so there all else waits
//! for Reads, by the fence flag. And of what is not signalled it hands TCP the pages, to be sent
//! when the memory may be another Reply's: so there long requests are signalled, each of them.
//!
//! A port's queue pairs share one protection domain. A window is bound to one of them; a region
//! is not, and neither is the arena's own, whose key no peer is told.
//!
//! # What it costs
//!
//! Nothing here allocates, locks, logs or panics on the way of a message, and the only system
//! calls are those that the provider makes. Ends of connections may. `examples/port_path.rs` counts
//! instructions.

mod batch;
mod calls;
mod close;
mod counts;
mod exposure;
mod fifo;
mod flush;
mod outbox;
mod pair;
mod parts;
mod poller;
mod post;
mod rail;
mod reap;
mod sleep;
mod status;
mod ticket;

pub(crate) use batch::{MOST_ELEMENTS, MOST_INLINE};
pub(crate) use calls::Calls;
pub(crate) use pair::Books;
pub(crate) use parts::{Limits, Parts, Registered};
pub(crate) use poller::{Poller, Queue};
pub(crate) use post::remote_access;
pub(crate) use rail::{Rail, Raw};
pub(crate) use status::refused;
pub(crate) use ticket::{MOST_PAIRS, Place};

use crate::endpoint::Endpoint;
use crate::expose::{Means, Told};
use crate::inbox::Inbox;
use batch::Batch;
use outbox::Outbox;
use pair::Pair;
use rdma_core_sys as rdma;
use reap::Settling;
use rpcrdma_fabric::{
    Access, Capabilities, Completion, Exposure, Handle, Octets, Outcome, Port, PortCounts, Posted,
    QueuePair, Refused, Segment, Span, Token, WorkId,
};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// The flags of a completion that say that the message has invalidated a handle of ours. `rxe`: the
/// device is software RoCE, whose word for it is another: see the module text.
pub(crate) fn invalidating_flags(rxe: bool) -> u32 {
    if rxe {
        rdma::IBV_WC_WITH_INV | rdma::IBV_WC_IP_CSUM_OK
    } else {
        rdma::IBV_WC_WITH_INV
    }
}

/// A port. Belongs to one lcore; dropping it ends all its connections.
pub struct VerbsPort {
    poller: Poller,
    arena: Registered,
    outbox: Registered,
    limits: Limits,
    means: Means,
    calls: Calls,
    pairs: Box<[Pair]>,
    /// Places of queue pairs that are free.
    free: Vec<u16>,
    batch: Batch,
    /// A completion that the engine has heard of in part.
    settling: Option<Settling>,
    /// What is to be told besides completions of the device.
    late: VecDeque<Completion>,
    /// Queue pairs on their way to their end.
    ending: Vec<Place>,
    /// The last connection that found no window.
    seeker: Option<Token>,
    counts: PortCounts,
    armed: bool,
    /// The device, or the completion queue, is gone.
    gone: bool,
    /// And everything by which it reaches memory is destroyed.
    ended: bool,
    epoll: OwnedFd,
    /// Keeps the device's objects: after all that uses them.
    inbox: Inbox,
}

impl VerbsPort {
    /// A port with everything it will ever need.
    ///
    /// # Errors
    ///
    /// The system has no epoll instance or watch left for it.
    pub(crate) fn new(
        parts: Parts,
        inbox: Inbox,
        calls: Calls,
        channel: BorrowedFd<'_>,
    ) -> io::Result<VerbsPort> {
        let Parts {
            poller,
            arena,
            outbox,
            limits,
            means,
        } = parts;
        let count = u16::try_from(limits.queue_pairs).unwrap_or(u16::MAX);
        Ok(VerbsPort {
            epoll: sleep::watch([channel, inbox.descriptor()])?,
            poller,
            arena,
            outbox,
            limits,
            means,
            calls,
            pairs: (0..count)
                .map(|index| Pair::free(Place::first(index)))
                .collect(),
            free: (0..count).rev().collect(),
            batch: Batch::new(limits.fenced),
            settling: None,
            late: VecDeque::with_capacity(usize::from(count) * 2 + 64),
            ending: Vec::with_capacity(usize::from(count)),
            seeker: None,
            counts: PortCounts::default(),
            armed: false,
            gone: false,
            ended: false,
            inbox,
        })
    }

    /// Gives out what the registrar has answered.
    fn take_answers(&mut self) {
        let Means::Regions(regions) = &mut self.means else {
            return;
        };
        while let Some(told) = regions.next() {
            let (place, id, outcome) = match told {
                Told::Room(place) => (place, WorkId(0), Outcome::Room),
                Told::Retired(place, id) => (place, id, Outcome::Done),
                Told::Nothing => continue,
            };
            let pair = self.pairs.get(usize::from(place.index));
            if let Some(pair) = pair.filter(|pair| pair.place == place && !pair.forgotten) {
                self.late.push_back(Completion {
                    token: pair.token,
                    id,
                    outcome,
                });
            }
        }
        regions.wake();
    }
}

impl Port for VerbsPort {
    type Endpoint = Endpoint;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            queue_pairs: self.limits.queue_pairs,
            gather: self.limits.gather,
            send_depth: self.limits.send_depth,
            receive_depth: self.limits.receive_depth,
            transfer_bytes: self.limits.transfer_bytes,
            windows: self.limits.windows,
            send_invalidate: self.limits.send_invalidate,
            receive_invalidate: self.limits.receive_invalidate,
        }
    }

    fn exposure(&self) -> Exposure {
        self.means.kind()
    }

    fn counts(&self) -> PortCounts {
        self.counts
    }

    fn adopt(&mut self, mut endpoint: Endpoint, token: Token) -> Result<QueuePair, Refused> {
        // One that is dropped goes back to control by itself.
        if self.gone {
            return Err(Refused::Broken);
        }
        let index = *self.free.last().ok_or(Refused::Busy)?;
        let pair = self.pairs.get_mut(usize::from(index));
        let pair = pair.ok_or(Refused::Broken)?;
        let books = endpoint.take_books().ok_or(Refused::Broken)?;
        let inline_bytes = endpoint
            .inline_bytes()
            .min(u32::try_from(MOST_INLINE).unwrap_or(u32::MAX));
        let outbox = Outbox::new(index, self.limits.outbox_bytes);
        pair.adopt(endpoint.rail(), books, inline_bytes, outbox, token);
        pair.endpoint = Some(endpoint);
        self.free.pop();
        Ok(QueuePair(u32::from(index)))
    }

    fn disconnect(&mut self, qp: QueuePair) {
        self.end(qp.0);
    }

    fn destroy(&mut self, qp: QueuePair) {
        self.forget(qp.0);
    }

    #[inline]
    fn post_receive(&mut self, qp: QueuePair, memory: Span, id: WorkId) -> Result<(), Refused> {
        self.put_receive(qp.0, memory, id)
    }

    #[inline]
    fn send(
        &mut self,
        qp: QueuePair,
        message: &[Octets<'_>],
        invalidate: Option<Handle>,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        self.put_send(qp.0, message, invalidate, id)
    }

    #[inline]
    fn read(
        &mut self,
        qp: QueuePair,
        into: Span,
        from: Segment,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        self.put_read(qp.0, into, from, id)
    }

    #[inline]
    fn write(
        &mut self,
        qp: QueuePair,
        from: Span,
        to: Segment,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        self.put_write(qp.0, from, to, id)
    }

    fn expose(&mut self, qp: QueuePair, memory: Span, access: Access) -> Result<Segment, Refused> {
        self.put_exposure(qp.0, memory, access)
    }

    fn retire(&mut self, qp: QueuePair, handle: Handle, id: WorkId) -> Result<Posted, Refused> {
        self.end_exposure(qp.0, handle, id)
    }

    fn retired_by_peer(&mut self, qp: QueuePair, handle: Handle) {
        self.lose_exposure(qp.0, handle);
    }

    #[inline]
    fn reap(&mut self, completions: &mut [Completion]) -> usize {
        self.reap_into(completions)
    }

    #[inline]
    fn reap_one(&mut self) -> Option<Completion> {
        self.reap_next()
    }

    #[inline]
    fn ring(&mut self) {
        self.post_batch();
        if let Means::Regions(regions) = &mut self.means {
            regions.ring();
        }
    }

    fn arm(&mut self) -> bool {
        self.fall_asleep()
    }

    fn waker(&self) -> BorrowedFd<'_> {
        self.descriptor()
    }
}

#[cfg(test)]
mod tests;
