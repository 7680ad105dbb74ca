//! Asking groups for an upstream, and answering who asks.

use super::{has_datagrams, lacked};
use crate::allow::Networks;
use crate::error::Problems;
use crate::file::{Back, Discover, Link, Road};
use crate::plan::Fabric;
use crate::section::At;
use std::net::IpAddr;

/// Why groups of a link without datagrams are of no use here.
const SILENT: &str = "the link neither sends nor receives: it has datagrams = false";

/// What stands beside `answer`, and what it needs.
pub(super) fn answered(link: &Link, problems: &Problems<'_>) {
    let answer = link.answer.as_ref().filter(|at| !at.value.is_empty());
    if let Some(at) = answer.filter(|_| !has_datagrams(link)) {
        problems.add(&at.origin, SILENT, "remove one of the two");
    }
    if answer.is_none() && !link.answer_refused {
        // Written as it is by default it may stand anywhere.
        let rate = link.answers.as_ref().filter(|at| at.value != 0);
        let allow = link.answer_allow.as_ref().map(|at| &at.origin);
        for origin in rate.map(|at| &at.origin).into_iter().chain(allow) {
            let remedy = "remove it, or list groups in answer";
            problems.add(origin, "has no effect where nothing is answered", remedy);
        }
    } else {
        somebody(link.answer_allow.as_ref(), problems);
        let groups = answer.map_or(&[][..], |at| &at.value);
        of_its_version(link.answer_allow.as_ref(), groups, problems);
    }
}

/// An upstream that is found.
pub(super) fn asked(back: &Back, links: &[Link], problems: &Problems<'_>) {
    let Some(At {
        value: Road::Discover(discover),
        origin,
    }) = &back.upstream
    else {
        return;
    };
    if back.fabric.known == Some(Fabric::Memory) {
        let remedy = "give the listen of a front or service; only fabrics with IP addresses are discovered in";
        problems.add(origin, "has no meaning in the memory fabric", remedy);
    }
    asked_on(discover, links, problems);
    somebody(discover.allow.as_ref(), problems);
    let group = discover.group.as_ref().map(|at| at.value);
    of_its_version(discover.allow.as_ref(), group.as_slice(), problems);
    if let Some(link) = link_of(discover, links) {
        can_ask(discover, link, problems);
    }
}

/// A list of nobody is a mistake: it would be the same as none of it.
fn somebody(allow: Option<&At<Networks>>, problems: &Problems<'_>) {
    if let Some(at) = allow.filter(|at| at.value.0.is_empty()) {
        let remedy = "name addresses, or remove it to let everybody in";
        problems.add(&at.origin, "keeps everybody out", remedy);
    }
}

/// Who sends in a group has an address of its version: a list without any lets in none of them. Told of the first such group.
fn of_its_version(allow: Option<&At<Networks>>, groups: &[IpAddr], problems: &Problems<'_>) {
    let Some(at) = allow.filter(|at| !at.value.0.is_empty()) else {
        return;
    };
    let blocks = &at.value.0;
    let kept_out = |group: &&IpAddr| {
        !blocks
            .iter()
            .any(|it| it.addr().is_ipv4() == group.is_ipv4())
    };
    if let Some(group) = groups.iter().find(kept_out) {
        let version = if group.is_ipv4() { "IPv4" } else { "IPv6" };
        let what = format!("has no {version} in it, and keeps out everybody in {group}");
        let remedy = format!("add addresses of {version}, or take another group");
        problems.add(&at.origin, what, remedy);
    }
}

/// The link that a group is asked on; the only one where none is named.
fn link_of<'a>(discover: &Discover, links: &'a [Link]) -> Option<&'a Link> {
    match (&discover.link, links) {
        (None, [link]) => Some(link),
        (None, _) => None,
        (Some(name), _) => links.iter().find(|link| {
            let its = link.name.as_ref();
            its.is_some_and(|its| its.value == name.value)
        }),
    }
}

/// A link that can send to the group, and hear who answers.
fn can_ask(discover: &Discover, link: &Link, problems: &Problems<'_>) {
    let Some(group) = &discover.group else {
        return;
    };
    if !has_datagrams(link) {
        let remedy = "ask on another link, or give this one datagrams";
        problems.add(&group.origin, SILENT, remedy);
    }
    if let Some((family, set)) = lacked(link, group.value) {
        let what = format!("is a group of {family}, which the link has not");
        let remedy = format!("{set}ask another group");
        problems.add(&group.origin, what, remedy);
    }
}

/// The link of a discovered upstream is there.
fn asked_on(discover: &Discover, links: &[Link], problems: &Problems<'_>) {
    let names: Vec<_> = links.iter().filter_map(|it| it.name.as_ref()).collect();
    let known = || {
        let quoted: Vec<_> = names.iter().map(|at| format!("\"{}\"", at.value)).collect();
        quoted.join(" or ")
    };
    match &discover.link {
        _ if links.is_empty() => {
            let what = "there is no link to ask on";
            problems.add(&discover.origin, what, "add a [[link]]");
        }
        Some(name) if !names.iter().any(|at| at.value == name.value) => {
            problems.add(
                &name.origin,
                "there is no such link",
                format!("give {}", known()),
            );
        }
        None if links.len() > 1 => {
            let remedy = format!("add it: {}", known());
            problems.add(
                &discover.origin.absent("link"),
                "is missing, and there are several",
                remedy,
            );
        }
        _ => {}
    }
}
