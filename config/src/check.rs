//! Rules over several values: each a function that walks the mirror and notes what breaks it.
//!
//! A value that was refused on its own is absent here, so one mistake is one message. The
//! complaint stands at the later of two values that collide, and names the earlier one.

mod dpdk;
mod endpoints;
mod iwarp_sctp;
mod link;
mod memory;
mod sockets;
mod transport;

pub(crate) use transport::VERSION_TWO_INLINE;

use crate::Machine;
use crate::error::{Origin, Problems};
use crate::file::File;

/// Notes everything that values do to each other.
pub(crate) fn all(file: &File, machine: &Machine, problems: &Problems<'_>) {
    something_to_do(file, problems);
    somewhere_to_run(file, machine, problems);
    idle(file, problems);
    dpdk::check(file, machine, problems);
    endpoints::check(file, problems);
    iwarp_sctp::check(file, machine, problems);
    link::check(file, problems);
    sockets::check(file, problems);
    transport::check(file, problems);
    memory::check(file, machine, problems);
}

fn something_to_do(file: &File, problems: &Problems<'_>) {
    let nothing = file.fronts.is_empty() && file.backs.is_empty() && file.services.is_empty();
    if nothing && problems.is_empty() {
        let file = Origin {
            offset: 0,
            key: String::new(),
            value: String::new(),
        };
        let remedy = "add a [[front]], [[back]] or [[service]]";
        problems.add(&file, "the file opens nothing", remedy);
    }
}

fn somewhere_to_run(file: &File, machine: &Machine, problems: &Problems<'_>) {
    if machine.cores.is_empty() {
        let remedy = "look at the CPU affinity it is started with";
        let what = "there is no processor that this process may use";
        problems.add(&file.runtime.origin, what, remedy);
    }
}

fn idle(file: &File, problems: &Problems<'_>) {
    use crate::words::IdleWord::Spin;
    let spins = file
        .runtime
        .idle
        .as_ref()
        .is_some_and(|idle| idle.value == Spin);
    if let (true, Some(time)) = (spins, &file.runtime.idle_spin) {
        let remedy = "remove it, or set runtime.idle to \"adaptive\"";
        problems.add(&time.origin, "has no effect where idle is \"spin\"", remedy);
    }
}

/// Calls `report` for each value that collides with one before it in the file: the place of
/// the later, the place of the earlier, what `collide` says they share.
fn collisions<T, S>(
    mut values: Vec<(&Origin, T)>,
    collide: impl Fn(&T, &T) -> Option<S>,
    report: impl Fn(&Origin, &Origin, S),
) {
    values.sort_by_key(|(origin, _)| origin.offset);
    for (index, (origin, value)) in values.iter().enumerate() {
        let before = values[..index].iter();
        let mut hits = before.filter_map(|(at, other)| Some((*at, collide(other, value)?)));
        if let Some((earlier, shared)) = hits.next() {
            report(origin, earlier, shared);
        }
    }
}
