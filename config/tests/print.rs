//! `--print` of each example, against `tests/print`.
//!
//! With `BLESS=1` in the environment the files are written anew.

use rpcrdma_config::{Machine, load, parse};
use std::path::{Path, PathBuf};

#[test]
fn credits_that_may_shrink_say_so() {
    let machine = Machine {
        cores: vec![0],
        status_socket: PathBuf::from("/run/s"),
    };
    let text = "[runtime]\nconnections_max = 2000\n[[service]]\nname = 's'\nlisten = 's'\n";
    let plan = parse("", text, &machine).unwrap_or_else(|error| panic!("{error}"));
    assert!(plan.budget.is_short());
    let printed = plan.print();
    for expected in [
        "s: 8 to 68 receives of 4096 octets, 32 to 272 KiB a connection",
        "187 MiB with 2000 connections: fewer credits for each, the more there are",
        "credits         4 to 64, 2 backward (inline)",
    ] {
        assert!(printed.contains(expected), "{printed}");
    }
}

#[test]
fn each_plan_prints_as_recorded() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let machine = Machine {
        cores: vec![0, 1],
        status_socket: PathBuf::from("/run/s"),
    };
    for name in [
        "embedded",
        "nfs-server",
        "version-one",
        "service",
        "minimal",
        "every-key",
        "verbs-front",
        "verbs-back",
        "iwarp-sctp-front",
        "iwarp-sctp-back",
        "iwarp-sctp-dpdk",
        "resizable",
        "ipoib-front",
        "ipoib-back",
        "discovery",
    ] {
        let example = home.join("examples").join(name).with_extension("toml");
        let plan = load(&example, &machine).unwrap_or_else(|error| panic!("{error}"));
        let recorded = home.join("tests/print").join(name).with_extension("txt");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&recorded, plan.print()).unwrap();
        }
        assert_eq!(
            plan.print(),
            std::fs::read_to_string(&recorded).unwrap(),
            "{name}"
        );
    }
}
