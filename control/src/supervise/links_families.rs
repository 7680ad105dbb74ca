//! The links' counters and gauges, for metrics.

use crate::metrics::{Family, Kind, Value};
use crate::status::{Backend, Link};
use std::collections::BTreeMap;

/// All of them; none where there is no link.
pub(super) fn of(links: &[Link], backends: &[Backend]) -> Vec<Family> {
    if links.is_empty() {
        return Vec::new();
    }
    let ips = of_ips(links).into_iter();
    ips.chain([of_dhcp(links)])
        .chain(of_ports(links))
        .chain(of_discovery(links))
        .chain([of_backends(backends)])
        .collect()
}

fn of_ips(links: &[Link]) -> [Family; 4] {
    let mut up = gauge("link_up", "An IP of a link is usable.");
    let mut frames = counter(
        "link_datagrams_total",
        "What came and went on a link, by what it was.",
    );
    let mut lost = counter(
        "link_neighbours_lost_total",
        "Frames to neighbours that were not sent, by reason.",
    );
    let mut unheard = counter(
        "link_neighbours_unheard_total",
        "What neighbours said and was not taken, by reason.",
    );
    for link in links {
        for ip in &link.ips {
            let version = ip.version.to_string();
            let labels = [("link", link.name.as_str()), ("ip", version.as_str())];
            let usable = matches!(ip.state.as_str(), "up" | "degraded");
            up = up.with(&labels, Value::Whole(usable.into()));
            frames = by(frames, "kind", &labels, &ip.frames);
            lost = by(lost, "reason", &labels, &ip.neighbours_lost);
            unheard = by(unheard, "reason", &labels, &ip.neighbours_unheard);
        }
    }
    [up, frames, lost, unheard]
}

fn of_dhcp(links: &[Link]) -> Family {
    let help = "Messages of a link's DHCP client, and replies that did not count by reason.";
    let family = counter("link_dhcp_messages_total", help);
    links.iter().fold(family, |family, link| {
        by(family, "kind", &[("link", &link.name)], &link.dhcp_messages)
    })
}

/// What is counted for a whole port is told once, however many links are on it.
fn of_ports(links: &[Link]) -> [Family; 5] {
    let mut used = gauge(
        "port_multicast_used",
        "What multicast uses up of a port, by resource.",
    );
    let mut limit = gauge(
        "port_multicast_limit",
        "How much there is of that, where the device says.",
    );
    let mut failures = counter(
        "port_multicast_failures_total",
        "Multicast operations that failed.",
    );
    let mut drops = counter(
        "port_drops_total",
        "Datagrams that a port did not send, by reason.",
    );
    let mut ignored = counter(
        "port_ignored_total",
        "What came to a port and was not taken, by reason.",
    );
    for (port, link) in ports(links) {
        let port = ("port", port);
        for (name, resource) in &link.resources {
            let labels = [port, ("resource", name)];
            used = used.with(&labels, Value::Whole(resource.used.into()));
            if let Some(most) = resource.limit {
                limit = limit.with(&labels, Value::Whole(most.into()));
            }
        }
        for it in &link.failures {
            let labels = [port, ("operation", &it.operation), ("cause", &it.cause)];
            failures = failures.with(&labels, Value::Whole(it.count));
        }
        drops = by(drops, "reason", &[port], &link.drops);
        ignored = by(ignored, "reason", &[port], &link.ignored);
    }
    [used, limit, failures, drops, ignored]
}

/// Each port with one of its links. Those of this process have no name but their link's.
fn ports(links: &[Link]) -> BTreeMap<&str, &Link> {
    let mut ports = BTreeMap::new();
    for link in links {
        let port = match link.port.as_str() {
            "memory" => link.name.as_str(),
            port => port,
        };
        ports.entry(port).or_insert(link);
    }
    ports
}

fn of_backends(backends: &[Backend]) -> Family {
    let help = "A backend that discovery tells of can be reached.";
    let family = gauge("backend_reachable", help);
    backends.iter().fold(family, |family, it| {
        let labels = [
            ("front", it.front.as_str()),
            ("backend", it.address.as_str()),
        ];
        family.with(&labels, Value::Whole(it.reachable.into()))
    })
}

fn of_discovery(links: &[Link]) -> [Family; 3] {
    let help = "Queries that came on a link, by what became of them.";
    let mut answers = counter("discovery_queries_total", help);
    let help = "Queries, answers and moves of backs that seek.";
    let mut sought = counter("discovery_sought_total", help);
    let help = "Datagrams that were not taken as answers, by reason.";
    let mut unheard = counter("discovery_unheard_total", help);
    for link in links {
        answers = by(answers, "reason", &[("link", &link.name)], &link.answers);
        for it in &link.sought {
            let back = ("back", it.back.as_str());
            let counts = [
                ("asked", it.asked),
                ("heard", it.heard),
                ("moved", it.moved),
            ];
            for (what, count) in counts {
                sought = sought.with(&[back, ("what", what)], Value::Whole(count));
            }
            unheard = by(unheard, "reason", &[back], &it.unheard);
        }
    }
    [answers, sought, unheard]
}

/// A family with a sample for each of these counters.
fn by(
    family: Family,
    label: &'static str,
    whose: &[(&'static str, &str)],
    counts: &BTreeMap<String, u64>,
) -> Family {
    counts.iter().fold(family, |family, (name, &count)| {
        let labels: Vec<_> = whose
            .iter()
            .copied()
            .chain([(label, name.as_str())])
            .collect();
        family.with(&labels, Value::Whole(count))
    })
}

fn gauge(name: &str, help: &str) -> Family {
    Family::new(format!("rpcrdma_{name}"), Kind::Gauge, help)
}

fn counter(name: &str, help: &str) -> Family {
    Family::new(format!("rpcrdma_{name}"), Kind::Counter, help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::LinkResource;

    fn link(name: &str, port: &str) -> Link {
        Link {
            name: name.into(),
            port: port.into(),
            resources: [("memberships".into(), LinkResource::default())].into(),
            ..Link::default()
        }
    }

    #[test]
    fn a_port_is_counted_once_however_many_links_are_on_it() {
        let links = [
            link("a", "mlx5_0/1"),
            link("b", "mlx5_0/1"),
            link("c", "memory"),
            link("d", "memory"),
        ];
        let [used, ..] = of_ports(&links);
        let labels: Vec<_> = used
            .samples
            .iter()
            .map(|it| it.labels[0].1.as_str())
            .collect();
        assert_eq!(labels, ["c", "d", "mlx5_0/1"]);
    }

    #[test]
    fn without_links_there_is_nothing_to_tell() {
        assert!(of(&[], &[]).is_empty());
        assert_eq!(of(&[link("a", "memory")], &[]).len(), 14);
    }
}
