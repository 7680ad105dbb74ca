//! RDMA Read and Write, windows, and both ways of invalidating them.

mod support;

use rpcrdma_fabric::{
    Access, Handle, Octets, Outcome, Port, Posted, QueuePair, Refused, Segment, WorkError, WorkId,
};
use rpcrdma_memory::Settings;
use support::{FLUSHED, Node, Two, settings, span};

fn send_invalidating(node: &mut Node, qp: QueuePair, handle: Handle) -> Result<Posted, Refused> {
    node.port
        .send(qp, &[Octets::Bytes(b"done")], Some(handle), WorkId(70))
}

#[test]
fn a_write_lands_where_it_was_aimed() {
    let mut t = Two::new();
    t.a.put(span(0, 10), b"0123456789");
    let to =
        t.b.port
            .expose(t.qb, span(4096, 100), Access::Write)
            .expect("free");
    assert_eq!(to.length, 100);
    assert_eq!(t.a.write(t.qa, span(0, 10), to, 1), Ok(Posted::Done));
    let part = Segment {
        offset: to.offset + 90,
        length: 10,
        ..to
    };
    assert_eq!(t.a.write(t.qa, span(5, 5), part, 1), Ok(Posted::Done));
    assert_eq!(t.b.see(span(4096, 10)), b"0123456789");
    assert_eq!(t.b.see(span(4096 + 90, 10)), b"56789\0\0\0\0\0");
}

#[test]
fn a_read_brings_what_is_there() {
    let mut t = Two::new();
    t.b.put(span(4096, 10), b"0123456789");
    let from =
        t.b.port
            .expose(t.qb, span(4096, 10), Access::Read)
            .expect("free");
    assert_eq!(
        t.a.port.read(t.qa, span(0, 10), from, WorkId(1)),
        Ok(Posted::Done)
    );
    assert_eq!(t.a.see(span(0, 10)), b"0123456789");
}

/// Whatever is wrong with an access, it fails at its poster, ends the connection, and changes
/// nothing.
#[test]
fn wrong_accesses_end_the_connection() {
    type Attempt = fn(&mut Two, Segment) -> Result<Posted, Refused>;
    let attempts: [(Access, Attempt); 7] = [
        (Access::Write, |t, to| {
            let to = Segment {
                handle: Handle(to.handle.0 ^ 1 << 20),
                ..to
            };
            t.a.write(t.qa, span(0, 10), to, 1)
        }),
        (Access::Write, |t, to| {
            t.a.write(
                t.qa,
                span(0, 10),
                Segment {
                    offset: to.offset + 91,
                    ..to
                },
                1,
            )
        }),
        (Access::Write, |t, to| {
            t.a.write(t.qa, span(0, 101), Segment { length: 101, ..to }, 1)
        }),
        (Access::Write, |t, to| {
            t.a.write(
                t.qa,
                span(0, 10),
                Segment {
                    offset: u64::MAX - 4,
                    ..to
                },
                1,
            )
        }),
        (Access::Read, |t, to| t.a.write(t.qa, span(0, 10), to, 1)),
        (Access::Write, |t, from| {
            t.a.port.read(t.qa, span(0, 100), from, WorkId(1))
        }),
        // Of a window of the same port, but another connection.
        (Access::Write, |t, to| {
            let (qa, _) = t.more((3, 4));
            t.a.receive(t.qa, span(0, 8), 50).expect("room");
            let old = std::mem::replace(&mut t.qa, qa);
            t.a.port.disconnect(old);
            t.a.reap();
            t.a.write(t.qa, span(0, 10), to, 1)
        }),
    ];
    for (n, (access, attempt)) in attempts.into_iter().enumerate() {
        let mut t = Two::new();
        t.a.put(span(0, 200), &[7; 200]);
        let segment =
            t.b.port
                .expose(t.qb, span(4096, 100), access)
                .expect("free");
        assert_eq!(attempt(&mut t, segment), Ok(Posted::Pending), "{n}");
        let outcomes = t.a.outcomes();
        let failed = Outcome::Failed(WorkError::RemoteAccess);
        assert_eq!(outcomes, [(1, failed), (0, Outcome::Disconnected)], "{n}");
        assert!(
            t.b.outcomes().ends_with(&[(0, Outcome::Disconnected)]),
            "{n}"
        );
        assert_eq!(t.b.see(span(4096, 100)), [0; 100], "{n}");
    }
}

#[test]
fn wrong_memory_of_ones_own_is_ones_own_fault() {
    let mut t = Two::new();
    let to =
        t.b.port
            .expose(t.qb, span(4096, 100), Access::Write)
            .expect("free");
    let outside = span(t.a.arena.len(), 1);
    assert_eq!(t.a.write(t.qa, outside, to, 1), Ok(Posted::Pending));
    assert_eq!(
        t.a.outcomes()[0],
        (1, Outcome::Failed(WorkError::LocalProtection))
    );

    let mut t = Two::new();
    let from =
        t.b.port
            .expose(t.qb, span(4096, 100), Access::Read)
            .expect("free");
    let short = t.a.port.read(t.qa, span(0, 99), from, WorkId(1));
    assert_eq!(short, Ok(Posted::Pending));
    assert_eq!(
        t.a.outcomes()[0],
        (1, Outcome::Failed(WorkError::LocalProtection))
    );
}

#[test]
fn a_retired_window_is_closed() {
    let mut t = Two::new();
    let to =
        t.b.port
            .expose(t.qb, span(4096, 100), Access::Write)
            .expect("free");
    assert_eq!(
        t.b.port.retire(t.qb, to.handle, WorkId(5)),
        Ok(Posted::Done)
    );
    assert_eq!(t.a.write(t.qa, span(0, 10), to, 1), Ok(Posted::Pending));
    assert_eq!(
        t.a.outcomes()[0],
        (1, Outcome::Failed(WorkError::RemoteAccess))
    );
}

#[test]
fn retiring_what_is_not_open_is_an_error_of_ones_own() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 8), 9).expect("room");
    let to =
        t.b.port
            .expose(t.qb, span(4096, 100), Access::Write)
            .expect("free");
    let wrong = Handle(to.handle.0 ^ 1 << 31);
    assert_eq!(t.b.port.retire(t.qb, wrong, WorkId(5)), Ok(Posted::Pending));
    assert_eq!(
        t.b.outcomes(),
        [
            (5, Outcome::Failed(WorkError::LocalProtection)),
            (9, FLUSHED),
            (0, Outcome::Disconnected)
        ]
    );
    // In error, retiring still works: that is how memory comes back.
    assert_eq!(
        t.b.port.retire(t.qb, to.handle, WorkId(6)),
        Ok(Posted::Done)
    );
    assert_eq!(
        t.b.port.retire(t.qb, to.handle, WorkId(6)),
        Ok(Posted::Done)
    );
    assert_eq!(t.a.outcomes(), [(0, Outcome::Disconnected)]);
}

#[test]
fn a_send_invalidates_exactly_the_handle_it_names() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 100), 1).expect("room");
    let one =
        t.b.port
            .expose(t.qb, span(4096, 100), Access::Write)
            .expect("free");
    let other =
        t.b.port
            .expose(t.qb, span(8192, 100), Access::Write)
            .expect("free");
    assert_eq!(
        send_invalidating(&mut t.a, t.qa, one.handle),
        Ok(Posted::Done)
    );
    let outcome = Outcome::Received {
        len: 4,
        invalidated: Some(one.handle),
    };
    assert_eq!(t.b.outcomes(), [(1, outcome)]);
    t.b.port.retired_by_peer(t.qb, one.handle);
    assert_eq!(t.a.write(t.qa, span(0, 10), other, 1), Ok(Posted::Done));
    assert_eq!(t.a.write(t.qa, span(0, 10), one, 2), Ok(Posted::Pending));
    assert_eq!(
        t.a.outcomes()[0],
        (2, Outcome::Failed(WorkError::RemoteAccess))
    );
}

#[test]
fn invalidation_waits_with_its_message() {
    let mut t = Two::new();
    let to =
        t.b.port
            .expose(t.qb, span(4096, 100), Access::Write)
            .expect("free");
    assert_eq!(
        send_invalidating(&mut t.a, t.qa, to.handle),
        Ok(Posted::Pending)
    );
    assert_eq!(
        t.b.port.retire(t.qb, to.handle, WorkId(5)),
        Ok(Posted::Done),
        "still open"
    );
    t.b.receive(t.qb, span(0, 100), 1).expect("room");
    assert_eq!(
        t.a.outcomes()[0],
        (70, Outcome::Failed(WorkError::RemoteAccess))
    );
    assert_eq!(t.b.outcomes(), [(1, FLUSHED), (0, Outcome::Disconnected)]);
}

#[test]
fn invalidating_what_is_not_the_peers_ends_the_connection() {
    for case in 0..4 {
        let mut t = Two::new();
        let (_, other) = t.more((3, 4));
        t.b.receive(t.qb, span(0, 100), 1).expect("room");
        let mine =
            t.a.port
                .expose(t.qa, span(0, 8), Access::Read)
                .expect("free")
                .handle;
        let its =
            t.b.port
                .expose(t.qb, span(0, 8), Access::Read)
                .expect("free")
                .handle;
        let others =
            t.b.port
                .expose(other, span(0, 8), Access::Read)
                .expect("free")
                .handle;
        let handle = [Handle(0), mine, Handle(its.0 ^ 1 << 25), others][case];
        assert_eq!(
            send_invalidating(&mut t.a, t.qa, handle),
            Ok(Posted::Pending),
            "{case}"
        );
        let failed = Outcome::Failed(WorkError::RemoteAccess);
        assert_eq!(
            t.a.outcomes(),
            [(70, failed), (0, Outcome::Disconnected)],
            "{case}"
        );
        let lost = [(1, FLUSHED), (0, Outcome::Disconnected)];
        assert_eq!(
            t.b.outcomes(),
            lost,
            "{case}: no message without its invalidation"
        );
        assert_eq!(
            t.b.port.retire(other, others, WorkId(1)),
            Ok(Posted::Done),
            "{case}"
        );
    }
}

#[test]
fn a_handle_is_invalidated_once() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 100), 1).expect("room");
    t.b.receive(t.qb, span(0, 100), 2).expect("room");
    let to =
        t.b.port
            .expose(t.qb, span(4096, 100), Access::Write)
            .expect("free");
    assert_eq!(
        send_invalidating(&mut t.a, t.qa, to.handle),
        Ok(Posted::Done)
    );
    assert_eq!(
        send_invalidating(&mut t.a, t.qa, to.handle),
        Ok(Posted::Pending)
    );
    assert_eq!(
        t.a.outcomes()[0],
        (70, Outcome::Failed(WorkError::RemoteAccess))
    );
    // What went before the failure still arrives.
    assert!(matches!(
        t.b.outcomes()[0],
        (
            1,
            Outcome::Received {
                invalidated: Some(_),
                ..
            }
        )
    ));
}

#[test]
fn windows_run_out_and_come_back() {
    let mut t = Two::new();
    let expose = |t: &mut Two| t.b.port.expose(t.qb, span(0, 8), Access::Read);
    let open: Vec<Segment> = (0..16).map(|_| expose(&mut t).expect("free")).collect();
    assert_eq!(expose(&mut t), Err(Refused::Busy));
    assert_eq!(
        t.b.port.retire(t.qb, open[3].handle, WorkId(1)),
        Ok(Posted::Done)
    );
    let again = expose(&mut t).expect("one is free");
    assert_ne!(again.handle, open[3].handle);
    assert_eq!(expose(&mut t), Err(Refused::Busy));
    // One that the peer invalidated is not free before its owner has heard of it.
    t.b.receive(t.qb, span(0, 100), 1).expect("room");
    assert_eq!(
        send_invalidating(&mut t.a, t.qa, open[5].handle),
        Ok(Posted::Done)
    );
    assert_eq!(expose(&mut t), Err(Refused::Busy));
    t.b.port.retired_by_peer(t.qb, open[5].handle);
    assert!(expose(&mut t).is_ok());
    // Destroying a queue pair frees what it left open.
    t.b.port.destroy(t.qb);
    let (_, qb) = t.more((3, 4));
    for _ in 0..16 {
        t.b.port
            .expose(qb, span(0, 8), Access::Read)
            .expect("all are free");
    }
}

#[test]
fn handles_can_be_repeated_for_a_test_and_only_then() {
    let first = |settings: &Settings| {
        let mut t = Two::with(&support::settings(), settings);
        t.b.port
            .expose(t.qb, span(0, 8), Access::Read)
            .expect("free")
    };
    assert_eq!(first(&settings()), first(&settings()));
    let unseeded = Settings {
        seed: None,
        ..settings()
    };
    assert_ne!(first(&unseeded), first(&unseeded));
}

#[test]
fn a_port_without_remote_invalidation_refuses_it() {
    let mut t = Two::with(
        &Settings {
            remote_invalidate: false,
            ..settings()
        },
        &settings(),
    );
    let able = t.a.port.capabilities();
    assert!(!able.send_invalidate && !able.receive_invalidate);
    let to =
        t.b.port
            .expose(t.qb, span(4096, 100), Access::Write)
            .expect("free");
    assert_eq!(
        send_invalidating(&mut t.a, t.qa, to.handle),
        Err(Refused::Unsupported)
    );
}
