//! `rpcrdmad check`.

use super::output::{complain, say};
use super::this_machine;
use crate::cli::Check;
use anyhow::Result;
use std::process::ExitCode;

pub(super) fn check(options: &Check) -> Result<ExitCode> {
    match rpcrdma_config::load(&options.file, &this_machine()?) {
        Ok(plan) => {
            if options.print {
                say(&plan.print())?;
            } else {
                say(&format!("{}: good\n", options.file.display()))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            complain(error);
            Ok(ExitCode::FAILURE)
        }
    }
}
