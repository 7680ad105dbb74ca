#!/usr/bin/env bash
# Makes src/bindings/*.rs from the rdma-core headers that are installed here.
#
# Needs: libibverbs-dev and librdmacm-dev (rdma-core 44: what is newer in the headers stays out, so that the
# tables load from old libraries too), libclang, and bindgen (cargo install bindgen-cli). What comes out is
# checked in: a build needs none of them. tests/layout.rs compares it with the headers again.
set -euo pipefail
cd "$(dirname "$0")"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat > "$scratch/headers.h" <<'HEADERS'
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
/* these two macros stand before functions of the same name */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
HEADERS

join() { local IFS='|'; echo "$*"; }

# Calls into libibverbs.so.1
verbs=(
    ibv_get_device_list ibv_free_device_list ibv_get_device_name ibv_get_device_guid
    ibv_open_device ibv_close_device ibv_get_async_event ibv_ack_async_event
    ibv_query_device _ibv_query_gid_table ibv_query_pkey ibv_query_qp
    ibv_alloc_pd ibv_dealloc_pd ibv_reg_mr ibv_dereg_mr
    ibv_create_comp_channel ibv_destroy_comp_channel ibv_get_cq_event ibv_ack_cq_events
    ibv_create_cq ibv_destroy_cq
    ibv_create_qp ibv_modify_qp ibv_destroy_qp ibv_qp_to_qp_ex
    ibv_create_ah ibv_create_ah_from_wc ibv_destroy_ah ibv_attach_mcast ibv_detach_mcast
    ibv_wc_status_str ibv_node_type_str ibv_port_state_str ibv_event_type_str
)
# Calls into librdmacm.so.1
manager=(
    rdma_get_devices rdma_free_devices rdma_create_event_channel rdma_destroy_event_channel rdma_get_cm_event rdma_ack_cm_event rdma_event_str
    rdma_create_id rdma_destroy_id rdma_set_option rdma_bind_addr rdma_listen
    rdma_resolve_addr rdma_resolve_route rdma_get_src_port rdma_get_dst_port
    rdma_create_qp rdma_create_qp_ex rdma_destroy_qp rdma_init_qp_attr
    rdma_connect rdma_accept rdma_reject rdma_establish rdma_notify rdma_disconnect
    rdma_join_multicast rdma_join_multicast_ex rdma_leave_multicast
)
# Types and constants; what they are made of comes with them
types=(
    ibv_device ibv_context verbs_context ibv_pd ibv_mr ibv_mw ibv_cq ibv_cq_ex ibv_qp ibv_qp_ex ibv_ah
    ibv_comp_channel ibv_device_attr ibv_device_attr_ex ibv_query_device_ex_input ibv_port_attr
    ibv_gid ibv_gid_entry ibv_gid_type ibv_grh ibv_global_route ibv_ah_attr
    ibv_async_event ibv_event_type ibv_cq_init_attr_ex ibv_create_cq_wc_flags ibv_create_cq_attr
    ibv_create_cq_attr_flags ibv_poll_cq_attr
    ibv_qp_cap ibv_qp_init_attr ibv_qp_init_attr_ex ibv_qp_init_attr_mask ibv_qp_create_send_ops_flags
    ibv_qp_attr ibv_qp_attr_mask ibv_qp_state ibv_qp_type
    ibv_send_wr ibv_recv_wr ibv_sge ibv_data_buf ibv_mw_bind ibv_mw_bind_info ibv_mw_type ibv_wr_opcode ibv_send_flags
    ibv_wc ibv_wc_status ibv_wc_opcode ibv_wc_flags ibv_access_flags ibv_device_cap_flags
    ibv_atomic_cap ibv_mtu ibv_port_state ibv_node_type ibv_transport_type ibv_rate
    rdma_cm_id rdma_cm_event rdma_cm_event_type rdma_event_channel rdma_conn_param rdma_ud_param rdma_port_space
    rdma_cm_join_mc_attr_ex rdma_cm_join_mc_attr_mask rdma_cm_mc_join_flags
    rdma_addr rdma_ib_addr rdma_route
)
constants=('IBV_LINK_LAYER_.*' 'RDMA_OPTION_.*' RDMA_QPTYPE '__VERBS_ABI_IS_EXTENDED' RDMA_MAX_RESP_RES RDMA_MAX_INIT_DEPTH)
# Only ever pointed to by what we use: their insides stay out
opaque=(
    'ibv_flow.*' 'ibv_srq.*' 'ibv_xrcd.*' 'ibv_wq.*' 'ibv_rwq_.*' 'ibv_rx_hash_conf' 'ibv_td.*' 'ibv_dm' 'ibv_alloc_dm_attr' 'ibv_counter.*'
    'ibv_parent_domain.*' 'ibv_values_ex' 'ibv_qp_open_attr' 'ibv_modify_cq_attr' 'ibv_moderate_cq' 'ibv_ops_wr.*' 'ibv_sa_.*'
    'ibv_read_counters_attr' 'ibv_wc_tm_info' 'ibv_tmh.*' 'verbs_ex_private' '_compat_ibv_port_attr' 'ibv_qp_rate_limit_attr' 'ibv_ece'
    'ibv_vl_xmit_time.*' 'ibv_advise.*' '_ibv_device_ops' 'ibv_pd_.*' 'rdma_addrinfo' 'ibv_import.*' 'ibv_reg_.*'
)
# The C library's: from the crate libc, which knows them on every architecture
foreign='pthread_.*|__pthread.*|__atomic_wide_counter.*|sockaddr|sockaddr_in|sockaddr_in6|sockaddr_storage|in_addr.*|in6_addr.*|in_port_t|sa_family_t|socklen_t|ssize_t|__ssize_t|__socklen_t|__off.*|__time_t'

options=(--no-doc-comments --no-layout-tests --no-prepend-enum-name --use-core
    --ctypes-prefix libc --blocklist-type "$foreign" --disable-header-comment --rust-target 1.88 --rust-edition 2024
    --merge-extern-blocks --no-derive-debug --default-non-copy-union-style manually_drop)
banner='// Made by generate.sh from the headers of rdma-core (Linux-OpenIB licence: see LICENSE-rdma-core). Not edited by hand.'

mkdir -p src/bindings tests/layout
bindgen "$scratch/headers.h" "${options[@]}" --ignore-functions \
    --allowlist-type "$(join "${types[@]}")" --allowlist-var "$(join "${constants[@]}")" --opaque-type "$(join "${opaque[@]}")" \
    --raw-line "$banner" \
    --raw-line 'use libc::{pthread_cond_t, pthread_mutex_t, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage};' \
    --output src/bindings/types.rs

table() { # struct, file, imports, functions...
    local name=$1 file=$2 imports=$3
    shift 3
    bindgen "$scratch/headers.h" "${options[@]}" --no-recursive-allowlist --allowlist-function "$(join "$@")" \
        --dynamic-loading "$name" --dynamic-link-require-all \
        --raw-line "$banner" --raw-line "$imports" \
        --output "src/bindings/$file"
}
table Verbs verbs.rs 'use super::types::*;' "${verbs[@]}"
table ConnectionManager manager.rs 'use super::types::*; use libc::sockaddr;' "${manager[@]}"

# What tests/layout.rs compares: every structure with all its named fields, every constant.
awk '
    /^pub (struct|union) [a-z_]*[a-z] \{/ && !/__bindgen/ { name = $3; fields = ""; opaque = 0; next }
    name && /^    pub .*_bindgen_opaque_blob|^    pub _(unused|address)/ { opaque = 1 }
    name && /^    pub [a-z_A-Z0-9]+:/ && !/__bindgen_anon/ { sub(":", "", $2); fields = fields " " $2 ";" }
    name && /^}/ { if (fields && !opaque) printf "layout! { %s;%s };\n", name, fields; name = "" }
    /^pub const (IBV|RDMA)_[A-Za-z0-9_]*:/ { sub(":", "", $3); printf "constant! { %s };\n", $3 }
' src/bindings/types.rs | { printf '%s\n{\n' "$banner"; cat; echo '}'; } > tests/layout/list.in
