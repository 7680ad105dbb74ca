//! `rpcrdma-perf`: load generator and latency microscope for RPC over RDMA.

#![forbid(unsafe_code)]

use anyhow::{Result, bail};
use clap::Parser;
use rpcrdma_perf::args::{Args, Command, Run};
use rpcrdma_perf::bed::Bed;
use rpcrdma_perf::load::Order;
use rpcrdma_perf::report::{Conditions, Report, write_log};
use rpcrdma_perf::{floor, progress};
use std::process::ExitCode;
use std::time::Duration;

/// How long Calls are made before any is measured.
const WARM_UP: Duration = Duration::from_millis(300);

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
    let progress = progress::Progress::new(run.seconds);
    progress.say("measuring the floor");
    let floor = floor::measure(&wanted)?;
    progress.say("connecting");
    let mut bed = Bed::on_threads(wanted)?;
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
    print!("{}", report.table());
    if let Some(path) = &run.json {
        report.write_json(path)?;
    }
    if let Some(path) = &run.hdr {
        write_log(path, &measured.latency, time)?;
    }
    Ok(report.errors)
}
