//! UD queue pairs as objects: making, starting, attaching, destroying.
//!
//! One is either its owner's alone, or made on an id of the connection manager, which then attaches
//! it to the groups that the manager joins.

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use crate::cm::Identifier;
use crate::error::Fault;
use crate::object::{CompletionQueue, Device, note_destroyed};
use crate::port::Raw;
use rdma_core_sys as rdma;
use rdma_core_sys::inline as ibv;
use rpcrdma_fabric::datagram::Group;
use std::sync::Arc;

/// What a queue pair is made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) device: &'a Arc<Device>,
    pub(super) sends_done: &'a CompletionQueue,
    pub(super) receives_done: &'a CompletionQueue,
    pub(super) sends: u32,
    pub(super) receives: u32,
}

/// What it is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) link: u8,
    pub(super) p_key_index: u16,
    pub(super) q_key: u32,
}

/// A queue pair.
#[derive(Debug)]
pub(super) struct Pair {
    raw: Raw<rdma::ibv_qp>,
    /// It was made on this id.
    id: Option<Identifier>,
    device: Arc<Device>,
}

impl Pair {
    /// One that has to be started.
    pub(super) fn new(wanted: Wanted<'_>) -> Result<Pair, Fault> {
        let verbs = &wanted.device.library().verbs;
        let mut with = attributes(wanted);
        let context = wanted.device.context().raw();
        // SAFETY: context, domain and queues live, and are of one context.
        let raw = unsafe { ibv::ibv_create_qp_ex(verbs, context, &mut with) };
        if raw.is_null() {
            return Err(Fault::last("ibv_create_qp"));
        }
        Ok(Pair {
            raw: Raw(raw),
            id: None,
            device: Arc::clone(wanted.device),
        })
    }

    /// One on an id, which starts it.
    pub(super) fn on(id: Identifier, wanted: Wanted<'_>) -> Result<Pair, Fault> {
        let manager = &wanted.device.library().manager;
        let mut with = attributes(wanted);
        // SAFETY: id, domain and queues live, and are of one context.
        let returned = unsafe { ibv::rdma_create_qp_ex(manager, id.raw(), &mut with) };
        Fault::check("rdma_create_qp_ex", returned)?;
        Ok(Pair {
            raw: Raw(id.queue_pair()),
            id: Some(id),
            device: Arc::clone(wanted.device),
        })
    }

    pub(super) fn raw(&self) -> *mut rdma::ibv_qp {
        self.raw.0
    }

    pub(super) fn id(&self) -> Option<&Identifier> {
        self.id.as_ref()
    }

    /// Its number, as its peers know it.
    pub(super) fn number(&self) -> u32 {
        // SAFETY: the queue pair lives.
        unsafe { (*self.raw()).qp_num }
    }

    fn modify(&self, mut attributes: rdma::ibv_qp_attr, what: u32) -> Result<(), Fault> {
        let mask = rdma::IBV_QP_STATE | what;
        let mask = libc::c_int::try_from(mask).unwrap_or_default();
        let verbs = &self.device.library().verbs;
        // SAFETY: the queue pair lives, and the attributes live through the call.
        let returned = unsafe { verbs.ibv_modify_qp(self.raw(), &raw mut attributes, mask) };
        Fault::check("ibv_modify_qp", returned)
    }

    fn move_to(&self, state: rdma::ibv_qp_state) -> Result<(), Fault> {
        let attributes = rdma::ibv_qp_attr {
            qp_state: state,
            ..rdma::ibv_qp_attr::default()
        };
        self.modify(attributes, 0)
    }

    /// From new, or from nothing again, to sending and receiving.
    pub(super) fn start(&self, keys: Keys) -> Result<(), Fault> {
        let first = rdma::ibv_qp_attr {
            qp_state: rdma::IBV_QPS_INIT,
            pkey_index: keys.p_key_index,
            port_num: keys.link,
            qkey: keys.q_key,
            ..rdma::ibv_qp_attr::default()
        };
        let what = rdma::IBV_QP_PKEY_INDEX | rdma::IBV_QP_PORT | rdma::IBV_QP_QKEY;
        self.modify(first, what)?;
        self.move_to(rdma::IBV_QPS_RTR)?;
        let last = rdma::ibv_qp_attr {
            qp_state: rdma::IBV_QPS_RTS,
            ..rdma::ibv_qp_attr::default()
        };
        self.modify(last, rdma::IBV_QP_SQ_PSN)
    }

    /// To error: everything outstanding comes back flushed.
    pub(super) fn fail(&self) -> Result<(), Fault> {
        self.move_to(rdma::IBV_QPS_ERR)
    }

    /// To nothing: from where it can be started. Nothing is outstanding.
    pub(super) fn reset(&self) -> Result<(), Fault> {
        self.move_to(rdma::IBV_QPS_RESET)
    }

    /// What it was started with, by whoever did.
    pub(super) fn keys(&self) -> Result<Keys, Fault> {
        let mut attributes = rdma::ibv_qp_attr::default();
        let mut made = rdma::ibv_qp_init_attr::default();
        let what = rdma::IBV_QP_PKEY_INDEX | rdma::IBV_QP_PORT | rdma::IBV_QP_QKEY;
        let what = libc::c_int::try_from(what).unwrap_or_default();
        let (into, made) = (&raw mut attributes, &raw mut made);
        let verbs = &self.device.library().verbs;
        // SAFETY: the queue pair lives, and both places live through the call.
        let returned = unsafe { verbs.ibv_query_qp(self.raw(), into, what, made) };
        Fault::check("ibv_query_qp", returned)?;
        Ok(Keys {
            link: attributes.port_num,
            p_key_index: attributes.pkey_index,
            q_key: attributes.qkey,
        })
    }

    pub(super) fn attach(&self, group: Group) -> Result<(), Fault> {
        let mgid = rdma::ibv_gid { raw: group.mgid };
        let verbs = &self.device.library().verbs;
        // SAFETY: the queue pair lives, and the GID through the call.
        let returned = unsafe { verbs.ibv_attach_mcast(self.raw(), &raw const mgid, group.mlid) };
        Fault::check("ibv_attach_mcast", returned)
    }

    pub(super) fn detach(&self, group: Group) -> Result<(), Fault> {
        let mgid = rdma::ibv_gid { raw: group.mgid };
        let verbs = &self.device.library().verbs;
        // SAFETY: the queue pair lives, and the GID through the call.
        let returned = unsafe { verbs.ibv_detach_mcast(self.raw(), &raw const mgid, group.mlid) };
        Fault::check("ibv_detach_mcast", returned)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let library = self.device.library();
        let Some(id) = &self.id else {
            // SAFETY: made here, and destroyed once, before its queues, which its owner keeps.
            let returned = unsafe { library.verbs.ibv_destroy_qp(self.raw()) };
            return note_destroyed("ibv_destroy_qp", returned);
        };
        // SAFETY: the id has this queue pair, and both live. The id itself follows.
        unsafe { library.manager.rdma_destroy_qp(id.raw()) };
    }
}

fn attributes(wanted: Wanted<'_>) -> rdma::ibv_qp_init_attr_ex {
    rdma::ibv_qp_init_attr_ex {
        send_cq: wanted.sends_done.raw(),
        recv_cq: wanted.receives_done.raw(),
        cap: rdma::ibv_qp_cap {
            max_send_wr: wanted.sends,
            max_recv_wr: wanted.receives,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        },
        qp_type: rdma::IBV_QPT_UD,
        comp_mask: rdma::IBV_QP_INIT_ATTR_PD,
        pd: wanted.device.domain().0,
        ..rdma::ibv_qp_init_attr_ex::default()
    }
}
