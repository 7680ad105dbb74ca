//! What an appliance tells who asks: its fronts and services.

use super::BackendPlace;
use rpcrdma_config::Plan;
use rpcrdma_config::plan::Programs as Listed;
use rpcrdma_discovery::answer::{Programs, Service};
use rpcrdma_upper::program::PROGRAM;

/// A service that is told of, and the backend that is behind it, if one is.
pub(super) struct Told {
    pub(super) service: Service,
    pub(super) behind: Option<BackendPlace>,
}

/// Every listener that has an IP address, with the programs behind it, for each backend. Those of the memory fabric have none: nobody else
/// can reach them.
pub(super) fn of(plan: &Plan) -> Vec<Told> {
    let fronts = plan.fronts.iter().enumerate();
    let fronts = fronts.flat_map(|(place, front)| {
        let listed = front.backends.iter().map(|backend| &backend.programs);
        let behind = move |backend| BackendPlace {
            front: place,
            backend,
        };
        let told = (0..).zip(programs(listed));
        told.map(move |(backend, programs)| (&front.listen, programs, Some(behind(backend))))
    });
    let services = plan.services.iter();
    let services = services.map(|it| (&it.listen, Programs::These(vec![PROGRAM]), None));
    let all = fronts.chain(services);
    all.filter_map(|(listen, programs, behind)| {
        let service = Service {
            listen: listen.parse().ok()?,
            programs,
            reachable: true,
        };
        Some(Told { service, behind })
    })
    .collect()
}

/// What to say of listeners that who asks on a link is not told of. That none at all can be told is refused in the file.
pub(super) fn untold(plan: &Plan) -> Vec<String> {
    let fronts = plan.fronts.iter();
    let fronts = fronts.map(|it| ("front", &it.name, &it.listen));
    let services = plan.services.iter();
    let services = services.map(|it| ("service", &it.name, &it.listen));
    let mut lines = Vec::new();
    for (kind, name, listen) in fronts.chain(services) {
        let Ok(place) = listen.parse() else { continue };
        for link in plan.links.iter().filter(|it| !it.answer.groups.is_empty()) {
            if let Some(why) = link.subnet.why_untold(place) {
                let link = &link.name;
                lines.push(format!(
                    "link {link}: who asks is not told of {kind} {name} at {listen}: {why}"
                ));
            }
        }
    }
    lines
}

/// The programs of each backend of a front.
fn programs<'a>(backends: impl Iterator<Item = &'a Listed> + Clone) -> Vec<Programs> {
    let numbers = |listed: &'a Listed| match listed {
        Listed::Others => &[][..],
        Listed::Listed(numbers) => numbers,
    };
    let own: Vec<u32> = backends.clone().flat_map(numbers).copied().collect();
    let each = backends.map(|listed| match listed {
        Listed::Others => Programs::AllBut(own.clone()),
        Listed::Listed(numbers) => Programs::These(numbers.clone()),
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_for_others_is_for_any_program_but_those_of_its_neighbours() {
        let nfs = Listed::Listed(vec![100_003]);
        let told = programs([&nfs, &Listed::Others].into_iter());
        let own = vec![100_003];
        assert_eq!(told, [Programs::These(own.clone()), Programs::AllBut(own)]);
    }
}
