//! What an appliance tells who asks: its fronts and services.

use rpcrdma_config::Plan;
use rpcrdma_config::plan::Programs as Listed;
use rpcrdma_discovery::answer::{Programs, Service};
use rpcrdma_upper::program::PROGRAM;

/// Every listener that has an IP address, with the programs behind it. Those of the memory fabric have none: nobody else
/// can reach them.
pub(super) fn of(plan: &Plan) -> Vec<Service> {
    let fronts = plan.fronts.iter().map(|front| {
        let listed = front.backends.iter().map(|backend| &backend.programs);
        (&front.listen, programs(listed))
    });
    let services = plan.services.iter();
    let services = services.map(|it| (&it.listen, Programs::These(vec![PROGRAM])));
    let all = fronts.chain(services);
    all.filter_map(|(listen, programs)| {
        let listen = listen.parse().ok()?;
        Some(Service { listen, programs })
    })
    .collect()
}

fn programs<'a>(backends: impl Iterator<Item = &'a Listed>) -> Programs {
    let mut these = Vec::new();
    for listed in backends {
        match listed {
            Listed::Others => return Programs::Any,
            Listed::Listed(numbers) => these.extend(numbers),
        }
    }
    Programs::These(these)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_for_others_is_for_any_program() {
        let nfs = Listed::Listed(vec![100_003]);
        assert_eq!(programs([&nfs].into_iter()), Programs::These(vec![100_003]));
        assert_eq!(programs([&nfs, &Listed::Others].into_iter()), Programs::Any);
    }
}
