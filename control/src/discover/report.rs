//! Links and discovery as `rpcrdmad status` and metrics have them.

use super::{Discovery, Sought};
use crate::status::document;
use rpcrdma_discovery::answer::AnswerCounts;
use rpcrdma_links::{Counted, DhcpReport, GroupReport, IpReport, LinkReport};
use std::collections::BTreeMap;

impl Discovery {
    /// The links as they are. Not for every turn: it goes through all groups.
    pub(crate) fn look(&self) -> Vec<document::Link> {
        let links = self.links.status().into_iter().zip(&self.answerers);
        let links = links.enumerate().map(|(place, (link, answering))| {
            let sought = self.sought.iter().filter(|it| it.link == place);
            report(link, answering.answerer.counts(), sought)
        });
        links.collect()
    }
}

fn report<'a>(
    link: LinkReport,
    answers: &AnswerCounts,
    sought: impl Iterator<Item = &'a Sought>,
) -> document::Link {
    let (dhcp, dhcp_messages) = link.dhcp.map(dhcp).unzip();
    let resources = link.resources.into_iter().map(|it| {
        let (used, limit) = (it.used, it.limit);
        (snake(it.name), document::LinkResource { used, limit })
    });
    let failures = link.failures.into_iter();
    let failures = failures.map(|(operation, cause, count)| document::LinkFailure {
        operation: snake(operation),
        cause: snake(cause),
        count,
    });
    document::Link {
        name: link.name,
        port: link.port,
        p_key: link.p_key,
        ips: link.ips.into_iter().map(ip).collect(),
        addresses: link.addresses.iter().map(ToString::to_string).collect(),
        dhcp,
        dhcp_messages: dhcp_messages.unwrap_or_default(),
        resources: resources.collect(),
        failures: failures.collect(),
        drops: named(link.drops),
        ignored: named(link.ignored),
        groups: link.groups.into_iter().map(group).collect(),
        answers: answered(answers),
        sought: sought.map(found).collect(),
    }
}

fn dhcp(client: DhcpReport) -> (String, BTreeMap<String, u64>) {
    let phase = client.phase.name().to_lowercase();
    (phase, named(client.counts))
}

/// Queries by what became of them: those that can be read always, the others by reason.
fn answered(counts: &AnswerCounts) -> BTreeMap<String, u64> {
    let silent = counts.rejected.iter();
    let mut all = by_kind(silent.map(|(why, count)| (why.name(), count)));
    let read = [
        ("answered", counts.answered),
        ("not_served", counts.not_served),
        ("unreachable", counts.unreachable),
        ("over_rate", counts.over_rate),
        ("closing", counts.closing),
        ("not_allowed", counts.not_allowed),
    ];
    all.extend(read.map(|(name, count)| (name.to_owned(), count)));
    all
}

fn ip(ip: IpReport) -> document::LinkIp {
    document::LinkIp {
        version: ip.version,
        state: ip.state.to_owned(),
        error: ip.error.map(str::to_owned),
        address: ip.address.map(|(address, phase)| document::LinkAddress {
            address: address.to_string(),
            phase: snake(phase),
        }),
        mtu: ip.mtu,
        frames: named(ip.frames),
        neighbours_lost: named(ip.neighbours_lost),
        neighbours_unheard: named(ip.neighbours_unheard),
    }
}

fn group(group: GroupReport) -> document::LinkGroup {
    document::LinkGroup {
        group: group.group,
        mlid: group.mlid,
        joined: group.joined,
        attached: group.attached,
    }
}

fn found(sought: &Sought) -> document::Sought {
    let counts = sought.seeker.counts();
    let unheard = counts.unheard.iter();
    document::Sought {
        back: sought.name.clone(),
        group: sought.group.to_string(),
        known: sought.seeker.known().map(|it| it.to_string()).collect(),
        asked: counts.asked,
        heard: counts.heard,
        moved: counts.moved,
        unheard: by_kind(unheard.map(|(why, count)| (why.name(), count))),
    }
}

/// Counters that are not zero, by the names of their kinds.
fn by_kind(counts: impl Iterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    let some = counts.filter(|(_, count)| *count > 0);
    some.map(|(kind, count)| (snake(kind), count)).collect()
}

fn named(counts: Counted) -> BTreeMap<String, u64> {
    let counts = counts.into_iter();
    counts.map(|(name, count)| (snake(&name), count)).collect()
}

/// `NoListener` as metrics write it: `no_listener`.
fn snake(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_metrics_are() {
        assert_eq!(snake("NoListener"), "no_listener");
        assert_eq!(snake("Join"), "join");
        assert_eq!(snake("SendOnlyJoin"), "send_only_join");
    }
}
