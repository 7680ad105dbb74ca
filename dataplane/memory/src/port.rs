//! A port of the memory fabric: what one lcore polls.

mod close;
mod foresee;
mod post;
mod reap;

use crate::bell::Waker;
use crate::fault::FaultDesk;
use crate::fifo::Fifo;
use crate::lane::Lane;
use crate::queue_pair::{Endpoint, QueuePair};
use crate::registry::Registry;
use crate::settings::{DEPTH_MAX, Settings};
use crate::shared::Shared;
use crate::window::MOST_WINDOWS;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::pool::Pool;
use rpcrdma_fabric::{
    Access, Capabilities, Completion, FORESIGHT, Handle, Octets, Port, Posted, Refused, Segment,
    Span, Token, WorkId,
};
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

/// Elements of one gather list.
const GATHER: u32 = 16;
/// Longest Read or Write.
const TRANSFER_BYTES: u32 = 1 << 30;

/// What a port can be opened with at most.
pub(crate) fn at_best() -> Capabilities {
    Capabilities {
        queue_pairs: crate::ring::MOST_QUEUE_PAIRS,
        gather: GATHER,
        send_depth: DEPTH_MAX,
        receive_depth: DEPTH_MAX,
        transfer_bytes: TRANSFER_BYTES,
        windows: MOST_WINDOWS,
        send_invalidate: true,
        receive_invalidate: true,
    }
}

/// A port. Belongs to one lcore; dropping it ends all its connections.
#[derive(Debug)]
pub struct MemoryPort {
    shared: Arc<Shared>,
    /// That of `shared`, at hand.
    arena: Arc<Arena>,
    registry: Arc<Mutex<Registry>>,
    limits: Limits,
    queue_pairs: Box<[QueuePair]>,
    /// Numbers of queue pairs that are free.
    free: Vec<u32>,
    lanes: Vec<Lane>,
    /// The lane that is read: each in turn.
    turn: usize,
    /// There is or may be more than messages and news: set by whoever adds to what
    /// [`MemoryPort::is_stirred`] looks at, and seen to again by each look at everything.
    stirred: bool,
    /// What a look at everything has brought, not yet handed out.
    backlog: VecDeque<Completion>,
    /// Windows that are free, the last used last.
    windows: Vec<u32>,
    random: StdRng,
    parking: Parking,
    chores: Chores,
    faults: Option<Box<FaultDesk>>,
    armed: bool,
}

/// The part of the settings that is looked at while working.
#[derive(Debug)]
struct Limits {
    send_depth: u32,
    receive_depth: u32,
    windows: u32,
    message_bytes: u32,
    parking_share: u32,
    rnr_retries: Option<u32>,
    remote_invalidate: bool,
}

/// Where messages are kept that cannot go yet.
#[derive(Debug)]
struct Parking {
    arena: Arena,
    pool: Pool,
}

/// Queue pairs and windows that need looking after. Every list has room for all.
#[derive(Debug)]
struct Chores {
    /// Work waits for a receive, for room, or for a judgement.
    waiting: Fifo<u32>,
    /// The peer has ended the connection, and messages may still be in the ring.
    draining: Fifo<u32>,
    /// Outstanding work is to be reported as flushed.
    flushing: Fifo<u32>,
    /// Windows closed while an access was under way.
    retiring: Vec<Retiring>,
}

/// A window that is closed and still used.
#[derive(Clone, Copy, Debug)]
struct Retiring {
    window: u32,
    /// Who hears of it, with which id; nobody once the queue pair is gone.
    report: Option<(u32, u32, WorkId)>,
}

impl MemoryPort {
    /// A port with everything it will ever need.
    pub(crate) fn new(
        shared: Arc<Shared>,
        registry: Arc<Mutex<Registry>>,
        settings: &Settings,
    ) -> std::io::Result<MemoryPort> {
        let parking = Arena::map(u64::from(settings.parking_bytes), Hugepages::Off)?;
        let pool = Pool::new(0, parking.len());
        let random = match settings.seed {
            Some(seed) => StdRng::seed_from_u64(seed),
            None => rand::make_rng(),
        };
        let count = settings.queue_pairs;
        Ok(MemoryPort {
            arena: Arc::clone(&shared.arena),
            shared,
            registry,
            limits: Limits {
                send_depth: settings.send_depth,
                receive_depth: settings.receive_depth,
                windows: settings.windows,
                message_bytes: settings.message_bytes,
                parking_share: settings.parking_bytes / 8,
                rnr_retries: settings.rnr_retries,
                remote_invalidate: settings.remote_invalidate,
            },
            queue_pairs: (0..count).map(|_| QueuePair::free()).collect(),
            free: (0..count).rev().collect(),
            lanes: Vec::new(),
            turn: 0,
            stirred: true,
            backlog: VecDeque::with_capacity(reap::BURST),
            windows: (0..settings.windows).rev().collect(),
            random,
            parking: Parking {
                arena: parking,
                pool,
            },
            chores: Chores {
                waiting: Fifo::new(count),
                draining: Fifo::new(count),
                flushing: Fifo::new(count),
                retiring: Vec::with_capacity(settings.windows as usize),
            },
            faults: settings
                .faults
                .map(|faults| Box::new(FaultDesk::new(faults))),
            armed: false,
        })
    }

    /// A handle that wakes this port's lcore from any thread.
    #[must_use]
    pub fn wake_handle(&self) -> Waker {
        Waker(Arc::clone(&self.shared))
    }

    fn pair(&mut self, qp: rpcrdma_fabric::QueuePair) -> Result<&mut QueuePair, Refused> {
        self.queue_pairs
            .get_mut(qp.0 as usize)
            .ok_or(Refused::Broken)
    }
}

impl Port for MemoryPort {
    type Endpoint = Endpoint;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            queue_pairs: u32::try_from(self.queue_pairs.len()).unwrap_or(u32::MAX),
            gather: GATHER,
            send_depth: self.limits.send_depth,
            receive_depth: self.limits.receive_depth,
            transfer_bytes: TRANSFER_BYTES,
            windows: self.limits.windows,
            send_invalidate: self.limits.remote_invalidate,
            receive_invalidate: self.limits.remote_invalidate,
        }
    }

    fn adopt(
        &mut self,
        endpoint: Endpoint,
        token: Token,
    ) -> Result<rpcrdma_fabric::QueuePair, Refused> {
        self.adopt_endpoint(endpoint, token)
    }

    fn disconnect(&mut self, qp: rpcrdma_fabric::QueuePair) {
        self.end(qp.0, crate::link::Cause::Ended);
    }

    fn destroy(&mut self, qp: rpcrdma_fabric::QueuePair) {
        self.forget(qp.0);
    }

    #[inline]
    fn post_receive(
        &mut self,
        qp: rpcrdma_fabric::QueuePair,
        memory: Span,
        id: WorkId,
    ) -> Result<(), Refused> {
        self.post_one_receive(qp, memory, id)
    }

    #[inline]
    fn send(
        &mut self,
        qp: rpcrdma_fabric::QueuePair,
        message: &[Octets<'_>],
        invalidate: Option<Handle>,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        self.post_send(qp.0, message, invalidate, id)
    }

    fn read(
        &mut self,
        qp: rpcrdma_fabric::QueuePair,
        into: Span,
        from: Segment,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        if from.length > TRANSFER_BYTES {
            return Err(Refused::Unsupported);
        }
        self.post_transfer(qp.0, crate::queue_pair::Work::Read { into, from }, id)
    }

    fn write(
        &mut self,
        qp: rpcrdma_fabric::QueuePair,
        from: Span,
        to: Segment,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        if from.len > TRANSFER_BYTES {
            return Err(Refused::Unsupported);
        }
        self.post_transfer(qp.0, crate::queue_pair::Work::Write { from, to }, id)
    }

    fn expose(
        &mut self,
        qp: rpcrdma_fabric::QueuePair,
        memory: Span,
        access: Access,
    ) -> Result<Segment, Refused> {
        self.open_window(qp, memory, access)
    }

    fn retire(
        &mut self,
        qp: rpcrdma_fabric::QueuePair,
        handle: Handle,
        id: WorkId,
    ) -> Result<Posted, Refused> {
        self.close_window(qp.0, handle, id)
    }

    fn retired_by_peer(&mut self, qp: rpcrdma_fabric::QueuePair, handle: Handle) {
        self.reclaim_window(qp, handle);
    }

    #[inline]
    fn reap(&mut self, completions: &mut [Completion]) -> usize {
        self.gather(completions)
    }

    #[inline(always)]
    fn reap_one(&mut self) -> Option<Completion> {
        self.take_one()
    }

    #[inline(always)]
    fn foresee(&self) -> [Option<Token>; FORESIGHT] {
        self.look_ahead()
    }

    #[inline]
    fn ring(&mut self) {
        for lane in &mut self.lanes {
            if lane.written {
                lane.written = false;
                lane.peer.bell.ring();
            }
        }
    }

    fn arm(&mut self) -> bool {
        self.fall_asleep()
    }

    fn waker(&self) -> BorrowedFd<'_> {
        self.shared.bell.descriptor()
    }
}
