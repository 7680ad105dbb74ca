//! Devices: the context that the connection manager opened, and a protection domain in it.
//!
//! A queue pair that the connection manager looks after must be in the manager's own context of
//! the device, so contexts are not opened here but lent by it. It counts what it has lent, and
//! closes a device that is gone only when all is back; [`Lease`](crate::device::Lease) sees to it.

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use crate::error::Fault;
use crate::port::Raw;
use rdma_core_sys as rdma;
use rdma_core_sys::Library;
use rpcrdma_fabric::bell::Bell;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A context that the connection manager lends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    raw: Raw<rdma::ibv_context>,
}

// SAFETY: a name of an object that may be used from any thread.
unsafe impl Sync for Context {}

impl PartialEq for Context {
    fn eq(&self, other: &Context) -> bool {
        self.raw.0 == other.raw.0
    }
}

impl Eq for Context {}

impl Context {
    /// # Safety
    ///
    /// Lent by the connection manager, and given back only when nothing is left that was made
    /// from this.
    pub(crate) unsafe fn new(raw: *mut rdma::ibv_context) -> Context {
        Context { raw: Raw(raw) }
    }

    pub(crate) fn raw(self) -> *mut rdma::ibv_context {
        self.raw.0
    }

    /// The device's name, as the kernel has it.
    pub(crate) fn name(self, library: &Library) -> String {
        // SAFETY: the context lives.
        let device = unsafe { (*self.raw()).device };
        // SAFETY: the context's device lives as long.
        let name = unsafe { library.verbs.ibv_get_device_name(device) };
        if name.is_null() {
            return String::new();
        }
        // SAFETY: a string of the device's, with an end.
        let name = unsafe { std::ffi::CStr::from_ptr(name) };
        name.to_string_lossy().into_owned()
    }

    /// What the device speaks: `IBV_TRANSPORT_IB` (RoCE too) or `IBV_TRANSPORT_IWARP`.
    pub(crate) fn transport(self) -> rdma::ibv_transport_type {
        // SAFETY: the context lives.
        let device = unsafe { (*self.raw()).device };
        // SAFETY: the context's device lives as long.
        unsafe { (*device).transport_type }
    }

    /// Completion vectors: interrupts that queues can be spread over. At least 1.
    pub(crate) fn vectors(self) -> u32 {
        // SAFETY: the context lives.
        let vectors = unsafe { (*self.raw()).num_comp_vectors };
        u32::try_from(vectors).unwrap_or(1).max(1)
    }

    /// Which device: as the list of those that are there has it.
    pub(crate) fn device(self) -> usize {
        // SAFETY: the context lives.
        unsafe { (*self.raw()).device }.addr()
    }

    /// Ends everything of the context in the kernel, which waits for that before it lets a
    /// device go. The library's part stays, with descriptors that lead nowhere: the connection
    /// manager closes it when it notices, which for the last device of a machine is never.
    ///
    /// To be called when all that was made from it is destroyed.
    pub(crate) fn cut_off(self) {
        let Ok(nowhere) = Bell::new() else {
            // No descriptor is free: the kernel waits a little longer, until it is tried again.
            return;
        };
        // SAFETY: the context lives.
        let command = unsafe { (*self.raw()).cmd_fd };
        // SAFETY: the context lives.
        let events = unsafe { (*self.raw()).async_fd };
        for descriptor in [command, events] {
            // SAFETY: the context's own and open; it stays open, at another file.
            unsafe { libc::dup2(nowhere.as_fd().as_raw_fd(), descriptor) };
        }
    }

    /// Where the device's own events come from.
    pub(crate) fn events(&self) -> BorrowedFd<'_> {
        // SAFETY: the context lives.
        let descriptor = unsafe { (*self.raw()).async_fd };
        // SAFETY: open for as long as the context.
        unsafe { BorrowedFd::borrow_raw(descriptor) }
    }
}

/// A device that ports can be opened on.
#[derive(Debug)]
pub(crate) struct Device {
    library: &'static Library,
    context: Context,
    domain: Raw<rdma::ibv_pd>,
    name: String,
    /// What objects that control does not look after have to know: it is gone, and which of its
    /// links are down, a bit for each of the first 64.
    gone: AtomicBool,
    down: AtomicU64,
}

// SAFETY: its objects may be used from any thread; what changes here is atomic.
unsafe impl Sync for Device {}

impl Device {
    pub(crate) fn new(library: &'static Library, context: Context) -> Result<Device, Fault> {
        do_not_wait_borrowed(context.events())?;
        // SAFETY: the context lives.
        let domain = unsafe { library.verbs.ibv_alloc_pd(context.raw()) };
        if domain.is_null() {
            return Err(Fault::last("ibv_alloc_pd"));
        }
        Ok(Device {
            library,
            context,
            domain: Raw(domain),
            name: context.name(library),
            gone: AtomicBool::new(false),
            down: AtomicU64::new(0),
        })
    }

    pub(crate) fn library(&self) -> &'static Library {
        self.library
    }

    pub(crate) fn context(&self) -> Context {
        self.context
    }

    /// The protection domain: for as long as this lives.
    pub(crate) fn domain(&self) -> Raw<rdma::ibv_pd> {
        self.domain
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Nothing of it can be used any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    pub(crate) fn note_gone(&self) {
        self.gone.store(true, Ordering::Release);
    }

    /// A link, from 1, is down, as far as it was told.
    pub(crate) fn is_down(&self, link: u8) -> bool {
        self.down.load(Ordering::Acquire) & bit_of(link.into()) != 0
    }

    pub(crate) fn note_link(&self, link: u32, down: bool) {
        if down {
            self.down.fetch_or(bit_of(link), Ordering::AcqRel);
        } else {
            self.down.fetch_and(!bit_of(link), Ordering::AcqRel);
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: made here, destroyed once, and after all that was made in it, which keeps this.
        let returned = unsafe { self.library.verbs.ibv_dealloc_pd(self.domain.0) };
        super::note_destroyed("ibv_dealloc_pd", returned);
    }
}

/// None for a link beyond those that are looked after.
fn bit_of(link: u32) -> u64 {
    1_u64.checked_shl(link.wrapping_sub(1)).unwrap_or(0)
}

/// Has a descriptor read without waiting.
pub(super) fn do_not_wait(descriptor: RawFd) -> Result<(), Fault> {
    // SAFETY: the caller's object has it open.
    do_not_wait_borrowed(unsafe { BorrowedFd::borrow_raw(descriptor) })
}

/// The same for one that is borrowed already.
pub(crate) fn do_not_wait_borrowed(descriptor: BorrowedFd<'_>) -> Result<(), Fault> {
    fcntl_getfl(descriptor)
        .and_then(|flags| fcntl_setfl(descriptor, flags | OFlags::NONBLOCK))
        .map_err(|error| Fault {
            call: "fcntl",
            errno: error.raw_os_error(),
        })
}
