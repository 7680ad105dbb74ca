//! EAL in this process: its start, its memory, its telemetry, its end.

use super::arguments::{self, Pages};
use super::counters::counters;
use super::memory::Share;
use super::ports;
use crate::supervise::Board;
use anyhow::{Result, anyhow, bail};
use rpcrdma_config::{Plan, plan};
use rpcrdma_fabric::arena::Tract;
use rpcrdma_lcore::eal::{self, Eal, Fault, Level, Socket};
use rpcrdma_sctp::Ports;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::sync::Arc;
use tracing::{debug, error, info, trace, warn};

/// The pages most systems reserve, octets.
const PAGE_BYTES: u64 = 2 << 20;

/// DPDK, entered. Dropped, it ends EAL, unless somebody still has memory of it.
#[derive(Debug)]
pub struct Dpdk {
    eal: Option<&'static Eal>,
}

impl Dpdk {
    /// Starts EAL as the plan wants it: this thread its main lcore, which may use `processors`,
    /// and a worker for each lcore. Nothing where `dpdk.enabled` is false.
    ///
    /// # Errors
    ///
    /// Huge pages are required and there are none, or EAL does not start: with its own words.
    pub fn enter(plan: &Plan, processors: &[usize]) -> Result<Dpdk> {
        let dpdk = plan.dpdk.clone().unwrap_or_default();
        if !dpdk.enabled {
            return Ok(Dpdk { eal: None });
        }
        let runtime = &plan.runtime;
        let advice = reserve(arguments::memory_mib(runtime, &dpdk) << 20);
        let pages = match arguments::pages(runtime.hugepages, &dpdk, has_free_hugepages()) {
            Ok(pages) => pages,
            Err(arguments::NoHugepages) => bail!(
                "runtime.hugepages is \"require\", and the system has none free; {advice}, or set \
                 it to \"try\""
            ),
        };
        if pages == Pages::NoOthers {
            warn!("the system has no huge pages free: EAL runs on ordinary ones; {advice}");
        }
        let arguments = arguments::arguments(runtime, &dpdk, pages);
        let eal = Eal::start(processors, &runtime.lcores, &arguments, hear)
            .map_err(|fault| refused(&fault, &arguments))?;
        info!(
            "EAL of DPDK {} runs {} lcores, on {} pages",
            eal::version(),
            eal.workers().len(),
            if eal.has_hugepages() {
                "huge"
            } else {
                "ordinary"
            },
        );
        Ok(Dpdk { eal: Some(eal) })
    }

    /// Opens the ports of the plan, one for each lcore.
    ///
    /// # Errors
    ///
    /// EAL does not run, or a port cannot be opened: which, and why.
    pub(crate) fn ports(&self, plan: &Plan) -> Result<Ports> {
        let Some(eal) = self.eal else {
            bail!("EAL does not run: dpdk.enabled is false");
        };
        let ports = plan.dpdk.iter().flat_map(|dpdk| &dpdk.ports);
        ports::open(eal, ports, plan.runtime.idle)
    }

    /// Has `/rpcrdmad/counters` of the telemetry socket answered with what hangs at the board.
    ///
    /// # Errors
    ///
    /// DPDK refuses the command.
    pub fn publish(&self, board: &Arc<Board>) -> Result<()> {
        let Some(eal) = self.eal else {
            return Ok(());
        };
        let board = Arc::clone(board);
        let says = move |parameters: &str| counters(&board.families(), parameters);
        let help = c"Counters of the appliance. Parameters: none for all lcores, or an lcore.";
        eal::answer(eal, c"/rpcrdmad/counters", help, Box::new(says))?;
        Ok(())
    }
}

impl Drop for Dpdk {
    fn drop(&mut self) {
        let Some(eal) = self.eal else {
            return;
        };
        eal::hush();
        if !eal.end() {
            debug!("EAL ends with the process: somebody has memory of it");
        }
    }
}

/// EAL's start, refused: its words, ours, and what to do.
fn refused(fault: &Fault, arguments: &[String]) -> anyhow::Error {
    let remedy = match Errno::from_raw_os_error(fault.errno) {
        Errno::INVAL => "look at dpdk.eal_args",
        Errno::ALREADY => "it starts once in a process",
        Errno::ACCESS => {
            "it needs rights to its runtime directory, and to huge pages unless \
             runtime.hugepages is \"off\""
        }
        Errno::NOMEM => "give it less by runtime.memory_mib, or reserve more huge pages",
        Errno::AGAIN | Errno::BUSY => {
            "another process may have its files: give another --file-prefix"
        }
        _ => "look at what it logged before",
    };
    let arguments = arguments.join(" ");
    anyhow!(
        "EAL does not start: {fault}; {remedy}, or set dpdk.enabled to false (its arguments \
         besides lcores: {arguments})"
    )
}

/// How to get so many octets of huge pages.
fn reserve(bytes: u64) -> String {
    let pages = bytes.div_ceil(PAGE_BYTES);
    format!("sysctl vm.nr_hugepages={pages} reserves enough of 2 MiB")
}

/// The system has huge pages that nobody uses.
fn has_free_hugepages() -> bool {
    let Ok(sizes) = std::fs::read_dir("/sys/kernel/mm/hugepages") else {
        return false;
    };
    let free = |size: std::io::Result<std::fs::DirEntry>| {
        let count = std::fs::read_to_string(size.ok()?.path().join("free_hugepages"));
        count.ok()?.trim().parse::<u64>().ok()
    };
    sizes.filter_map(free).any(|free| free > 0)
}

/// DPDK's log in ours. What it calls information is of use to those alone who look for something.
fn hear(level: Level, line: &str) {
    match level {
        Level::Error => error!(target: "dpdk", "{line}"),
        Level::Warning => warn!(target: "dpdk", "{line}"),
        Level::Info => debug!(target: "dpdk", "{line}"),
        Level::Debug => trace!(target: "dpdk", "{line}"),
    }
}

pub(super) fn version() -> Option<String> {
    Some(eal::version())
}

/// EAL's memory for the lcores of each NUMA node, in one zone each; in one for all where it is on
/// ordinary pages, which know no nodes. Nodes that EAL has too little for are left out, unless
/// huge pages are required.
pub(super) fn shares(plan: &Plan, node_of: impl Fn(usize) -> Option<u32>) -> Result<Vec<Share>> {
    let Some(eal) = Eal::running() else {
        return Ok(Vec::new());
    };
    let mut nodes = BTreeMap::<Option<u32>, Vec<usize>>::new();
    for &processor in &plan.runtime.lcores {
        let node = node_of(processor).filter(|_| eal.has_hugepages());
        nodes.entry(node).or_default().push(processor);
    }
    let mut shares = Vec::new();
    for (node, processors) in nodes {
        let bytes = plan.runtime.memory_bytes;
        let bytes = bytes.saturating_mul(processors.len() as u64);
        match tract(eal, node, bytes) {
            Ok(tract) => shares.push(Share { processors, tract }),
            Err(fault) if eal.has_hugepages() => short(eal, plan, node, bytes, &fault)?,
            Err(fault) => warn!(
                "EAL has no {} MiB in one piece ({fault}): memory of the system instead; give no -m \
                 in dpdk.eal_args, and it gets enough",
                bytes >> 20
            ),
        }
    }
    Ok(shares)
}

fn tract(eal: &'static Eal, node: Option<u32>, bytes: u64) -> Result<Tract, Fault> {
    let (name, socket) = match node {
        None => ("rpcrdmad-arenas".to_owned(), Socket::Any),
        Some(node) => (format!("rpcrdmad-arenas-{node}"), Socket::Number(node)),
    };
    eal::tract(eal, &name, bytes, socket)
}

/// EAL has less than that of huge pages at a node.
fn short(eal: &Eal, plan: &Plan, node: Option<u32>, bytes: u64, fault: &Fault) -> Result<()> {
    let place = node.map_or_else(String::new, |node| format!(" at NUMA node {node}"));
    let (mib, mut advice) = (bytes >> 20, reserve(bytes));
    if !eal.gives_devices_virtual_addresses() {
        advice.push_str("; without --iova-mode=pa they need not be one piece of physical memory");
    }
    let what = format!("EAL has no {mib} MiB of huge pages{place} ({fault})");
    if plan.runtime.hugepages == plan::Hugepages::Require {
        bail!("{what}, and runtime.hugepages is \"require\"; {advice}");
    }
    warn!("{what}: memory of the system instead; {advice}");
    Ok(())
}
