//! `[verbs]`.

use super::{Key, Table, form, integer, table, word};
use crate::plan::Expose;

pub(crate) static VERBS_TABLE: Key = table(&VERBS);
static VERBS: Table = Table {
    name: "verbs",
    what: "How RDMA devices are used by the `verbs` fabric. What a device cannot do is taken from \
           the plan at start, and `rpcrdmad status` and the log say what that was.",
    keys: &[
        &DEVICES,
        &GID_INDEX,
        &EXPOSE,
        &READ_DEPTH,
        &RETRY_COUNT,
        &RNR_RETRY,
        &MIN_RNR_TIMER,
        &RESOLVE_TIMEOUT,
    ],
};
pub(crate) static DEVICES: Key = form(
    "devices",
    "`\"all\"`, or a list of device names",
    Some("all"),
    "The devices to use, by the names `rdma link` gives them. Each lcore polls one: they are dealt \
     out in turn, those at an lcore's own NUMA node first.",
);
pub(crate) static GID_INDEX: Key = form(
    "gid_index",
    "`\"auto\"`, or a number of 0 to 255",
    Some("auto"),
    "The entry of the port's GID table to use. `\"auto\"`: RoCE version two, in the family of the \
     address.",
);
pub(crate) static EXPOSE: Key = word::<Expose>(
    "expose",
    "auto",
    "How memory is shown to a peer for one Call: by a memory window, by a region registered for \
     that Call alone, or by the region of the whole arena. `auto`: a window where the device has \
     them, else a region. `arena` is the fastest and protects nothing: a peer that has once had a \
     handle can read and write all memory of the lcore, what is other peers' included, for as long \
     as it is connected. On iWARP devices but siw a peer that is sent an RDMA Read can write all \
     memory of the lcore whatever is said here: see [what an address \
     proves](#what-an-address-proves).",
);
pub(crate) static READ_DEPTH: Key = integer(
    "read_depth",
    (1, 255),
    16,
    "RDMA Reads",
    "RDMA Reads in flight on a connection, each way, where the device and the peer can do so many.",
);
pub(crate) static RETRY_COUNT: Key = integer(
    "retry_count",
    (0, 7),
    7,
    "times",
    "How often the device sends again what is not acknowledged before the connection is lost.",
);
pub(crate) static RNR_RETRY: Key = integer(
    "rnr_retry",
    (0, 7),
    7,
    "times",
    "How often the device sends again what found no receive. 7: for ever.",
);
pub(crate) static MIN_RNR_TIMER: Key = integer(
    "min_rnr_timer",
    (0, 31),
    12,
    "",
    "How long a peer waits before it does, as the code of the InfiniBand specification: 1 is \
     0.01 ms, 12 is 0.64 ms, 31 is 492 ms, 0 is 655 ms.",
);
pub(crate) static RESOLVE_TIMEOUT: Key = integer(
    "resolve_timeout_ms",
    (10, 60_000),
    2_000,
    "milliseconds",
    "How long finding the upstream's address may take, and how long finding the way to it.",
);
