//! Whether what the connections need fits into what the lcores have.

use crate::Machine;
use crate::budget::{MIB, mebibytes};
use crate::error::{Origin, Problems};
use crate::file::{File, Maybe};
use crate::resolve;

pub(super) fn check(file: &File, machine: &Machine, problems: &Problems<'_>) {
    let budget = resolve::plan(file, machine).budget;
    let (needed, have) = (budget.needed_bytes(), budget.memory_bytes);
    if needed <= have {
        return;
    }
    let Some(cost) = budget.endpoints.iter().max_by_key(|cost| cost.least_bytes) else {
        return;
    };
    let what = format!(
        "each lcore needs {} MiB and has {}: {} x {} receives of {} octets for {:?}, with its \
         fewest credits, and {} MiB for longest Calls and Replies in progress",
        mebibytes(needed),
        have / MIB,
        budget.connections_max,
        cost.least_receives,
        cost.receive_bytes,
        cost.name,
        mebibytes(budget.progress_bytes),
    );
    let room = have.saturating_sub(budget.progress_bytes);
    let fitting = room.checked_div(cost.least_bytes).unwrap_or(0);
    let remedy = match fitting {
        0 => format!("set runtime.memory_mib to {} or more", mebibytes(needed)),
        some => format!(
            "set runtime.memory_mib to {} or more, or runtime.connections_max to {some} or less",
            mebibytes(needed)
        ),
    };
    problems.add(&culprit(file), what, remedy);
}

/// The value to point at: the memory itself if it is written, else what asks for so much.
fn culprit(file: &File) -> Origin {
    let runtime = &file.runtime;
    let place = |at: &Maybe<u32>| at.as_ref().map(|at| at.origin.clone());
    let fronts = file.fronts.iter().map(|it| &it.listener.transport);
    let backs = file.backs.iter().map(|it| &it.transport);
    let services = file.services.iter().map(|it| &it.listener.transport);
    let tables = fronts.chain(backs).chain(services).chain([&file.transport]);
    let mut sizes = tables.flat_map(|it| {
        [
            &it.credits_min,
            &it.inline,
            &it.inline_max,
            &it.limits.call,
            &it.limits.reply,
        ]
    });
    place(&runtime.memory)
        .or_else(|| place(&runtime.connections))
        .or_else(|| sizes.find_map(place))
        .unwrap_or_else(|| runtime.origin.clone())
}
