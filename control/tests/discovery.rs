//! Discovery at work in one appliance: fronts that answer on one link of this process's own subnet, and a back that asks on the other.

#[path = "support/mod.rs"]
mod support;

use rpcrdmad::status::Document;
use std::net::SocketAddr;
use support::appliance::Appliance;
use support::octets::success;
use support::tcp::{Server, Stream, nfs_null};
use support::until;

const XID: u32 = 0x0D15_C001;

const LINKS_AND_BACK: &str = r#"
    [runtime]
    lcores = 1
    memory_mib = 32
    [[link]]
    name = "near"
    administrator = true
    ipv4 = "10.1.0.1/24"
    answer = ["239.192.78.81"]
    answers_per_s = 0
    [[link]]
    name = "far"
    ipv4 = "10.1.0.2/24"
    [[back]]
    name = "clients"
    listen = "127.0.0.1:0"
    fabric = "iwarp-sctp"
    upstream = { discover = "239.192.78.81", program = 100003, link = "far", ask_s = 1 }
"#;

/// An appliance with a front, at port 20050 and up, before each of these servers.
fn appliance(servers: &[SocketAddr]) -> Appliance {
    let fronts = (20_050..).zip(servers).map(|(port, server)| {
        format!(
            r#"
            [[front]]
            name = "nfs-{port}"
            fabric = "iwarp-sctp"
            listen = "10.1.0.1:{port}"
            [[front.backend]]
            programs = [100003]
            address = "{server}"
            "#
        )
    });
    let fronts: String = fronts.collect();
    Appliance::start(&[LINKS_AND_BACK, &fronts].concat())
}

fn known(document: &Document) -> Vec<String> {
    let sought = document.links.iter().flat_map(|link| &link.sought);
    let mut known: Vec<_> = sought.flat_map(|it| it.known.clone()).collect();
    known.sort();
    known
}

fn until_known(appliance: &Appliance, expected: &[&str]) {
    let what = format!("{expected:?} are known");
    appliance.until(&what, |state| (known(&state.0) == expected).then_some(()));
}

fn until_reachable(appliance: &Appliance, expected: bool) {
    let what = format!("the backend can be reached: {expected}");
    let is = |document: &Document| document.backends.iter().all(|it| it.reachable == expected);
    appliance.until(&what, |state| is(&state.0).then_some(()));
}

/// Which of these servers is asked a NULL Call, and the connection it comes on.
fn asked(servers: &[Server]) -> (usize, Stream) {
    until("one of them is asked", || {
        servers.iter().enumerate().find_map(|(at, server)| {
            let mut backend = server.accepted()?;
            (backend.record() == Some(nfs_null(XID))).then_some((at, backend))
        })
    })
}

/// Serves one NULL Call of a client.
fn serves(client: &mut Stream, backend: &mut Stream) {
    assert_eq!(backend.record(), Some(nfs_null(XID)));
    backend.send(&success(XID));
    assert_eq!(client.record(), Some(success(XID)));
}

#[test]
fn a_front_is_found_while_its_server_is_there() {
    let address = Server::new().address();
    let appliance = appliance(&[address]);
    until_reachable(&appliance, false);
    appliance.until("queries for what is not there", |state| {
        let answers = &state.0.links[0].answers;
        (answers["unreachable"] > 0 && answers["answered"] == 0).then_some(())
    });
    assert!(known(&appliance.state().0).is_empty());

    let server = Server::at(address);
    until_reachable(&appliance, true);
    until_known(&appliance, &["10.1.0.1:20050"]);
    drop(server.accept());
    let mut client = Stream::to(appliance.back());
    client.send(&nfs_null(XID));
    let mut backend = server.accept();
    serves(&mut client, &mut backend);

    backend.close();
    drop(server);
    client.send(&nfs_null(XID));
    assert_eq!(client.record(), None, "there is nobody to answer it");
    until_reachable(&appliance, false);
    until_known(&appliance, &[]);
    appliance.end();
}

#[test]
fn an_upstream_that_ends_while_it_owes_an_answer_is_left_for_another() {
    let servers = [Server::new(), Server::new()];
    let appliance = appliance(&[servers[0].address(), servers[1].address()]);
    until_known(&appliance, &["10.1.0.1:20050", "10.1.0.1:20051"]);
    // Both were looked for.
    servers.iter().for_each(|server| drop(server.accept()));

    let mut client = Stream::to(appliance.back());
    client.send(&nfs_null(XID));
    let (left, backend) = asked(&servers);
    drop(backend);
    assert_eq!(client.record(), None, "it went away without a word");

    // Control hears of the end after the client may have: who comes in between is led to the same.
    let client = until("the other one is asked", || {
        let mut client = Stream::to(appliance.back());
        client.send(&nfs_null(XID));
        let (at, mut backend) = asked(&servers);
        backend.send(&success(XID));
        assert_eq!(client.record(), Some(success(XID)));
        (at != left).then_some(client)
    });
    let moved = |document: &Document| document.links[1].sought[0].moved;
    assert_eq!(moved(&appliance.state().0), 1);
    client.close();
    appliance.end();
}
