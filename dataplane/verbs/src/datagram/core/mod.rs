//! One UD queue pair at work.
//!
//! # A queue pair in error
//!
//! A datagram that cannot be sent may put the whole queue pair in error: rxe does that where there
//! is no route, any device where something went wrong inside. Then the rest is failed too, what
//! comes back flushed is awaited, and the queue pair is started again: its attachments stand, and
//! to its owner it was busy for a moment, and some datagrams were lost.

mod receiving;
mod sending;
mod watch;

use super::layout::Layout;
use super::pair::{Keys, Pair, Wanted};
use super::queue::{Memory, Receiver, arm, poll};
use super::resolver::Resolver;
use super::way::{AddressHandle, Kept, Origin, Way};
use crate::cm::Identifier;
use crate::error::Fault;
use crate::object::{CompletionQueue, Device};
use rdma_core_sys as rdma;
use rpcrdma_fabric::datagram::{DatagramCounts, PairFacts};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;
use watch::Watch;

/// Address handles that are kept.
const HANDLES_MOST: usize = 512;
/// For how long, where they hold a hardware address.
const HANDLES_AGE: Duration = Duration::from_secs(30);

/// What a core is made of.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) device: Arc<Device>,
    pub(super) facts: PairFacts,
    pub(super) ethernet: bool,
    pub(super) origin: Origin,
    pub(super) receives: u32,
    pub(super) sends: u32,
}

/// Whether it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    /// In error, and not everything has come back.
    Failing,
    /// It could not be started again.
    Gone,
}

/// A slot of sends.
#[derive(Debug)]
enum Slot {
    Free,
    /// Its way is being looked for.
    Waiting {
        way: Way,
        to: Receiver,
        len: u32,
    },
    /// The device has it, and needs the handle until it is done.
    Out {
        _by: Arc<AddressHandle>,
    },
}

/// A queue pair and everything it stands on, dropped in this order.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) pair: Pair,
    slots: Vec<Slot>,
    handles: Kept<AddressHandle>,
    memory: Memory,
    receives_done: CompletionQueue,
    sends_done: CompletionQueue,
    device: Arc<Device>,
    pub(super) facts: PairFacts,
    pub(super) counts: DatagramCounts,
    keys: Keys,
    state: State,
    /// Receives that are posted; those that are not although they should be.
    posted: u32,
    unposted: Vec<u32>,
    resolver: Option<Resolver>,
    watch: Watch,
    ethernet: bool,
    origin: Origin,
}

impl Core {
    /// Makes a queue pair, on an id where there is one, and starts it with `keys`; without keys it
    /// was started with the id, and says itself what it has.
    pub(super) fn new(
        parts: Parts,
        id: Option<Identifier>,
        keys: Option<Keys>,
    ) -> Result<Core, Fault> {
        let device = &parts.device;
        let layout = Layout {
            receives: parts.receives,
            sends: parts.sends,
            payload_bytes: parts.facts.payload_bytes,
        };
        let memory = Memory::new(device, layout)?;
        let receives_done = CompletionQueue::new(device, parts.receives, 0, false)?;
        let sends_done = CompletionQueue::new(device, parts.sends, 0, false)?;
        let wanted = Wanted {
            device,
            sends_done: &sends_done,
            receives_done: &receives_done,
            sends: parts.sends,
            receives: parts.receives,
        };
        let pair = match id {
            Some(id) => Pair::on(id, wanted)?,
            None => Pair::new(wanted)?,
        };
        if let Some(keys) = keys {
            pair.start(keys)?;
        }
        let keys = keys.map_or_else(|| pair.keys(), Ok)?;
        let facts = PairFacts {
            queue_pair: pair.number(),
            q_key: keys.q_key,
            ..parts.facts
        };
        let mut core = Core {
            slots: (0..parts.sends).map(|_| Slot::Free).collect(),
            handles: Kept::new(HANDLES_MOST, parts.ethernet.then_some(HANDLES_AGE)),
            state: State::Ready,
            counts: DatagramCounts::default(),
            posted: 0,
            unposted: (0..parts.receives).rev().collect(),
            resolver: None,
            watch: Watch::new()?,
            ethernet: parts.ethernet,
            origin: parts.origin,
            device: parts.device,
            pair,
            memory,
            receives_done,
            sends_done,
            facts,
            keys,
        };
        core.watch(core.receives_done.events())?;
        core.watch(core.sends_done.events())?;
        core.post_receives()?;
        arm(&core.receives_done);
        Ok(core)
    }

    /// Has the descriptor become readable with this one.
    pub(super) fn watch(&self, descriptor: BorrowedFd<'_>) -> Result<(), Fault> {
        self.watch.add(descriptor)
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.watch.descriptor()
    }

    pub(super) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub(super) fn p_key_index(&self) -> u16 {
        self.keys.p_key_index
    }

    pub(super) fn is_gone(&self) -> bool {
        self.state == State::Gone || self.device.is_gone()
    }

    fn post_receives(&mut self) -> Result<(), Fault> {
        while let Some(slot) = self.unposted.pop() {
            if let Err(fault) = self.memory.post_receive(&self.pair, slot) {
                self.unposted.push(slot);
                return Err(fault);
            }
            self.posted += 1;
        }
        Ok(())
    }

    /// Everything that goes on by itself: what was sent is done, ways are found, and a queue pair
    /// in error whose work has all come back starts again.
    pub(super) fn tend(&mut self) {
        if self.is_gone() {
            return self.fall_silent();
        }
        self.hear_resolver();
        while let Some(done) = poll(&self.sends_done) {
            self.set_free(&done);
        }
        if self.state == State::Failing {
            self.restart();
        }
    }

    /// Nothing will be done any more.
    fn fall_silent(&self) {
        let queues = [&self.receives_done, &self.sends_done];
        self.watch.fall_silent(queues.map(|queue| queue.events()));
    }

    fn fail(&mut self) {
        if self.state != State::Ready {
            return;
        }
        self.state = State::Failing;
        // It may be in error already.
        let _ = self.pair.fail();
        arm(&self.sends_done);
    }

    fn restart(&mut self) {
        let out = self
            .slots
            .iter()
            .any(|slot| matches!(slot, Slot::Out { .. }));
        if out || self.posted > 0 {
            return;
        }
        let started = self
            .pair
            .reset()
            .and_then(|()| self.pair.start(self.keys))
            .and_then(|()| self.post_receives());
        match started {
            Ok(()) => {
                self.counts.restarts += 1;
                self.handles.clear();
                self.state = State::Ready;
            }
            Err(_) => {
                self.state = State::Gone;
                self.fall_silent();
            }
        }
    }
}

/// Of either queue: work is numbered by its slot.
fn slot_of(done: &rdma::ibv_wc) -> u32 {
    u32::try_from(done.wr_id).unwrap_or(u32::MAX)
}
