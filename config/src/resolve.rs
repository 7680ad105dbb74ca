//! From the mirror of the file to the plan: defaults, inheritance, units.
//!
//! Every function here is total: a value that was refused earlier counts as absent. Whether
//! anything was refused is asked once, by the caller, before the plan is let out.

mod link;

use crate::Machine;
use crate::allow::{Networks, Peers};
use crate::budget::{Budget, MIB};
use crate::file::{self, File, Maybe, Road};
use crate::form::{self, Lcores};
use crate::plan::{
    Back, Backend, BackendAddress, Backward, Devices, Dpdk, Export, Fabric, Front, Idle, IwarpSctp,
    KeptReplies, Limits, Metrics, Plan, Programs, Properties, Runtime, Service, Transport,
    Upstream, Verbs, VersionMax,
};
use crate::port::{Port, PortDevice};
use crate::schema::{self as key, Key};
use crate::words::{IdleWord, Word};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The plan that a file makes on a machine. Meaningful only when no problem has been noted.
pub(crate) fn plan(file: &File, machine: &Machine) -> Plan {
    let base = &file.transport;
    let mut plan = Plan {
        runtime: runtime(&file.runtime, machine),
        metrics: file.metrics.as_ref().map(metrics),
        status: match &file.socket {
            Some(socket) => socket.value.clone(),
            None => Some(machine.status_socket.clone()),
        },
        fronts: file.fronts.iter().map(|it| front(it, base)).collect(),
        backs: file
            .backs
            .iter()
            .map(|it| back(it, base, &file.links))
            .collect(),
        services: file.services.iter().map(|it| service(it, base)).collect(),
        export: file.export.as_ref().map(export),
        links: file.links.iter().map(link::link).collect(),
        fabric: file.fabrics().next().map_or(Fabric::Memory, fabric),
        verbs: verbs(&file.verbs),
        iwarp_sctp: iwarp_sctp(&file.iwarp_sctp),
        dpdk: file.dpdk.as_ref().map(dpdk),
        budget: Budget::default(),
    };
    plan.reckon();
    plan
}

fn runtime(it: &file::Runtime, machine: &Machine) -> Runtime {
    let spin = Duration::from_micros(number(&it.idle_spin, &key::IDLE_SPIN).into());
    Runtime {
        lcores: lcores(
            it.lcores.as_ref().map_or(&Lcores::Auto, |at| &at.value),
            &machine.cores,
        ),
        idle: match word(&it.idle, &key::IDLE) {
            IdleWord::Spin => Idle::Spin,
            IdleWord::Adaptive => Idle::Adaptive { spin },
        },
        memory_bytes: u64::from(number(&it.memory, &key::MEMORY)) * MIB,
        hugepages: word(&it.hugepages, &key::HUGEPAGES),
        connections_max: number(&it.connections, &key::CONNECTIONS),
        drain_timeout: seconds(&it.drain_timeout, &key::DRAIN),
        log: word(&it.log, &key::LOG),
    }
}

/// Which processors the lcores get. The first stays with the control thread while there are
/// enough others; with one or two, an lcore that polls shares it.
pub(crate) fn lcores(wanted: &Lcores, cores: &[usize]) -> Vec<usize> {
    let mut sorted = cores.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let spare = usize::from(sorted.len() > 2);
    match wanted {
        Lcores::Processors(processors) => processors.clone(),
        Lcores::Auto => sorted.split_off(spare),
        Lcores::Count(count) => {
            sorted.rotate_left(spare);
            sorted.truncate(*count);
            sorted
        }
    }
}

fn metrics(it: &file::Metrics) -> Metrics {
    Metrics {
        address: address(&it.address, &key::METRICS_ADDRESS),
    }
}

fn export(it: &file::Export) -> Export {
    Export {
        directory: written(&it.directory),
        listen: address(&it.listen, &key::EXPORT_LISTEN),
        read_only: flag(&it.read_only, &key::READ_ONLY),
    }
}

fn dpdk(it: &file::Dpdk) -> Dpdk {
    let default = Dpdk::default();
    let ports: Vec<Port> = it.ports.iter().filter_map(port).collect();
    let on_bus = ports
        .iter()
        .any(|port| matches!(port.device, PortDevice::Pci(_)));
    Dpdk {
        enabled: flag(&it.enabled, &key::DPDK_ENABLED),
        eal_args: value(&it.arguments).unwrap_or(match on_bus {
            true => Vec::new(),
            false => default.eal_args,
        }),
        ports,
    }
}

fn port(it: &file::Port) -> Option<Port> {
    Some(Port {
        device: value(&it.device)?,
        address: value(&it.address)?,
        gateway: value(&it.gateway),
        mtu: small(&it.mtu, &key::PORT_MTU),
    })
}

fn verbs(it: &file::Verbs) -> Verbs {
    Verbs {
        devices: value(&it.devices).unwrap_or(Devices::All),
        gid_index: value(&it.gid_index).unwrap_or(None),
        expose: word(&it.expose, &key::EXPOSE),
        read_depth: tiny(&it.read_depth, &key::READ_DEPTH),
        retry_count: tiny(&it.retry_count, &key::RETRY_COUNT),
        rnr_retry: tiny(&it.rnr_retry, &key::RNR_RETRY),
        min_rnr_timer: tiny(&it.min_rnr_timer, &key::MIN_RNR_TIMER),
        resolve_timeout: milliseconds(&it.resolve_timeout, &key::RESOLVE_TIMEOUT),
    }
}

fn iwarp_sctp(it: &file::IwarpSctp) -> IwarpSctp {
    IwarpSctp {
        packets: word(&it.packets, &key::PACKETS),
        sctp_port: small(&it.sctp_port, &key::SCTP_PORT),
        streams: small(&it.streams, &key::STREAMS),
        chunk_bytes: small(&it.chunk_bytes, &key::CHUNK_BYTES),
        path_mtu: small(&it.path_mtu, &key::PATH_MTU),
        read_depth: tiny(&it.read_depth, &key::READS),
    }
}

fn front(it: &file::Front, base: &file::Transport) -> Front {
    let listener = &it.listener;
    Front {
        name: written(&listener.name),
        fabric: fabric(&listener.fabric),
        listen: written(&listener.listen),
        allow: listener
            .allow
            .as_ref()
            .map_or_else(Peers::local, |at| at.value.clone()),
        backends: it.backends.iter().map(backend).collect(),
        transport: transport(&listener.transport, base),
    }
}

fn backend(it: &file::Backend) -> Backend {
    Backend {
        programs: value(&it.programs).unwrap_or(Programs::Others),
        address: value(&it.address).unwrap_or(BackendAddress::Export),
        connect_timeout: milliseconds(&it.connect_timeout, &key::CONNECT_TIMEOUT),
        keepalive: keepalive(&it.keepalive),
        source_port: word(&it.source_port, &key::SOURCE_PORT),
    }
}

fn back(it: &file::Back, base: &file::Transport, links: &[file::Link]) -> Back {
    let upstream = match it.upstream.as_ref().map(|at| &at.value) {
        Some(Road::Address(upstream)) => upstream.clone(),
        Some(Road::Discover(it)) => Upstream::Discover(link::discover(it, links)),
        None => Upstream::Memory(String::new()),
    };
    Back {
        name: written(&it.name),
        listen: address(&it.listen, &key::TCP_LISTEN),
        allow: it
            .allow
            .as_ref()
            .map_or_else(Networks::loopback, |at| at.value.clone()),
        keepalive: keepalive(&it.keepalive),
        fabric: fabric(&it.fabric),
        upstream,
        transport: transport(&it.transport, base),
    }
}

fn service(it: &file::Service, base: &file::Transport) -> Service {
    let listener = &it.listener;
    Service {
        name: written(&listener.name),
        fabric: fabric(&listener.fabric),
        listen: written(&listener.listen),
        allow: listener
            .allow
            .as_ref()
            .map_or_else(Peers::local, |at| at.value.clone()),
        transport: transport(&listener.transport, base),
    }
}

/// The endpoint's own table laid over `[transport]`.
pub(crate) fn transport(own: &file::Transport, base: &file::Transport) -> Transport {
    let it = own.over(base);
    let backward = word(&it.backward, &key::BACKWARD);
    let credits = small(&it.credits, &key::CREDITS);
    let inline_bytes = number(&it.inline, &key::INLINE);
    Transport {
        version_max: match number(&it.version_max, &key::VERSION_MAX) {
            1 => VersionMax::One,
            _ => VersionMax::Two,
        },
        inline_bytes,
        inline_bytes_max: value(&it.inline_max)
            .unwrap_or(inline_bytes)
            .max(inline_bytes),
        credits,
        credits_min: small(&it.credits_min, &key::CREDITS_MIN).min(credits),
        backward,
        backward_credits: match backward {
            Backward::None => 0,
            Backward::Inline | Backward::General => {
                small(&it.backward_credits, &key::BACKWARD_CREDITS)
            }
        },
        remote_invalidate: flag(&it.remote_invalidate, &key::REMOTE_INVALIDATE),
        negotiate_timeout: milliseconds(&it.negotiate_timeout, &key::NEGOTIATE_TIMEOUT),
        version_memory: seconds(&it.version_memory, &key::VERSION_MEMORY),
        unbound_reply_bytes: number(&it.unbound_reply, &key::UNBOUND_REPLY),
        properties: Properties {
            enabled: flag(&it.properties.enabled, &key::PROPERTIES_ENABLED),
            updates_per_second: small(&it.properties.updates, &key::UPDATES),
            values_max: number(&it.properties.values, &key::VALUES),
            value_bytes_max: number(&it.properties.value_bytes, &key::VALUE_BYTES),
        },
        limits: Limits {
            read_segments: number(&it.limits.read_segments, &key::READ_SEGMENTS),
            write_chunks: number(&it.limits.write_chunks, &key::WRITE_CHUNKS),
            chunk_segments: number(&it.limits.chunk_segments, &key::CHUNK_SEGMENTS),
            call_bytes: number(&it.limits.call, &key::CALL_BYTES),
            reply_bytes: number(&it.limits.reply, &key::REPLY_BYTES),
        },
        kept_replies: KeptReplies {
            bytes: number(&it.kept.bytes, &key::KEPT_BYTES),
            age: milliseconds(&it.kept.age, &key::KEPT_AGE),
        },
    }
}

fn value<T: Clone>(at: &Maybe<T>) -> Option<T> {
    at.as_ref().map(|at| at.value.clone())
}

/// A value that has to be there: where it is not, that has been noted.
fn written<T: Clone + Default>(at: &Maybe<T>) -> T {
    value(at).unwrap_or_default()
}

fn number(at: &Maybe<u32>, key: &Key) -> u32 {
    value(at).unwrap_or_else(|| key.default_integer())
}

/// A number whose range ends below 2^16.
fn small(at: &Maybe<u32>, key: &Key) -> u16 {
    u16::try_from(number(at, key)).unwrap_or(u16::MAX)
}

/// A number whose range ends below 2^8.
fn tiny(at: &Maybe<u32>, key: &Key) -> u8 {
    u8::try_from(number(at, key)).unwrap_or(u8::MAX)
}

fn flag(at: &Maybe<bool>, key: &Key) -> bool {
    value(at).unwrap_or_else(|| key.default_flag())
}

fn word<W: Word>(at: &Maybe<W>, key: &Key) -> W {
    value(at).unwrap_or_else(|| key.default_word())
}

fn fabric(it: &file::InFabric) -> Fabric {
    it.known.unwrap_or(Fabric::Memory)
}

/// The address that is written, or the key's default; no key's default is anything else.
pub(crate) fn address(at: &Maybe<SocketAddr>, key: &Key) -> SocketAddr {
    let default = || form::listen(key.default_form());
    value(at)
        .or_else(|| default().ok())
        .unwrap_or((Ipv4Addr::LOCALHOST, 0).into())
}

fn seconds(at: &Maybe<u32>, key: &Key) -> Duration {
    Duration::from_secs(number(at, key).into())
}

fn milliseconds(at: &Maybe<u32>, key: &Key) -> Duration {
    Duration::from_millis(number(at, key).into())
}

fn keepalive(at: &Maybe<u32>) -> Option<Duration> {
    Some(seconds(at, &key::KEEPALIVE)).filter(|time| !time.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_processor_is_spared_while_there_are_enough() {
        assert_eq!(lcores(&Lcores::Auto, &[0]), [0]);
        assert_eq!(lcores(&Lcores::Auto, &[1, 0]), [0, 1]);
        assert_eq!(lcores(&Lcores::Auto, &[5, 4, 7]), [5, 7]);
        assert_eq!(lcores(&Lcores::Count(1), &[0, 1]), [0]);
        assert_eq!(lcores(&Lcores::Count(2), &[0, 1, 2, 3]), [1, 2]);
        assert_eq!(lcores(&Lcores::Count(4), &[0, 1, 2, 3]), [1, 2, 3, 0]);
        assert_eq!(
            lcores(&Lcores::Processors(vec![3, 1]), &[0, 1, 2, 3]),
            [3, 1]
        );
    }

    #[test]
    fn small_numbers_fit() {
        let small = [&key::CREDITS, &key::CREDITS_MIN, &key::UPDATES];
        for key in small.into_iter().chain([&key::BACKWARD_CREDITS]) {
            let key::Kind::Integer { max, .. } = key.kind else {
                panic!("{}", key.name)
            };
            assert!(u16::try_from(max).is_ok(), "{}", key.name);
        }
        let tiny = [&key::READ_DEPTH, &key::RETRY_COUNT, &key::RNR_RETRY];
        for key in tiny.into_iter().chain([&key::MIN_RNR_TIMER, &key::READS]) {
            let key::Kind::Integer { max, .. } = key.kind else {
                panic!("{}", key.name)
            };
            assert!(u8::try_from(max).is_ok(), "{}", key.name);
        }
    }
}
