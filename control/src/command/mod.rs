//! What each command does. All of them end with an exit code; what they cannot do is an error
//! with its reasons in a chain.

mod addresses;
mod check;
mod decode;
mod output;
mod proof;
pub(crate) mod rdma;
mod run;
mod sctp;
mod status;

pub use output::complain;

use crate::cli::{Cli, Command};
use anyhow::Result;
use rpcrdma_config::Machine;
use std::process::ExitCode;

/// Does what the command line says.
///
/// # Errors
///
/// It could not be begun, or not be brought to its end.
pub fn execute(cli: &Cli) -> Result<ExitCode> {
    match &cli.command {
        Command::Run(options) => run::run(options),
        Command::Check(options) => check::check(options),
        Command::Status(options) => status::status(options),
        Command::Decode(options) => decode::decode(options),
        Command::Devices => rdma::devices(),
    }
}

/// This machine, as far as a plan has to know it.
fn this_machine() -> Result<Machine> {
    let mask = rustix::thread::sched_getaffinity(None)?;
    let cores = (0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|&core| mask.is_set(core))
        .collect();
    Ok(Machine::new(cores, user(), environment))
}

fn user() -> u32 {
    rustix::process::getuid().as_raw()
}

fn environment(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}
