//! The way out: a slot, a way to the receiver, the device.

use super::{Core, Slot, State, slot_of};
use crate::datagram::queue::Receiver;
use crate::datagram::resolver::Resolver;
use crate::datagram::way::{AddressHandle, Way};
use rdma_core_sys as rdma;
use rpcrdma_fabric::datagram::{AddressVector, Unsent};
use std::sync::Arc;
use std::time::Instant;

impl Core {
    pub(in crate::datagram) fn send(
        &mut self,
        octets: &[u8],
        to: &AddressVector,
    ) -> Result<(), Unsent> {
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
            let started = Resolver::start(&self.device, self.origin, self.watch.bell());
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

    pub(super) fn set_free(&mut self, done: &rdma::ibv_wc) {
        self.set(slot_of(done), Slot::Free);
        if done.status != rdma::IBV_WC_SUCCESS {
            self.counts.send_failed += 1;
            self.fail();
        }
    }

    pub(super) fn hear_resolver(&mut self) {
        if !self.resolver.as_ref().is_some_and(Resolver::is_busy) {
            return;
        }
        self.watch.bell().hush();
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
}
