//! The table of builds with DPDK.

use super::{Key, Table, flag, form, table};

pub(crate) static DPDK_TABLE: Key = table(&DPDK);
static DPDK: Table = Table {
    name: "dpdk",
    what: "How builds with DPDK (feature `dpdk`) start it. They do so without this table too; other builds \
           warn that it has no effect.",
    keys: &[&DPDK_ENABLED, &EAL_ARGS],
};
pub(crate) static DPDK_ENABLED: Key = flag(
    "enabled",
    true,
    "Run lcores on the workers of EAL, in its memory. `false`: on plain threads, as other builds do.",
);
pub(crate) static EAL_ARGS: Key = form(
    "eal_args",
    "a list of strings",
    Some("[\"--no-pci\"]"),
    "Arguments of EAL. The lcores are not among them: `runtime.lcores` has them. Memory (`-m`, \
     `--in-memory` or `--no-huge`), `--file-prefix` and `--iova-mode` are derived where they are \
     not given.",
);
