//! `rpcrdmad status`.

use super::output::say;
use super::{environment, user};
use crate::cli::Status;
use crate::status::{ask, parse};
use anyhow::Result;
use std::process::ExitCode;

pub(super) fn status(options: &Status) -> Result<ExitCode> {
    let places = match &options.socket {
        Some(path) => vec![path.clone()],
        None => rpcrdma_config::status_sockets(user(), environment),
    };
    let text = ask(&places)?;
    // Read in both cases: half a document is none, and must not pass for one.
    let document = parse(&text)?;
    if options.json {
        say(&text)?;
    } else {
        say(&document.to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}
