//! The effective plan for people: `--print`.

mod link;

use crate::budget::{Cost, MIB, mebibytes};
use crate::form::ranges;
use crate::plan::{
    Back, Backend, Backward, Devices, Dpdk, Expose, Fabric, Front, Idle, Packets, Plan, Programs,
    Service, SourcePort, Transport, VersionMax,
};
use crate::port::Port;
use crate::words::Word;
use std::fmt::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

impl Plan {
    /// The effective plan as a table for people: lcores, memory, listeners, backends, who may
    /// connect. Defaults are filled in; nothing here is meant to be parsed.
    #[must_use]
    pub fn print(&self) -> String {
        let mut sheet = Sheet::default();
        self.print_runtime(&mut sheet);
        self.print_memory(&mut sheet);
        match self.fabric {
            Fabric::Memory => {}
            Fabric::Verbs => self.print_verbs(&mut sheet),
            Fabric::IwarpSctp => self.print_iwarp_sctp(&mut sheet),
        }
        self.print_endpoints(&mut sheet);
        sheet.text
    }

    fn print_runtime(&self, sheet: &mut Sheet) {
        let runtime = &self.runtime;
        let lcores = runtime.lcores.len();
        let idle = match runtime.idle {
            Idle::Spin => "polls without end".to_owned(),
            Idle::Adaptive { spin } => format!("polls {}, then sleeps", time(spin)),
        };
        sheet.head("runtime");
        sheet.row(
            "lcores",
            format!("{lcores}, on processors {}", ranges(&runtime.lcores)),
        );
        sheet.row("idle", format!("an lcore without work {idle}"));
        let connections = runtime.connections_max;
        let all = u64::from(connections).saturating_mul(lcores as u64);
        sheet.row(
            "connections",
            format!("{connections} on each lcore, {all} in total"),
        );
        sheet.row(
            "drain",
            format!("{} after SIGTERM", time(runtime.drain_timeout)),
        );
        sheet.row("log", format!("{} and worse", runtime.log.name()));
        let metrics = self
            .metrics
            .map(|metrics| format!("HTTP {}", tcp(metrics.address)));
        sheet.row("metrics", metrics.unwrap_or_else(|| "off".to_owned()));
        let status = self
            .status
            .as_ref()
            .map(|socket| socket.display().to_string());
        sheet.row("status", status.unwrap_or_else(|| "off".to_owned()));
        if let Some(dpdk) = &self.dpdk {
            sheet.row("dpdk", eal(dpdk));
            for port in &dpdk.ports {
                sheet.row("port", ethernet(port));
            }
        }
    }

    fn print_memory(&self, sheet: &mut Sheet) {
        let budget = &self.budget;
        let each = budget.memory_bytes / MIB;
        let total = budget.total_bytes / MIB;
        sheet.head("memory");
        let pages = match self.runtime.hugepages {
            crate::plan::Hugepages::Try => "huge pages where there are any",
            crate::plan::Hugepages::Require => "huge pages",
            crate::plan::Hugepages::Off => "ordinary pages",
        };
        sheet.row(
            "arena",
            format!("{each} MiB for each lcore, {total} MiB in total, {pages}"),
        );
        for cost in &budget.endpoints {
            sheet.row("buffers", buffers(cost, budget.is_short()));
        }
        let receives = mebibytes(budget.receives_bytes);
        let all = budget.connections_max;
        let credits = match budget.is_short() {
            true => ": fewer credits for each, the more there are",
            false => "",
        };
        sheet.row(
            "receives",
            format!("{receives} MiB with {all} connections{credits}"),
        );
        let shared = budget.shared_bytes().unwrap_or(0) / MIB;
        sheet.row(
            "payload",
            format!("{shared} MiB left for longer Calls and Replies"),
        );
        sheet.row(
            "RLIMIT_MEMLOCK",
            match budget.memlock_bytes {
                0 => format!("0: the {} fabric locks no memory", self.fabric),
                bytes => format!(
                    "at least {bytes} octets, {} MiB, and the devices' queues",
                    mebibytes(bytes)
                ),
            },
        );
    }

    fn print_verbs(&self, sheet: &mut Sheet) {
        let verbs = &self.verbs;
        sheet.head("verbs");
        let devices = match &verbs.devices {
            Devices::All => "all that are there".to_owned(),
            Devices::Named(names) => names.join(", "),
        };
        sheet.row("devices", devices);
        let gid = verbs.gid_index.map(|index| format!("entry {index}"));
        let by_rule = || "of RoCE version two, IPv4 or IPv6 as the address is".to_owned();
        sheet.row("GID", gid.unwrap_or_else(by_rule));
        let expose = match verbs.expose {
            Expose::Auto => "by memory windows where the device has them, else by regions",
            Expose::Window => "by memory windows",
            Expose::Region => "by regions registered for each Call",
            Expose::Arena => "ALL MEMORY OF AN LCORE, to every peer it is connected with",
        };
        sheet.row("exposure", expose);
        sheet.row(
            "reads",
            format!("{} RDMA Reads in flight on a connection", verbs.read_depth),
        );
        let rnr = match verbs.rnr_retry {
            7 => "for ever".to_owned(),
            times => format!("{times} times"),
        };
        sheet.row(
            "retries",
            format!(
                "{} times; without a receive {rnr}, after {}",
                verbs.retry_count,
                time(rnr_time(verbs.min_rnr_timer))
            ),
        );
        let timeout = time(verbs.resolve_timeout);
        sheet.row(
            "resolution",
            format!("address and way within {timeout} each"),
        );
    }

    fn print_iwarp_sctp(&self, sheet: &mut Sheet) {
        let it = &self.iwarp_sctp;
        sheet.head("iwarp-sctp");
        let packets = match it.packets {
            Packets::Udp => format!("SCTP port {}, in UDP", it.sctp_port),
            Packets::Native => "the kernel's own SCTP".to_owned(),
            Packets::Dpdk => format!("SCTP port {}, in UDP by ports of DPDK", it.sctp_port),
        };
        sheet.row("packets", packets);
        sheet.row(
            "associations",
            format!("of {} streams, one for each connection", it.streams),
        );
        sheet.row(
            "at most",
            format!(
                "{} octets a chunk, {} an IP packet",
                it.chunk_bytes, it.path_mtu
            ),
        );
        sheet.row(
            "reads",
            format!("{} RDMA Reads in flight on a connection", it.read_depth),
        );
    }

    fn print_endpoints(&self, sheet: &mut Sheet) {
        let short = self.budget.is_short();
        for back in &self.backs {
            print_back(sheet, back, short);
        }
        for front in &self.fronts {
            print_front(sheet, front, short);
        }
        for service in &self.services {
            print_service(sheet, service, short);
        }
        for link in &self.links {
            link::print(sheet, link);
        }
        if let Some(export) = &self.export {
            let rights = if export.read_only {
                "read only"
            } else {
                "read and write"
            };
            sheet.head("export");
            sheet.row(
                "directory",
                format!("{}, {rights}", export.directory.display()),
            );
            sheet.row(
                "listen",
                format!("NFS and MOUNT version 3 on TCP {}", tcp(export.listen)),
            );
        }
    }
}

/// How builds with DPDK start it.
fn eal(dpdk: &Dpdk) -> String {
    match (dpdk.enabled, dpdk.eal_args.join(" ").as_str()) {
        (false, _) => "off".to_owned(),
        (true, "") => "EAL, in builds that have it".to_owned(),
        (true, arguments) => format!("EAL with {arguments}, in builds that have it"),
    }
}

/// A port, and who it is on its link.
fn ethernet(port: &Port) -> String {
    let Port {
        device,
        address,
        gateway,
        mtu,
    } = port;
    let gateway = gateway.map_or(String::new(), |it| format!(", others by {it}"));
    format!("{device}: {address}{gateway}, {mtu} octets an IP packet")
}

/// The buffers of one connection; with the fewest credits too, where it may come to that.
fn buffers(cost: &Cost, short: bool) -> String {
    let least = match short {
        true => format!("{} to ", cost.least_receives),
        false => String::new(),
    };
    let least_kib = match short {
        true => format!("{} to ", cost.least_bytes.div_ceil(1024)),
        false => String::new(),
    };
    format!(
        "{}: {least}{} receives of {} octets, {least_kib}{} KiB a connection, and {} KiB of slots",
        cost.name,
        cost.receives,
        cost.receive_bytes,
        cost.connection_bytes.div_ceil(1024),
        cost.slot_bytes.div_ceil(1024),
    )
}

fn print_back(sheet: &mut Sheet, back: &Back, short: bool) {
    sheet.head(&format!("back {}", back.name));
    sheet.row("listen", format!("TCP {}", tcp(back.listen)));
    sheet.row("allow", &back.allow);
    sheet.row("keepalive", keepalive(back.keepalive));
    sheet.row(
        "upstream",
        format!("{} in the {} fabric", back.upstream, back.fabric),
    );
    print_transport(sheet, &back.transport, short);
}

fn print_front(sheet: &mut Sheet, front: &Front, short: bool) {
    sheet.head(&format!("front {}", front.name));
    sheet.row(
        "listen",
        format!("{} in the {} fabric", front.listen, front.fabric),
    );
    sheet.row("allow", &front.allow);
    for backend in &front.backends {
        sheet.row("backend", described(backend));
    }
    print_transport(sheet, &front.transport, short);
}

fn print_service(sheet: &mut Sheet, service: &Service, short: bool) {
    sheet.head(&format!("service {}", service.name));
    sheet.row(
        "listen",
        format!("{} in the {} fabric", service.listen, service.fabric),
    );
    sheet.row("allow", &service.allow);
    print_transport(sheet, &service.transport, short);
}

fn print_transport(sheet: &mut Sheet, it: &Transport, short: bool) {
    let versions = match it.version_max {
        VersionMax::One => "one".to_owned(),
        VersionMax::Two => format!(
            "two, or one after {} without an answer (remembered for {})",
            time(it.negotiate_timeout),
            time(it.version_memory)
        ),
    };
    sheet.row("version", versions);
    let inline = match it.inline_bytes_max {
        most if most > it.inline_bytes => {
            format!("{} octets, up to {most} while it runs", it.inline_bytes)
        }
        _ => format!("{} octets", it.inline_bytes),
    };
    sheet.row("inline", inline);
    let backward = match it.backward {
        Backward::None => "none backward".to_owned(),
        kind => format!("{} backward ({})", it.backward_credits, kind.name()),
    };
    let least = match short && it.credits_min < it.credits {
        true => format!("{} to ", it.credits_min),
        false => String::new(),
    };
    sheet.row("credits", format!("{least}{}, {backward}", it.credits));
    let invalidate = if it.remote_invalidate {
        "where the peer can"
    } else {
        "off"
    };
    sheet.row("invalidation", format!("remote: {invalidate}"));
    let limits = &it.limits;
    sheet.row(
        "calls",
        format!(
            "to {} octets, {} Read segments",
            limits.call_bytes, limits.read_segments
        ),
    );
    sheet.row(
        "replies",
        format!(
            "to {} octets, {} Write chunks of {} segments; {} without a binding",
            limits.reply_bytes, limits.write_chunks, limits.chunk_segments, it.unbound_reply_bytes
        ),
    );
    if it.version_max == VersionMax::One {
        return;
    }
    let kept = &it.kept_replies;
    sheet.row(
        "kept",
        match kept.bytes {
            0 => "no replies for a retry".to_owned(),
            bytes => format!("{bytes} octets of replies for a retry, {}", time(kept.age)),
        },
    );
    let properties = &it.properties;
    sheet.row(
        "properties",
        match properties.enabled {
            false => "off".to_owned(),
            true => format!(
                "{} of {} octets in a message, {} updates a second",
                properties.values_max, properties.value_bytes_max, properties.updates_per_second
            ),
        },
    );
}

fn described(backend: &Backend) -> String {
    let programs = match &backend.programs {
        Programs::Others => "all other programs".to_owned(),
        Programs::Listed(numbers) => {
            let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
            format!("programs {}", numbers.join(", "))
        }
    };
    let port = match backend.source_port {
        SourcePort::Any => "any source port",
        SourcePort::Privileged => "a source port below 1024 (CAP_NET_BIND_SERVICE)",
    };
    format!(
        "{} for {programs}; {port}, connect within {}, keepalive {}",
        backend.address,
        time(backend.connect_timeout),
        keepalive(backend.keepalive),
    )
}

fn keepalive(time: Option<Duration>) -> String {
    time.map_or_else(
        || "off".to_owned(),
        |idle| format!("after {}", self::time(idle)),
    )
}

fn tcp(address: SocketAddr) -> String {
    match address.port() {
        0 => format!("{}, a port of the system's choice", address.ip()),
        _ => address.to_string(),
    }
}

/// What a code of the RNR timer means, hundredths of a millisecond (InfiniBand specification,
/// table 45).
const RNR_TIMES: [u64; 32] = [
    65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768, 49_152,
];

fn rnr_time(code: u8) -> Duration {
    let hundredths = RNR_TIMES.get(usize::from(code)).unwrap_or(&0);
    Duration::from_micros(hundredths * 10)
}

/// A time in the largest unit that leaves nothing over.
fn time(it: Duration) -> String {
    let micros = it.as_micros();
    match micros {
        0 => "0 s".to_owned(),
        _ if micros.is_multiple_of(1_000_000) => format!("{} s", micros / 1_000_000),
        _ if micros.is_multiple_of(1_000) => format!("{} ms", micros / 1_000),
        _ => format!("{micros} us"),
    }
}

/// Headings, and rows of a label and a text in two columns.
#[derive(Default)]
struct Sheet {
    text: String,
}

impl Sheet {
    fn head(&mut self, heading: &str) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{gap}{heading}");
    }

    fn row(&mut self, label: &str, text: impl fmt::Display) {
        let _ = writeln!(self.text, "  {label:<16}{text}");
    }
}
