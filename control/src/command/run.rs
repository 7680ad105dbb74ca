//! `rpcrdmad run`.

use super::addresses::Door;
use super::output::{complain, say};
use super::{proof, rdma, sctp, this_machine};
use crate::cli::Run;
use crate::dpdk::Dpdk;
use crate::logging;
use crate::metrics::Metrics;
use crate::selftest::{self, Progress, Report};
use crate::signals::Signals;
use crate::status::StatusSocket;
use crate::supervise::{Board, Handle, Reread, Supervisor};
use anyhow::{Context, Result, bail};
use rpcrdma_config::plan::{Fabric, Log, Packets};
use rpcrdma_config::{Machine, Plan, load};
use rpcrdma_fabric::connect;
use rpcrdma_memory::MemoryFabric;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use tempfile::TempDir;

pub(super) fn run(options: &Run) -> Result<ExitCode> {
    let machine = this_machine()?;
    let (plan, scratch) = match plan(options, &machine)? {
        Ok(planned) => planned,
        Err(error) => {
            complain(error);
            return Ok(ExitCode::FAILURE);
        }
    };
    if options.print {
        say(&plan.print())?;
        return Ok(ExitCode::SUCCESS);
    }
    // Before anything is started, so that no moment is left in which a signal kills.
    let signals = Signals::take_over().context("cannot handle signals")?;
    // Before all threads but its own, and until all memory of it is gone.
    let dpdk = Dpdk::enter(&plan, &machine.cores)?;
    logging::follow(plan.runtime.log);
    let parts = Parts {
        options,
        machine: &machine,
        plan: &plan,
        scratch: scratch.as_ref(),
        signals,
        dpdk: &dpdk,
    };
    match plan.fabric {
        Fabric::Memory => parts.run(MemoryFabric::new()),
        Fabric::Verbs => parts.run(rdma::fabric(&plan.verbs)?),
        Fabric::IwarpSctp => match plan.iwarp_sctp.packets {
            Packets::Udp => parts.run(sctp::in_udp(&plan.iwarp_sctp)?),
            Packets::Native => parts.run(sctp::native(&plan.iwarp_sctp)?),
            Packets::Dpdk => parts.run(sctp::by_port(&plan, &dpdk)?),
        },
    }
}

/// What an appliance is run with, on whichever fabric.
struct Parts<'a> {
    options: &'a Run,
    machine: &'a Machine,
    plan: &'a Plan,
    scratch: Option<&'a TempDir>,
    signals: Signals,
    dpdk: &'a Dpdk,
}

impl Parts<'_> {
    fn run<F: connect::Fabric>(self, fabric: F) -> Result<ExitCode> {
        let (options, plan) = (self.options, self.plan);
        let mut supervisor = Supervisor::start(plan.clone(), fabric)?;
        if let Some(reread) = reread(options, self.machine, plan.runtime.log) {
            supervisor = supervisor.with_reread(reread);
        }
        let doors = doors(plan, &supervisor.back_addresses());
        let handle = supervisor.handle();
        self.dpdk.publish(handle.board())?;
        let servers = Servers::start(plan, handle.board())?;
        if options.self_test {
            let test = begin_self_test(plan, &doors, handle)?;
            supervisor.run(Some(self.signals))?;
            let Ok(report) = test.join() else {
                bail!("the self-test has panicked")
            };
            return finish_self_test(options, &report);
        }
        say(&announcement(plan, &doors, &servers, self.scratch))?;
        supervisor.run(Some(self.signals))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The plan, with what the command line says laid over it, and the scratch directory it serves
/// if there is one. The inner error is the operator's, and says all that is wrong.
fn plan(
    options: &Run,
    machine: &Machine,
) -> Result<Result<(Plan, Option<TempDir>), rpcrdma_config::Error>> {
    let mut scratch = None;
    let planned = match &options.config {
        Some(file) => load(file, machine),
        None => {
            let directory = match &options.export {
                Some(directory) => std::path::absolute(directory)?,
                None if options.print => std::env::temp_dir(),
                None => scratch.insert(scratch_directory()?).path().to_owned(),
            };
            rpcrdma_config::embedded(&directory, machine)
        }
    };
    let mut plan = match planned {
        Ok(plan) => plan,
        Err(error) => return Ok(Err(error)),
    };
    if let (Some(port), Some(back)) = (options.nfs_port, plan.backs.first_mut()) {
        back.listen.set_port(port);
    }
    place_socket(options, &mut plan);
    Ok(Ok((plan, scratch)))
}

/// The status socket, where the command line has a say.
fn place_socket(options: &Run, plan: &mut Plan) {
    if let Some(path) = &options.socket {
        plan.status = Some(path.clone());
    } else if options.self_test {
        // It may run beside the appliance whose place that is.
        plan.status = None;
    }
}

/// Reads the file again, where there is one, for the machine as it was at start.
fn reread(options: &Run, machine: &Machine, log: Log) -> Option<Reread> {
    let file = options.config.clone()?;
    let (options, machine) = (options.clone(), machine.clone());
    Some(Box::new(move || {
        let mut plan = load(&file, &machine).map_err(|error| error.to_string())?;
        place_socket(&options, &mut plan);
        if logging::is_fixed() {
            plan.runtime.log = log;
        }
        Ok(plan)
    }))
}

fn scratch_directory() -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix("rpcrdmad-")
        .tempdir()
        .context("cannot make a scratch directory; name one to serve with --export")
}

/// The doors for NFS clients, in the order of the plan.
fn doors(plan: &Plan, listening: &[(String, SocketAddr)]) -> Vec<Door> {
    let door = |(name, address): &(String, _)| {
        let back = plan.backs.iter().find(|back| back.name == *name)?;
        Door::of(plan, back, *address)
    };
    listening.iter().filter_map(door).collect()
}

/// What answers questions about the appliance while it runs.
struct Servers {
    metrics: Option<Metrics>,
    status: Option<StatusSocket>,
}

impl Servers {
    fn start(plan: &Plan, board: &Arc<Board>) -> Result<Self> {
        let metrics = plan.metrics.map(|metrics| {
            let board = Arc::clone(board);
            Metrics::start(metrics.address, move || board.families())
                .with_context(|| format!("metrics.address {}", metrics.address))
        });
        let status = plan.status.as_deref().map(|path| {
            let board = Arc::clone(board);
            StatusSocket::start(path, move || board.document()).with_context(|| {
                format!("status socket {} (--socket names another)", path.display())
            })
        });
        Ok(Self {
            metrics: metrics.transpose()?,
            status: status.transpose()?,
        })
    }
}

/// What there is now and how to use it, for people.
fn announcement(
    plan: &Plan,
    doors: &[Door],
    servers: &Servers,
    scratch: Option<&TempDir>,
) -> String {
    let mut text = String::new();
    if let Some(export) = &plan.export {
        let fate = if scratch.is_some() {
            ", which is removed at the end"
        } else {
            ""
        };
        let _ = writeln!(text, "serving {}{fate}", export.directory.display());
    }
    for door in doors {
        let _ = write!(text, "NFS clients, by TCP:\n{}", door.advice());
    }
    if let Some(metrics) = &servers.metrics {
        let _ = writeln!(text, "counters: http://{}/metrics", metrics.address());
    }
    if let Some(status) = &servers.status {
        let _ = writeln!(
            text,
            "status: rpcrdmad status --socket {}",
            status.path().display()
        );
    }
    let _ = writeln!(text, "SIGTERM or Ctrl-C drains; a second one ends at once");
    text
}

/// Starts the client on a thread of its own; when it is through, the appliance drains.
fn begin_self_test(plan: &Plan, doors: &[Door], handle: Handle) -> Result<JoinHandle<Report>> {
    let Some(door) = doors.first().cloned() else {
        bail!("no back of this configuration leads to an NFS server: nothing to test");
    };
    let directory = plan.export.as_ref().map(|export| export.directory.clone());
    let test = move || {
        // Drains however this ends: the main thread waits for that.
        let drain = DrainAtEnd(handle);
        test(&door, directory.as_deref(), drain.0.board())
    };
    Ok(std::thread::Builder::new()
        .name("self-test".into())
        .spawn(test)?)
}

struct DrainAtEnd(Handle);

impl Drop for DrainAtEnd {
    fn drop(&mut self) {
        self.0.drain();
    }
}

fn test(door: &Door, directory: Option<&Path>, board: &Board) -> Report {
    let before = board.document();
    let directory = directory.map(Path::to_owned);
    let plan = selftest::Plan::new(door.address, door.address, door.path, directory);
    let mut report = selftest::run(&plan, &Progress::on_terminal());
    proof::add(&mut report, &before, &board.document());
    report
}

fn finish_self_test(options: &Run, report: &Report) -> Result<ExitCode> {
    if options.json {
        say(&(serde_json::to_string_pretty(report)? + "\n"))?;
    } else {
        say(&report.to_string())?;
    }
    Ok(if report.passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
