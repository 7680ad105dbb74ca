//! Every table and key of the file, as data: names, units, ranges, defaults, meaning.
//!
//! The one place for them. The reader checks against it, the plan takes its defaults from it,
//! messages list from it, and the reference in `config/README.md` is printed from it.

use crate::plan::{Backward, Hugepages, SourcePort};
use crate::words::{IdleWord, Word};

/// A table of the file.
pub(crate) struct Table {
    /// Its name, without the tables around it.
    pub(crate) name: &'static str,
    /// What it is for, one sentence.
    pub(crate) what: &'static str,
    /// All that may stand in it.
    pub(crate) keys: &'static [&'static Key],
}

/// A key of a table.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// What it decides.
    pub(crate) what: &'static str,
}

/// What a value may be.
pub(crate) enum Kind {
    /// A number; `unit` is for people, empty where there is none.
    Integer {
        min: u32,
        max: u32,
        multiple: u32,
        default: u32,
        unit: &'static str,
    },
    /// `true` or `false`.
    Flag { default: bool },
    /// One of a few words.
    Word {
        words: fn() -> Vec<&'static str>,
        default: &'static str,
    },
    /// Anything else; `form` says what it looks like, no `default`: it has to be there.
    Form {
        form: &'static str,
        default: Option<&'static str>,
    },
    /// `[name]`.
    Table(&'static Table),
    /// `[[name]]`.
    Tables(&'static Table),
}

impl Key {
    /// The default of an integer key; zero for any other.
    pub(crate) fn default_integer(&self) -> u32 {
        if let Kind::Integer { default, .. } = self.kind {
            default
        } else {
            0
        }
    }

    /// The default of a flag; `false` for any other key.
    pub(crate) fn default_flag(&self) -> bool {
        matches!(self.kind, Kind::Flag { default: true })
    }

    /// The default of a word; the first word for a key of another kind.
    pub(crate) fn default_word<W: Word>(&self) -> W {
        let Kind::Word { default, .. } = self.kind else {
            return W::WORDS[0].1;
        };
        W::of(default).unwrap_or(W::WORDS[0].1)
    }

    /// The default of a form; empty for any other key.
    pub(crate) fn default_form(&self) -> &'static str {
        if let Kind::Form {
            default: Some(text),
            ..
        } = self.kind
        {
            text
        } else {
            ""
        }
    }
}

const fn integer(
    name: &'static str,
    (min, max): (u32, u32),
    default: u32,
    unit: &'static str,
    what: &'static str,
) -> Key {
    Key {
        name,
        kind: Kind::Integer {
            min,
            max,
            multiple: 1,
            default,
            unit,
        },
        what,
    }
}

const fn flag(name: &'static str, default: bool, what: &'static str) -> Key {
    Key {
        name,
        kind: Kind::Flag { default },
        what,
    }
}

const fn word<W: Word>(name: &'static str, default: &'static str, what: &'static str) -> Key {
    Key {
        name,
        kind: Kind::Word {
            words: W::names,
            default,
        },
        what,
    }
}

const fn form(
    name: &'static str,
    form: &'static str,
    default: Option<&'static str>,
    what: &'static str,
) -> Key {
    Key {
        name,
        kind: Kind::Form { form, default },
        what,
    }
}

const fn table(table: &'static Table) -> Key {
    Key {
        name: table.name,
        kind: Kind::Table(table),
        what: table.what,
    }
}

const fn tables(table: &'static Table) -> Key {
    Key {
        name: table.name,
        kind: Kind::Tables(table),
        what: table.what,
    }
}

/// The longest RPC message there can be: the pool's longest block.
const LONGEST_MESSAGE: u32 = 8 << 20;

/// The file itself.
pub(crate) static ROOT: Table = Table {
    name: "",
    what: "",
    keys: &[
        &RUNTIME_TABLE,
        &METRICS_TABLE,
        &STATUS_TABLE,
        &TRANSPORT_TABLE,
        &FRONT_TABLES,
        &BACK_TABLES,
        &SERVICE_TABLES,
        &EXPORT_TABLE,
    ],
};

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

pub(crate) static TRANSPORT_TABLE: Key = table(&TRANSPORT);
static TRANSPORT: Table = Table {
    name: "transport",
    what: "How RPC-over-RDMA is spoken: the defaults of all endpoints. `[front.transport]`, \
           `[back.transport]` and `[service.transport]` take the same keys and win over it.",
    keys: &[
        &VERSION_MAX,
        &INLINE,
        &CREDITS,
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
pub(crate) static INLINE: Key = Key {
    name: "inline_bytes",
    kind: Kind::Integer {
        min: 1024,
        max: 65_536,
        multiple: 4,
        default: 4096,
        unit: "octets, a multiple of 4",
    },
    what: "Size of each posted receive, so the longest message a peer may Send. At least 4096 \
           with version two.",
};
pub(crate) static CREDITS: Key = integer(
    "credits",
    (1, 1024),
    64,
    "calls",
    "Calls in flight on a connection: the most granted as responder, asked for as requester.",
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
    "How long an upstream is remembered to know version one alone.",
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
    "`\"memory\"`",
    Some("memory"),
    "The RDMA fabric to use.",
);
pub(crate) static LISTEN: Key = form(
    "listen",
    "memory fabric: a name, as `name`",
    None,
    "The address to listen at, in the fabric's own form.",
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
pub(crate) static UPSTREAM: Key = form(
    "upstream",
    "as `listen` of a front or service",
    None,
    "The address to connect to, in the fabric's own form.",
);

pub(crate) static SERVICE_TABLES: Key = tables(&SERVICE);
static SERVICE: Table = Table {
    name: "service",
    what: "The built-in benchmark program, answered on the lcore itself.",
    keys: &[&NAME, &FABRIC, &LISTEN, &PEERS, &TRANSPORT_TABLE],
};

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
