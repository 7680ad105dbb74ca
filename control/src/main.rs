//! `rpcrdmad`: reads the command line, and leaves the rest to the library.

#![forbid(unsafe_code)]

use clap::Parser;
use rpcrdmad::cli::Cli;
use rpcrdmad::{command, logging};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let _lines = logging::start(cli.log.map(Into::into));
    match command::execute(&cli) {
        Ok(code) => code,
        Err(error) => {
            command::complain(format_args!("rpcrdmad: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
