//! One UD queue pair at work.
//!
//! # A queue pair in error
//!
//! A datagram that cannot be sent may put the whole queue pair in error: rxe does that where there
//! is no route, any device where something went wrong inside. Then the rest is failed too, what
//! comes back flushed is awaited, and the queue pair is started again: its attachments stand, and
//! to its owner it was busy for a moment, and some datagrams were lost.

use super::header::{HEADER_BYTES, Route, route};
use super::layout::Layout;
use super::pair::{Keys, Pair, Wanted};
use super::queue::{Memory, Receiver, arm, poll};
use super::resolver::Resolver;
use super::way::{AddressHandle, Kept, Origin, Way};
use crate::cm::Identifier;
use crate::error::Fault;
use crate::object::{CompletionQueue, Device};
use rdma_core_sys as rdma;
use rpcrdma_fabric::bell::Bell;
use rpcrdma_fabric::datagram::{AddressVector, Arrival, DatagramCounts, PairFacts, Unsent};
use rustix::event::epoll::{self, EventData, EventFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    bell: Arc<Bell>,
    epoll: OwnedFd,
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
        let bell = Bell::new().map_err(|error| system("eventfd", &error))?;
        let mut core = Core {
            slots: (0..parts.sends).map(|_| Slot::Free).collect(),
            handles: Kept::new(HANDLES_MOST, parts.ethernet.then_some(HANDLES_AGE)),
            state: State::Ready,
            counts: DatagramCounts::default(),
            posted: 0,
            unposted: (0..parts.receives).rev().collect(),
            resolver: None,
            bell: Arc::new(bell),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)
                .map_err(|error| system("epoll_create", &error.into()))?,
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
        core.watch(core.bell.as_fd())?;
        core.post_receives()?;
        arm(&core.receives_done);
        Ok(core)
    }

    /// Has the descriptor become readable with this one.
    pub(super) fn watch(&self, descriptor: BorrowedFd<'_>) -> Result<(), Fault> {
        let data = EventData::new_u64(0);
        epoll::add(&self.epoll, descriptor, data, EventFlags::IN)
            .map_err(|error| system("epoll_ctl", &error.into()))
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
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

    pub(super) fn send(&mut self, octets: &[u8], to: &AddressVector) -> Result<(), Unsent> {
        let sent = self.try_send(octets, to);
        match sent {
            Ok(()) => {
                self.counts.sent += 1;
                self.counts.sent_octets += octets.len() as u64;
            }
            Err(_) => self.counts.unsent += 1,
        }
        sent
    }

    fn try_send(&mut self, octets: &[u8], to: &AddressVector) -> Result<(), Unsent> {
        if self.is_gone() {
            return Err(Unsent::Gone);
        }
        if self.device.is_down(self.keys.link) {
            return Err(Unsent::LinkDown);
        }
        let len = u32::try_from(octets.len()).map_err(|_| Unsent::TooLong)?;
        if len > self.facts.payload_bytes {
            return Err(Unsent::TooLong);
        }
        let way = Way::of(to, self.ethernet).ok_or(Unsent::Address)?;
        self.tend();
        if self.state != State::Ready {
            return Err(Unsent::Busy);
        }
        let slot = self.free_slot().ok_or(Unsent::Busy)?;
        self.memory.fill(slot, octets);
        let to = Receiver {
            queue_pair: to.queue_pair,
            q_key: to.q_key,
        };
        let now = Instant::now();
        if let Some(handle) = self.handles.find(&way, now) {
            return self.post(slot, len, handle, to);
        }
        if way.may_wait(self.ethernet) {
            return self.wait_for_way(slot, Slot::Waiting { way, to, len }, way);
        }
        let made = AddressHandle::new(&self.device, self.origin, &way);
        let made = made.map_err(|fault| Unsent::NoWay(fault.errno))?;
        let handle = self.handles.keep(way, made, now);
        self.post(slot, len, handle, to)
    }

    fn free_slot(&self) -> Option<u32> {
        let free = self
            .slots
            .iter()
            .position(|slot| matches!(slot, Slot::Free));
        free.and_then(|slot| u32::try_from(slot).ok())
    }

    fn post(
        &mut self,
        slot: u32,
        len: u32,
        by: Arc<AddressHandle>,
        to: Receiver,
    ) -> Result<(), Unsent> {
        let posted = self.memory.post_send(&self.pair, slot, len, &by, to);
        posted.map_err(|fault| match fault.errno {
            libc::ENOMEM | libc::EAGAIN => Unsent::Busy,
            _ => Unsent::Gone,
        })?;
        self.set(slot, Slot::Out { _by: by });
        Ok(())
    }

    fn set(&mut self, slot: u32, to: Slot) {
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = to;
        }
    }

    /// Leaves a datagram in its slot until its way is found. Half of the slots at most: receivers
    /// that do not answer leave room for those that need not be asked.
    fn wait_for_way(&mut self, slot: u32, waiting: Slot, way: Way) -> Result<(), Unsent> {
        let count = self.slots.iter();
        let count = count
            .filter(|slot| matches!(slot, Slot::Waiting { .. }))
            .count();
        if count >= self.slots.len().div_ceil(2) {
            return Err(Unsent::Busy);
        }
        if self.resolver.is_none() {
            let started = Resolver::start(&self.device, self.origin, &self.bell);
            let errno = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EAGAIN);
            self.resolver = Some(started.map_err(|error| Unsent::NoWay(errno(error)))?);
        }
        let asked = self
            .resolver
            .as_mut()
            .is_some_and(|resolver| resolver.ask(way));
        if !asked {
            return Err(Unsent::Busy);
        }
        self.set(slot, waiting);
        Ok(())
    }

    /// Everything that goes on by itself: what was sent is done, ways are found, and a queue pair
    /// in error whose work has all come back starts again.
    pub(super) fn tend(&mut self) {
        if self.is_gone() {
            return;
        }
        self.hear_resolver();
        while let Some(done) = poll(&self.sends_done) {
            self.set_free(&done);
        }
        if self.state == State::Failing {
            self.restart();
        }
    }

    fn set_free(&mut self, done: &rdma::ibv_wc) {
        self.set(slot_of(done), Slot::Free);
        if done.status != rdma::IBV_WC_SUCCESS {
            self.counts.send_failed += 1;
            self.fail();
        }
    }

    fn hear_resolver(&mut self) {
        if !self.resolver.as_ref().is_some_and(Resolver::is_busy) {
            return;
        }
        self.bell.hush();
        while let Some((way, found)) = self.resolver.as_mut().and_then(Resolver::next) {
            let found = found.ok();
            let by = found.map(|handle| self.handles.keep(way, handle, Instant::now()));
            self.send_waiting(way, by.as_ref());
        }
    }

    /// Sends what waited for a way, or gives it up.
    fn send_waiting(&mut self, found: Way, by: Option<&Arc<AddressHandle>>) {
        for slot in 0..self.slots.len() {
            let Slot::Waiting { way, to, len } = self.slots[slot] else {
                continue;
            };
            if way != found {
                continue;
            }
            self.slots[slot] = Slot::Free;
            let slot = u32::try_from(slot).unwrap_or(u32::MAX);
            let sent = match by {
                Some(by) if self.state == State::Ready => {
                    self.post(slot, len, Arc::clone(by), to).is_ok()
                }
                _ => false,
            };
            self.counts.send_failed += u64::from(!sent);
        }
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
            Err(_) => self.state = State::Gone,
        }
    }

    pub(super) fn receive(&mut self, into: &mut Vec<u8>) -> Option<Arrival> {
        loop {
            self.tend();
            if self.is_gone() {
                return None;
            }
            let done = match poll(&self.receives_done) {
                Some(done) => done,
                None => self.arm_and_look()?,
            };
            self.posted = self.posted.saturating_sub(1);
            let arrival = self.take(&done, into);
            self.unposted.push(slot_of(&done));
            if self.state == State::Ready && self.post_receives().is_err() {
                self.fail();
            }
            if arrival.is_some() {
                return arrival;
            }
        }
    }

    /// Nothing is there. Asks to be told of the next, and looks whether it came meanwhile.
    fn arm_and_look(&mut self) -> Option<rdma::ibv_wc> {
        arm(&self.receives_done);
        if self.state == State::Failing {
            arm(&self.sends_done);
            self.tend();
        }
        poll(&self.receives_done)
    }

    /// Copies a datagram out; `None` for what is none.
    fn take(&mut self, done: &rdma::ibv_wc, into: &mut Vec<u8>) -> Option<Arrival> {
        if done.status != rdma::IBV_WC_SUCCESS {
            if self.state == State::Ready {
                self.counts.malformed += u64::from(done.status != rdma::IBV_WC_WR_FLUSH_ERR);
                self.fail();
            }
            return None;
        }
        let octets = self.memory.received(slot_of(done), done.byte_len);
        let Some((header, payload)) = octets.split_first_chunk::<HEADER_BYTES>() else {
            self.counts.malformed += 1;
            return None;
        };
        let has_header = self.ethernet || done.wc_flags & rdma::IBV_WC_GRH != 0;
        let found = has_header.then(|| route(header)).flatten();
        if self.is_own(done, found) {
            self.counts.echoes += 1;
            return None;
        }
        into.clear();
        into.extend_from_slice(payload);
        self.counts.received += 1;
        self.counts.received_octets += payload.len() as u64;
        Some(Arrival {
            lid: if self.ethernet { 0 } else { done.slid },
            gid: found.map(|route| route.from),
            to: found.map(|route| route.to),
            queue_pair: done.src_qp,
            service_level: done.sl & 0xF,
        })
    }

    fn is_own(&self, done: &rdma::ibv_wc, found: Option<Route>) -> bool {
        let from_here = found.is_some_and(|route| route.from == self.facts.gid);
        from_here && done.src_qp == self.facts.queue_pair
    }
}

/// Of either queue: work is numbered by its slot.
fn slot_of(done: &rdma::ibv_wc) -> u32 {
    u32::try_from(done.wr_id).unwrap_or(u32::MAX)
}

fn system(call: &'static str, error: &std::io::Error) -> Fault {
    Fault {
        call,
        errno: error.raw_os_error().unwrap_or(0),
    }
}
