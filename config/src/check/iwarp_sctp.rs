//! Native SCTP against what goes with packets in UDP alone.

use crate::Machine;
use crate::error::Problems;
use crate::file::File;
use crate::form::Lcores;
use crate::plan::{Fabric, Packets};
use crate::resolve::lcores;
use crate::section::At;

pub(super) fn check(file: &File, machine: &Machine, problems: &Problems<'_>) {
    let native = |it: &&At<Packets>| it.value == Packets::Native;
    let Some(packets) = file.iwarp_sctp.packets.as_ref().filter(native) else {
        return;
    };
    if let Some(port) = &file.iwarp_sctp.sctp_port {
        let what = "has no effect where packets are \"native\"";
        let remedy = "remove it; the ports of listen and upstream are those of SCTP then";
        problems.add(&port.origin, what, remedy);
    }
    let wanted = file.runtime.lcores.as_ref().map(|at| &at.value);
    let count = lcores(wanted.unwrap_or(&Lcores::Auto), &machine.cores).len();
    let fronts = file.fronts.iter().map(|it| &it.listener);
    let services = file.services.iter().map(|it| &it.listener);
    let heard = fronts
        .chain(services)
        .any(|it| it.fabric.known == Some(Fabric::IwarpSctp));
    if heard && count > 1 {
        let what = format!("is heard on one lcore alone, and there are {count}");
        problems.add(&packets.origin, what, "set runtime.lcores = 1");
    }
}
