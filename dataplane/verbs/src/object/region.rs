//! Registered memory.

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use super::Device;
use crate::error::Fault;
use crate::port::Raw;
use rdma_core_sys as rdma;
use rpcrdma_fabric::arena::{Arena, Extent};
use std::sync::Arc;

/// What a region is for, besides the device's own transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Rights {
    /// Windows may be bound on it.
    pub(crate) windows: bool,
    /// Every peer of the device may read and write all of it.
    pub(crate) exposed: bool,
    /// The octets of RDMA Reads land in it, on a device that has them written as a peer's: see
    /// [`Limits::writes_sinks`](crate::Limits::writes_sinks).
    pub(crate) sink: bool,
}

impl Rights {
    fn flags(self) -> rdma::ibv_access_flags {
        let right = |has: bool, flags| if has { flags } else { 0 };
        let peers = rdma::IBV_ACCESS_REMOTE_READ | rdma::IBV_ACCESS_REMOTE_WRITE;
        rdma::IBV_ACCESS_LOCAL_WRITE
            | right(self.windows, rdma::IBV_ACCESS_MW_BIND)
            | right(self.exposed, peers)
            | right(self.sink, rdma::IBV_ACCESS_REMOTE_WRITE)
    }
}

/// A region over the whole tract that an arena is of.
#[derive(Debug)]
pub(crate) struct Region {
    raw: Raw<rdma::ibv_mr>,
    pub(crate) lkey: u32,
    pub(crate) rkey: u32,
    pub(crate) rights: Rights,
    pub(crate) extent: Extent,
    /// Any arena keeps the memory of its tract.
    _arena: Arc<Arena>,
    device: Arc<Device>,
}

// SAFETY: the extent is an address that is never followed here, and the region may be used from
// any thread.
unsafe impl Send for Region {}

// SAFETY: as above; nothing here changes.
unsafe impl Sync for Region {}

impl Region {
    pub(crate) fn new(
        device: &Arc<Device>,
        arena: &Arc<Arena>,
        rights: Rights,
    ) -> Result<Region, Fault> {
        let extent = arena.tract();
        let start = extent.start.as_ptr().cast();
        let bytes = usize::try_from(extent.bytes).unwrap_or(usize::MAX);
        let flags = libc::c_int::try_from(rights.flags()).unwrap_or_default();
        let verbs = &device.library().verbs;
        let domain = device.domain().0;
        // SAFETY: the domain lives as long as the device and the memory as long as the arena,
        // which are both kept here. Octets that a device writes are those of spans, whose
        // ownership is the arena's contract.
        let raw = unsafe { verbs.ibv_reg_mr(domain, start, bytes, flags) };
        if raw.is_null() {
            return Err(Fault::last("ibv_reg_mr"));
        }
        Ok(Region {
            raw: Raw(raw),
            // SAFETY: just made.
            lkey: unsafe { (*raw).lkey },
            // SAFETY: just made.
            rkey: unsafe { (*raw).rkey },
            rights,
            extent,
            _arena: Arc::clone(arena),
            device: Arc::clone(device),
        })
    }

    /// For binding windows on it.
    pub(crate) fn raw(&self) -> Raw<rdma::ibv_mr> {
        self.raw
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let verbs = &self.device.library().verbs;
        // SAFETY: made here, and destroyed once; windows on it are gone before, as `Objects` says.
        let returned = unsafe { verbs.ibv_dereg_mr(self.raw.0) };
        super::note_destroyed("ibv_dereg_mr", returned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_have_the_rights_that_are_said_and_no_other() {
        let own = rdma::IBV_ACCESS_LOCAL_WRITE;
        let none = Rights::default();
        assert_eq!(none.flags(), own);
        let windows = Rights {
            windows: true,
            ..none
        };
        assert_eq!(windows.flags(), own | rdma::IBV_ACCESS_MW_BIND);
        let sink = Rights { sink: true, ..none };
        assert_eq!(sink.flags(), own | rdma::IBV_ACCESS_REMOTE_WRITE);
        let exposed = Rights {
            exposed: true,
            sink: true,
            ..none
        };
        let peers = rdma::IBV_ACCESS_REMOTE_READ | rdma::IBV_ACCESS_REMOTE_WRITE;
        assert_eq!(exposed.flags(), own | peers);
    }
}
