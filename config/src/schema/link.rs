//! `[[link]]`, and `upstream` as a table: links, groups, discovery.

use super::{Key, Kind, Table, flag, form, integer, tables, word};
use crate::link::Subnet;

pub(crate) static LINK_TABLES: Key = tables(&LINK);
static LINK: Table = Table {
    name: "link",
    what: "An IPoIB link that the control thread brings up, and the multicast groups it is in. It is the appliance's own, \
           and no interface of the operating system.",
    keys: &[
        &LINK_NAME,
        &SUBNET,
        &DEVICE,
        &P_KEY,
        &IPV4,
        &IPV6,
        &ADMINISTRATOR,
        &LINK_MTU,
        &Q_KEY,
        &ROUTER,
        &SEND_ONLY_FULL,
        &GROUPS,
        &ANSWER,
        &ANSWERS,
        &ANSWER_ALLOW,
        &DATAGRAMS,
        &VERIFY,
        &CACHE,
    ],
};
pub(crate) static LINK_NAME: Key = form(
    "name",
    "1 to 64 of `a-z A-Z 0-9 - _ .`",
    None,
    "What it is called in metrics, status and logs, and by the `link` of an `upstream`. No two links share one; an endpoint may.",
);
pub(crate) static SUBNET: Key = word::<Subnet>(
    "subnet",
    "memory",
    "Who keeps the groups: `infiniband`, the subnet administrator, asked by libibumad; `ethernet`, nobody (RoCE), groups are \
     joined by rdma_cm; `memory`, a small administrator within this process, to try things out.",
);
pub(crate) static DEVICE: Key = form(
    "device",
    "`\"device\"` or `\"device/port\"`",
    Some("with `infiniband` it has to be there"),
    "The RDMA device, as `ibstat -l` lists it, and its port, 1 where it is not given.",
);
pub(crate) static P_KEY: Key = integer(
    "p_key",
    (1, 65_535),
    65_535,
    "",
    "The partition, with the bit of full membership set (`0x8006` is one way to write it).",
);
pub(crate) static IPV4: Key = form(
    "ipv4",
    "`\"off\"`, `\"dhcp\"` or `\"address/bits\"`",
    Some("off"),
    "The IPv4 address on the link, and how many bits of it name the network; `dhcp`: whatever a server gives (RFC 4390). It is \
     looked for first, and while another node has it not used (RFC 5227). With `ethernet` it has to be the address of an \
     interface of the operating system; `dhcp` not with `memory`, where no server can be.",
);
pub(crate) static IPV6: Key = flag(
    "ipv6",
    true,
    "The link has IPv6, with the link-local address of the port's GUID (RFC 4391 section 8), unless another node has that \
     (RFC 4862 section 5.4.5). Not with `ethernet`.",
);
pub(crate) static ADMINISTRATOR: Key = flag(
    "administrator",
    false,
    "This node creates the broadcast group where there is none. Elsewhere the link stays down until somebody has. With `memory` \
     a link of each partition has to be one.",
);
pub(crate) static LINK_MTU: Key = Key {
    name: "mtu",
    kind: Kind::Integer {
        min: 2048,
        max: 4096,
        multiple: 2048,
        default: 2048,
        unit: "octets",
    },
    what: "Of the broadcast group that an administrator creates. IP has 4 octets less.",
};
pub(crate) static Q_KEY: Key = integer(
    "q_key",
    (0, u32::MAX),
    0x8000_0B1B,
    "",
    "Of the broadcast group that an administrator creates. With its top bit set (a controlled one, which is advised) queue pairs \
     need CAP_NET_RAW.",
);
pub(crate) static ROUTER: Key = flag(
    "router",
    false,
    "This node is an IP multicast router: it creates the all-router groups and joins every group of the link.",
);
pub(crate) static SEND_ONLY_FULL: Key = flag(
    "send_only_full",
    false,
    "Send to groups as SendOnlyFullMember, which keeps them alive, where the subnet administrator offers that; else, and \
     without this, as SendOnlyNonMember.",
);
pub(crate) static GROUPS: Key = form(
    "groups",
    "a list of IP multicast addresses",
    Some("[]"),
    "Groups to be in as a full member, created where they do not exist.",
);
pub(crate) static ANSWER: Key = form(
    "answer",
    "a list of IP multicast addresses",
    Some("[]"),
    "Groups, joined as well, on which rpcbind queries (RFC 1833 version 4, UDP port 111) for the programs of this file's fronts \
     and services are answered, so that backs with `upstream.discover` find them. Told are listeners at addresses which other hosts \
     reach; with `ethernet` those at `0.0.0.0` and `[::]` too, as the link's address.",
);
pub(crate) static ANSWERS: Key = integer(
    "answers_per_s",
    (0, 1_000_000),
    0,
    "answers",
    "Queries beyond that in a second are not answered. 0: no limit.",
);
pub(crate) static ANSWER_ALLOW: Key = form(
    "answer_allow",
    "a list of IP addresses and `\"IP/bits\"` blocks",
    Some("whoever asks in `answer`"),
    "Sources of queries that are answered.",
);
pub(crate) static DATAGRAMS: Key = flag(
    "datagrams",
    true,
    "With `infiniband`: send and receive, by queue pairs of the device. `false`: groups are joined, and no more: to try out a subnet \
     manager that has no device which verbs know, such as a simulated one. Where they know it they tell of a subnet manager's restart \
     all the same; else it is noticed after `verify_s`. The same for all links of a device.",
);
pub(crate) static VERIFY: Key = integer(
    "verify_s",
    (1, 3_600),
    30,
    "seconds",
    "How often each membership is looked up: a subnet manager that was restarted may have forgotten all, and need not say so.",
);
pub(crate) static CACHE: Key = integer(
    "cache_s",
    (1, 3_600),
    60,
    "seconds",
    "How long what is known of a group that is not joined is good.",
);

/// `upstream` where it is a table.
pub(crate) static DISCOVER_TABLE: Table = Table {
    name: "upstream",
    what: "An upstream that is found: a multicast group is asked who serves a program, and each connection goes to one who \
           answered; to another when that one is gone.",
    keys: &[
        &DISCOVER,
        &DISCOVER_PROGRAM,
        &DISCOVER_VERSION,
        &DISCOVER_LINK,
        &DISCOVER_PERIOD,
        &DISCOVER_ALLOW,
    ],
};
pub(crate) static DISCOVER: Key = form(
    "discover",
    "an IP multicast address",
    None,
    "The group to ask.",
);
pub(crate) static DISCOVER_PROGRAM: Key = integer(
    "program",
    (1, u32::MAX),
    100_003,
    "",
    "The RPC program that is wanted: NFS is 100003.",
);
pub(crate) static DISCOVER_VERSION: Key = integer(
    "version",
    (0, u32::MAX),
    3,
    "",
    "Its version. Appliances answer for any.",
);
pub(crate) static DISCOVER_LINK: Key = form(
    "link",
    "the name of a `[[link]]`",
    Some("the only `[[link]]`"),
    "The link to ask on.",
);
pub(crate) static DISCOVER_PERIOD: Key = integer(
    "ask_s",
    (1, 3_600),
    10,
    "seconds",
    "How often the group is asked while somebody is known; more often while nobody is. Who is silent three times is forgotten.",
);
pub(crate) static DISCOVER_ALLOW: Key = form(
    "allow",
    "a list of IP addresses and `\"IP/bits\"` blocks",
    Some("whoever answers in `discover`"),
    "Sources of answers that count.",
);

/// A value in one form, or a table in its place.
pub(super) const fn form_or_table(
    name: &'static str,
    form: &'static str,
    table: &'static Table,
    what: &'static str,
) -> Key {
    Key {
        name,
        kind: Kind::FormOrTable { form, table },
        what,
    }
}
