//! The functions that the headers define in place: calls through a context's, queue pair's or
//! completion queue's own table.
//!
//! All are `unsafe` for the same reason: each pointer must be to a live object made by
//! rdma-core (or by a stand-in that fills the same tables), lists must end, and a null entry in
//! a table is undefined here as it is in C, except where the result says otherwise.

#![allow(
    clippy::missing_safety_doc,
    clippy::missing_panics_doc,
    reason = "the module says it for all of them"
)]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    clippy::undocumented_unsafe_blocks,
    reason = "each block is one call through a table, reached by pointers that the caller vouches for"
)]

use crate::bindings::types::*;
use crate::{ConnectionManager, Verbs};
use core::mem::{offset_of, size_of};
use core::ptr;
use libc::{c_int, c_uint, c_void};

/// What a context's table holds when the provider has no such call (C would jump to zero).
macro_rules! through {
    ($table:expr, $name:ident ( $($argument:expr),* $(,)? )) => {
        ($table.$name.unwrap_unchecked())($($argument),*)
    };
}

/// The extended context around a context; `None` for a provider from before there were any.
#[must_use]
pub unsafe fn verbs_get_ctx(context: *mut ibv_context) -> Option<*mut verbs_context> {
    unsafe {
        ((*context).abi_compat.addr() == usize::MAX)
            .then(|| context.byte_sub(offset_of!(verbs_context, context)).cast())
    }
}

/// An entry of the extended context's table, if the provider knew that entry and has it.
macro_rules! extended {
    ($context:expr, $name:ident) => {
        unsafe { verbs_get_ctx($context) }.and_then(|extended| {
            let known = size_of::<verbs_context>() - offset_of!(verbs_context, $name);
            unsafe {
                if (*extended).sz >= known {
                    (*extended).$name
                } else {
                    None
                }
            }
        })
    };
}

/// Properties of a port. errno, or 0.
pub unsafe fn ibv_query_port(
    context: *mut ibv_context,
    port: u8,
    attributes: &mut ibv_port_attr,
) -> c_int {
    *attributes = ibv_port_attr::default();
    match extended!(context, query_port) {
        Some(call) => unsafe { call(context, port, attributes, size_of::<ibv_port_attr>()) },
        None => libc::EOPNOTSUPP,
    }
}

/// Properties of a device, the plain ones alone from a provider that has no others. errno, or 0.
pub unsafe fn ibv_query_device_ex(
    verbs: &Verbs,
    context: *mut ibv_context,
    attributes: &mut ibv_device_attr_ex,
) -> c_int {
    *attributes = ibv_device_attr_ex::default();
    if let Some(call) = extended!(context, query_device_ex) {
        let size = size_of::<ibv_device_attr_ex>();
        let answer = unsafe { call(context, ptr::null(), attributes, size) };
        if answer != libc::EOPNOTSUPP && answer != libc::ENOSYS {
            return answer;
        }
        *attributes = ibv_device_attr_ex::default();
    }
    unsafe { verbs.ibv_query_device(context, &raw mut attributes.orig_attr) }
}

/// The GID table: entries, or a negative errno.
pub unsafe fn ibv_query_gid_table(
    verbs: &Verbs,
    context: *mut ibv_context,
    entries: &mut [ibv_gid_entry],
) -> isize {
    let size = size_of::<ibv_gid_entry>();
    unsafe { verbs._ibv_query_gid_table(context, entries.as_mut_ptr(), entries.len(), 0, size) }
}

/// A completion queue with the extended interface; null with errno EOPNOTSUPP where the
/// provider has none.
pub unsafe fn ibv_create_cq_ex(
    context: *mut ibv_context,
    attributes: &mut ibv_cq_init_attr_ex,
) -> *mut ibv_cq_ex {
    match extended!(context, create_cq_ex) {
        Some(call) => unsafe { call(context, attributes) },
        None => unsupported(),
    }
}

/// A queue pair with extended attributes; null with errno EOPNOTSUPP where the provider has no
/// such call.
pub unsafe fn ibv_create_qp_ex(
    verbs: &Verbs,
    context: *mut ibv_context,
    attributes: &mut ibv_qp_init_attr_ex,
) -> *mut ibv_qp {
    if attributes.comp_mask == IBV_QP_INIT_ATTR_PD {
        let plain = ptr::from_mut(attributes).cast::<ibv_qp_init_attr>();
        return unsafe { verbs.ibv_create_qp(attributes.pd, plain) };
    }
    match extended!(context, create_qp_ex) {
        Some(call) => unsafe { call(context, attributes) },
        None => unsupported(),
    }
}

/// The queue pair as one that `ibv_wr_*` may be used on; null where it was not made so.
pub unsafe fn ibv_qp_to_qp_ex(verbs: &Verbs, qp: *mut ibv_qp) -> *mut ibv_qp_ex {
    unsafe { verbs.ibv_qp_to_qp_ex(qp) }
}

/// The plain completion queue that an extended one begins with.
#[must_use]
pub fn ibv_cq_ex_to_cq(cq: *mut ibv_cq_ex) -> *mut ibv_cq {
    cq.cast()
}

/// A memory window; null with errno EOPNOTSUPP where the device has none.
pub unsafe fn ibv_alloc_mw(pd: *mut ibv_pd, kind: ibv_mw_type) -> *mut ibv_mw {
    match unsafe { (*(*pd).context).ops.alloc_mw } {
        Some(call) => unsafe { call(pd, kind) },
        None => unsupported(),
    }
}

/// Frees a memory window. errno, or 0.
pub unsafe fn ibv_dealloc_mw(mw: *mut ibv_mw) -> c_int {
    unsafe { through!((*(*mw).context).ops, dealloc_mw(mw)) }
}

/// The next remote key of the same window: its low octet counts on.
#[must_use]
pub const fn ibv_inc_rkey(rkey: u32) -> u32 {
    (rkey & !0xff) | (rkey.wrapping_add(1) & 0xff)
}

/// Binds a window of type 1. errno, or 0.
pub unsafe fn ibv_bind_mw(qp: *mut ibv_qp, mw: *mut ibv_mw, bind: *mut ibv_mw_bind) -> c_int {
    if unsafe { (*mw).type_ } != IBV_MW_TYPE_1 {
        return libc::EINVAL;
    }
    unsafe { through!((*(*mw).context).ops, bind_mw(qp, mw, bind)) }
}

/// Posts a list to the send queue. errno, or 0; with an error `bad` names the first not posted.
#[inline]
pub unsafe fn ibv_post_send(
    qp: *mut ibv_qp,
    list: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    unsafe { through!((*(*qp).context).ops, post_send(qp, list, bad)) }
}

/// Posts a list to the receive queue. errno, or 0; with an error `bad` names the first not posted.
#[inline]
pub unsafe fn ibv_post_recv(
    qp: *mut ibv_qp,
    list: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    unsafe { through!((*(*qp).context).ops, post_recv(qp, list, bad)) }
}

/// Takes up to `count` completions. How many, or a negative number.
#[inline]
pub unsafe fn ibv_poll_cq(cq: *mut ibv_cq, count: c_int, completions: *mut ibv_wc) -> c_int {
    unsafe { through!((*(*cq).context).ops, poll_cq(cq, count, completions)) }
}

/// Asks for an event with the next completion. errno, or 0.
#[inline]
pub unsafe fn ibv_req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    unsafe { through!((*(*cq).context).ops, req_notify_cq(cq, solicited_only)) }
}

/// Joins a connection manager's id to a queue pair made with extended attributes. -1 with errno, or 0.
pub unsafe fn rdma_create_qp_ex(
    manager: &ConnectionManager,
    id: *mut rdma_cm_id,
    attributes: &mut ibv_qp_init_attr_ex,
) -> c_int {
    unsafe { manager.rdma_create_qp_ex(id, attributes) }
}

macro_rules! in_table {
    ($($(#[$doc:meta])* $name:ident = $object:ident.$entry:ident($($argument:ident: $kind:ty),*) $(-> $answer:ty)?;)*) => { $(
        $(#[$doc])*
        #[inline]
        pub unsafe fn $name($object: *mut in_table!(@ $object), $($argument: $kind),*) $(-> $answer)? {
            unsafe { through!((*$object), $entry($object, $($argument),*)) }
        }
    )* };
    (@ qp) => { ibv_qp_ex };
    (@ cq) => { ibv_cq_ex };
}

in_table! {
    /// Begins a batch of work requests: `wr_id` and `wr_flags` are set before each.
    ibv_wr_start = qp.wr_start();
    /// Posts the batch. errno, or 0.
    ibv_wr_complete = qp.wr_complete() -> c_int;
    /// Drops the batch.
    ibv_wr_abort = qp.wr_abort();
    /// Send.
    ibv_wr_send = qp.wr_send();
    /// Send With Invalidate.
    ibv_wr_send_inv = qp.wr_send_inv(rkey: u32);
    /// Send with immediate data.
    ibv_wr_send_imm = qp.wr_send_imm(imm_data: __be32);
    /// RDMA Read.
    ibv_wr_rdma_read = qp.wr_rdma_read(rkey: u32, remote_addr: u64);
    /// RDMA Write.
    ibv_wr_rdma_write = qp.wr_rdma_write(rkey: u32, remote_addr: u64);
    /// Binds a window of type 2.
    ibv_wr_bind_mw = qp.wr_bind_mw(mw: *mut ibv_mw, rkey: u32, bind_info: *const ibv_mw_bind_info);
    /// Invalidates a window of type 2, or a region.
    ibv_wr_local_inv = qp.wr_local_inv(rkey: u32);
    /// The memory of the request last begun.
    ibv_wr_set_sge = qp.wr_set_sge(lkey: u32, addr: u64, length: u32);
    /// The memory of the request last begun, in pieces.
    ibv_wr_set_sge_list = qp.wr_set_sge_list(count: usize, list: *const ibv_sge);
    /// The octets of the request last begun, copied.
    ibv_wr_set_inline_data = qp.wr_set_inline_data(addr: *mut c_void, length: usize);
    /// The octets of the request last begun, copied from pieces.
    ibv_wr_set_inline_data_list = qp.wr_set_inline_data_list(count: usize, list: *const ibv_data_buf);
    /// Where a datagram goes.
    ibv_wr_set_ud_addr = qp.wr_set_ud_addr(ah: *mut ibv_ah, remote_qpn: u32, remote_qkey: u32);

    /// Begins to poll: ENOENT when there is nothing, and then `ibv_end_poll` is not called.
    ibv_start_poll = cq.start_poll(attributes: *mut ibv_poll_cq_attr) -> c_int;
    /// The next completion: ENOENT when there is none.
    ibv_next_poll = cq.next_poll() -> c_int;
    /// Ends what `ibv_start_poll` began.
    ibv_end_poll = cq.end_poll();
    /// The current completion's opcode, where its status is success.
    ibv_wc_read_opcode = cq.read_opcode() -> ibv_wc_opcode;
    /// The current completion's vendor error.
    ibv_wc_read_vendor_err = cq.read_vendor_err() -> u32;
    /// The current completion's length.
    ibv_wc_read_byte_len = cq.read_byte_len() -> u32;
    /// The current completion's immediate data, in network byte order.
    ibv_wc_read_imm_data = cq.read_imm_data() -> __be32;
    /// The current completion's queue pair number.
    ibv_wc_read_qp_num = cq.read_qp_num() -> u32;
    /// The current completion's sender.
    ibv_wc_read_src_qp = cq.read_src_qp() -> u32;
    /// The current completion's flags, of `IBV_WC_WITH_INV` and others.
    ibv_wc_read_wc_flags = cq.read_wc_flags() -> c_uint;
}

/// The remote key that the current completion's Send invalidated: it shares its place with the
/// immediate data, and is in host byte order.
#[inline]
pub unsafe fn ibv_wc_read_invalidated_rkey(cq: *mut ibv_cq_ex) -> u32 {
    unsafe { ibv_wc_read_imm_data(cq) }
}

fn unsupported<T>() -> *mut T {
    // SAFETY: errno is this thread's own.
    unsafe { *libc::__errno_location() = libc::EOPNOTSUPP };
    ptr::null_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_counts_in_its_low_octet_alone() {
        assert_eq!(ibv_inc_rkey(0x0001_0203), 0x0001_0204);
        assert_eq!(ibv_inc_rkey(0x0001_02ff), 0x0001_0200);
    }

    /// A provider that is older than an entry of the table is not asked for it.
    #[test]
    fn a_short_table_ends_where_its_size_says() {
        extern "C" fn never(_: *mut ibv_context, _: *mut ibv_cq_init_attr_ex) -> *mut ibv_cq_ex {
            panic!("not in the table")
        }
        // SAFETY: numbers, raw pointers and optional functions, all of which may be zero.
        let mut extended: verbs_context = unsafe { core::mem::zeroed() };
        extended.context.abi_compat = ptr::without_provenance_mut(usize::MAX);
        extended.create_cq_ex = Some(never);
        extended.sz = size_of::<verbs_context>() - offset_of!(verbs_context, query_device_ex);
        let context = unsafe { (&raw mut extended).byte_add(offset_of!(verbs_context, context)) };
        let made = unsafe { ibv_create_cq_ex(context.cast(), &mut ibv_cq_init_attr_ex::default()) };
        assert!(made.is_null());
        assert_eq!(
            std::io::Error::last_os_error().raw_os_error(),
            Some(libc::EOPNOTSUPP)
        );
    }
}
