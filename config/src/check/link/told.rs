//! A link that answers has something to answer with: a listener that who asks can be sent to.

use super::subnet;
use crate::error::{Origin, Problems};
use crate::file::{File, Link, Listener};
use crate::plan::Fabric;

pub(super) fn check(file: &File, problems: &Problems<'_>) {
    let listeners: Vec<&Listener> = file.listeners().collect();
    for link in &file.links {
        let answer = link.answer.as_ref().filter(|at| !at.value.is_empty());
        if let Some(at) = answer.filter(|_| !link.subnet_refused) {
            something(link, &at.origin, &listeners, problems);
        }
    }
}

fn something(link: &Link, answer: &Origin, listeners: &[&Listener], problems: &Problems<'_>) {
    // One of a fabric that is not known, or at an address that was refused, might well be told.
    if listeners.iter().any(|it| it.fabric.known.is_none()) {
        return;
    }
    let nobody_gets_there = |it: &&Listener| it.fabric.known == Some(Fabric::Memory);
    if listeners.iter().all(nobody_gets_there) {
        let what = "there is no front or service that who asks could be sent to";
        let remedy = "add one in verbs or iwarp-sctp, or remove this";
        return problems.add(answer, what, remedy);
    }
    let subnet = subnet(link);
    let untold = listeners.iter().map(|it| {
        let at = it.listen.as_ref()?;
        let listen = at.value.parse().ok()?;
        Some((&at.origin, subnet.why_untold(listen)?))
    });
    let Some(untold) = untold.collect::<Option<Vec<_>>>() else {
        return;
    };
    let line = problems.line(answer);
    for (origin, why) in untold {
        let what = format!("cannot be told to who asks in the groups at line {line}: {why}");
        problems.add(origin, what, "give an address and a port that others reach");
    }
}
