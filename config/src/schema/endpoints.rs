//! Fronts with their backends, backs and services.

use super::link::form_or_table;
use super::{DISCOVER_TABLE, Key, TRANSPORT_TABLE, Table, form, integer, tables, word};
use crate::plan::SourcePort;

pub(crate) static FRONT_TABLES: Key = tables(&FRONT);
static FRONT: Table = Table {
    name: "front",
    what: "Peers arrive by RPC-over-RDMA, their calls go on to TCP backends.",
    keys: &[
        &NAME,
        &FABRIC,
        &LISTEN,
        &PEERS,
        &BACKEND_TABLES,
        &TRANSPORT_TABLE,
    ],
};
pub(crate) static NAME: Key = form(
    "name",
    "1 to 64 of `a-z A-Z 0-9 - _ .`",
    None,
    "What it is called in metrics, status and logs. No two fronts, backs or services share one.",
);
pub(crate) static FABRIC: Key = form(
    "fabric",
    "`\"memory\"`, `\"verbs\"` or `\"iwarp-sctp\"`",
    Some("memory"),
    "The RDMA fabric to use, the same for all: `memory` joins the endpoints of this process, \
     `verbs` is RDMA devices, `iwarp-sctp` is RDMA in software, on SCTP.",
);
pub(crate) static LISTEN: Key = form(
    "listen",
    "in `memory` 1 to 64 of `a-z A-Z 0-9 - _ .`; in `verbs` and `iwarp-sctp` `\"IP:port\"`",
    None,
    "The address to listen at, in the fabric's own form. `\"[::]:20049\"` is all devices, and the \
     port of NFS over RDMA. In `iwarp-sctp` in UDP the port is that of UDP: 9899 is its own.",
);
pub(crate) static PEERS: Key = form(
    "allow",
    "a list of `\"memory\"`, IP addresses and `\"IP/bits\"` blocks",
    Some("[\"memory\", \"127.0.0.0/8\", \"::1/128\"]"),
    "Peers that may connect: the backend trusts this appliance's address, so they get its trust.",
);

pub(crate) static BACKEND_TABLES: Key = tables(&BACKEND);
static BACKEND: Table = Table {
    name: "backend",
    what: "A TCP server behind the front above. Each RDMA connection gets its own TCP connection.",
    keys: &[
        &PROGRAMS,
        &BACKEND_ADDRESS,
        &CONNECT_TIMEOUT,
        &KEEPALIVE,
        &SOURCE_PORT,
    ],
};
pub(crate) static PROGRAMS: Key = form(
    "programs",
    "a list of RPC program numbers, or `\"others\"`",
    None,
    "The programs that go there: NFS is 100003, its ACL protocol 100227, MOUNT 100005. \
     `\"others\"`: all that no other backend of this front lists.",
);
pub(crate) static BACKEND_ADDRESS: Key = form(
    "address",
    "`\"host:port\"`, or `\"export\"`",
    None,
    "Where it is. `\"export\"`: the embedded server of this file.",
);
pub(crate) static CONNECT_TIMEOUT: Key = integer(
    "connect_timeout_ms",
    (10, 600_000),
    5_000,
    "milliseconds",
    "How long a TCP connection may take to be made.",
);
pub(crate) static KEEPALIVE: Key = integer(
    "keepalive_s",
    (0, 7_200),
    60,
    "seconds",
    "Idle time before the first TCP keepalive probe. 0: none.",
);
pub(crate) static SOURCE_PORT: Key = word::<SourcePort>(
    "source_port",
    "any",
    "The source port that the backend sees; `privileged` is below 1024, which many NFS servers \
     ask for, and needs CAP_NET_BIND_SERVICE.",
);

pub(crate) static BACK_TABLES: Key = tables(&BACK);
static BACK: Table = Table {
    name: "back",
    what: "TCP clients arrive, their calls go on by RPC-over-RDMA. Each gets its own connection.",
    keys: &[
        &NAME,
        &TCP_LISTEN,
        &NETWORKS,
        &KEEPALIVE,
        &FABRIC,
        &UPSTREAM,
        &TRANSPORT_TABLE,
    ],
};
pub(crate) static TCP_LISTEN: Key = form(
    "listen",
    "`\"IP:port\"`; port 0: chosen by the system",
    None,
    "The TCP address to listen at.",
);
pub(crate) static NETWORKS: Key = form(
    "allow",
    "a list of IP addresses and `\"IP/bits\"` blocks",
    Some("[\"127.0.0.0/8\", \"::1/128\"]"),
    "Clients that may connect.",
);
pub(crate) static UPSTREAM: Key = form_or_table(
    "upstream",
    "the `listen` of a front or service in `memory`, `\"host:port\"` in `verbs` and \
     `iwarp-sctp`",
    &DISCOVER_TABLE,
    "The address to connect to, in the fabric's own form; or how it is found.",
);

pub(crate) static SERVICE_TABLES: Key = tables(&SERVICE);
static SERVICE: Table = Table {
    name: "service",
    what: "The built-in benchmark program, answered on the lcore itself.",
    keys: &[&NAME, &FABRIC, &LISTEN, &PEERS, &TRANSPORT_TABLE],
};
