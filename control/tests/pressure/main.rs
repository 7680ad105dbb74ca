//! The decisions that keep the appliance from deadlock, loss and unbounded memory, on the whole
//! of it: TCP clients, a back, a front, a TCP backend that does what the test says.
//!
//! Mostly everything is on one lcore, whose pool both gateways share: there they are most in each
//! other's way.

#[path = "../support/mod.rs"]
mod support;

mod ceiling;
mod grants;
mod losses;

use std::net::SocketAddr;
use support::appliance::{Appliance, InUse};
use support::tcp::{Server, Stream};

/// A back and a front before `backend`, with these many MiB, seats and credits.
fn gateways(backend: SocketAddr, memory_mib: u32, connections: u32, credits: u32) -> Appliance {
    on_lcores(1, backend, memory_mib, connections, credits)
}

/// The same on several lcores.
fn on_lcores(
    lcores: usize,
    backend: SocketAddr,
    memory_mib: u32,
    connections: u32,
    credits: u32,
) -> Appliance {
    Appliance::start(&format!(
        r#"
        [runtime]
        lcores = {lcores}
        memory_mib = {memory_mib}
        hugepages = "off"
        connections_max = {connections}
        drain_timeout_s = 1
        [status]
        socket = "off"
        [transport]
        credits = {credits}
        # A machine that has better things to do is no reason to give version two up (V2-09).
        negotiate_timeout_ms = 60000
        [[back]]
        name = "back"
        listen = "127.0.0.1:0"
        upstream = "nfs"
        [[front]]
        name = "nfs"
        listen = "nfs"
        [[front.backend]]
        programs = "others"
        address = "{backend}"
        "#
    ))
}

/// Gateways with one client whose first Call has been answered.
struct Way {
    client: Stream,
    backend: Stream,
    server: Server,
    appliance: Appliance,
    /// What was in use before anybody came.
    idle: InUse,
}

impl Way {
    fn new(credits: u32) -> Self {
        let server = Server::new();
        let appliance = gateways(server.address(), 32, 16, credits);
        let idle = appliance.state().in_use();
        let mut client = Stream::to(appliance.back());
        client.send(&support::tcp::nfs_null(1));
        let mut backend = server.accept();
        assert_eq!(backend.record(), Some(support::tcp::nfs_null(1)));
        backend.send(&support::octets::success(1));
        assert_eq!(client.record(), Some(support::octets::success(1)));
        Self {
            client,
            backend,
            server,
            appliance,
            idle,
        }
    }

    /// Waits until everything that anybody took is given back.
    fn ends_clean(&self) {
        self.appliance.until_in_use(&self.idle);
    }
}
