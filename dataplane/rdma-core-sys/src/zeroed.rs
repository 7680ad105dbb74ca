//! All octets zero: how C code starts each of these.

use crate::bindings::types::*;
use core::mem;

macro_rules! zeroed {
    ($($name:ident)*) => { $(
        impl Default for $name {
            fn default() -> Self {
                // SAFETY: made of numbers, raw pointers and optional functions only, all of
                // which may be zero.
                unsafe { mem::zeroed() }
            }
        }
    )* };
}

zeroed! {
    ibv_gid ibv_gid_entry ibv_device_attr ibv_device_attr_ex ibv_port_attr ibv_async_event
    ibv_wc ibv_mw_bind_info ibv_ah_attr ibv_global_route ibv_cq_init_attr_ex ibv_poll_cq_attr
    ibv_qp_cap ibv_qp_init_attr ibv_qp_init_attr_ex ibv_qp_attr ibv_data_buf ibv_sge
    ibv_send_wr ibv_recv_wr ibv_mw_bind rdma_conn_param rdma_ud_param rdma_cm_join_mc_attr_ex
}

// What a provider fills in, so that a test can stand in for one.
zeroed! { ibv_context ibv_context_ops ibv_qp ibv_qp_ex ibv_cq ibv_cq_ex ibv_pd ibv_mr ibv_mw }
