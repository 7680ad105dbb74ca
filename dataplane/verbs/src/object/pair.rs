//! Queue pairs, each with the connection manager's id that it belongs to.

#![expect(unsafe_code, reason = "calls of a foreign interface")]

use super::{Device, Objects};
use crate::cm::Identifier;
use crate::device::PairName;
use crate::error::Fault;
use crate::port::Rail;
use rdma_core_sys as rdma;
use rdma_core_sys::inline as ibv;
use std::sync::Arc;

/// What a queue pair is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Depths {
    /// Send-queue entries.
    pub(crate) send: u32,
    /// Receive-queue entries.
    pub(crate) receive: u32,
    /// Elements of one Send.
    pub(crate) gather: u32,
    /// Octets that go inline.
    pub(crate) inline_bytes: u32,
    /// By `ibv_wr_*`, if the provider has it.
    pub(crate) extended: bool,
}

/// A queue pair and its id. Both are destroyed by whoever drops the last share.
#[derive(Debug)]
pub(crate) struct QueuePair {
    rail: Rail,
    name: PairName,
    inline_bytes: u32,
    /// It is destroyed already, its id not yet.
    destroyed: bool,
    /// The id, which takes the queue pair with it; then what both stand on.
    id: Identifier,
    objects: Arc<Objects>,
}

// SAFETY: the queue pair and its id may be used from any thread. Control alone uses the id, the
// port alone posts; moving to error may come from both, and is a call of the kernel's.
unsafe impl Sync for QueuePair {}

impl QueuePair {
    /// Makes the queue pair of a connection; the id comes back with a failure.
    pub(crate) fn new(
        id: Identifier,
        objects: &Arc<Objects>,
        depths: Depths,
    ) -> Result<QueuePair, (Identifier, Fault)> {
        let device = &objects.device;
        match make(&id, device, objects.queue.raw(), depths) {
            Ok((rail, inline_bytes)) => Ok(QueuePair {
                name: name(rail),
                rail,
                inline_bytes,
                destroyed: false,
                id,
                objects: Arc::clone(objects),
            }),
            Err(fault) => Err((id, fault)),
        }
    }

    /// How it is posted to: for as long as this lives.
    pub(crate) fn rail(&self) -> Rail {
        self.rail
    }

    /// Octets of a message that it sends inline at most.
    pub(crate) fn inline_bytes(&self) -> u32 {
        self.inline_bytes
    }

    pub(crate) fn id(&self) -> &Identifier {
        &self.id
    }

    /// Its name, as asynchronous events have it.
    pub(crate) fn name(&self) -> PairName {
        self.name
    }

    /// Sets how long a peer that met no receive waits before it tries again: an exponent of the
    /// table of `ibv_modify_qp`, 12 for 0.64 ms. The connection manager leaves 0, which is the
    /// longest, 655 ms. Only when the peer can send already.
    pub(crate) fn set_min_rnr_timer(&self, timer: u8) -> Result<(), Fault> {
        if self.objects.device.context().transport() == rdma::IBV_TRANSPORT_IWARP {
            // There is no such thing: a message without a receive ends the connection.
            return Ok(());
        }
        let mut attributes = rdma::ibv_qp_attr {
            qp_state: rdma::IBV_QPS_RTS,
            min_rnr_timer: timer,
            ..rdma::ibv_qp_attr::default()
        };
        let mask = rdma::IBV_QP_STATE | rdma::IBV_QP_MIN_RNR_TIMER;
        let mask = libc::c_int::try_from(mask).unwrap_or_default();
        let verbs = &self.objects.device.library().verbs;
        // SAFETY: the queue pair lives, and the attributes live through the call.
        let returned = unsafe { verbs.ibv_modify_qp(self.rail.plain(), &raw mut attributes, mask) };
        Fault::check("ibv_modify_qp", returned)
    }
}

impl QueuePair {
    /// Destroys the queue pair, and not yet the id.
    pub(crate) fn destroy(&mut self) {
        if std::mem::replace(&mut self.destroyed, true) {
            return;
        }
        let manager = &self.objects.device.library().manager;
        // SAFETY: the id has this queue pair, and both live. The id itself follows.
        unsafe { manager.rdma_destroy_qp(self.id.raw()) };
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        self.destroy();
    }
}

/// Of a queue pair that was just made.
fn name(rail: Rail) -> PairName {
    PairName {
        address: rail.plain().addr(),
        // SAFETY: just made, and alive.
        number: unsafe { (*rail.plain()).qp_num },
    }
}

/// The operations that a port posts.
fn operations() -> u64 {
    u64::from(
        rdma::IBV_QP_EX_WITH_SEND
            | rdma::IBV_QP_EX_WITH_SEND_WITH_INV
            | rdma::IBV_QP_EX_WITH_RDMA_READ
            | rdma::IBV_QP_EX_WITH_RDMA_WRITE
            | rdma::IBV_QP_EX_WITH_LOCAL_INV
            | rdma::IBV_QP_EX_WITH_BIND_MW,
    )
}

/// What is asked for; `extended`: with `ibv_wr_*`.
pub(super) fn attributes(
    device: &Device,
    queue: *mut rdma::ibv_cq,
    depths: Depths,
    extended: bool,
) -> rdma::ibv_qp_init_attr_ex {
    let send_ops = if extended {
        rdma::IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
    } else {
        0
    };
    rdma::ibv_qp_init_attr_ex {
        send_cq: queue,
        recv_cq: queue,
        cap: rdma::ibv_qp_cap {
            max_send_wr: depths.send,
            max_recv_wr: depths.receive,
            max_send_sge: depths.gather,
            max_recv_sge: 1,
            max_inline_data: depths.inline_bytes,
        },
        qp_type: rdma::IBV_QPT_RC,
        comp_mask: rdma::IBV_QP_INIT_ATTR_PD | send_ops,
        pd: device.domain().0,
        send_ops_flags: if extended { operations() } else { 0 },
        ..rdma::ibv_qp_init_attr_ex::default()
    }
}

/// Extended where the provider can, else plain. Octets it sends inline come with it.
fn make(
    id: &Identifier,
    device: &Device,
    queue: *mut rdma::ibv_cq,
    depths: Depths,
) -> Result<(Rail, u32), Fault> {
    let library = device.library();
    for extended in [depths.extended, false] {
        let mut wanted = attributes(device, queue, depths, extended);
        // SAFETY: id, domain and queue live, and are of one context.
        let returned = unsafe { ibv::rdma_create_qp_ex(&library.manager, id.raw(), &mut wanted) };
        if let Err(fault) = Fault::check("rdma_create_qp_ex", returned) {
            if extended {
                continue;
            }
            return Err(fault);
        }
        let plain = id.queue_pair();
        // SAFETY: just made, with `ibv_wr_*` where it was asked for.
        let with_calls = unsafe { ibv::ibv_qp_to_qp_ex(&library.verbs, plain) };
        let rail = if extended && !with_calls.is_null() {
            Rail::Extended(with_calls)
        } else {
            Rail::Plain(plain)
        };
        return Ok((rail, wanted.cap.max_inline_data));
    }
    Err(Fault {
        call: "rdma_create_qp_ex",
        errno: libc::EOPNOTSUPP,
    })
}

/// A queue pair of nobody's, made to see whether it can be.
pub(crate) fn try_inline(
    device: &Device,
    queue: &super::CompletionQueue,
    depths: Depths,
) -> Option<u32> {
    let verbs = &device.library().verbs;
    let mut wanted = attributes(device, queue.raw(), depths, false);
    let context = device.context().raw();
    // SAFETY: context, domain and queue live.
    let qp = unsafe { ibv::ibv_create_qp_ex(verbs, context, &mut wanted) };
    if qp.is_null() {
        return None;
    }
    // SAFETY: just made, and nobody else knows of it.
    unsafe { verbs.ibv_destroy_qp(qp) };
    Some(wanted.cap.max_inline_data)
}
