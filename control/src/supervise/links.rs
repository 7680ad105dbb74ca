//! Links in the control loop: their turn, what they look like, what backs find on them.

use super::Supervisor;
use crate::metrics::{Family, Kind, Value};
use crate::status::Link;
use rpcrdma_config::plan::Upstream;
use rpcrdma_engine::CloseReason;
use rpcrdma_fabric::connect::Fabric;
use rpcrdma_lcore::Ending;
use std::time::Instant;

impl<F: Fabric> Supervisor<F> {
    /// Takes what came on the links.
    pub(super) fn take_links(&mut self, now: Instant) {
        let Some(discovery) = &mut self.discovery else {
            return;
        };
        discovery.turn(now);
        if let Some(links) = discovery.look(now) {
            self.surveyor.links_are(links);
        }
    }

    /// A connection of a back to an address that was found could not be made.
    pub(super) fn found_in_vain(&mut self, back: usize, address: &str, now: Instant) {
        let found = matches!(self.plan.backs[back].upstream, Upstream::Discover(_));
        if let (true, Some(discovery), Ok(address)) = (found, &mut self.discovery, address.parse())
        {
            discovery.failed(back, address, now);
        }
    }

    /// A connection of a back has ended. One that broke is a reason to use another upstream; one that the upstream closed is
    /// not, for it may have been at rest: the client's next connection tells whether it is still there.
    pub(super) fn upstream_ended(
        &mut self,
        back: usize,
        address: &str,
        ending: Ending,
        now: Instant,
    ) {
        if matches!(ending, Ending::Closed(CloseReason::Work(_))) {
            self.found_in_vain(back, address, now);
        }
    }
}

/// The links' counters and gauges.
pub(super) fn families(links: &[Link]) -> Vec<Family> {
    if links.is_empty() {
        return Vec::new();
    }
    let mut up = gauge("link_up", "An IP of a link is usable.");
    let mut memberships = gauge(
        "link_memberships",
        "Memberships of a link's port in multicast groups.",
    );
    let mut frames = counter(
        "link_frames_total",
        "Frames that came on a link, by what they were.",
    );
    let mut failures = counter("link_failures_total", "Multicast operations that failed.");
    let mut drops = counter(
        "link_drops_total",
        "Datagrams that were not sent on a link.",
    );
    let mut ignored = counter(
        "link_ignored_total",
        "Management datagrams that were not taken.",
    );
    let mut answers = counter(
        "discovery_queries_total",
        "Queries that came, by what became of them.",
    );
    let mut sought = counter(
        "discovery_sought_total",
        "Queries, answers and moves of backs that seek.",
    );
    for link in links {
        let name = ("link", link.name.as_str());
        for ip in &link.ips {
            let version = ip.version.to_string();
            let labels = [name, ("ip", version.as_str())];
            let usable = matches!(ip.state.as_str(), "up" | "degraded");
            up = up.with(&labels, Value::Whole(usable.into()));
            for (kind, &count) in &ip.frames {
                let labels = [name, ("ip", &version), ("kind", kind)];
                frames = frames.with(&labels, Value::Whole(count));
            }
        }
        memberships = memberships.with(&[name], Value::Whole(link.memberships.into()));
        for it in &link.failures {
            let labels = [name, ("operation", &it.operation), ("cause", &it.cause)];
            failures = failures.with(&labels, Value::Whole(it.count));
        }
        for (counts, family) in [
            (&link.drops, &mut drops),
            (&link.ignored, &mut ignored),
            (&link.answers, &mut answers),
        ] {
            for (reason, &count) in counts {
                let labels = [name, ("reason", reason.as_str())];
                *family = family.clone().with(&labels, Value::Whole(count));
            }
        }
        for it in &link.sought {
            for (what, count) in [
                ("asked", it.asked),
                ("heard", it.heard),
                ("moved", it.moved),
            ] {
                let labels = [("back", it.back.as_str()), ("what", what)];
                sought = sought.with(&labels, Value::Whole(count));
            }
        }
    }
    vec![
        up,
        memberships,
        frames,
        failures,
        drops,
        ignored,
        answers,
        sought,
    ]
}

fn gauge(name: &str, help: &str) -> Family {
    Family::new(format!("rpcrdma_{name}"), Kind::Gauge, help)
}

fn counter(name: &str, help: &str) -> Family {
    Family::new(format!("rpcrdma_{name}"), Kind::Counter, help)
}
