//! Every structure and constant of this crate against the header that is installed.

use super::calls::{DEVICE_NAME, umad_port};
use crate::frame::Header;
use rpcrdma_proof::layout::by_c_compiler;
use std::mem::{offset_of, size_of};

const HEADERS: [&str; 1] = ["infiniband/umad.h"];

/// C expressions, and what they are here.
fn expected() -> Vec<(String, u64)> {
    let mut all = vec![("UMAD_CA_NAME_LEN".to_owned(), DEVICE_NAME as u64)];
    macro_rules! layout {
        ($here:ty, $there:literal; $($field:ident = $name:literal)*) => {
            all.push((format!("sizeof({})", $there), size_of::<$here>() as u64));
            $(all.push((format!("offsetof({}, {})", $there, $name), offset_of!($here, $field) as u64));)*
        };
    }
    layout! { umad_port, "umad_port_t"; ca_name = "ca_name" portnum = "portnum" base_lid = "base_lid" lmc = "lmc"
    sm_lid = "sm_lid" sm_sl = "sm_sl" state = "state" phys_state = "phys_state" rate = "rate" capmask = "capmask"
    gid_prefix = "gid_prefix" port_guid = "port_guid" pkeys_size = "pkeys_size" pkeys = "pkeys"
    link_layer = "link_layer" }
    layout! { Header, "ib_user_mad_t"; agent_id = "agent_id" status = "status" timeout_ms = "timeout_ms"
    retries = "retries" length = "length" qpn = "addr.qpn" q_key = "addr.qkey" lid = "addr.lid" sl = "addr.sl"
    path_bits = "addr.path_bits" grh_present = "addr.grh_present" gid_index = "addr.gid_index"
    hop_limit = "addr.hop_limit" traffic_class = "addr.traffic_class" gid = "addr.gid"
    flow_label = "addr.flow_label" p_key_index = "addr.pkey_index" reserved = "addr.reserved" }
    all
}

#[test]
fn layouts_are_those_of_the_header() {
    if let Err(why) = by_c_compiler(&HEADERS, &["sizeof(umad_port_t)"]) {
        let line = why.lines().next().unwrap_or("");
        println!("SKIPPED: no infiniband/umad.h to compare with: {line}");
        return;
    }
    let expected = expected();
    let expressions: Vec<&str> = expected.iter().map(|(text, _)| text.as_str()).collect();
    let found = by_c_compiler(&HEADERS, &expressions).expect("each name is in the header");
    assert_eq!(found.len(), expressions.len());
    for ((expression, ours), theirs) in expected.iter().zip(found) {
        assert_eq!(*ours, theirs, "{expression}: here, and in C");
    }
}
