//! Every structure and constant of this crate against the header that is installed.

use super::calls::{DEVICE_NAME, umad_port};
use crate::frame::Header;
use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::process::Command;

/// C expressions, and what they are here.
fn expected() -> Vec<(String, usize)> {
    let mut all = vec![("UMAD_CA_NAME_LEN".to_owned(), DEVICE_NAME)];
    macro_rules! layout {
        ($here:ty, $there:literal; $($field:ident = $name:literal)*) => {
            all.push((format!("sizeof({})", $there), size_of::<$here>()));
            $(all.push((format!("offsetof({}, {})", $there, $name), offset_of!($here, $field)));)*
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

/// The values of the expressions by a C compiler, or why there are none.
fn by_c_compiler(expressions: &[&str]) -> Result<Vec<usize>, String> {
    let text = |error: std::io::Error| error.to_string();
    let scratch = tempfile::tempdir().map_err(text)?;
    let (source, program) = (scratch.path().join("it.c"), scratch.path().join("it"));
    let mut code =
        String::from("#include <infiniband/umad.h>\n#include <stddef.h>\n#include <stdio.h>\n");
    code.push_str("int main(void) {\n");
    for expression in expressions {
        writeln!(code, "printf(\"%zu\\n\", (size_t)({expression}));").map_err(|_| "no memory")?;
    }
    code.push_str("return 0; }\n");
    std::fs::write(&source, code).map_err(text)?;
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let compiled = Command::new(compiler)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output();
    let compiled = compiled.map_err(text)?;
    if !compiled.status.success() {
        return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
    }
    let printed = Command::new(&program).output().map_err(text)?;
    let numbers = String::from_utf8_lossy(&printed.stdout).into_owned();
    numbers
        .lines()
        .map(|line| line.parse().map_err(|_| line.to_owned()))
        .collect()
}

#[test]
fn layouts_are_those_of_the_header() {
    if let Err(why) = by_c_compiler(&["sizeof(umad_port_t)"]) {
        let line = why.lines().next().unwrap_or("");
        println!("SKIPPED: no infiniband/umad.h to compare with: {line}");
        return;
    }
    let expected = expected();
    let expressions: Vec<&str> = expected.iter().map(|(text, _)| text.as_str()).collect();
    let found = by_c_compiler(&expressions).expect("each name is in the header");
    assert_eq!(found.len(), expressions.len());
    for ((expression, ours), theirs) in expected.iter().zip(found) {
        assert_eq!(*ours, theirs, "{expression}: here, and in C");
    }
}
