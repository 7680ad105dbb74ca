//! The tables that concern the appliance as a whole.

use super::{Key, Table, flag, form, integer, table, word};
use crate::plan::{Hugepages, Log};
use crate::words::IdleWord;

pub(crate) static RUNTIME_TABLE: Key = table(&RUNTIME);
static RUNTIME: Table = Table {
    name: "runtime",
    what: "Lcores, memory and connections.",
    keys: &[
        &LCORES,
        &IDLE,
        &IDLE_SPIN,
        &MEMORY,
        &HUGEPAGES,
        &CONNECTIONS,
        &DRAIN,
        &LOG,
    ],
};
pub(crate) static LCORES: Key = form(
    "lcores",
    "`\"auto\"`, a count, or a list of processor numbers",
    Some("auto"),
    "The processors to pin lcores to. `\"auto\"`: all that the process may use, but for the first, \
     which is left to the control thread, where there are more than two. A count: that many, \
     chosen so.",
);
pub(crate) static IDLE: Key = word::<IdleWord>(
    "idle",
    "adaptive",
    "What an lcore does without work: poll on, or poll for `idle_spin_us` and then sleep until \
     there is some.",
);
pub(crate) static IDLE_SPIN: Key = integer(
    "idle_spin_us",
    (0, 1_000_000),
    50,
    "microseconds",
    "How long an `adaptive` lcore polls without work before it sleeps.",
);
pub(crate) static MEMORY: Key = integer(
    "memory_mib",
    (8, 1 << 20),
    256,
    "mebibytes",
    "Registered memory of each lcore: the ceiling for its receives, Calls and Replies.",
);
pub(crate) static HUGEPAGES: Key = word::<Hugepages>(
    "hugepages",
    "try",
    "Huge pages for that memory: where the system has them, or do not start without, or never.",
);
pub(crate) static CONNECTIONS: Key = integer(
    "connections_max",
    (1, 65_536),
    512,
    "connections",
    "RDMA connections of each lcore. A back and a front joined by the memory fabric take two for \
     each TCP client.",
);
pub(crate) static DRAIN: Key = integer(
    "drain_timeout_s",
    (0, 3_600),
    10,
    "seconds",
    "After SIGTERM, how long calls in flight have to be answered before their connections close.",
);
pub(crate) static LOG: Key = word::<Log>(
    "log",
    "info",
    "Least severe events that are logged, unless `--log` says so.",
);

pub(crate) static METRICS_TABLE: Key = table(&METRICS);
static METRICS: Table = Table {
    name: "metrics",
    what: "Counters as Prometheus text over HTTP. Without this table there is no listener.",
    keys: &[&METRICS_ADDRESS, &METRICS_PUBLIC],
};
pub(crate) static METRICS_ADDRESS: Key = form(
    "address",
    "`\"IP:port\"`; port 0: chosen by the system",
    Some("127.0.0.1:9464"),
    "Where to listen.",
);
pub(crate) static METRICS_PUBLIC: Key = flag(
    "public",
    false,
    "Allow an address other than loopback: whoever reaches it can read.",
);

pub(crate) static STATUS_TABLE: Key = table(&STATUS);
static STATUS: Table = Table {
    name: "status",
    what: "The unix-domain socket that `rpcrdmad status` asks.",
    keys: &[&STATUS_SOCKET],
};
pub(crate) static STATUS_SOCKET: Key = form(
    "socket",
    "an absolute path, or `\"off\"`",
    Some("`status.sock` in the runtime directory"),
    "Where it is. The runtime directory is `$RUNTIME_DIRECTORY`; without that `/run/rpcrdmad` for \
     root, `$XDG_RUNTIME_DIR/rpcrdmad` or `/tmp/rpcrdmad-UID` for others.",
);

pub(crate) static EXPORT_TABLE: Key = table(&EXPORT);
static EXPORT: Table = Table {
    name: "export",
    what: "The embedded NFSv3 server. It has no access control: only this host reaches it.",
    keys: &[&DIRECTORY, &EXPORT_LISTEN, &READ_ONLY],
};
pub(crate) static DIRECTORY: Key = form(
    "directory",
    "an absolute path",
    None,
    "The directory to serve.",
);
pub(crate) static EXPORT_LISTEN: Key = form(
    "listen",
    "a loopback `\"IP:port\"`; port 0: chosen by the system",
    Some("127.0.0.1:0"),
    "Where NFS and MOUNT are served, both on this one port.",
);
pub(crate) static READ_ONLY: Key = flag("read_only", false, "Refuse every change.");
