//! The contexts that the connection manager lends.
//!
//! It counts who has a device, and closes one that is gone when nobody has it any more; some
//! kernels wait with removing a device until it is closed. A lease is of all devices at once that
//! are there, so to give one back is to take a new lease and end the old. What is gone is in no
//! new lease, though ports may still stand on it: the old one is kept until they do not.

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use crate::object::Context;
use crate::port::Raw;
use rdma_core_sys as rdma;
use rdma_core_sys::Library;
use std::ptr;

/// The leases that are needed.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    newest: Option<Lease>,
    /// Those that have devices that no newer one has.
    old: Vec<Lease>,
}

impl Leases {
    /// Takes a new one.
    pub(crate) fn take(&mut self, library: &'static Library) {
        let before = std::mem::replace(&mut self.newest, Lease::take(library));
        let Some(before) = before else { return };
        let others = || self.newest.iter().chain(&self.old);
        let others: Vec<Context> = others().flat_map(Lease::contexts).collect();
        if !before.contexts().iter().all(|it| others.contains(it)) {
            self.old.push(before);
        }
    }

    /// The devices of the newest: those that were there when it was taken.
    pub(crate) fn newest(&self) -> Vec<Context> {
        self.newest
            .as_ref()
            .map(Lease::contexts)
            .unwrap_or_default()
    }

    /// Ends all but the newest: nothing is used any more of devices that it does not have.
    pub(crate) fn end_old(&mut self) {
        self.old.clear();
    }
}

/// A lease of all devices that are there.
#[derive(Debug)]
pub(crate) struct Lease {
    list: Raw<*mut rdma::ibv_context>,
    library: &'static Library,
}

impl Lease {
    /// `None` when there is no device, or none can be opened.
    pub(crate) fn take(library: &'static Library) -> Option<Lease> {
        // SAFETY: a count is not asked for.
        let list = unsafe { library.manager.rdma_get_devices(ptr::null_mut()) };
        // Not `then_some`: a lease of nothing would be given back.
        (!list.is_null()).then(|| Lease {
            list: Raw(list),
            library,
        })
    }

    /// Its devices. Used for no longer than the lease, or one taken before it ended.
    pub(crate) fn contexts(&self) -> Vec<Context> {
        let mut contexts = Vec::new();
        let mut entry = self.list.0;
        loop {
            // SAFETY: the list has a null at its end, where this ends too.
            let context = unsafe { *entry };
            if context.is_null() {
                return contexts;
            }
            // SAFETY: lent; the lease ends after what was made from it, as `fabric` sees to.
            contexts.push(unsafe { Context::new(context) });
            // SAFETY: not at the end yet.
            entry = unsafe { entry.add(1) };
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // SAFETY: taken here, given back once.
        unsafe { self.library.manager.rdma_free_devices(self.list.0) };
    }
}

/// The devices that are there now, as [`Context::device`] has them. `None` when the kernel does
/// not say.
pub(crate) fn present(library: &Library) -> Option<Vec<usize>> {
    let mut count = 0;
    // SAFETY: the count lives through the call.
    let list = unsafe { library.verbs.ibv_get_device_list(&raw mut count) };
    if list.is_null() {
        return None;
    }
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the list has as many entries, and is there until it is freed.
    let entries = unsafe { std::slice::from_raw_parts(list, count) };
    let devices = entries.iter().map(|device| device.addr()).collect();
    // SAFETY: ours, freed once. Only addresses were kept.
    unsafe { library.verbs.ibv_free_device_list(list) };
    Some(devices)
}
