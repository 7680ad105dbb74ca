//! What EAL is started with: the operator's arguments, and those that follow from the plan.

use super::ports;
use rpcrdma_config::plan::{Dpdk, Hugepages, Runtime};

/// Octets that EAL needs of its memory besides the arenas, on ordinary pages: it takes all at
/// its start, and cannot get more.
const BESIDES_MIB: u64 = 64;
/// A mebibyte, octets.
const MIB: u64 = 1 << 20;
/// Options that say where EAL has its memory from. One of them is enough for us not to.
const MEMORY: [&str; 4] = ["--in-memory", "--huge-dir", "--huge-unlink", "--legacy-mem"];

/// The pages that EAL's memory is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    /// Huge ones, taken as they are needed.
    Huge,
    /// Ordinary ones, because that is wanted.
    Ordinary,
    /// Ordinary ones, because there are no others.
    NoOthers,
}

/// At each start telemetry warns that it lacks a socket of the past, which nobody misses.
const QUIET: &str = "--log-level=lib.telemetry:error";

/// Why EAL cannot be started at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoHugepages;

/// Which pages it will be. `free`: the system has huge pages that nobody uses.
pub(super) fn pages(wanted: Hugepages, dpdk: &Dpdk, free: bool) -> Result<Pages, NoHugepages> {
    let declined = has(&dpdk.eal_args, "--no-huge") || wanted == Hugepages::Off;
    match (wanted, free) {
        _ if declined => Ok(Pages::Ordinary),
        (_, true) => Ok(Pages::Huge),
        (Hugepages::Require, false) => Err(NoHugepages),
        (_, false) => Ok(Pages::NoOthers),
    }
}

/// The arguments, without those that name lcores.
pub(super) fn arguments(runtime: &Runtime, dpdk: &Dpdk, pages: Pages) -> Vec<String> {
    // First, so that the operator's word counts after it.
    let mut all = vec![QUIET.to_owned()];
    all.extend_from_slice(&dpdk.eal_args);
    all.extend(dpdk.ports.iter().map(|port| port.device.eal_arg()));
    let mut add = |names: &[&str], arguments: &[&str]| {
        if !names.iter().any(|name| has(&dpdk.eal_args, name)) {
            all.extend(arguments.iter().map(|&argument| argument.to_owned()));
        }
    };
    let total = memory_mib(runtime, dpdk).to_string();
    match pages {
        // No files, so no rights are needed beyond the pages, and nothing is left behind.
        Pages::Huge => add(&MEMORY, &["--in-memory"]),
        Pages::Ordinary | Pages::NoOthers => {
            add(&["--no-huge"], &["--no-huge"]);
            add(&["--no-shconf"], &["--no-shconf"]);
            add(&["-m", "--socket-mem"], &["-m", &total]);
        }
    }
    add(&["--file-prefix"], &["--file-prefix", "rpcrdmad"]);
    // Adapters are given virtual addresses: a long zone need not be in one physical piece.
    add(&["--iova-mode"], &["--iova-mode=va"]);
    all
}

/// EAL's memory where it takes all of it at its start, mebibytes.
pub(super) fn memory_mib(runtime: &Runtime, dpdk: &Dpdk) -> u64 {
    let arenas = runtime
        .memory_bytes
        .saturating_mul(runtime.lcores.len() as u64);
    let pools = dpdk.ports.iter().map(|port| ports::plan(port).pool_bytes());
    let all = pools.fold(arenas, u64::saturating_add);
    all.div_ceil(MIB).saturating_add(BESIDES_MIB)
}

/// Whether an option is among the arguments: alone, or with its value behind it.
fn has(arguments: &[String], option: &str) -> bool {
    let is_it = |argument: &String| match argument.strip_prefix(option) {
        None => false,
        Some(rest) => rest.is_empty() || rest.starts_with('=') || !option.starts_with("--"),
    };
    arguments.iter().any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpcrdma_config::plan::{Idle, Log};
    use rpcrdma_config::port::{Port, PortDevice};
    use std::time::Duration;

    fn runtime() -> Runtime {
        Runtime {
            lcores: vec![1, 2],
            idle: Idle::Spin,
            memory_bytes: 256 << 20,
            hugepages: Hugepages::Try,
            connections_max: 1,
            drain_timeout: Duration::ZERO,
            log: Log::Info,
        }
    }

    fn dpdk(arguments: &[&str]) -> Dpdk {
        Dpdk {
            enabled: true,
            eal_args: arguments.iter().map(|&it| it.to_owned()).collect(),
            ports: Vec::new(),
        }
    }

    fn line(given: &[&str], pages: Pages) -> String {
        let line = arguments(&runtime(), &dpdk(given), pages).join(" ");
        let rest = line.strip_prefix(QUIET).expect("first").trim_start();
        rest.to_owned()
    }

    #[test]
    fn what_is_not_given_is_derived() {
        assert_eq!(
            line(&["--no-pci"], Pages::Huge),
            "--no-pci --in-memory --file-prefix rpcrdmad --iova-mode=va"
        );
        assert_eq!(
            line(&[], Pages::NoOthers),
            "--no-huge --no-shconf -m 576 --file-prefix rpcrdmad --iova-mode=va"
        );
    }

    #[test]
    fn ports_bring_their_device_and_their_memory() {
        let port = |device| Port {
            device,
            address: "10.9.0.1/24".parse().expect("a prefix"),
            gateway: None,
            mtu: 1500,
        };
        let mut dpdk = dpdk(&[]);
        dpdk.ports = vec![
            port(PortDevice::Virtual("net_memif0,role=client".to_owned())),
            port(PortDevice::Pci("0000:01:00.0".to_owned())),
        ];
        let line = arguments(&runtime(), &dpdk, Pages::Ordinary).join(" ");
        for expected in ["--vdev=net_memif0,role=client", "--allow=0000:01:00.0"] {
            assert!(line.contains(expected), "{line}");
        }
        let bare = Dpdk {
            ports: Vec::new(),
            ..dpdk.clone()
        };
        let pools = memory_mib(&runtime(), &dpdk) - memory_mib(&runtime(), &bare);
        assert!((32..64).contains(&pools), "{pools} MiB");
    }

    #[test]
    fn what_is_given_is_left_alone() {
        let given = "--no-huge --no-shconf -m900 --file-prefix=a --iova-mode pa";
        let words: Vec<_> = given.split(' ').collect();
        assert_eq!(line(&words, Pages::Ordinary), given);
        let given = ["--huge-dir", "/mnt", "--file-prefix=a", "--iova-mode=pa"];
        assert_eq!(line(&given, Pages::Huge), given.join(" "));
    }

    #[test]
    fn pages_are_huge_where_that_is_wanted_and_can_be() {
        use Hugepages::{Off, Require, Try};
        let plain = dpdk(&[]);
        assert_eq!(pages(Try, &plain, true), Ok(Pages::Huge));
        assert_eq!(pages(Try, &plain, false), Ok(Pages::NoOthers));
        assert_eq!(pages(Require, &plain, true), Ok(Pages::Huge));
        assert_eq!(pages(Require, &plain, false), Err(NoHugepages));
        assert_eq!(pages(Off, &plain, true), Ok(Pages::Ordinary));
        assert_eq!(pages(Try, &dpdk(&["--no-huge"]), true), Ok(Pages::Ordinary));
    }
}
