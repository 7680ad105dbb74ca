//! Posting datagrams, and taking what is done: the calls into the device.

#![expect(
    unsafe_code,
    reason = "calls of a foreign interface, and memory that a device writes"
)]

use super::layout::Layout;
use super::pair::Pair;
use super::way::AddressHandle;
use crate::error::Fault;
use crate::object::{CompletionQueue, Device, Region, Rights};
use crate::port::Calls;
use rdma_core_sys as rdma;
use rdma_core_sys::inline as ibv;
use rpcrdma_fabric::Span;
use rpcrdma_fabric::arena::{Arena, Hugepages};
use std::ptr;
use std::sync::Arc;

/// The memory of a queue pair, registered.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) layout: Layout,
    region: Region,
    arena: Arc<Arena>,
}

/// Where one datagram goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receiver {
    pub(super) queue_pair: u32,
    pub(super) q_key: u32,
}

impl Memory {
    pub(super) fn new(device: &Arc<Device>, layout: Layout) -> Result<Memory, Fault> {
        let arena = Arena::map(layout.bytes(), Hugepages::Off).map_err(|error| Fault {
            call: "mmap",
            errno: error.raw_os_error().unwrap_or(libc::ENOMEM),
        })?;
        let arena = Arc::new(arena);
        Ok(Memory {
            layout,
            region: Region::new(device, &arena, Rights::default())?,
            arena,
        })
    }

    fn element(&self, span: Span, len: u32) -> rdma::ibv_sge {
        rdma::ibv_sge {
            addr: self.arena.start().as_ptr().expose_provenance() as u64 + span.offset,
            length: len,
            lkey: self.region.lkey,
        }
    }

    /// Puts octets into a slot of sends that is free; they fit.
    pub(super) fn fill(&mut self, slot: u32, octets: &[u8]) {
        // SAFETY: the slot is free, so that no device reads it, and no slice over it lives.
        unsafe { self.arena.fill(self.layout.send(slot), octets) };
    }

    /// The first `len` octets of a receive that is done and not posted again.
    pub(super) fn received(&self, slot: u32, len: u32) -> &[u8] {
        let span = self.layout.receive(slot);
        let len = len.min(span.len);
        // SAFETY: the device is done with it, and it is posted again by `&mut self` only.
        unsafe { self.arena.octets(Span { len, ..span }) }
    }

    /// Posts a receive that is not posted.
    pub(super) fn post_receive(&mut self, pair: &Pair, slot: u32) -> Result<(), Fault> {
        let span = self.layout.receive(slot);
        let mut element = self.element(span, span.len);
        let mut request = rdma::ibv_recv_wr {
            wr_id: slot.into(),
            sg_list: &raw mut element,
            num_sge: 1,
            ..rdma::ibv_recv_wr::default()
        };
        let mut bad = ptr::null_mut();
        // SAFETY: the queue pair lives, and the request through the call; its memory is registered
        // and lives as long as the queue pair.
        let returned = unsafe { ibv::ibv_post_recv(pair.raw(), &raw mut request, &raw mut bad) };
        Fault::check("ibv_post_recv", returned)
    }

    /// Sends the first `len` octets of a slot, which is free for something else once that is done.
    pub(super) fn post_send(
        &mut self,
        pair: &Pair,
        slot: u32,
        len: u32,
        by: &AddressHandle,
        to: Receiver,
    ) -> Result<(), Fault> {
        let mut element = self.element(self.layout.send(slot), len);
        let mut request = rdma::ibv_send_wr {
            wr_id: slot.into(),
            sg_list: &raw mut element,
            num_sge: 1,
            opcode: rdma::IBV_WR_SEND,
            send_flags: rdma::IBV_SEND_SIGNALED,
            ..rdma::ibv_send_wr::default()
        };
        request.wr.ud = rdma::ibv_send_wr__bindgen_ty_2__bindgen_ty_3 {
            ah: by.raw(),
            remote_qpn: to.queue_pair,
            remote_qkey: to.q_key,
        };
        let mut bad = ptr::null_mut();
        // SAFETY: queue pair and handle live, the handle until this is done, and the request
        // through the call; its memory is registered and lives as long as the queue pair.
        let returned = unsafe { ibv::ibv_post_send(pair.raw(), &raw mut request, &raw mut bad) };
        Fault::check("ibv_post_send", returned)
    }
}

/// The next that is done, if any.
pub(super) fn poll(queue: &CompletionQueue) -> Option<rdma::ibv_wc> {
    let mut done = rdma::ibv_wc::default();
    // SAFETY: the queue lives, and there is room for one.
    let count = unsafe { ibv::ibv_poll_cq(queue.raw(), 1, &raw mut done) };
    (count == 1).then_some(done)
}

/// Has the queue's descriptor become readable with the next that is done, and not before.
pub(super) fn arm(queue: &CompletionQueue) {
    let calls = Calls::of(&queue.device().library().verbs);
    let channel = queue.channel().0;
    // SAFETY: the channel lives and reads without waiting.
    while unsafe { calls.take_event(channel) } {
        // SAFETY: an event of this queue, the only one of its channel, acknowledged once.
        unsafe { (calls.ack_cq_events)(queue.raw(), 1) };
    }
    // SAFETY: the queue lives. A device that refuses is going: there will be no completions.
    let _ = unsafe { ibv::ibv_req_notify_cq(queue.raw(), 0) };
}
