//! `rpcrdma-perf`: load generator and latency microscope for RPC over RDMA.

#![forbid(unsafe_code)]

use anyhow::{Context, Result, bail};
use clap::Parser;
use rpcrdma_fabric::connect::Fabric;
#[cfg(feature = "dpdk")]
use rpcrdma_iwarp_sctp::ByPort;
use rpcrdma_iwarp_sctp::{InUdp, IwarpFabric};
use rpcrdma_memory::MemoryFabric;
use rpcrdma_perf::args::{Args, Command, ExposeBy, FabricName, OnFabric, Run, Serve};
use rpcrdma_perf::bed::{Bed, Place};
use rpcrdma_perf::load::Order;
use rpcrdma_perf::report::{Conditions, Report, write_log};
use rpcrdma_perf::{floor, progress};
use rpcrdma_verbs::{Expose, Settings, VerbsFabric};
use std::fmt::Display;
use std::fs::File;
use std::io::{Write, stderr, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// How long Calls are made before any is measured.
const WARM_UP: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Run(run) => on_fabric(&run),
        Command::Serve(serve) => self::serve(&serve).map(|()| 0),
    };
    match done {
        Ok(0) => ExitCode::SUCCESS,
        Ok(errors) => {
            complain(format_args!(
                "rpcrdma-perf: {errors} call(s) failed or were answered wrongly"
            ));
            ExitCode::FAILURE
        }
        Err(error) => {
            complain(format_args!("rpcrdma-perf: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Says something on standard error. Where that cannot be, nobody could be told.
fn complain(what: impl Display) {
    let _ = writeln!(stderr(), "{what}");
}

fn on_fabric(run: &Run) -> Result<u64> {
    match run.on.fabric {
        FabricName::Memory => measure(run, || Ok(MemoryFabric::new())),
        FabricName::Verbs => measure(run, || verbs(&run.on)),
        #[cfg(feature = "dpdk")]
        FabricName::IwarpSctp if run.on.port.is_some() => measure(run, || by_port(&run.on)),
        FabricName::IwarpSctp => measure(run, iwarp_sctp),
    }
}

/// RDMA in software, on SCTP in UDP.
fn iwarp_sctp() -> Result<IwarpFabric<InUdp>> {
    let settings = rpcrdma_iwarp_sctp::Settings::default();
    IwarpFabric::in_udp(settings, rpcrdma_sctp::Settings::default()).context("--fabric iwarp-sctp")
}

/// The same, by a port of DPDK, which belongs to one lcore.
#[cfg(feature = "dpdk")]
fn by_port(on: &OnFabric) -> Result<IwarpFabric<ByPort>> {
    let port = on.port.as_ref().context("--port is missing")?;
    rpcrdma_perf::port::fabric(port).context("--fabric iwarp-sctp --port")
}

fn verbs(on: &OnFabric) -> Result<VerbsFabric> {
    let settings = Settings {
        devices: on.device.iter().cloned().collect(),
        expose: match on.expose {
            ExposeBy::Auto => Expose::Auto,
            ExposeBy::Window => Expose::Window,
            ExposeBy::Region => Expose::Region,
            ExposeBy::Arena => Expose::Arena,
        },
        ..Settings::default()
    };
    VerbsFabric::new(settings).context("--fabric verbs")
}

/// Answers calls until the process is killed.
fn serve(options: &Serve) -> Result<()> {
    options.on.check()?;
    match options.on.fabric {
        FabricName::Memory => bail!(
            "serve: the memory fabric is within this process; give --fabric verbs or iwarp-sctp"
        ),
        FabricName::Verbs => serve_on(options, verbs(&options.on)?),
        #[cfg(feature = "dpdk")]
        FabricName::IwarpSctp if options.on.port.is_some() => {
            serve_on(options, by_port(&options.on)?)
        }
        FabricName::IwarpSctp => serve_on(options, iwarp_sctp()?),
    }
}

fn serve_on<F: Fabric>(options: &Serve, fabric: F) -> Result<()> {
    let place = Place::Serving(options.listen.to_string());
    let mut bed = Bed::on_threads(options.wanted(), fabric, place)?;
    complain(format_args!("serving at {}", bed.address()));
    bed.serve(|| false, |line| complain(line))
}

/// Measures the floor, then the load. How many Calls went wrong.
fn measure<F: Fabric>(run: &Run, make: impl Fn() -> Result<F> + Sync) -> Result<u64> {
    let place = run.place()?;
    // Before anything is measured: a path with a slip in it must not cost the measurement.
    let json = run.json.as_deref().map(create).transpose()?;
    let hdr = run.hdr.as_deref().map(create).transpose()?;
    let wanted = run.wanted()?;
    let progress = progress::Progress::new(run.seconds);
    progress.say("measuring the floor");
    let here = match &place {
        // One lcore has both ends there, and the floor would need two.
        Place::Here(_) if run.on.fabric == FabricName::IwarpSctp => None,
        Place::Here(address) => Some(address.as_str()),
        Place::There(_) | Place::Serving(_) => None,
    };
    let floor = floor::measure(&wanted, &make, here)?;
    progress.say("connecting");
    let mut bed = Bed::on_threads(wanted, make()?, place)?;
    bed.run_for(WARM_UP, |_| progress.say("warming up"));
    bed.order_loads(Order::Measure)?;
    let time = Duration::from_secs_f64(run.seconds);
    let begun = std::time::Instant::now();
    bed.run_for(time, |elapsed| progress.at(elapsed));
    let time = begun.elapsed();
    let measured = bed.finish()?;
    progress.clear();

    let conditions = Conditions {
        fabric: run.on.fabric.name(),
        workload: wanted.workload,
        size: run.size,
        depth: wanted.depth,
        connections: wanted.connections,
        lcores: wanted.lcores,
        version: wanted.version.code(),
        time,
    };
    let report = Report::new(conditions, &measured, floor);
    if let Some(file) = json {
        report.write_json(file).context("writing --json")?;
    }
    if let Some(file) = hdr {
        write_log(file, &measured.latency, time).context("writing --hdr")?;
    }
    let table = report.table();
    stdout()
        .write_all(table.as_bytes())
        .context("cannot write to standard output")?;
    Ok(report.errors)
}

fn create(path: &Path) -> Result<File> {
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
}
