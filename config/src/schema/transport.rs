//! `[transport]` and what lies in it.

use super::{Key, Kind, Table, flag, integer, table, word};
use crate::plan::Backward;

/// The longest RPC message there can be: the pool's longest block.
const LONGEST_MESSAGE: u32 = 8 << 20;

pub(crate) static TRANSPORT_TABLE: Key = table(&TRANSPORT);
static TRANSPORT: Table = Table {
    name: "transport",
    what: "How RPC-over-RDMA is spoken: the defaults of all endpoints. `[front.transport]`, \
           `[back.transport]` and `[service.transport]` take the same keys and win over it.",
    keys: &[
        &VERSION_MAX,
        &INLINE,
        &INLINE_MAX,
        &CREDITS,
        &CREDITS_MIN,
        &BACKWARD,
        &BACKWARD_CREDITS,
        &REMOTE_INVALIDATE,
        &NEGOTIATE_TIMEOUT,
        &VERSION_MEMORY,
        &UNBOUND_REPLY,
        &PROPERTIES_TABLE,
        &LIMITS_TABLE,
        &KEPT_TABLE,
    ],
};
pub(crate) static VERSION_MAX: Key = integer(
    "version_max",
    (1, 2),
    2,
    "",
    "The highest version to speak. 2: version two, and one with peers that know no other.",
);
pub(crate) static INLINE: Key = message(
    "inline_bytes",
    "The longest message that a peer may Send: what goes without chunks. At least 4096 with \
     version two, where it can change while connections stand.",
);
pub(crate) static INLINE_MAX: Key = message(
    "inline_bytes_max",
    "Size of each posted receive: what `inline_bytes` can be raised to without a restart, and \
     what a peer can ask for. Where it is not given: as `inline_bytes`.",
);

/// The length of a message.
const fn message(name: &'static str, what: &'static str) -> Key {
    Key {
        name,
        kind: Kind::Integer {
            min: 1024,
            max: 65_536,
            multiple: 4,
            default: 4096,
            unit: "octets, a multiple of 4",
        },
        what,
    }
}

pub(crate) static CREDITS: Key = integer(
    "credits",
    (1, 1024),
    64,
    "calls",
    "Calls in flight on a connection: the most granted as responder, asked for as requester.",
);
pub(crate) static CREDITS_MIN: Key = integer(
    "credits_min",
    (1, 1024),
    4,
    "calls",
    "How few of them a connection gets when `memory_mib` has not receives enough for all credits of \
     `connections_max` connections: the more there are, the fewer the next one gets. With `credits` \
     of no more than that all get all.",
);
pub(crate) static BACKWARD: Key = word::<Backward>(
    "backward",
    "inline",
    "Backward Calls (RFC 8167) that are taken: none, those without chunks, or all.",
);
pub(crate) static BACKWARD_CREDITS: Key = integer(
    "backward_credits",
    (1, 64),
    2,
    "calls",
    "Backward Calls in flight on a connection.",
);
pub(crate) static REMOTE_INVALIDATE: Key = flag(
    "remote_invalidate",
    true,
    "Offer Send With Invalidate and use it where the peer does.",
);
pub(crate) static NEGOTIATE_TIMEOUT: Key = integer(
    "negotiate_timeout_ms",
    (10, 60_000),
    1_000,
    "milliseconds",
    "How long the first message in version two may stay without an answer before the connection \
     is made again in version one.",
);
pub(crate) static VERSION_MEMORY: Key = integer(
    "version_memory_s",
    (0, 86_400),
    600,
    "seconds",
    "How long an upstream that ended a connection in place of an answer to version two is \
     remembered to know version one alone. One that did not answer in time is, at first, for 10 s, \
     and for twice as long each time that it does so again.",
);
pub(crate) static UNBOUND_REPLY: Key = integer(
    "unbound_reply_bytes",
    (1024, LONGEST_MESSAGE),
    65_536,
    "octets",
    "Reply room for programs without an NFS binding, whose Replies cannot be foretold. At most \
     `limits.reply_bytes`.",
);

pub(crate) static PROPERTIES_TABLE: Key = table(&PROPERTIES);
static PROPERTIES: Table = Table {
    name: "properties",
    what: "Version two's property messages.",
    keys: &[&PROPERTIES_ENABLED, &UPDATES, &VALUES, &VALUE_BYTES],
};
pub(crate) static PROPERTIES_ENABLED: Key = flag(
    "enabled",
    true,
    "Send and take CONNPROP, REQPROP, RESPROP and UPDPROP. `false`: they get INVAL_OPTION.",
);
pub(crate) static UPDATES: Key = integer(
    "updates_per_s",
    (1, 1_000),
    16,
    "messages a second",
    "UPDPROPs that a peer may send. Beyond, it is disconnected.",
);
pub(crate) static VALUES: Key = integer(
    "values_max",
    (2, 256),
    32,
    "properties",
    "Properties in one message.",
);
pub(crate) static VALUE_BYTES: Key = integer(
    "value_bytes_max",
    (4, 1024),
    256,
    "octets",
    "Data of one property.",
);

pub(crate) static LIMITS_TABLE: Key = table(&LIMITS);
static LIMITS: Table = Table {
    name: "limits",
    what: "What a peer's header may ask for. Beyond: ERR_CHUNK, in version two BAD_XDR.",
    keys: &[
        &READ_SEGMENTS,
        &WRITE_CHUNKS,
        &CHUNK_SEGMENTS,
        &CALL_BYTES,
        &REPLY_BYTES,
    ],
};
pub(crate) static READ_SEGMENTS: Key = integer(
    "read_segments",
    (1, 1024),
    64,
    "segments",
    "Segments in a Read list.",
);
pub(crate) static WRITE_CHUNKS: Key = integer(
    "write_chunks",
    (1, 64),
    8,
    "chunks",
    "Chunks in a Write list.",
);
pub(crate) static CHUNK_SEGMENTS: Key = integer(
    "chunk_segments",
    (1, 1024),
    64,
    "segments",
    "Segments in a Write chunk or a Reply chunk.",
);
pub(crate) static CALL_BYTES: Key = integer(
    "call_bytes",
    (1024, LONGEST_MESSAGE),
    (1 << 20) + (64 << 10),
    "octets",
    "A whole Call, its chunks put in place.",
);
pub(crate) static REPLY_BYTES: Key = integer(
    "reply_bytes",
    (1024, LONGEST_MESSAGE),
    (1 << 20) + (64 << 10),
    "octets",
    "A whole Reply, its chunks included.",
);

pub(crate) static KEPT_TABLE: Key = table(&KEPT);
static KEPT: Table = Table {
    name: "kept_replies",
    what: "Replies that did not fit, kept for the retry that follows REPLY_RESOURCE; bounds for \
           each connection.",
    keys: &[&KEPT_BYTES, &KEPT_AGE],
};
pub(crate) static KEPT_BYTES: Key = integer(
    "bytes",
    (0, 64 << 20),
    4 << 20,
    "octets",
    "Octets of them all, of which there are at most `credits`. 0: none is kept, a retry gets SYSTEM.",
);
pub(crate) static KEPT_AGE: Key = integer(
    "age_ms",
    (10, 60_000),
    5_000,
    "milliseconds",
    "For how long.",
);
