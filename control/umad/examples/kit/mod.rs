//! What the examples share: a port as this machine has it, and being taken for a subnet manager on it.

use anyhow::{Context, Result};
use rpcrdma_umad::{Arrived, Class, Reply, Settings, Subnet, Umad, ports};
use std::process::ExitCode;

/// SMInfo (IBA 14.2.5.13).
const SM_INFO: [u8; 2] = [0x00, 0x20];
const METHOD: usize = 3;
const GET_RESP: u8 = 0x81;
/// The bit of the status that says that an SMP is on its way back.
const BACK: u8 = 0x80;
const DATA: usize = 64;

/// Opens the first port of this machine. A simulator sends reports to subnet managers alone; so where `SIM_SET_ISSM` flags
/// this node as one, it has to answer when a real one asks.
pub(crate) fn open() -> Result<Umad> {
    let settings = Settings {
        hears_smps: std::env::var_os("SIM_SET_ISSM").is_some(),
        ..Settings::default()
    };
    let name = ports()?.into_iter().next().context("there is no port")?;
    Ok(Umad::open(&name, settings)?)
}

/// Answers a subnet manager that asks what kind of one this is: one that is not active. Any other request is left alone.
pub(crate) fn answer_manager(port: &mut Umad, request: &Arrived) -> Result<()> {
    if request.class != Class::DirectedRoute || request.mad[16..18] != SM_INFO {
        return Ok(());
    }
    let mut answer = request.mad.clone();
    answer[METHOD] = GET_RESP;
    answer[4] = BACK;
    answer[DATA..DATA + 64].fill(0);
    answer[DATA..DATA + 8].copy_from_slice(&port.facts().guid.0.to_be_bytes());
    let back = request.source.target();
    port.send(Class::DirectedRoute, back, &answer, Reply::No)?;
    Ok(())
}

/// One line to stderr instead of a trace.
pub(crate) fn report(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
