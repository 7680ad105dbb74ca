//! Links and discovery as `rpcrdmad status` and metrics have them.

use super::{Discovery, Sought};
use crate::status::document;
use rpcrdma_discovery::answer::AnswerCounts;
use rpcrdma_links::{GroupReport, IpReport, LinkReport};
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
    let rejected: u64 = answers.rejected.iter().sum();
    let answers = [
        ("answered", answers.answered),
        ("not_served", answers.not_served),
        ("over_rate", answers.over_rate),
        ("not_allowed", answers.not_allowed),
        ("rejected", rejected),
    ];
    let named = |counts: Vec<(&'static str, u64)>| -> BTreeMap<String, u64> {
        counts
            .into_iter()
            .map(|(name, count)| (snake(name), count))
            .collect()
    };
    document::Link {
        name: link.name,
        port: link.port,
        p_key: link.p_key,
        ips: link.ips.into_iter().map(ip).collect(),
        addresses: link.addresses.iter().map(ToString::to_string).collect(),
        dhcp: link.dhcp.map(|phase| format!("{phase:?}").to_lowercase()),
        memberships: link.memberships,
        attached_groups: link.attached_groups,
        failures: link
            .failures
            .into_iter()
            .map(|(operation, cause, count)| document::LinkFailure {
                operation: snake(operation),
                cause: snake(cause),
                count,
            })
            .collect(),
        drops: named(link.drops),
        ignored: named(link.ignored),
        groups: link.groups.into_iter().map(group).collect(),
        answers: answers
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count))
            .collect(),
        sought: sought.map(found).collect(),
    }
}

fn ip(ip: IpReport) -> document::LinkIp {
    let frames = [
        ("datagrams", ip.counts.datagrams),
        ("others", ip.counts.others),
        ("rejected", ip.counts.rejected),
    ];
    document::LinkIp {
        version: ip.version,
        state: ip.state.to_owned(),
        error: ip.error.map(str::to_owned),
        mtu: ip.mtu,
        frames: frames
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count))
            .collect(),
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
    document::Sought {
        back: sought.name.clone(),
        group: sought.group.to_string(),
        known: sought.seeker.known().map(|it| it.to_string()).collect(),
        asked: counts.asked,
        heard: counts.heard,
        moved: counts.moved,
        unheard: counts.unheard.iter().sum(),
    }
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
