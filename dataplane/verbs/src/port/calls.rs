//! The library's own calls that a port makes: those that do not go through an object's table.

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use super::rail::Rail;
use rdma_core_sys as rdma;
use std::ptr;

/// The calls. A device that stands in for one in tests brings its own.
#[derive(Clone, Copy)]
pub(crate) struct Calls {
    pub(crate) modify_qp: unsafe extern "C" fn(
        qp: *mut rdma::ibv_qp,
        attributes: *mut rdma::ibv_qp_attr,
        mask: libc::c_int,
    ) -> libc::c_int,
    pub(crate) get_cq_event: unsafe extern "C" fn(
        channel: *mut rdma::ibv_comp_channel,
        queue: *mut *mut rdma::ibv_cq,
        context: *mut *mut libc::c_void,
    ) -> libc::c_int,
    pub(crate) ack_cq_events: unsafe extern "C" fn(queue: *mut rdma::ibv_cq, events: libc::c_uint),
}

impl Calls {
    /// Those of the library.
    pub(crate) fn of(verbs: &rdma::Verbs) -> Calls {
        Calls {
            modify_qp: verbs.ibv_modify_qp,
            get_cq_event: verbs.ibv_get_cq_event,
            ack_cq_events: verbs.ibv_ack_cq_events,
        }
    }

    /// Moves a queue pair to error: the device flushes what is outstanding, and from now on
    /// carries out nothing for the peer. False when the call failed: the device is going.
    ///
    /// # Safety
    ///
    /// The queue pair is alive.
    #[cold]
    pub(crate) unsafe fn fail(self, rail: Rail) -> bool {
        let mut attributes = rdma::ibv_qp_attr {
            qp_state: rdma::IBV_QPS_ERR,
            ..rdma::ibv_qp_attr::default()
        };
        let state = libc::c_int::try_from(rdma::IBV_QP_STATE).unwrap_or_default();
        // SAFETY: the caller's promise; the attributes live through the call.
        unsafe { (self.modify_qp)(rail.plain(), &raw mut attributes, state) == 0 }
    }

    /// Takes an event from a channel. False when there is none.
    ///
    /// # Safety
    ///
    /// The channel is alive, and reads without waiting.
    pub(crate) unsafe fn take_event(self, channel: *mut rdma::ibv_comp_channel) -> bool {
        let (mut queue, mut context) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the caller's promise; the two places live through the call.
        unsafe { (self.get_cq_event)(channel, &raw mut queue, &raw mut context) == 0 }
    }
}
