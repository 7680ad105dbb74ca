//! `--print` of each example, against `tests/print`.
//!
//! With `BLESS=1` in the environment the files are written anew.

use rpcrdma_config::{Machine, load};
use std::path::{Path, PathBuf};

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
