//! A port on a network interface of Linux (net_af_packet), with the system's own sockets at the
//! other end of its cable. There is one EAL per process: one test. It needs the rights to make a cable.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test uses part of what they share"
)]

#[path = "../dpdk/bed.rs"]
mod bed;
#[path = "../support/mod.rs"]
mod support;
mod veth;

use bed::{connector, discarded, eal, listener, open, talk, tidy};
use rpcrdma_sctp::{Llp, Settings, Usrsctp};
use std::net::SocketAddr;
use support::{Pair, is_absent};
use veth::Veth;

/// Either end asks.
#[test]
fn sockets_are_met_at_the_other_end() {
    if is_absent() {
        return;
    }
    let veth = match Veth::new("10.211.7.2/24") {
        Ok(veth) => veth,
        Err(why) => return println!("SKIPPED: {why}"),
    };
    let directory = tempfile::tempdir().expect("a directory");
    let interface = format!("net_af_packet0,iface={}", veth.here());
    let eal = eal(directory.path(), &[interface]);
    let port = open(eal, "net_af_packet0", "10.211.7.1/24");
    let here = SocketAddr::new(veth.there(), 0);
    let socket = Usrsctp::connector(here, Settings::default()).expect("a connector");
    talk(Pair::of(listener(&port), socket));
    let server = Usrsctp::listen(here, Settings::default()).expect("a listener");
    let pair = talk(Pair::of(server, connector(&port)));
    let frames = pair.client.llp.frames();
    assert!(frames.requests >= 1 && frames.answers >= 1, "{frames:?}");
    assert_eq!(discarded(&pair.client.llp, "frame-datagram-sum"), 0);
    tidy(eal);
}
