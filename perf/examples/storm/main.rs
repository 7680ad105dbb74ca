//! What a storm of reports on the control thread costs an lcore, both in one process as they are in an appliance.
//!
//! ```text
//!   last processor    one lcore: NULL, one Call at a time, requester and responder, fabric of memory
//!   first processor   control:   a link with a thousand groups, and ten thousand reports a second of groups that came and went
//! ```
//!
//! The lcore never stops. It is measured in rounds of three windows, one with control's links and their storm and two with neither,
//! in each order in turn: what drifts in the machine drifts for all. What the two without differ by tells what the measurement is good for.
//!
//! `cargo run --release -p rpcrdma-perf --example storm -- [--rounds N] [--seconds S] [--json FILE]`

#![forbid(unsafe_code)]

mod control;
mod figures;
mod measure;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use control::Storm;
use figures::Figures;
use measure::Plan;
use rpcrdma_perf::progress::Progress;
use std::fs::File;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::Duration;

/// What a storm of reports on the control thread costs an lcore.
#[derive(Debug, Parser)]
struct Args {
    /// Rounds of three windows, one with the storm and two without; of fewer than nine no bounds could be told.
    #[arg(long, default_value_t = 102, value_name = "N", value_parser = clap::value_parser!(u32).range(9..=1000))]
    rounds: u32,
    /// Length of each window.
    #[arg(long, default_value_t = 0.3, value_name = "S")]
    seconds: f64,
    /// Groups joined.
    #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_000))]
    groups: u32,
    /// Reports a second.
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    reports: u32,
    /// Write the figures as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    ensure!(
        args.seconds > 0.0 && args.seconds <= 3_600.0,
        "--seconds {}: more than 0, at most 3600",
        args.seconds
    );
    // Before anything is measured: a path with a slip in it must not cost the measurement.
    let json = args.json.map(|path| {
        let file = File::create(&path);
        file.with_context(|| format!("cannot write {}", path.display()))
    });
    let json = json.transpose()?;
    let plan = Plan {
        rounds: args.rounds,
        window: Duration::from_secs_f64(args.seconds),
        storm: Storm {
            groups: args.groups,
            per_second: args.reports,
        },
    };
    let progress = Progress::new(args.seconds);
    let rounds = measure::rounds(&plan, |what| progress.say(what))?;
    progress.clear();
    let figures = Figures::of(&plan, &rounds);
    if let Some(mut file) = json {
        let text = serde_json::to_string_pretty(&figures)? + "\n";
        file.write_all(text.as_bytes()).context("writing --json")?;
    }
    let table = figures.table();
    let written = stdout().write_all(table.as_bytes());
    written.context("cannot write to standard output")
}
