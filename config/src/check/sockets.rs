//! TCP listeners: who may reach them, whether they can stand side by side, and that no backend
//! is one of them.

use super::collisions;
use crate::error::{Origin, Problems};
use crate::file::{Backend, Export, File, Metrics};
use crate::plan::BackendAddress;
use std::net::{IpAddr, SocketAddr};

pub(super) fn check(file: &File, problems: &Problems<'_>) {
    if let Some(metrics) = &file.metrics {
        private_metrics(metrics, problems);
    }
    if let Some(export) = &file.export {
        private_export(export, problems);
    }
    let listeners = listeners(file);
    conflicts(listeners.clone(), problems);
    for front in &file.fronts {
        loops(&front.backends, &listeners, problems);
    }
}

fn private_metrics(metrics: &Metrics, problems: &Problems<'_>) {
    let public = metrics.public.as_ref().is_some_and(|public| public.value);
    let open = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
    if let Some(address) = metrics
        .address
        .as_ref()
        .filter(|at| open(&at.value) && !public)
    {
        let what = "is not a loopback address: others could read the metrics";
        let remedy = "give a loopback address, or set metrics.public = true";
        problems.add(&address.origin, what, remedy);
    }
}

fn private_export(export: &Export, problems: &Problems<'_>) {
    let open = |address: &SocketAddr| !address.ip().to_canonical().is_loopback();
    if let Some(listen) = export.listen.as_ref().filter(|at| open(&at.value)) {
        let what = "is not a loopback address, and this server has no access control";
        let remedy = "give a loopback address, and let clients in by a [[back]]";
        problems.add(&listen.origin, what, remedy);
    }
}

/// Every TCP address that is written in the file and listened at.
fn listeners(file: &File) -> Vec<(&Origin, SocketAddr)> {
    let backs = file.backs.iter().filter_map(|back| back.listen.as_ref());
    let metrics = file
        .metrics
        .iter()
        .filter_map(|metrics| metrics.address.as_ref());
    let export = file
        .export
        .iter()
        .filter_map(|export| export.listen.as_ref());
    backs
        .chain(metrics)
        .chain(export)
        .map(|at| (&at.origin, at.value))
        .collect()
}

fn conflicts(listeners: Vec<(&Origin, SocketAddr)>, problems: &Problems<'_>) {
    let overlap = |a: &SocketAddr, b: &SocketAddr| meet(*a, *b).then_some(a.port());
    collisions(listeners, overlap, |later, earlier, port| {
        let what = format!(
            "port {port} there is taken at line {}",
            problems.line(earlier)
        );
        problems.add(later, what, "choose another port");
    });
}

/// Whether listeners at both cannot stand side by side.
pub(super) fn meet(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && a.port() != 0 && overlap(a.ip(), b.ip())
}

/// Whether listeners at both addresses would want the same packets. An unspecified IPv6
/// address takes IPv4 too, as Linux has it by default.
fn overlap(a: IpAddr, b: IpAddr) -> bool {
    let takes_all = |any: IpAddr, other: IpAddr| {
        any.is_unspecified() && (any.is_ipv6() || other.to_canonical().is_ipv4())
    };
    a.to_canonical() == b.to_canonical() || takes_all(a, b) || takes_all(b, a)
}

/// A backend that is a listener of this file: a Call would go round for ever.
fn loops(backends: &[Backend], listeners: &[(&Origin, SocketAddr)], problems: &Problems<'_>) {
    for address in backends
        .iter()
        .filter_map(|backend| backend.address.as_ref())
    {
        let BackendAddress::Tcp { host, port } = &address.value else {
            continue;
        };
        let hit = |(_, listener): &&(&Origin, SocketAddr)| {
            listener.port() == *port && reaches(host, listener.ip())
        };
        if let Some((origin, _)) = listeners.iter().find(hit) {
            let line = problems.line(origin);
            let what = format!("this appliance itself listens there, at line {line}");
            problems.add(
                &address.origin,
                what,
                "give the address of the server behind it",
            );
        }
    }
}

/// Whether a connection to `host` on this machine would arrive at a listener on `address`.
/// Names other than `localhost` are not resolved: that would depend on the machine.
fn reaches(host: &str, address: IpAddr) -> bool {
    match host.parse::<IpAddr>() {
        Ok(target) if target.is_loopback() => overlap(target, address),
        Ok(target) => target.to_canonical() == address.to_canonical(),
        Err(_) => host == "localhost" && (address.is_loopback() || address.is_unspecified()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_overlap_where_linux_says_so() {
        let overlaps = |a: &str, b: &str| overlap(a.parse().unwrap(), b.parse().unwrap());
        for (a, b) in [
            ("127.0.0.1", "127.0.0.1"),
            ("0.0.0.0", "127.0.0.1"),
            ("::", "0.0.0.0"),
        ] {
            assert!(overlaps(a, b) && overlaps(b, a), "{a} {b}");
        }
        for (a, b) in [
            ("127.0.0.1", "127.0.0.2"),
            ("0.0.0.0", "::1"),
            ("127.0.0.1", "::1"),
        ] {
            assert!(!overlaps(a, b) && !overlaps(b, a), "{a} {b}");
        }
    }
}
