//! A port of the verbs fabric: what one lcore polls. ESSAY

mod batch;
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

pub use counts::Counts;

pub(crate) use batch::{MOST_ELEMENTS, MOST_INLINE};
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
use flush::Calls;
use outbox::Outbox;
use pair::Pair;
use rdma_core_sys as rdma;
use reap::Settling;
use rpcrdma_fabric::{
    Access, Capabilities, Completion, Handle, Octets, Outcome, Port, Posted, QueuePair, Refused,
    Segment, Span, Token, WorkId,
};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

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
    counts: Counts,
    armed: bool,
    /// The device is gone.
    gone: bool,
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
        verbs: &'static rdma::Verbs,
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
            calls: Calls(verbs),
            pairs: (0..count)
                .map(|index| Pair::free(Place::first(index)))
                .collect(),
            free: (0..count).rev().collect(),
            batch: Batch::new(),
            settling: None,
            late: VecDeque::with_capacity(usize::from(count) * 2 + 64),
            ending: Vec::with_capacity(usize::from(count)),
            seeker: None,
            counts: Counts::default(),
            armed: false,
            gone: false,
            inbox,
        })
    }

    /// What this port counts besides what the engine does.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
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
        regions.ring();
    }
}

impl Port for VerbsPort {
    type Endpoint = Endpoint;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            gather: self.limits.gather,
            send_depth: self.limits.send_depth,
            receive_depth: self.limits.receive_depth,
            transfer_bytes: self.limits.transfer_bytes,
            windows: self.limits.windows,
            remote_invalidate: self.limits.remote_invalidate,
        }
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
