//! Memory windows of type 2.

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use super::Device;
use crate::error::Fault;
use crate::expose;
use crate::port::Raw;
use rdma_core_sys as rdma;
use rdma_core_sys::inline as ibv;
use std::sync::Arc;

/// A window.
#[derive(Debug)]
pub(crate) struct Window {
    raw: Raw<rdma::ibv_mw>,
    rkey: u32,
    _device: Arc<Device>,
}

impl Window {
    pub(crate) fn new(device: &Arc<Device>) -> Result<Window, Fault> {
        let domain = device.domain().0;
        // SAFETY: the protection domain lives as long as the device, which is kept here.
        let raw = unsafe { ibv::ibv_alloc_mw(domain, rdma::IBV_MW_TYPE_2) };
        if raw.is_null() {
            return Err(Fault::last("ibv_alloc_mw"));
        }
        Ok(Window {
            raw: Raw(raw),
            // SAFETY: just made.
            rkey: unsafe { (*raw).rkey },
            _device: Arc::clone(device),
        })
    }

    /// The window as its port knows it.
    pub(crate) fn name(&self) -> expose::Window {
        expose::Window {
            object: self.raw,
            rkey: self.rkey,
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: made here, and destroyed once. Its binding ends with it.
        let returned = unsafe { ibv::ibv_dealloc_mw(self.raw.0) };
        super::note_destroyed("ibv_dealloc_mw", returned);
    }
}
