//! The kernel's SCTP, against itself and against the library's. Runs where the kernel has it
//! (`modprobe sctp`), and in UDP where it has a port for that (`sysctl net.sctp.udp_port=9899`).

mod support;

use rpcrdma_sctp::{
    AssociationId, ENCAPSULATION_PORT, KernelSctp, Llp, NFS_RDMA_PORT, Reason, Refused, Settings,
    Usrsctp,
};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard};
use support::{Pair, Told, is_absent, loopback};

/// The kernel has one SCTP port 20049: tests take turns.
static PORT: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    PORT.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn at(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

fn with(indication: Option<u32>) -> Settings {
    Settings {
        indication,
        ..Settings::default()
    }
}

/// Both ends, or a line that says what is missing.
macro_rules! have {
    ($end:expr) => {
        match $end {
            Ok(end) => end,
            Err(error) => {
                println!("SKIPPED: {error}");
                return;
            }
        }
    };
}

/// Messages of every length up to the longest each way, some of them twice the send buffer.
fn exchange<S: Llp, C: Llp>(pair: &mut Pair<S, C>, ours: AssociationId, theirs: AssociationId) {
    let longest = pair.client.llp.max_segment(ours);
    let longest = longest.min(pair.server.llp.max_segment(theirs)) as usize;
    assert!(longest >= 518);
    let lengths: Vec<usize> = (0..150)
        .map(|at| 1 + at * 997 % longest)
        .chain([longest])
        .collect();
    let octets = |at: usize| vec![at.to_le_bytes()[0]; lengths[at]];
    let (mut up, mut down) = (0, 0);
    pair.until(|pair| {
        while up < lengths.len() && pair.client.put(ours, 3, &octets(up)) {
            up += 1;
        }
        while down < lengths.len() && pair.server.put(theirs, 15, &octets(down)) {
            down += 1;
        }
        let count = lengths.len();
        pair.server.messages().count() == count && pair.client.messages().count() == count
    });
    let sent: BTreeSet<Vec<u8>> = (0..lengths.len()).map(octets).collect();
    for told in [&pair.server.told, &pair.client.told] {
        let mut arrived = BTreeSet::new();
        for event in told {
            if let Told::Message {
                unordered,
                octets,
                ppid,
                stream,
                ..
            } = event
            {
                assert!(*unordered);
                assert_eq!(*ppid, 16);
                assert!([3, 15].contains(stream));
                arrived.insert(octets.clone());
            }
        }
        assert_eq!(arrived, sent);
    }
    let dry = Told::Dry(ours);
    pair.client.llp.await_dry(ours);
    pair.until(|pair| pair.client.told.contains(&dry));
    let long = longest + 4;
    let refused = pair.client.llp.send(ours, 0, 16, long.max(65_477), |_| {});
    assert_eq!(refused, Err(Refused::Length));
}

/// Associates, exchanges messages, and ends in order; with what each end shows of itself.
fn whole_life<S: Llp, C: Llp>(
    mut pair: Pair<S, C>,
    to: SocketAddr,
    (served, asked): (Option<u32>, Option<u32>),
) {
    let (ours, theirs) = pair.up_by(to);
    let seen = |told: &[Told]| match told.first() {
        Some(Told::Up {
            indication,
            streams,
            ..
        }) => (*indication, *streams),
        other => panic!("{other:?}"),
    };
    assert_eq!(seen(&pair.client.told), (served, (16, 16)));
    assert_eq!(seen(&pair.server.told), (asked, (16, 16)));
    exchange(&mut pair, ours, theirs);
    pair.client.llp.shut_down(ours);
    pair.until(|pair| pair.server.down().is_some() && pair.client.down().is_some());
    assert_eq!(pair.server.down(), Some(Reason::ShutDown));
    assert_eq!(pair.client.down(), Some(Reason::ShutDown));
}

const CASES: [(Option<u32>, Option<u32>); 4] = [
    (Some(1), Some(1)),
    (None, Some(1)),
    (Some(1), None),
    (Some(1), Some(77)),
];

#[test]
fn natively_with_itself() {
    let _turn = turn();
    for (served, asked) in CASES {
        let server = have!(KernelSctp::listen(at(0), &with(served)));
        let client = have!(KernelSctp::connector(at(0), None, &with(asked)));
        let to = server.local_address();
        whole_life(Pair::of(server, client), to, (served, asked));
    }
}

#[test]
fn the_library_asks_the_kernel() {
    let _turn = turn();
    if is_absent() {
        return;
    }
    for (served, asked) in CASES {
        // Only whether the kernel has a UDP port is asked here.
        drop(have!(KernelSctp::connector(at(0), Some(1), &with(None))));
        let server = have!(KernelSctp::listen(at(NFS_RDMA_PORT), &with(served)));
        let client = Usrsctp::connector(loopback(), with(asked)).expect("an end");
        let pair = Pair::of(server, client);
        whole_life(pair, at(ENCAPSULATION_PORT), (served, asked));
    }
}

#[test]
fn the_kernel_asks_the_library() {
    let _turn = turn();
    if is_absent() {
        return;
    }
    for (served, asked) in CASES {
        let server = Usrsctp::listen(loopback(), with(served)).expect("an end");
        let port = server.local_address().port();
        let client = have!(KernelSctp::connector(at(0), Some(port), &with(asked)));
        whole_life(Pair::of(server, client), at(NFS_RDMA_PORT), (served, asked));
    }
}

#[test]
fn aborts_are_told_at_both_ends() {
    let _turn = turn();
    let server = have!(KernelSctp::listen(at(0), &with(Some(1))));
    let client = have!(KernelSctp::connector(at(0), None, &with(Some(1))));
    let to = server.local_address();
    let mut pair = Pair::of(server, client);
    let (ours, _) = pair.up_by(to);
    pair.client.llp.abort(ours);
    assert!(pair.client.llp.deadline().is_some());
    pair.until(|pair| pair.server.down().is_some() && pair.client.down().is_some());
    assert_eq!(pair.client.down(), Some(Reason::Aborted));
    assert!(matches!(pair.server.down(), Some(Reason::AbortedByPeer(_))));
}

/// A send buffer that fills is told of, and so is room.
#[test]
fn a_full_buffer_is_told_and_so_is_room() {
    let _turn = turn();
    let small = Settings {
        send_bytes: 20_000,
        receive_bytes: 40_000,
        ..Settings::default()
    };
    let server = have!(KernelSctp::listen(at(0), &small));
    let client = have!(KernelSctp::connector(at(0), None, &small));
    let to = server.local_address();
    let mut pair = Pair::of(server, client);
    let (ours, _) = pair.up_by(to);
    let mut taken = 0;
    while pair.client.put(ours, 0, &[7; 999]) {
        taken += 1;
        assert!(taken < 10_000, "far beyond both buffers");
    }
    pair.until(|pair| pair.client.told.contains(&Told::Writable(ours)));
    assert!(pair.client.put(ours, 0, b"after"));
    pair.until(|pair| pair.server.messages().count() == taken + 1);
}
