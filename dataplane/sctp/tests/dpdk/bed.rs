//! EAL with ports for a test, endpoints on them, and what is said over them.

use crate::support::Pair;
use dpdk_sys::{Eal, Level};
use rpcrdma_sctp::{DISCARDS, EtherPort, Llp, PortPlan, Ports, Settings, Usrsctp};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

fn hear(_: Level, _: &str) {}

/// EAL with these ports: for the one test of its process.
pub fn eal(directory: &Path, ports: &[String]) -> &'static Eal {
    // SAFETY: this is the only test of its process, and no other thread runs yet.
    unsafe { std::env::set_var("XDG_RUNTIME_DIR", directory) };
    let prefix = format!("--file-prefix=sctp-{}", std::process::id());
    let arguments = ["--no-huge", "--no-shconf", "--no-pci", "-m256", &prefix];
    let arguments = arguments.into_iter().map(str::to_owned);
    let ports = ports.iter().map(|port| format!("--vdev={port}"));
    let arguments: Vec<_> = arguments.chain(ports).collect();
    // It pins the thread that starts it, which may be wherever it was before.
    let here = std::thread::available_parallelism().map_or(1, usize::from);
    let here: Vec<usize> = (0..here).collect();
    Eal::start(&here, &[], &arguments, hear).expect("EAL")
}

/// What DPDK leaves behind where root runs it.
pub fn tidy(eal: &Eal) {
    let runtime = eal.runtime_directory();
    let _ = std::fs::remove_file(format!("{runtime}/dpdk_telemetry.v2"));
    let _ = std::fs::remove_dir(runtime);
}

pub fn plan(name: &str, address: &str) -> PortPlan {
    PortPlan {
        name: name.to_owned(),
        address: address.parse().expect("a prefix"),
        gateway: None,
        mtu: 1500,
        frames: 4095,
    }
}

pub fn open(eal: &'static Eal, name: &str, address: &str) -> EtherPort {
    EtherPort::open(eal, &plan(name, address)).expect("a port")
}

pub fn at(port: &EtherPort, number: u16) -> SocketAddr {
    SocketAddr::new(port.station().ip(), number)
}

fn endpoint(port: &EtherPort, number: u16) -> Usrsctp {
    let ports = Ports::new(vec![port.clone()]).expect("one");
    let listens = number != 0;
    let end = Usrsctp::at_port(&ports, at(port, number), listens, Settings::default());
    end.expect("an endpoint")
}

/// One that is heard already: endpoints are from their first turn on.
pub fn listener(port: &EtherPort) -> Usrsctp {
    let mut listener = endpoint(port, 9899);
    listener.turn(Instant::now(), &mut |_| {});
    listener
}

pub fn connector(port: &EtherPort) -> Usrsctp {
    endpoint(port, 0)
}

/// Messages of many lengths there and back, and the association's end; the endpoints after that.
pub fn talk(mut pair: Pair) -> Pair {
    const COUNT: usize = 3_000;
    let to = pair.server.llp.local_address();
    let (ours, theirs) = pair.up_by(to);
    let longest = pair.client.llp.max_segment(ours) as usize;
    assert!((1_400..1_500).contains(&longest), "{longest}");
    let lengths: Vec<usize> = (0..COUNT).map(|at| 1 + at % longest).collect();
    let (mut there, mut back) = (0, 0);
    pair.until(|pair| {
        while there < COUNT && pair.client.put(ours, 3, &vec![7; lengths[there]]) {
            there += 1;
        }
        while back < COUNT && pair.server.put(theirs, 5, &vec![9; lengths[back]]) {
            back += 1;
        }
        assert_eq!((pair.client.down(), pair.server.down()), (None, None));
        pair.client.messages().count() == COUNT && pair.server.messages().count() == COUNT
    });
    for (end, value) in [(&pair.client, 9), (&pair.server, 7)] {
        let mut found: Vec<usize> = end.messages().map(Vec::len).collect();
        let mut expected = lengths.clone();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert!(end.messages().flatten().all(|octet| *octet == value));
        let counts = end.llp.counts();
        assert_eq!((counts.damaged, counts.crowded), (0, 0));
    }
    pair.client.llp.shut_down(ours);
    pair.until(|pair| pair.client.down().is_some() && pair.server.down().is_some());
    pair
}

/// How often that was found of what came.
pub fn discarded(llp: &Usrsctp, name: &str) -> u64 {
    let place = DISCARDS.iter().position(|it| *it == name);
    llp.discards()[place.expect("a counter")]
}
