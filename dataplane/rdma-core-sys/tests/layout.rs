//! Every structure, field and constant of the bindings against the C headers that are installed.

use rdma_core_sys::*;
use std::collections::BTreeMap;
use std::mem::{offset_of, size_of};

/// C expressions, and what they are here.
#[derive(Default)]
struct Expected(BTreeMap<String, u64>);

impl Expected {
    fn size(&mut self, name: &str, size: usize) {
        self.0
            .insert(format!("sizeof({})", c_type(name)), size as u64);
    }

    fn offset(&mut self, name: &str, field: &str, offset: usize) {
        let field = match field {
            "type_" => "type",
            "priv_" => "priv",
            other => other,
        };
        let name = c_type(name);
        self.0
            .insert(format!("offsetof({name}, {field})"), offset as u64);
    }
}

fn c_type(name: &str) -> String {
    let kind = if name == "ibv_gid" { "union" } else { "struct" };
    format!("{kind} {name}")
}

fn expected() -> Expected {
    let mut all = Expected::default();
    macro_rules! layout {
        ($name:ident; $($field:ident;)*) => {
            all.size(stringify!($name), size_of::<$name>());
            $( all.offset(stringify!($name), stringify!($field), offset_of!($name, $field)); )*
        };
    }
    macro_rules! constant {
        ($name:ident) => {
            all.0
                .insert(stringify!($name).into(), i64::from($name).cast_unsigned());
        };
    }
    include!("layout/list.in");
    nested(&mut all);
    all
}

/// Fields within unnamed unions.
fn nested(all: &mut Expected) {
    macro_rules! place {
        ($name:ident, $c:literal, $($field:tt)+) => {
            all.offset(stringify!($name), $c, offset_of!($name, $($field)+));
        };
    }
    place!(ibv_send_wr, "imm_data", __bindgen_anon_1.imm_data);
    place!(
        ibv_send_wr,
        "invalidate_rkey",
        __bindgen_anon_1.invalidate_rkey
    );
    place!(ibv_send_wr, "wr.rdma.remote_addr", wr.rdma.remote_addr);
    place!(ibv_send_wr, "wr.rdma.rkey", wr.rdma.rkey);
    place!(ibv_send_wr, "wr.ud.ah", wr.ud.ah);
    place!(ibv_send_wr, "wr.ud.remote_qpn", wr.ud.remote_qpn);
    place!(ibv_send_wr, "wr.ud.remote_qkey", wr.ud.remote_qkey);
    place!(ibv_send_wr, "bind_mw.mw", __bindgen_anon_2.bind_mw.mw);
    place!(ibv_send_wr, "bind_mw.rkey", __bindgen_anon_2.bind_mw.rkey);
    place!(
        ibv_send_wr,
        "bind_mw.bind_info",
        __bindgen_anon_2.bind_mw.bind_info
    );
    place!(ibv_wc, "imm_data", __bindgen_anon_1.imm_data);
    place!(
        ibv_wc,
        "invalidated_rkey",
        __bindgen_anon_1.invalidated_rkey
    );
    place!(ibv_async_event, "element.port_num", element.port_num);
    place!(rdma_addr, "src_sin6", __bindgen_anon_1.src_sin6);
    place!(rdma_addr, "dst_sin6", __bindgen_anon_2.dst_sin6);
    place!(rdma_cm_event, "param.conn", param.conn);
    place!(rdma_cm_event, "param.ud", param.ud);
}

fn by_c_compiler(expressions: &[&str]) -> Result<Vec<u64>, String> {
    let headers = ["infiniband/verbs.h", "rdma/rdma_cma.h"];
    rpcrdma_proof::layout::by_c_compiler(&headers, expressions)
}

#[test]
fn layouts_and_constants_are_those_of_the_headers() {
    if let Err(why) = by_c_compiler(&["sizeof(struct ibv_qp) + sizeof(struct rdma_cm_id)"]) {
        println!(
            "SKIPPED: no rdma-core headers to compare with: {}",
            why.lines().next().unwrap_or("")
        );
        return;
    }
    let expected = expected();
    assert!(
        expected.0.len() > 600,
        "the list is cut short: {}",
        expected.0.len()
    );
    let expressions: Vec<&str> = expected.0.keys().map(String::as_str).collect();
    let found = by_c_compiler(&expressions).expect("each name is in the headers");
    assert_eq!(found.len(), expressions.len());
    let wrong: Vec<String> = expected
        .0
        .iter()
        .zip(found)
        .filter(|((_, ours), theirs)| *ours != theirs)
        .map(|((expression, ours), theirs)| format!("{expression}: {ours} here, {theirs} in C"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
