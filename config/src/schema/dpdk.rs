//! The table of builds with DPDK.

use super::{Key, Table, flag, form, integer, optional_tables, table};

pub(crate) static DPDK_TABLE: Key = table(&DPDK);
static DPDK: Table = Table {
    name: "dpdk",
    what: "How builds with DPDK (feature `dpdk`) start it. They do so without this table too; other builds \
           warn that it has no effect.",
    keys: &[&DPDK_ENABLED, &EAL_ARGS, &PORT_TABLES],
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
     not given, and so are the devices of ports, which must not be among them. With a port on the PCI bus the default is `[]`.",
);

pub(crate) static PORT_TABLES: Key =
    optional_tables(&PORT, "none; with `packets = \"dpdk\"` one for each lcore");
static PORT: Table = Table {
    name: "port",
    what: "A port of Ethernet that an lcore drives itself, by `iwarp_sctp.packets = \"dpdk\"`: one for each of \
           `runtime.lcores`, in their order. The operating system's network has no part in it: addresses \
           are the port's own, and found by its own ARP and neighbour discovery.",
    keys: &[&PORT_DEVICE, &PORT_ADDRESS, &PORT_GATEWAY, &PORT_MTU],
};
pub(crate) static PORT_DEVICE: Key = form(
    "device",
    "a virtual device, or an address on the PCI bus",
    None,
    "`net_memif0,role=server,socket=/run/m.sock`, as EAL takes it after `--vdev`; or `0000:01:00.0`.",
);
pub(crate) static PORT_ADDRESS: Key = form(
    "address",
    "`\"address/bits\"`",
    None,
    "The IP address of the port, of either version, and how many bits of it name its network.",
);
pub(crate) static PORT_GATEWAY: Key = form(
    "gateway",
    "an IP address",
    Some("none: only the network of `address` is reached"),
    "The router that takes what is for other networks.",
);
pub(crate) static PORT_MTU: Key = integer(
    "mtu",
    (576, 16_000),
    1500,
    "octets",
    "Longest IP packet on the link; at least 1280 with IPv6.",
);
