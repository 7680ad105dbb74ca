//! `rpcrdma-perf`: load generator and latency microscope for RPC over RDMA.

#![forbid(unsafe_code)]

use anyhow::{Context, Result, bail};
use clap::Parser;
use rpcrdma_memory::MemoryFabric;
use rpcrdma_perf::args::{Args, Command, Run};
use rpcrdma_perf::bed::{Bed, Place};
use rpcrdma_perf::load::Order;
use rpcrdma_perf::report::{Conditions, Report, write_log};
use rpcrdma_perf::{floor, progress};
use std::fs::File;
use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// How long Calls are made before any is measured.
const WARM_UP: Duration = Duration::from_millis(300);

/// The name of the service in the memory fabric.
const SERVICE: &str = "rpcrdma-perf";

fn main() -> ExitCode {
    let Command::Run(run) = Args::parse().command;
    match measure(&run) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(errors) => {
            eprintln!("rpcrdma-perf: {errors} call(s) failed or were answered wrongly");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("rpcrdma-perf: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Measures the floor, then the load. How many Calls went wrong.
fn measure(run: &Run) -> Result<u64> {
    let wanted = run.wanted()?;
    if run.fabric != "memory" {
        bail!("--fabric {}: this build has: memory", run.fabric);
    }
    // Before anything is measured: a path with a slip in it must not cost the measurement.
    let json = run.json.as_deref().map(create).transpose()?;
    let hdr = run.hdr.as_deref().map(create).transpose()?;
    let progress = progress::Progress::new(run.seconds);
    progress.say("measuring the floor");
    let floor = floor::measure(&wanted, || Ok(MemoryFabric::new()), Some(SERVICE))?;
    progress.say("connecting");
    let mut bed = Bed::on_threads(wanted, MemoryFabric::new(), Place::Here(SERVICE.into()))?;
    bed.run_for(WARM_UP, |_| progress.say("warming up"));
    bed.order_loads(Order::Measure)?;
    let time = Duration::from_secs_f64(run.seconds);
    let begun = std::time::Instant::now();
    bed.run_for(time, |elapsed| progress.at(elapsed));
    let time = begun.elapsed();
    let measured = bed.finish()?;
    progress.clear();

    let conditions = Conditions {
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
