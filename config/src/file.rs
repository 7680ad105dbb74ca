//! The mirror of the file: each table as a structure, each value optional and with its place.
//!
//! Reading it applies the rules that concern one value alone. What is absent stays absent:
//! defaults and inheritance belong to `resolve.rs`, rules over several values to `check.rs`.

mod link;

pub(crate) use link::{Discover, Link, Road};

use crate::allow::{Networks, Peers};
use crate::error::Origin;
use crate::form::{self, Lcores};
use crate::plan::{
    BackendAddress, Backward, Devices, Expose, Fabric, Hugepages, Log, Packets, Programs,
    SourcePort,
};
use crate::port::PortDevice;
use crate::schema as key;
use crate::section::{At, Section};
use crate::words::IdleWord;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
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

/// A `transport` table, or its absence: then everything in it is absent.
#[derive(Clone, Default)]
pub(crate) struct Transport {
    pub(crate) version_max: Maybe<u32>,
    pub(crate) inline: Maybe<u32>,
    pub(crate) inline_max: Maybe<u32>,
    pub(crate) credits: Maybe<u32>,
    pub(crate) credits_min: Maybe<u32>,
    pub(crate) backward: Maybe<Backward>,
    pub(crate) backward_credits: Maybe<u32>,
    pub(crate) remote_invalidate: Maybe<bool>,
    pub(crate) negotiate_timeout: Maybe<u32>,
    pub(crate) version_memory: Maybe<u32>,
    pub(crate) unbound_reply: Maybe<u32>,
    pub(crate) properties: Properties,
    pub(crate) limits: Limits,
    pub(crate) kept: Kept,
}

impl Transport {
    fn below(parent: &Section<'_>) -> Transport {
        let Some(table) = parent.table(&key::TRANSPORT_TABLE) else {
            return Transport::default();
        };
        Transport {
            version_max: table.integer(&key::VERSION_MAX),
            inline: table.integer(&key::INLINE),
            inline_max: table.integer(&key::INLINE_MAX),
            credits: table.integer(&key::CREDITS),
            credits_min: table.integer(&key::CREDITS_MIN),
            backward: table.word(&key::BACKWARD),
            backward_credits: table.integer(&key::BACKWARD_CREDITS),
            remote_invalidate: table.flag(&key::REMOTE_INVALIDATE),
            negotiate_timeout: table.integer(&key::NEGOTIATE_TIMEOUT),
            version_memory: table.integer(&key::VERSION_MEMORY),
            unbound_reply: table.integer(&key::UNBOUND_REPLY),
            properties: Properties::below(&table),
            limits: Limits::below(&table),
            kept: Kept::below(&table),
        }
    }
}

impl Transport {
    /// This table laid over another: what is absent here is taken from there.
    pub(crate) fn over(&self, base: &Transport) -> Transport {
        Transport {
            version_max: first(&self.version_max, &base.version_max),
            inline: first(&self.inline, &base.inline),
            inline_max: first(&self.inline_max, &base.inline_max),
            credits: first(&self.credits, &base.credits),
            credits_min: first(&self.credits_min, &base.credits_min),
            backward: first(&self.backward, &base.backward),
            backward_credits: first(&self.backward_credits, &base.backward_credits),
            remote_invalidate: first(&self.remote_invalidate, &base.remote_invalidate),
            negotiate_timeout: first(&self.negotiate_timeout, &base.negotiate_timeout),
            version_memory: first(&self.version_memory, &base.version_memory),
            unbound_reply: first(&self.unbound_reply, &base.unbound_reply),
            properties: Properties {
                enabled: first(&self.properties.enabled, &base.properties.enabled),
                updates: first(&self.properties.updates, &base.properties.updates),
                values: first(&self.properties.values, &base.properties.values),
                value_bytes: first(&self.properties.value_bytes, &base.properties.value_bytes),
            },
            limits: Limits {
                read_segments: first(&self.limits.read_segments, &base.limits.read_segments),
                write_chunks: first(&self.limits.write_chunks, &base.limits.write_chunks),
                chunk_segments: first(&self.limits.chunk_segments, &base.limits.chunk_segments),
                call: first(&self.limits.call, &base.limits.call),
                reply: first(&self.limits.reply, &base.limits.reply),
            },
            kept: Kept {
                bytes: first(&self.kept.bytes, &base.kept.bytes),
                age: first(&self.kept.age, &base.kept.age),
            },
        }
    }
}

fn first<T: Clone>(own: &Maybe<T>, base: &Maybe<T>) -> Maybe<T> {
    own.as_ref().or(base.as_ref()).cloned()
}

/// `transport.properties`.
#[derive(Clone, Default)]
pub(crate) struct Properties {
    pub(crate) enabled: Maybe<bool>,
    pub(crate) updates: Maybe<u32>,
    pub(crate) values: Maybe<u32>,
    pub(crate) value_bytes: Maybe<u32>,
}

impl Properties {
    fn below(transport: &Section<'_>) -> Properties {
        let Some(table) = transport.table(&key::PROPERTIES_TABLE) else {
            return Properties::default();
        };
        Properties {
            enabled: table.flag(&key::PROPERTIES_ENABLED),
            updates: table.integer(&key::UPDATES),
            values: table.integer(&key::VALUES),
            value_bytes: table.integer(&key::VALUE_BYTES),
        }
    }
}

/// `transport.limits`.
#[derive(Clone, Default)]
pub(crate) struct Limits {
    pub(crate) read_segments: Maybe<u32>,
    pub(crate) write_chunks: Maybe<u32>,
    pub(crate) chunk_segments: Maybe<u32>,
    pub(crate) call: Maybe<u32>,
    pub(crate) reply: Maybe<u32>,
}

impl Limits {
    fn below(transport: &Section<'_>) -> Limits {
        let Some(table) = transport.table(&key::LIMITS_TABLE) else {
            return Limits::default();
        };
        Limits {
            read_segments: table.integer(&key::READ_SEGMENTS),
            write_chunks: table.integer(&key::WRITE_CHUNKS),
            chunk_segments: table.integer(&key::CHUNK_SEGMENTS),
            call: table.integer(&key::CALL_BYTES),
            reply: table.integer(&key::REPLY_BYTES),
        }
    }
}

/// `transport.kept_replies`.
#[derive(Clone, Default)]
pub(crate) struct Kept {
    pub(crate) bytes: Maybe<u32>,
    pub(crate) age: Maybe<u32>,
}

impl Kept {
    fn below(transport: &Section<'_>) -> Kept {
        let Some(table) = transport.table(&key::KEPT_TABLE) else {
            return Kept::default();
        };
        Kept {
            bytes: table.integer(&key::KEPT_BYTES),
            age: table.integer(&key::KEPT_AGE),
        }
    }
}

/// `[verbs]`, or its absence.
#[derive(Default)]
pub(crate) struct Verbs {
    pub(crate) devices: Maybe<Devices>,
    pub(crate) gid_index: Maybe<Option<u8>>,
    pub(crate) expose: Maybe<Expose>,
    pub(crate) read_depth: Maybe<u32>,
    pub(crate) retry_count: Maybe<u32>,
    pub(crate) rnr_retry: Maybe<u32>,
    pub(crate) min_rnr_timer: Maybe<u32>,
    pub(crate) resolve_timeout: Maybe<u32>,
}

impl Verbs {
    fn below(root: &Section<'_>) -> Verbs {
        let Some(table) = root.table(&key::VERBS_TABLE) else {
            return Verbs::default();
        };
        Verbs {
            devices: table.value(&key::DEVICES, "\"all\" or a list", form::devices),
            gid_index: table.value(&key::GID_INDEX, "\"auto\" or a number", form::gid_index),
            expose: table.word(&key::EXPOSE),
            read_depth: table.integer(&key::READ_DEPTH),
            retry_count: table.integer(&key::RETRY_COUNT),
            rnr_retry: table.integer(&key::RNR_RETRY),
            min_rnr_timer: table.integer(&key::MIN_RNR_TIMER),
            resolve_timeout: table.integer(&key::RESOLVE_TIMEOUT),
        }
    }
}

/// `[iwarp_sctp]`, or its absence.
#[derive(Default)]
pub(crate) struct IwarpSctp {
    pub(crate) packets: Maybe<Packets>,
    pub(crate) sctp_port: Maybe<u32>,
    pub(crate) streams: Maybe<u32>,
    pub(crate) chunk_bytes: Maybe<u32>,
    pub(crate) path_mtu: Maybe<u32>,
    pub(crate) read_depth: Maybe<u32>,
}

impl IwarpSctp {
    fn below(root: &Section<'_>) -> IwarpSctp {
        let Some(table) = root.table(&key::IWARP_SCTP_TABLE) else {
            return IwarpSctp::default();
        };
        IwarpSctp {
            packets: table.word(&key::PACKETS),
            sctp_port: table.integer(&key::SCTP_PORT),
            streams: table.integer(&key::STREAMS),
            chunk_bytes: table.integer(&key::CHUNK_BYTES),
            path_mtu: table.integer(&key::PATH_MTU),
            read_depth: table.integer(&key::READS),
        }
    }
}

/// The fabric of an endpoint.
pub(crate) struct InFabric {
    /// As it is written.
    pub(crate) written: Maybe<Fabric>,
    /// Which it is; `None`: what is written is none.
    pub(crate) known: Option<Fabric>,
}

impl InFabric {
    fn read(table: &Section<'_>) -> InFabric {
        let written = table.text(&key::FABRIC, form::fabric);
        let known = match &written {
            Some(at) => Some(at.value),
            None => (!table.has(&key::FABRIC)).then_some(Fabric::Memory),
        };
        InFabric { written, known }
    }
}

/// What fronts and services have in common: a place in a fabric where peers arrive.
pub(crate) struct Listener {
    pub(crate) name: Maybe<String>,
    pub(crate) fabric: InFabric,
    pub(crate) listen: Maybe<String>,
    pub(crate) allow: Maybe<Peers>,
    pub(crate) transport: Transport,
}

impl Listener {
    fn read(table: &Section<'_>) -> Listener {
        table.require(&[&key::NAME, &key::LISTEN]);
        let fabric = InFabric::read(table);
        Listener {
            name: table.text(&key::NAME, form::name),
            // In what form it is depends on the fabric.
            listen: fabric
                .known
                .and_then(|it| table.text(&key::LISTEN, |text| form::door(text, it))),
            fabric,
            allow: table.value(&key::PEERS, "a list", form::peers),
            transport: Transport::below(table),
        }
    }
}

/// `[[front]]`.
pub(crate) struct Front {
    pub(crate) listener: Listener,
    pub(crate) backends: Vec<Backend>,
}

impl Front {
    fn read(table: &Section<'_>) -> Front {
        table.require(&[&key::BACKEND_TABLES]);
        Front {
            listener: Listener::read(table),
            backends: table
                .tables(&key::BACKEND_TABLES)
                .iter()
                .map(Backend::read)
                .collect(),
        }
    }
}

/// `[[front.backend]]`.
pub(crate) struct Backend {
    pub(crate) programs: Maybe<Programs>,
    pub(crate) address: Maybe<BackendAddress>,
    pub(crate) connect_timeout: Maybe<u32>,
    pub(crate) keepalive: Maybe<u32>,
    pub(crate) source_port: Maybe<SourcePort>,
}

impl Backend {
    fn read(table: &Section<'_>) -> Backend {
        table.require(&[&key::PROGRAMS, &key::BACKEND_ADDRESS]);
        Backend {
            programs: table.value(&key::PROGRAMS, "a list or \"others\"", form::programs),
            address: table.text(&key::BACKEND_ADDRESS, form::backend),
            connect_timeout: table.integer(&key::CONNECT_TIMEOUT),
            keepalive: table.integer(&key::KEEPALIVE),
            source_port: table.word(&key::SOURCE_PORT),
        }
    }
}

/// `[[back]]`.
pub(crate) struct Back {
    pub(crate) name: Maybe<String>,
    pub(crate) listen: Maybe<SocketAddr>,
    pub(crate) allow: Maybe<Networks>,
    pub(crate) keepalive: Maybe<u32>,
    pub(crate) fabric: InFabric,
    pub(crate) upstream: Maybe<Road>,
    pub(crate) transport: Transport,
}

impl Back {
    fn read(table: &Section<'_>) -> Back {
        table.require(&[&key::NAME, &key::TCP_LISTEN, &key::UPSTREAM]);
        let fabric = InFabric::read(table);
        Back {
            name: table.text(&key::NAME, form::name),
            listen: table.text(&key::TCP_LISTEN, form::listen),
            allow: table.value(&key::NETWORKS, "a list", form::networks),
            keepalive: table.integer(&key::KEEPALIVE),
            upstream: Road::read(table, fabric.known),
            fabric,
            transport: Transport::below(table),
        }
    }
}

/// `[[service]]`.
pub(crate) struct Service {
    pub(crate) listener: Listener,
}

impl Service {
    fn read(table: &Section<'_>) -> Service {
        Service {
            listener: Listener::read(table),
        }
    }
}

/// `[export]`.
pub(crate) struct Export {
    pub(crate) directory: Maybe<PathBuf>,
    pub(crate) listen: Maybe<SocketAddr>,
    pub(crate) read_only: Maybe<bool>,
}

impl Export {
    fn read(table: &Section<'_>) -> Export {
        table.require(&[&key::DIRECTORY]);
        Export {
            directory: table.text(&key::DIRECTORY, form::directory),
            listen: table.text(&key::EXPORT_LISTEN, form::listen),
            read_only: table.flag(&key::READ_ONLY),
        }
    }
}

/// `[[dpdk.port]]`.
pub(crate) struct Port {
    pub(crate) origin: Origin,
    pub(crate) device: Maybe<PortDevice>,
    pub(crate) address: Maybe<IpNet>,
    pub(crate) gateway: Maybe<IpAddr>,
    pub(crate) mtu: Maybe<u32>,
}

impl Port {
    fn read(table: &Section<'_>) -> Port {
        table.require(&[&key::PORT_DEVICE, &key::PORT_ADDRESS]);
        Port {
            origin: table.origin.clone(),
            device: table.text(&key::PORT_DEVICE, form::port_device),
            address: table.text(&key::PORT_ADDRESS, form::port_address),
            gateway: table.text(&key::PORT_GATEWAY, form::gateway),
            mtu: table.integer(&key::PORT_MTU),
        }
    }
}

/// `[dpdk]`.
pub(crate) struct Dpdk {
    pub(crate) enabled: Maybe<bool>,
    pub(crate) arguments: Maybe<Vec<String>>,
    pub(crate) ports: Vec<Port>,
}

impl Dpdk {
    fn read(table: &Section<'_>) -> Dpdk {
        Dpdk {
            enabled: table.flag(&key::DPDK_ENABLED),
            arguments: table.value(&key::EAL_ARGS, "a list", form::eal_args),
            ports: table
                .tables(&key::PORT_TABLES)
                .iter()
                .map(Port::read)
                .collect(),
        }
    }
}
