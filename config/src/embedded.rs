//! The plan of `rpcrdmad run` without a file.

use crate::Machine;
use crate::error::Error;
use crate::parse::parse;
use crate::plan::Plan;
use std::path::Path;

/// The file it is made of: one of the examples, so that an operator can start from it.
pub const EMBEDDED: &str = include_str!("../examples/embedded.toml");

/// A directory served by the embedded NFSv3 server, behind a front and a back that are joined by
/// the memory fabric. All TCP ports are chosen by the system, all addresses are loopback.
///
/// # Errors
/// Where the machine is too small for it: no processor at all. `directory` is taken as it is.
pub fn embedded(directory: &Path, machine: &Machine) -> Result<Plan, Error> {
    let mut plan = parse("embedded.toml", EMBEDDED, machine)?;
    if let Some(export) = &mut plan.export {
        directory.clone_into(&mut export.directory);
    }
    Ok(plan)
}
