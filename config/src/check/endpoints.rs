//! Names, addresses in the fabrics, the roads between backs and listeners, programs.

use super::{collisions, sockets};
use crate::error::Problems;
use crate::file::{Back, Backend, File, InFabric, Listener, Road};
use crate::plan::{BackendAddress, Fabric, Programs, Upstream};
use crate::section::At;

pub(super) fn check(file: &File, problems: &Problems<'_>) {
    let listeners: Vec<&Listener> = file.listeners().collect();
    names(file, &listeners, problems);
    fabrics(file, problems);
    addresses(&listeners, problems);
    for back in &file.backs {
        upstream(back, &listeners, problems);
    }
    for front in &file.fronts {
        programs(&front.backends, problems);
        exports(&front.backends, file.export.is_some(), problems);
    }
}

/// One name, one endpoint: metrics and status tell them apart by it.
fn names(file: &File, listeners: &[&Listener], problems: &Problems<'_>) {
    let backs = file.backs.iter().filter_map(|back| back.name.as_ref());
    let others = listeners
        .iter()
        .filter_map(|listener| listener.name.as_ref());
    let names = others
        .chain(backs)
        .map(|name| (&name.origin, &name.value))
        .collect();
    collisions(names, same, |later, earlier, _| {
        let what = format!("the name is taken at line {}", problems.line(earlier));
        problems.add(later, what, "choose another");
    });
}

/// One process, one fabric: an lcore polls ports of one kind.
fn fabrics(file: &File, problems: &Problems<'_>) {
    let before = |other: &InFabric, at: &At<Fabric>| match &other.written {
        Some(other) => other.origin.offset < at.origin.offset,
        None => true,
    };
    let clash = |at: &At<Fabric>| {
        let mut others = file.fabrics().filter(|other| before(other, at));
        others.find_map(|other| other.known.filter(|&known| known != at.value))
    };
    let mut written = file.fabrics().filter_map(|it| it.written.as_ref());
    if let Some((at, known)) = written.find_map(|at| Some((at, clash(at)?))) {
        let what = format!("another endpoint of this file is in the {known} fabric");
        problems.add(&at.origin, what, "run one appliance for each fabric");
    }
}

/// One address of a fabric, one listener.
fn addresses(listeners: &[&Listener], problems: &Problems<'_>) {
    let written = listeners
        .iter()
        .filter_map(|it| Some((fabric(&it.fabric), it.listen.as_ref()?)));
    let addresses = written
        .map(|(fabric, at)| (&at.origin, (fabric, at.value.as_str())))
        .collect();
    collisions(addresses, both_at, |later, earlier, fabric| {
        let line = problems.line(earlier);
        let what = format!("this address of the {fabric} fabric is taken at line {line}");
        problems.add(later, what, "choose another");
    });
}

/// The fabric in which two listeners would be at the same place.
fn both_at(a: &(Fabric, &str), b: &(Fabric, &str)) -> Option<Fabric> {
    let together = a.0 == b.0
        && match (a.1.parse(), b.1.parse()) {
            (Ok(a), Ok(b)) => sockets::meet(a, b),
            _ => a.1 == b.1,
        };
    together.then_some(a.0)
}

/// In the memory fabric the other end of a back is in this file, and lets it in.
fn upstream(back: &Back, listeners: &[&Listener], problems: &Problems<'_>) {
    let Some(At {
        value: Road::Address(Upstream::Memory(name)),
        origin,
    }) = &back.upstream
    else {
        return;
    };
    let listens: Vec<_> = listeners
        .iter()
        .filter_map(|it| it.listen.as_ref())
        .collect();
    let here = |it: &&&Listener| {
        fabric(&it.fabric) == fabric(&back.fabric)
            && it
                .listen
                .as_ref()
                .is_some_and(|listen| listen.value == *name)
    };
    if let Some(listener) = listeners.iter().find(here) {
        let shut = listener
            .allow
            .as_ref()
            .filter(|allow| !allow.value.permits_memory());
        if let Some(allow) = shut {
            let what = "keeps out the back that has this listener as its upstream";
            problems.add(&allow.origin, what, "add \"memory\" to the list");
        }
    } else if listens.len() == listeners.len() {
        // Were one of them refused, this might well be its address.
        let remedy = match listens.as_slice() {
            [] => "add a [[front]] or [[service]] that does".to_owned(),
            known => format!("give {}", quoted(known)),
        };
        let what = "no front or service listens there in the memory fabric";
        problems.add(origin, what, remedy);
    }
}

/// One program of a front, one backend.
fn programs(backends: &[Backend], problems: &Problems<'_>) {
    let lists = backends
        .iter()
        .filter_map(|backend| backend.programs.as_ref());
    let lists = lists.map(|list| (&list.origin, &list.value)).collect();
    collisions(lists, shared, |later, earlier, both| {
        let line = problems.line(earlier);
        let what = format!("{both} goes to the backend at line {line} already");
        problems.add(later, what, "leave it with one of the two");
    });
}

/// What two backends both claim, in words.
fn shared(a: &&Programs, b: &&Programs) -> Option<String> {
    match (a, b) {
        (Programs::Others, Programs::Others) => Some("\"others\"".to_owned()),
        (Programs::Listed(a), Programs::Listed(b)) => {
            let both = b.iter().find(|number| a.contains(number))?;
            Some(format!("program {both}"))
        }
        _ => None,
    }
}

/// A backend that is the embedded server needs one.
fn exports(backends: &[Backend], there_is_one: bool, problems: &Problems<'_>) {
    let addresses = backends
        .iter()
        .filter_map(|backend| backend.address.as_ref());
    for address in addresses.filter(|at| at.value == BackendAddress::Export && !there_is_one) {
        let what = "the file has no embedded server";
        problems.add(&address.origin, what, "add [export], or give \"host:port\"");
    }
}

fn same<T: Copy + PartialEq>(a: &T, b: &T) -> Option<T> {
    (a == b).then_some(*a)
}

fn fabric(it: &InFabric) -> Fabric {
    it.known.unwrap_or(Fabric::Memory)
}

fn quoted(values: &[&At<String>]) -> String {
    let quoted: Vec<_> = values
        .iter()
        .map(|at| format!("\"{}\"", at.value))
        .collect();
    quoted.join(" or ")
}
