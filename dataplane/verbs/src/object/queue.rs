//! Completion queues, each with its channel.

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use super::Device;
use crate::error::Fault;
use crate::port::{Queue, Raw};
use rdma_core_sys as rdma;
use rdma_core_sys::inline as ibv;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::Arc;

/// A completion queue and the channel that its events come by.
#[derive(Debug)]
pub(crate) struct CompletionQueue {
    queue: Queue,
    plain: Raw<rdma::ibv_cq>,
    channel: Raw<rdma::ibv_comp_channel>,
    /// Completions it holds at least.
    pub(crate) entries: u32,
    device: Arc<Device>,
}

// SAFETY: a name of objects that may be used from any thread; who polls is the port's business.
unsafe impl Send for CompletionQueue {}

// SAFETY: as above; nothing here changes.
unsafe impl Sync for CompletionQueue {}

impl CompletionQueue {
    /// A queue of at least `entries`, extended where the provider has that, whose events go to
    /// completion vector `vector` of the device.
    pub(crate) fn new(
        device: &Arc<Device>,
        entries: u32,
        vector: u32,
    ) -> Result<CompletionQueue, Fault> {
        let channel = channel(device)?;
        let made = match extended(device, channel, entries, vector) {
            Some(queue) => Ok((Queue::Extended(queue), ibv::ibv_cq_ex_to_cq(queue))),
            None => plain(device, channel, entries, vector).map(|queue| (Queue::Plain(queue), queue)),
        };
        match made {
            Ok((queue, plain)) => Ok(CompletionQueue {
                queue,
                plain: Raw(plain),
                channel: Raw(channel),
                entries,
                device: Arc::clone(device),
            }),
            Err(fault) => {
                destroy_channel(device, channel);
                Err(fault)
            }
        }
    }

    /// How it is polled: for as long as this lives.
    pub(crate) fn queue(&self) -> Queue {
        self.queue
    }

    /// Where its events come from, without waiting: for as long as this lives.
    pub(crate) fn channel(&self) -> Raw<rdma::ibv_comp_channel> {
        self.channel
    }

    /// Readable when there is an event.
    pub(crate) fn events(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel lives.
        let descriptor = unsafe { (*self.channel.0).fd };
        // SAFETY: open for as long as the channel.
        unsafe { BorrowedFd::borrow_raw(descriptor) }
    }

    /// The plain queue.
    pub(crate) fn raw(&self) -> *mut rdma::ibv_cq {
        self.plain.0
    }

    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }
}

fn channel(device: &Device) -> Result<*mut rdma::ibv_comp_channel, Fault> {
    let verbs = &device.library().verbs;
    // SAFETY: the context lives as long as the device.
    let channel = unsafe { verbs.ibv_create_comp_channel(device.context().raw()) };
    if channel.is_null() {
        return Err(Fault::last("ibv_create_comp_channel"));
    }
    // SAFETY: just made.
    let descriptor = unsafe { (*channel).fd };
    if let Err(fault) = super::device::do_not_wait(descriptor) {
        destroy_channel(device, channel);
        return Err(fault);
    }
    Ok(channel)
}

fn destroy_channel(device: &Device, channel: *mut rdma::ibv_comp_channel) {
    let verbs = &device.library().verbs;
    // SAFETY: made above, destroyed once, and after its queue.
    let returned = unsafe { verbs.ibv_destroy_comp_channel(channel) };
    super::note_destroyed("ibv_destroy_comp_channel", returned);
}

/// `None` where the provider has no extended queues, or none such: a plain one will do.
fn extended(
    device: &Device,
    channel: *mut rdma::ibv_comp_channel,
    entries: u32,
    vector: u32,
) -> Option<*mut rdma::ibv_cq_ex> {
    let wanted = rdma::IBV_WC_EX_WITH_BYTE_LEN | rdma::IBV_WC_EX_WITH_IMM;
    // Not IBV_CREATE_CQ_ATTR_SINGLE_THREADED: one lcore polls it, but providers sweep it when
    // control destroys a queue pair.
    let mut attributes = rdma::ibv_cq_init_attr_ex {
        cqe: entries,
        channel,
        comp_vector: vector,
        wc_flags: wanted.into(),
        ..rdma::ibv_cq_init_attr_ex::default()
    };
    // SAFETY: context and channel live; the attributes live through the call.
    let queue = unsafe { ibv::ibv_create_cq_ex(device.context().raw(), &mut attributes) };
    (!queue.is_null()).then_some(queue)
}

fn plain(
    device: &Device,
    channel: *mut rdma::ibv_comp_channel,
    entries: u32,
    vector: u32,
) -> Result<*mut rdma::ibv_cq, Fault> {
    let verbs = &device.library().verbs;
    let entries = libc::c_int::try_from(entries).unwrap_or(libc::c_int::MAX);
    let vector = libc::c_int::try_from(vector).unwrap_or_default();
    let context = device.context().raw();
    // SAFETY: context and channel live.
    let queue =
        unsafe { verbs.ibv_create_cq(context, entries, ptr::null_mut(), channel, vector) };
    if queue.is_null() {
        return Err(Fault::last("ibv_create_cq"));
    }
    Ok(queue)
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        let verbs = &self.device.library().verbs;
        // SAFETY: made here, destroyed once, and after its queue pairs, which keep it. Its
        // events were acknowledged by who polled it.
        let returned = unsafe { verbs.ibv_destroy_cq(self.raw()) };
        super::note_destroyed("ibv_destroy_cq", returned);
        destroy_channel(&self.device, self.channel.0);
    }
}
