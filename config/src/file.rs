//! The mirror of the file: each table as a structure, each value optional and with its place.
//!
//! Reading it applies the rules that concern one value alone. What is absent stays absent:
//! defaults and inheritance belong to `resolve.rs`, rules over several values to `check.rs`.

mod dpdk;
mod endpoints;
mod fabrics;
mod link;
mod transport;

pub(crate) use dpdk::{Dpdk, Port};
pub(crate) use endpoints::{Back, Backend, Export, Front, InFabric, Listener, Service};
pub(crate) use fabrics::{IwarpSctp, Verbs};
pub(crate) use link::{Discover, Link, Road};
pub(crate) use transport::Transport;

use crate::error::Origin;
use crate::form::{self, Lcores};
use crate::plan::{Hugepages, Log};
use crate::schema as key;
use crate::section::{At, Section};
use crate::words::IdleWord;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A value that may be absent.
pub(crate) type Maybe<T> = Option<At<T>>;

/// The whole file.
pub(crate) struct File {
    pub(crate) runtime: Runtime,
    pub(crate) metrics: Option<Metrics>,
    pub(crate) socket: Maybe<Option<PathBuf>>,
    pub(crate) transport: Transport,
    pub(crate) verbs: Verbs,
    pub(crate) iwarp_sctp: IwarpSctp,
    pub(crate) fronts: Vec<Front>,
    pub(crate) backs: Vec<Back>,
    pub(crate) services: Vec<Service>,
    pub(crate) export: Option<Export>,
    pub(crate) links: Vec<Link>,
    pub(crate) dpdk: Option<Dpdk>,
}

impl File {
    pub(crate) fn read(root: &Section<'_>, cores: &[usize]) -> File {
        File {
            runtime: Runtime::read(
                root.table(&key::RUNTIME_TABLE).as_ref(),
                &root.origin,
                cores,
            ),
            metrics: root.table(&key::METRICS_TABLE).as_ref().map(Metrics::read),
            socket: root
                .table(&key::STATUS_TABLE)
                .and_then(|status| status.text(&key::STATUS_SOCKET, form::socket)),
            transport: Transport::below(root),
            verbs: Verbs::below(root),
            iwarp_sctp: IwarpSctp::below(root),
            fronts: root
                .tables(&key::FRONT_TABLES)
                .iter()
                .map(Front::read)
                .collect(),
            backs: root
                .tables(&key::BACK_TABLES)
                .iter()
                .map(Back::read)
                .collect(),
            services: root
                .tables(&key::SERVICE_TABLES)
                .iter()
                .map(Service::read)
                .collect(),
            export: root.table(&key::EXPORT_TABLE).as_ref().map(Export::read),
            links: root
                .tables(&key::LINK_TABLES)
                .iter()
                .map(Link::read)
                .collect(),
            dpdk: root.table(&key::DPDK_TABLE).as_ref().map(Dpdk::read),
        }
    }
}

impl File {
    /// The fabric of each endpoint, in the order of fronts, backs and services.
    pub(crate) fn fabrics(&self) -> impl Iterator<Item = &InFabric> {
        let fronts = self.fronts.iter().map(|it| &it.listener.fabric);
        let backs = self.backs.iter().map(|it| &it.fabric);
        let services = self.services.iter().map(|it| &it.listener.fabric);
        fronts.chain(backs).chain(services)
    }

    /// Where peers arrive: fronts, then services.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = &Listener> {
        let fronts = self.fronts.iter().map(|front| &front.listener);
        let services = self.services.iter().map(|service| &service.listener);
        fronts.chain(services)
    }
}

/// `[runtime]`.
pub(crate) struct Runtime {
    pub(crate) origin: Origin,
    pub(crate) lcores: Maybe<Lcores>,
    pub(crate) idle: Maybe<IdleWord>,
    pub(crate) idle_spin: Maybe<u32>,
    pub(crate) memory: Maybe<u32>,
    pub(crate) hugepages: Maybe<Hugepages>,
    pub(crate) connections: Maybe<u32>,
    pub(crate) drain_timeout: Maybe<u32>,
    pub(crate) log: Maybe<Log>,
}

impl Runtime {
    fn read(table: Option<&Section<'_>>, root: &Origin, cores: &[usize]) -> Runtime {
        let integer = |key| table.and_then(|table| table.integer(key));
        let expected = "\"auto\", a count or a list";
        Runtime {
            origin: table.map_or_else(|| root.absent("runtime"), |table| table.origin.clone()),
            lcores: table.and_then(|table| {
                table.value(&key::LCORES, expected, |value, elements| {
                    form::lcores(value, elements, cores)
                })
            }),
            idle: table.and_then(|table| table.word(&key::IDLE)),
            idle_spin: integer(&key::IDLE_SPIN),
            memory: integer(&key::MEMORY),
            hugepages: table.and_then(|table| table.word(&key::HUGEPAGES)),
            connections: integer(&key::CONNECTIONS),
            drain_timeout: integer(&key::DRAIN),
            log: table.and_then(|table| table.word(&key::LOG)),
        }
    }
}

/// `[metrics]`.
pub(crate) struct Metrics {
    pub(crate) address: Maybe<SocketAddr>,
    pub(crate) public: Maybe<bool>,
}

impl Metrics {
    fn read(table: &Section<'_>) -> Metrics {
        Metrics {
            address: table.text(&key::METRICS_ADDRESS, form::listen),
            public: table.flag(&key::METRICS_PUBLIC),
        }
    }
}
