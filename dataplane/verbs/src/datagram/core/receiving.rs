//! The way in.

use super::{Core, State, slot_of};
use crate::datagram::header::{HEADER_BYTES, Route, route};
use crate::datagram::queue::{arm, poll};
use rdma_core_sys as rdma;
use rpcrdma_fabric::datagram::Arrival;

impl Core {
    pub(in crate::datagram) fn receive(&mut self, into: &mut Vec<u8>) -> Option<Arrival> {
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
