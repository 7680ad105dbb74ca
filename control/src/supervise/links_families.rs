//! The links' counters and gauges, for metrics.

use crate::metrics::{Family, Kind, Value};
use crate::status::Link;
use std::collections::BTreeMap;

/// All of them; none where there is no link.
pub(super) fn of(links: &[Link]) -> Vec<Family> {
    if links.is_empty() {
        return Vec::new();
    }
    let ips = of_ips(links).into_iter();
    ips.chain(of_ports(links))
        .chain(of_discovery(links))
        .collect()
}

fn of_ips(links: &[Link]) -> [Family; 2] {
    let mut up = gauge("link_up", "An IP of a link is usable.");
    let mut frames = counter(
        "link_datagrams_total",
        "What came on a link, by what it was.",
    );
    for link in links {
        for ip in &link.ips {
            let version = ip.version.to_string();
            let labels = [("link", link.name.as_str()), ("ip", version.as_str())];
            let usable = matches!(ip.state.as_str(), "up" | "degraded");
            up = up.with(&labels, Value::Whole(usable.into()));
            for (kind, &count) in &ip.frames {
                let [link, ip] = labels;
                frames = frames.with(&[link, ip, ("kind", kind)], Value::Whole(count));
            }
        }
    }
    [up, frames]
}

/// What is counted for a whole port is told once, however many links are on it.
fn of_ports(links: &[Link]) -> [Family; 4] {
    let mut memberships = gauge(
        "port_memberships",
        "Memberships of a port in multicast groups.",
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
        memberships = memberships.with(&[port], Value::Whole(link.memberships.into()));
        for it in &link.failures {
            let labels = [port, ("operation", &it.operation), ("cause", &it.cause)];
            failures = failures.with(&labels, Value::Whole(it.count));
        }
        drops = by_reason(drops, port, &link.drops);
        ignored = by_reason(ignored, port, &link.ignored);
    }
    [memberships, failures, drops, ignored]
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

fn of_discovery(links: &[Link]) -> [Family; 2] {
    let help = "Queries that came on a link, by what became of them.";
    let mut answers = counter("discovery_queries_total", help);
    let help = "Queries, answers and moves of backs that seek.";
    let mut sought = counter("discovery_sought_total", help);
    for link in links {
        answers = by_reason(answers, ("link", &link.name), &link.answers);
        for it in &link.sought {
            let counts = [
                ("asked", it.asked),
                ("heard", it.heard),
                ("moved", it.moved),
            ];
            for (what, count) in counts.into_iter().chain([("unheard", it.unheard)]) {
                let labels = [("back", it.back.as_str()), ("what", what)];
                sought = sought.with(&labels, Value::Whole(count));
            }
        }
    }
    [answers, sought]
}

fn by_reason(
    mut family: Family,
    whose: (&'static str, &str),
    counts: &BTreeMap<String, u64>,
) -> Family {
    for (reason, &count) in counts {
        family = family.with(&[whose, ("reason", reason)], Value::Whole(count));
    }
    family
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

    fn link(name: &str, port: &str) -> Link {
        Link {
            name: name.into(),
            port: port.into(),
            memberships: 3,
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
        let [memberships, ..] = of_ports(&links);
        let labels: Vec<_> = memberships
            .samples
            .iter()
            .map(|it| it.labels[0].1.as_str())
            .collect();
        assert_eq!(labels, ["c", "d", "mlx5_0/1"]);
    }

    #[test]
    fn without_links_there_is_nothing_to_tell() {
        assert!(of(&[]).is_empty());
        assert_eq!(of(&[link("a", "memory")]).len(), 8);
    }
}
