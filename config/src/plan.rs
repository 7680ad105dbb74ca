//! The validated plan: what the appliance is going to do, in plain values.
//!
//! A [`Plan`] comes out of [`crate::parse()`], [`crate::load`] or [`crate::embedded()`] and out of
//! nowhere else that has checked it: whoever holds one from there need not ask again whether
//! names are unique, ports are free of conflict or the memory suffices. The fields are public,
//! so that a command line may replace a path or a port after the fact.
//!
//! Sizes are octets, times are [`Duration`]s, every default has been filled in.

use crate::allow::{Networks, Peers};
use crate::budget::{self, Budget};
use crate::link::{Discover, Link};
use crate::port::Port;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Everything `rpcrdmad run` needs to know before it opens its first socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Lcores, memory and connections.
    pub runtime: Runtime,
    /// Where the counters can be read; `None`: nowhere.
    pub metrics: Option<Metrics>,
    /// The socket that `rpcrdmad status` asks; `None`: there is none.
    pub status: Option<PathBuf>,
    /// RDMA in, TCP out.
    pub fronts: Vec<Front>,
    /// TCP in, RDMA out.
    pub backs: Vec<Back>,
    /// Listeners of the built-in benchmark program.
    pub services: Vec<Service>,
    /// The embedded NFSv3 server.
    pub export: Option<Export>,
    /// IPoIB links, and the groups on them.
    pub links: Vec<Link>,
    /// How DPDK is started, in builds that have it; `None`: nothing was said of it.
    pub dpdk: Option<Dpdk>,
    /// The fabric of all fronts, backs and services: one process has one.
    pub fabric: Fabric,
    /// How RDMA devices are used, where that is the fabric.
    pub verbs: Verbs,
    /// How RDMA is done in software, where that is the fabric.
    pub iwarp_sctp: IwarpSctp,
    /// What the above costs in memory, for each lcore and in total.
    pub budget: Budget,
}

impl Plan {
    /// How each endpoint speaks, in the order fronts, backs, services.
    pub fn transports(&self) -> impl Iterator<Item = &Transport> {
        let fronts = self.fronts.iter().map(|it| &it.transport);
        let backs = self.backs.iter().map(|it| &it.transport);
        let services = self.services.iter().map(|it| &it.transport);
        fronts.chain(backs).chain(services)
    }

    /// Each endpoint's name, and how it speaks, to be changed; [`Plan::reckon`] afterwards.
    pub fn transports_mut(&mut self) -> impl Iterator<Item = (&str, &mut Transport)> {
        let fronts = self.fronts.iter_mut();
        let fronts = fronts.map(|it| (it.name.as_str(), &mut it.transport));
        let backs = self.backs.iter_mut();
        let backs = backs.map(|it| (it.name.as_str(), &mut it.transport));
        let services = self.services.iter_mut();
        let services = services.map(|it| (it.name.as_str(), &mut it.transport));
        fronts.chain(backs).chain(services)
    }

    /// Reckons the budget anew, after what it depends on has been changed.
    pub fn reckon(&mut self) {
        self.budget = budget::of(self);
    }
}

/// `[runtime]`: lcores, memory and connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// The processors to pin lcores to, one lcore each; never empty, no processor twice.
    pub lcores: Vec<usize>,
    /// What an lcore does without work.
    pub idle: Idle,
    /// Registered memory of each lcore, octets: the ceiling of its pool.
    pub memory_bytes: u64,
    /// Whether that memory has to be huge pages.
    pub hugepages: Hugepages,
    /// RDMA connections that one lcore takes.
    pub connections_max: u32,
    /// After SIGTERM, calls in flight get this long to be answered.
    pub drain_timeout: Duration,
    /// Least severe events that are logged, where the command line does not say.
    pub log: Log,
}

/// Least severe events that are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// What went wrong.
    Error,
    /// What may go wrong.
    Warn,
    /// What happens.
    Info,
    /// Each connection.
    Debug,
}

/// What an lcore does without work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Polls on: lowest latency, a whole processor.
    Spin,
    /// Polls for a while, then sleeps until there is work.
    Adaptive {
        /// How long it polls without work before it sleeps.
        spin: Duration,
    },
}

/// Whether arena memory comes in huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hugepages {
    /// Where the system has them, ordinary pages where not.
    Try,
    /// Do not start without them.
    Require,
    /// Ordinary pages.
    Off,
}

/// `[dpdk]`: how builds with DPDK start it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dpdk {
    /// Lcores run on workers of EAL, in its memory.
    pub enabled: bool,
    /// Arguments of EAL, without those that are derived. None of them names lcores.
    pub eal_args: Vec<String>,
    /// Ports of Ethernet, one for each lcore where `iwarp_sctp.packets` is `dpdk`, else none.
    pub ports: Vec<Port>,
}

impl Default for Dpdk {
    /// EAL, and none of its drivers: without ports the appliance uses no device through it.
    fn default() -> Dpdk {
        Dpdk {
            enabled: true,
            eal_args: vec!["--no-pci".to_owned()],
            ports: Vec::new(),
        }
    }
}

/// `[metrics]`: counters as Prometheus text over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Where to listen. A loopback address unless the file says `public = true`; port 0: chosen
    /// by the system.
    pub address: SocketAddr,
}

/// A fabric that this build has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fabric {
    /// Between endpoints of this process.
    Memory,
    /// RDMA devices, by rdma-core.
    Verbs,
    /// RDMA in software: RDMAP and DDP on SCTP.
    IwarpSctp,
}

impl Fabric {
    /// The fabrics of this build.
    pub const ALL: &'static [Fabric] = &[Fabric::Memory, Fabric::Verbs, Fabric::IwarpSctp];

    /// The name the configuration knows it by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fabric::Memory => "memory",
            Fabric::Verbs => "verbs",
            Fabric::IwarpSctp => "iwarp-sctp",
        }
    }

    /// Whether its memory is pinned by the kernel, and so counted against RLIMIT_MEMLOCK.
    #[must_use]
    pub fn locks_memory(self) -> bool {
        match self {
            Fabric::Memory | Fabric::IwarpSctp => false,
            Fabric::Verbs => true,
        }
    }
}

impl fmt::Display for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// `[verbs]`: how RDMA devices are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verbs {
    /// Which devices.
    pub devices: Devices,
    /// The entry of a port's GID table to use; `None`: by rule, RoCE version two and the family
    /// of the address.
    pub gid_index: Option<u8>,
    /// How memory is shown to a peer.
    pub expose: Expose,
    /// RDMA Reads in flight on a connection, each way.
    pub read_depth: u8,
    /// Times the device sends again what is not acknowledged.
    pub retry_count: u8,
    /// Times it sends again what found no receive; 7: for ever.
    pub rnr_retry: u8,
    /// How long a peer without a receive has us wait, as the code of IBTA 9.7.5.2.8.
    pub min_rnr_timer: u8,
    /// How long finding an address, and the way to it, may take, each.
    pub resolve_timeout: Duration,
}

/// `[iwarp_sctp]`: how RDMA is done in software.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IwarpSctp {
    /// How packets travel.
    pub packets: Packets,
    /// The SCTP port within UDP, at both ends.
    pub sctp_port: u16,
    /// Streams of an association, each way.
    pub streams: u16,
    /// Longest chunk that is sent, octets, where the path would take a longer one.
    pub chunk_bytes: u16,
    /// Longest IP packet that is sent, octets, where the route would take a longer one.
    pub path_mtu: u16,
    /// RDMA Reads in flight on a connection, each way.
    pub read_depth: u8,
}

/// How SCTP's packets travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    /// In UDP, by libusrsctp.
    Udp,
    /// Natively, by the kernel's SCTP.
    Native,
    /// In UDP, by libusrsctp, through ports of DPDK.
    Dpdk,
}

/// RDMA devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Devices {
    /// All that are there.
    All,
    /// These, by the names rdma-core gives them.
    Named(Vec<String>),
}

/// How memory is shown to a peer for one Call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expose {
    /// By memory windows where the device has them, else by a region.
    Auto,
    /// By a memory window of type two, bound on the connection's own queue pair.
    Window,
    /// By a region, registered for the Call and taken away after it.
    Region,
    /// By the one region of the whole arena, whose handle the peer then has for good.
    Arena,
}

/// `[[front]]`: peers arrive by RPC-over-RDMA, their calls go to TCP backends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// Unique among fronts, backs and services; a label in metrics and logs.
    pub name: String,
    /// Where it listens.
    pub fabric: Fabric,
    /// The address there, in the fabric's own form.
    pub listen: String,
    /// Peers that may connect.
    pub allow: Peers,
    /// At least one. No program belongs to two.
    pub backends: Vec<Backend>,
    /// How to speak to its peers.
    pub transport: Transport,
}

impl Front {
    /// The backend of an RPC program: the one that lists it, else the one for all others.
    /// `None`: the program is not served (PROG_UNAVAIL, RFC 5531 section 9).
    #[must_use]
    pub fn backend_of(&self, program: u32) -> Option<usize> {
        let listed = |backend: &Backend| match &backend.programs {
            Programs::Listed(numbers) => numbers.contains(&program),
            Programs::Others => false,
        };
        let others = |backend: &Backend| backend.programs == Programs::Others;
        let place = self.backends.iter().position(listed);
        place.or_else(|| self.backends.iter().position(others))
    }
}

/// `[[front.backend]]`: a TCP server behind a front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// The RPC programs that go there.
    pub programs: Programs,
    /// Where it is.
    pub address: BackendAddress,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// Idle time before the first keepalive probe; `None`: no keepalive.
    pub keepalive: Option<Duration>,
    /// Which source port the backend sees.
    pub source_port: SourcePort,
}

/// The RPC programs of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Programs {
    /// These numbers.
    Listed(Vec<u32>),
    /// All that no other backend of the front lists.
    Others,
}

/// Where a backend is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendAddress {
    /// A TCP address; the host is a name, to be resolved at each connection, or a number.
    Tcp {
        /// Without the brackets of IPv6.
        host: String,
        /// Not zero.
        port: u16,
    },
    /// The embedded server of this plan, wherever it came to listen.
    Export,
}

impl fmt::Display for BackendAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackendAddress::Tcp { host, port } => host_port(f, host, *port),
            BackendAddress::Export => f.write_str("export"),
        }
    }
}

/// Which source port a backend sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourcePort {
    /// Any; the same one again after a reconnection where it is free.
    Any,
    /// Below 1024, as servers with the `secure` export option want it (CAP_NET_BIND_SERVICE).
    Privileged,
}

/// `[[back]]`: TCP clients arrive, their calls go to an upstream by RPC-over-RDMA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Back {
    /// Unique among fronts, backs and services; a label in metrics and logs.
    pub name: String,
    /// The TCP listener. Port 0: chosen by the system.
    pub listen: SocketAddr,
    /// Clients that may connect.
    pub allow: Networks,
    /// Idle time before the first keepalive probe to a client; `None`: no keepalive.
    pub keepalive: Option<Duration>,
    /// The fabric that leads to the upstream.
    pub fabric: Fabric,
    /// Where that is.
    pub upstream: Upstream,
    /// How to speak to the upstream.
    pub transport: Transport,
}

/// Where the upstream of a back listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// In the memory fabric: the address of a front or a service of this plan.
    Memory(String),
    /// In a fabric with IP addresses; the host is a name, to be resolved at each connection, or
    /// a number.
    Host {
        /// Without the brackets of IPv6.
        host: String,
        /// Not zero.
        port: u16,
    },
    /// In a fabric with IP addresses: whoever answers.
    Discover(Discover),
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Upstream::Discover(discover) => discover.fmt(f),
            Upstream::Memory(name) => f.write_str(name),
            Upstream::Host { host, port } => host_port(f, host, *port),
        }
    }
}

fn host_port(f: &mut fmt::Formatter<'_>, host: &str, port: u16) -> fmt::Result {
    match host.contains(':') {
        true => write!(f, "[{host}]:{port}"),
        false => write!(f, "{host}:{port}"),
    }
}

/// `[[service]]`: a listener of the built-in benchmark program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Unique among fronts, backs and services; a label in metrics and logs.
    pub name: String,
    /// Where it listens.
    pub fabric: Fabric,
    /// The address there, in the fabric's own form.
    pub listen: String,
    /// Peers that may connect.
    pub allow: Peers,
    /// How to speak to its peers.
    pub transport: Transport,
}

/// `[export]`: the embedded NFSv3 server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// What it serves: an absolute path.
    pub directory: PathBuf,
    /// Where NFS and MOUNT are served, both on one port: a loopback address, for the server
    /// has no access control of its own. Port 0: chosen by the system.
    pub listen: SocketAddr,
    /// Refuse every change.
    pub read_only: bool,
}

/// The highest version of RPC-over-RDMA that an endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VersionMax {
    /// Version one alone (RFC 8166).
    One,
    /// Version two, and one with peers that know no other.
    Two,
}

/// `[transport]`, with an endpoint's own `transport` table laid over it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transport {
    /// The highest version to speak.
    pub version_max: VersionMax,
    /// The longest message that a peer may Send, octets: RBSIZ in version two, the receive size
    /// of RFC 8797 in version one. At least 4096 with version two.
    pub inline_bytes: u32,
    /// Size of each posted receive, octets: what `inline_bytes` can be raised to while this runs,
    /// and what a peer can ask for (V2-21). At least `inline_bytes`.
    pub inline_bytes_max: u32,
    /// Calls in flight, forward: the most granted as responder, the most asked for as requester.
    pub credits: u16,
    /// How few of them a connection is given when there are more connections than the memory
    /// has receives for; at most `credits`.
    pub credits_min: u16,
    /// Backward Calls that are taken: the BRS property.
    pub backward: Backward,
    /// Calls in flight, backward (RFC 8167); zero with [`Backward::None`].
    pub backward_credits: u16,
    /// Offer and use Send With Invalidate.
    pub remote_invalidate: bool,
    /// How long a first message may stay without an answer (V2-09).
    pub negotiate_timeout: Duration,
    /// How long a peer is remembered to know version one alone (V2-09).
    pub version_memory: Duration,
    /// The reply room given to programs without a binding, octets.
    pub unbound_reply_bytes: u32,
    /// Version two's property messages.
    pub properties: Properties,
    /// What a peer's headers may ask for.
    pub limits: Limits,
    /// Replies kept for a retry after REPLY_RESOURCE (V2-20).
    pub kept_replies: KeptReplies,
}

/// Backward Calls that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backward {
    /// Not at all.
    None,
    /// Without chunks.
    Inline,
    /// In general.
    General,
}

/// `transport.properties`: version two's CONNPROP, REQPROP, RESPROP and UPDPROP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Off: procs 6 to 9 are answered INVAL_OPTION, and none is sent (V2-02).
    pub enabled: bool,
    /// UPDPROPs that a peer may send in a second (V2-13).
    pub updates_per_second: u16,
    /// Properties in one message.
    pub values_max: u32,
    /// Data of one property, octets.
    pub value_bytes_max: u32,
}

/// `transport.limits`: what a peer's headers may ask for. Beyond: ERR_CHUNK or BAD_XDR (V1-06).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Segments in the Read list.
    pub read_segments: u32,
    /// Chunks in the Write list.
    pub write_chunks: u32,
    /// Segments in one Write chunk or the Reply chunk.
    pub chunk_segments: u32,
    /// Octets of one Call, its chunks put in place.
    pub call_bytes: u32,
    /// Octets of one Reply, its chunks included.
    pub reply_bytes: u32,
}

/// `transport.kept_replies`: bounds, for each connection, on replies kept for a retry (V2-20).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptReplies {
    /// Octets of them all; zero: none is kept. There are at most `credits` of them.
    pub bytes: u32,
    /// For how long.
    pub age: Duration,
}
