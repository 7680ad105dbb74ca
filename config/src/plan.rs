//! The validated plan: what the appliance is going to do, in plain values.
//!
//! A [`Plan`] comes out of [`crate::parse()`], [`crate::load`] or [`crate::embedded()`] and out of
//! nowhere else that has checked it: whoever holds one from there need not ask again whether
//! names are unique, ports are free of conflict or the memory suffices. The fields are public,
//! so that a command line may replace a path or a port after the fact.
//!
//! Sizes are octets, times are [`Duration`]s, every default has been filled in.

mod endpoints;
mod fabric;
mod transport;

pub use endpoints::{
    Back, Backend, BackendAddress, Export, Front, Programs, Service, SourcePort, Upstream,
};
pub use fabric::{Devices, Expose, Fabric, IwarpSctp, Packets, Verbs};
pub use transport::{Backward, KeptReplies, Limits, Properties, Transport, VersionMax};

use crate::budget::{self, Budget};
use crate::link::Link;
use crate::port::Port;
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
