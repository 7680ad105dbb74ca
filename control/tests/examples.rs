//! Each file of `config/examples` is run: started, called through its back, drained.
//!
//! Ports that a file fixes are left to the system here, servers elsewhere are one of this test,
//! and a directory is a scratch one. Everything else is as in the file, but for the fabric: all
//! run on that of memory here, where any text is an address.

#[path = "support/mod.rs"]
mod support;

use rpcrdma_config::allow::Peers;
use rpcrdma_config::link::{Ipv4, Link, Subnet};
use rpcrdma_config::plan::{BackendAddress, SourcePort, Upstream};
use rpcrdma_config::{Plan, load};
use std::path::{Path, PathBuf};
use support::appliance::{Appliance, machine};

use support::octets::{BENCHMARK, NFS, One, Two, call, head, success, word, words};
use support::peer::Peer;
use support::tcp::{Server, Stream, nfs_null, opaque};

const MOUNT: u32 = 100_005;
const XID: u32 = 0x0E0A_0001;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../config/examples")
        .join(name)
}

/// The plan of an example, for this machine and nobody's ports.
fn plan(name: &str, server: &Server, directory: &Path) -> Plan {
    let mut plan = load(&path(name), &machine()).unwrap_or_else(|error| panic!("{error}"));
    plan.status = None;
    if let Some(metrics) = &mut plan.metrics {
        metrics.address.set_port(0);
    }
    for back in &mut plan.backs {
        back.listen.set_port(0);
    }
    if let Some(export) = &mut plan.export {
        directory.clone_into(&mut export.directory);
    }
    let backends = plan.fronts.iter_mut().flat_map(|front| &mut front.backends);
    for backend in backends {
        // The privilege is not everybody's who runs tests.
        backend.source_port = SourcePort::Any;
        if let BackendAddress::Tcp { host, port } = &mut backend.address {
            (*host, *port) = ("127.0.0.1".to_owned(), server.address().port());
        }
    }
    plan
}

/// Runs an example with one client, whose Calls `server` may get.
fn run(name: &str, client: impl FnOnce(&mut Stream, &Server, &Appliance)) {
    let server = Server::new();
    let directory = tempfile::tempdir().expect("a scratch directory");
    let appliance = Appliance::of(plan(name, &server, directory.path()));
    let mut stream = Stream::to(appliance.back());
    client(&mut stream, &server, &appliance);
    stream.close();
    appliance.end();
}

/// NULL of each of these programs, answered by whatever is behind the appliance.
fn is_answered(client: &mut Stream, programs: &[(u32, u32)]) {
    // Each with an xid of its own: the embedded server takes another for a retransmission.
    for (&(program, version), xid) in programs.iter().zip(XID..) {
        client.send(&call(xid, program, version, 0));
        assert_eq!(client.record(), Some(success(xid)), "program {program}");
    }
}

/// NULL, answered by the server of this test, on a connection of its own.
fn is_passed_on(client: &mut Stream, server: &Server, program: u32) -> Stream {
    let null = call(XID, program, 3, 0);
    client.send(&null);
    let mut backend = server.accept();
    assert_eq!(backend.record(), Some(null));
    backend.send(&success(XID));
    assert_eq!(client.record(), Some(success(XID)));
    backend
}

/// MNT of the export, whose answer is a file handle.
fn is_mounted(client: &mut Stream) {
    let xid = XID + 100;
    let mount = [call(xid, MOUNT, 3, 1), opaque(b"/export")].concat();
    client.send(&mount);
    let reply = client.record().expect("an answer");
    assert_eq!(reply[..28], [success(xid), words(&[0])].concat(), "MNT3_OK");
    assert!(word(&reply, 28) > 0, "a file handle");
}

/// Versions of the RDMA connections there are.
fn versions(appliance: &Appliance) -> Vec<Option<u32>> {
    let state = appliance.state();
    let connections = state.0.lcores.iter().flat_map(|lcore| &lcore.connections);
    connections.map(|connection| connection.version).collect()
}

#[test]
fn no_example_is_left_out() {
    let directory = std::fs::read_dir(path("")).expect("the examples");
    let names = directory.map(|entry| entry.expect("a file").file_name());
    let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
    names.sort();
    let run_below = [
        "discovery.toml",
        "embedded.toml",
        "every-key.toml",
        "ipoib-back.toml",
        "ipoib-front.toml",
        "iwarp-sctp-back.toml",
        "iwarp-sctp-dpdk.toml",
        "iwarp-sctp-front.toml",
        "minimal.toml",
        "nfs-server.toml",
        "resizable.toml",
        "service.toml",
        "verbs-back.toml",
        "verbs-front.toml",
        "version-one.toml",
    ];
    assert_eq!(names, run_below);
}

#[test]
fn embedded() {
    run("embedded.toml", |client, _, appliance| {
        is_answered(client, &[(NFS, 3), (MOUNT, 3)]);
        is_mounted(client);
        assert_eq!(versions(appliance), [Some(2); 2]);
        // Nobody serves NFSACL: PROG_UNAVAIL, said by the front.
        client.send(&call(XID, 100_227, 3, 0));
        assert_eq!(client.record(), Some(words(&[XID, 1, 0, 0, 0, 1])));
    });
}

#[test]
fn every_key() {
    run("every-key.toml", |client, _, _| {
        is_answered(client, &[(NFS, 3), (MOUNT, 3)]);
        is_mounted(client);
    });
}

#[test]
fn minimal() {
    run("minimal.toml", |client, server, _| {
        // All programs go to the one backend, on one connection.
        let mut backend = is_passed_on(client, server, NFS);
        client.send(&call(XID, MOUNT, 3, 0));
        assert_eq!(backend.record(), Some(call(XID, MOUNT, 3, 0)));
        backend.send(&success(XID));
        assert_eq!(client.record(), Some(success(XID)));
    });
}

#[test]
fn nfs_server() {
    run("nfs-server.toml", |client, server, _| {
        let mut nfs = is_passed_on(client, server, NFS);
        let _mount = is_passed_on(client, server, MOUNT);
        // NFSACL belongs to NFS: the same connection.
        client.send(&call(XID, 100_227, 3, 0));
        assert_eq!(nfs.record(), Some(call(XID, 100_227, 3, 0)));
        nfs.send(&success(XID));
        assert_eq!(client.record(), Some(success(XID)));
    });
}

#[test]
fn resizable() {
    run("resizable.toml", |client, server, appliance| {
        let _backend = is_passed_on(client, server, NFS);
        let state = appliance.state();
        let connections = state.0.lcores.iter().flat_map(|lcore| &lcore.connections);
        let sizes: Vec<_> = connections
            .map(|it| (it.send_bytes, it.receive_bytes))
            .collect();
        assert_eq!(
            sizes,
            [(4096, 4096); 2],
            "what is announced, not what is posted"
        );
    });
}

#[test]
fn service() {
    run("service.toml", |client, _, _| {
        is_answered(client, &[(BENCHMARK, 1)]);
        let data = support::octets::payload(1 << 20, 1);
        let write = [support::octets::write(XID, 1 << 20), data.clone()].concat();
        client.send(&write);
        let results = words(&[1 << 20, support::octets::sum(&data)]);
        assert_eq!(client.record(), Some([success(XID), results].concat()));
    });
}

#[test]
fn version_one() {
    run("version-one.toml", |client, server, appliance| {
        let _backend = is_passed_on(client, server, NFS);
        assert_eq!(versions(appliance), [Some(1); 2], "fallen back");
        assert_eq!(appliance.state().counter("fallbacks"), 1);
    });
}

#[test]
fn verbs_front() {
    let server = Server::new();
    let mut plan = plan("verbs-front.toml", &server, Path::new(""));
    plan.fronts[0].allow = Peers::local();
    let appliance = Appliance::of(plan);
    let mut peer = Peer::new(&appliance);
    peer.connect("[::]:20049");
    peer.send(&head(One, XID).with(&nfs_null(XID)));
    let mut backend = server.accept();
    assert_eq!(backend.record(), Some(nfs_null(XID)));
    backend.send(&success(XID));
    let reply = head(One, XID).credits(64);
    assert_eq!(peer.answer(), reply.with(&success(XID)));
    // Version two is not spoken here: the range that is.
    peer.send(&head(Two, XID).with(&nfs_null(XID)));
    assert_eq!(peer.answer(), words(&[XID, 2, 64, 4, 1, 1, 1]));
    peer.leave();
    appliance.end();
}

#[test]
fn verbs_front_lets_no_stranger_in() {
    let server = Server::new();
    let appliance = Appliance::of(plan("verbs-front.toml", &server, Path::new("")));
    let mut peer = Peer::new(&appliance);
    let asked = peer.ask("[::]:20049", 1, &[]);
    let reason = peer.until_rejected(asked);
    assert!(reason.contains("allow list"), "{reason}");
    appliance.end();
}

/// An example with a front, before that server, which lets everybody here in.
fn front_before(server: &Server, example: &str) -> Plan {
    let mut plan = load(&path(example), &machine()).expect("an example");
    let front = &mut plan.fronts[0];
    front.allow = Peers::local();
    let BackendAddress::Tcp { port, .. } = &mut front.backends[0].address else {
        panic!("a server elsewhere");
    };
    *port = server.address().port();
    front.backends[0].source_port = SourcePort::Any;
    plan
}

/// The back of one example leads to the front of another, in one appliance.
fn back_to_front(back: &str, front: &str, port: u16, version: u32) {
    let server = Server::new();
    let mut plan = plan(back, &server, Path::new(""));
    plan.backs[0].upstream = Upstream::Host {
        host: "127.0.0.1".to_owned(),
        port,
    };
    plan.fronts = front_before(&server, front).fronts;
    plan.fronts[0].listen = format!("127.0.0.1:{port}");
    plan.reckon();
    let appliance = Appliance::of(plan);
    let mut client = Stream::to(appliance.back());
    let _backend = is_passed_on(&mut client, &server, NFS);
    assert_eq!(versions(&appliance), [Some(version); 2]);
    client.close();
    appliance.end();
}

/// The front speaks no version two: the back falls back.
#[test]
fn verbs_back() {
    back_to_front("verbs-back.toml", "verbs-front.toml", 20049, 1);
}

#[test]
fn iwarp_sctp_back_and_front() {
    back_to_front("iwarp-sctp-back.toml", "iwarp-sctp-front.toml", 9899, 2);
}

/// The same link within this process, in place of an InfiniBand device's.
fn in_memory(name: &str, mut link: Link) -> Link {
    link.name = name.to_owned();
    link.subnet = Subnet::Memory;
    link.device = None;
    link
}

/// Who answers the back of an appliance.
fn found(appliance: &Appliance) -> String {
    appliance.until("somebody answers", |state| {
        let sought = state.0.links.iter().find_map(|link| link.sought.first())?;
        sought.known.first().cloned()
    })
}

/// The back asks the group of the other example, and goes where the front there says it is.
#[test]
fn ipoib_back_finds_ipoib_front() {
    let server = Server::new();
    let mut plan = plan("ipoib-back.toml", &server, Path::new(""));
    let front = front_before(&server, "ipoib-front.toml");
    let mut asking = in_memory("asking", plan.links[0].clone());
    asking.ipv4 = Ipv4::Is("10.6.0.9/24".parse().expect("an address"));
    let answering = in_memory("answering", front.links[0].clone());
    plan.links = vec![answering, asking];
    let Upstream::Discover(discover) = &mut plan.backs[0].upstream else {
        panic!("an upstream to discover");
    };
    discover.link = "asking".to_owned();
    plan.fronts = front.fronts;
    plan.reckon();
    let appliance = Appliance::of(plan);
    assert_eq!(found(&appliance), "10.5.0.5:20049");
    // The front is told of once its backend was seen to be there.
    drop(server.accept());
    let mut client = Stream::to(appliance.back());
    let _backend = is_passed_on(&mut client, &server, NFS);
    assert_eq!(versions(&appliance), [Some(2); 2]);
    client.close();
    appliance.end();
}

/// The back finds the front of its own file, by the links there.
#[test]
fn discovery() {
    let directory = tempfile::tempdir().expect("a scratch directory");
    let mut plan = plan("discovery.toml", &Server::new(), directory.path());
    plan.fronts[0].allow = Peers::local();
    let appliance = Appliance::of(plan);
    assert_eq!(found(&appliance), "192.0.2.5:9899");
    let mut client = Stream::to(appliance.back());
    is_answered(&mut client, &[(NFS, 3), (MOUNT, 3)]);
    is_mounted(&mut client);
    assert_eq!(versions(&appliance), [Some(2); 2]);
    client.close();
    appliance.end();
}

/// What goes by ports of DPDK otherwise.
#[test]
fn iwarp_sctp_dpdk() {
    let server = Server::new();
    let plan = front_before(&server, "iwarp-sctp-dpdk.toml");
    let listen = plan.fronts[0].listen.clone();
    let appliance = Appliance::of(plan);
    let mut peer = Peer::new(&appliance);
    peer.connect(&listen);
    peer.send(&head(Two, XID).with(&nfs_null(XID)));
    let mut backend = server.accept();
    assert_eq!(backend.record(), Some(nfs_null(XID)));
    backend.send(&success(XID));
    assert!(!peer.answer().is_empty());
    peer.leave();
    appliance.end();
}

/// A client whose Call is with a server when the drain begins gets its answer before the end.
#[test]
fn a_call_in_flight_is_answered_before_the_end() {
    run("minimal.toml", |client, server, appliance| {
        let mut backend = is_passed_on(client, server, NFS);
        client.send(&nfs_null(XID));
        assert_eq!(backend.record(), Some(nfs_null(XID)));
        appliance.drain();
        backend.send(&success(XID));
        assert_eq!(client.record(), Some(success(XID)));
        assert_eq!(client.record(), None, "and then the end");
    });
}
