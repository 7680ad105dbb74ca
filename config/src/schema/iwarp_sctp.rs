//! `[iwarp_sctp]`.

use super::{Key, Table, integer, table, word};
use crate::plan::Packets;

pub(crate) static IWARP_SCTP_TABLE: Key = table(&IWARP_SCTP);
static IWARP_SCTP: Table = Table {
    name: "iwarp_sctp",
    what: "How the `iwarp-sctp` fabric does RDMA without RDMA devices: RDMAP and DDP on SCTP streams \
           (RFC 5040, 5041, 5043). Nothing of it is encrypted: where that is \
           wanted, IPsec is the operating system's.",
    keys: &[
        &PACKETS,
        &SCTP_PORT,
        &STREAMS,
        &CHUNK_BYTES,
        &PATH_MTU,
        &READS,
    ],
};
pub(crate) static PACKETS: Key = word::<Packets>(
    "packets",
    "udp",
    "How SCTP's packets travel: in UDP (RFC 6951), by libusrsctp, which needs no right and no kernel \
     module; natively, by the kernel's own SCTP, which hears an address on one lcore alone; or in UDP \
     by ports of Ethernet that the lcores drive themselves (`[[dpdk.port]]`), in builds with DPDK.",
);
pub(crate) static SCTP_PORT: Key = integer(
    "sctp_port",
    (1, 65_535),
    20_049,
    "",
    "In UDP, the SCTP port within, at both ends. The ports of `listen` and `upstream` are those of \
     UDP then.",
);
pub(crate) static STREAMS: Key = integer(
    "streams",
    (1, 1024),
    32,
    "streams",
    "Streams of an association, each way, and so RDMA connections that two hosts have on one. More \
     connections get another association.",
);
pub(crate) static CHUNK_BYTES: Key = integer(
    "chunk_bytes",
    (518, 65_535),
    65_535,
    "octets",
    "Longest chunk that is sent, where the path would take a longer one: a DDP segment and the two \
     octets of its number. RFC 5043 has 518 as the least.",
);
pub(crate) static PATH_MTU: Key = integer(
    "path_mtu",
    (576, 65_535),
    65_535,
    "octets",
    "Longest IP packet that is sent, where the route would take a longer one.",
);
pub(crate) static READS: Key = integer(
    "read_depth",
    (1, 255),
    32,
    "RDMA Reads",
    "RDMA Reads in flight on a connection, each way, where the peer agrees to so many (RFC 6581).",
);
