//! Exposing memory by windows, and both ways of ending it.

use super::*;
use rdma_core_sys as rdma;

fn expose(node: &mut Node, qp: QueuePair, at: u64, access: Access) -> Segment {
    node.port.expose(qp, span(at, 100), access).expect("free")
}

fn invalidate(t: &mut Two, handle: Handle) -> Result<Posted, Refused> {
    let message = [Octets::Bytes(b"done")];
    t.a.port.send(t.qa, &message, Some(handle), WorkId(70))
}

#[test]
fn a_binding_is_silent_and_ahead_of_the_send() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 100), 1).expect("room");
    t.b.port.ring();
    let segment = expose(&mut t.a, t.qa, 4096, Access::Write);
    assert_eq!(segment.length, 100);
    let base = t.a.arena.tract().start.as_ptr().addr() as u64;
    assert_eq!(segment.offset, base + 4096, "a virtual address");
    t.a.send(t.qa, b"call", 1).expect("room");
    assert_eq!(t.a.outcomes(), []);
    let posted = t.device.posted(t.na);
    assert_eq!(
        posted,
        [(rdma::IBV_WR_BIND_MW, false), (rdma::IBV_WR_SEND, false)]
    );
}

#[test]
fn a_retired_window_is_closed_and_told() {
    let mut t = Two::new();
    let to = expose(&mut t.b, t.qb, 4096, Access::Write);
    let retired = t.b.port.retire(t.qb, to.handle, WorkId(5));
    assert_eq!(retired, Ok(Posted::Pending));
    let again = t.b.port.retire(t.qb, to.handle, WorkId(5));
    assert_eq!(again, Err(Refused::Broken), "once");
    assert_eq!(t.b.outcomes(), [(5, Outcome::Done)]);
    assert_eq!(t.device.bound(), 0);
    t.a.write(t.qa, span(0, 8), to, 1).expect("room");
    let failed = Outcome::Failed(WorkError::RemoteAccess);
    assert_eq!(t.a.outcomes(), [(1, failed), (0, Outcome::Disconnected)]);
}

/// What siw would send from memory that is somebody else's by then is signalled, each of it.
#[test]
fn long_writes_are_signalled_where_they_have_to_be() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 100), 1).expect("room");
    let whole = span(8192, 2 * LAZY_BYTES);
    let to = t.open(whole, Access::Write);
    assert_eq!(t.b.outcomes(), []);
    for len in [LAZY_BYTES - 1, LAZY_BYTES] {
        let written = t.a.port.write(t.qa, span(0, len), to, WorkId(len.into()));
        assert_eq!(written, Ok(Posted::Pending));
    }
    t.a.send(t.qa, b"reply", 1).expect("room");
    let [short, long] = [LAZY_BYTES - 1, LAZY_BYTES].map(u64::from);
    assert_eq!(
        t.a.outcomes(),
        [(short, Outcome::Done), (long, Outcome::Done)]
    );
    let write = rdma::IBV_WR_RDMA_WRITE;
    assert_eq!(t.device.posted(t.na)[..2], [(write, false), (write, true)]);
}

#[test]
fn what_is_not_ones_own_cannot_be_retired() {
    let mut t = Two::new();
    let (_, other) = t.more((3, 4));
    let to = expose(&mut t.b, t.qb, 4096, Access::Write);
    for (qp, handle) in [
        (other, to.handle),
        (t.qb, Handle(to.handle.0 ^ 1)),
        (t.qb, Handle(0)),
    ] {
        let retired = t.b.port.retire(qp, handle, WorkId(5));
        assert_eq!(retired, Err(Refused::Broken));
    }
}

/// A device says it by its flag, software RDMA by another, whose number it is in the kernel.
#[test]
fn an_invalidated_handle_is_told_as_the_device_tells_it() {
    for rxe in [false, true] {
        let mut t = Two::speaking(invalidating_flags(rxe));
        if rxe {
            t.device.speak_as_rxe();
        }
        for n in 0..2 {
            t.b.receive(t.qb, span(0, 100), n).expect("room");
        }
        let one = expose(&mut t.b, t.qb, 4096, Access::Write);
        let other = expose(&mut t.b, t.qb, 8192, Access::Write);
        t.b.port.ring();
        assert_eq!(invalidate(&mut t, one.handle), Ok(Posted::Done));
        t.a.send(t.qa, b"plain", 1).expect("room");
        t.a.port.ring();
        let outcome = Outcome::Received {
            len: 4,
            invalidated: Some(one.handle),
        };
        assert_eq!(t.b.outcomes(), [(0, outcome), (1, received(5))]);
        t.b.port.retired_by_peer(t.qb, one.handle);
        assert_eq!(t.device.bound(), 1);
        let retired = t.b.port.retire(t.qb, one.handle, WorkId(1));
        assert_eq!(retired, Err(Refused::Broken), "never twice");
        let retired = t.b.port.retire(t.qb, other.handle, WorkId(1));
        assert_eq!(retired, Ok(Posted::Pending));
        assert_eq!(t.b.outcomes(), [(1, Outcome::Done)]);
    }
}

#[test]
fn windows_run_out_and_come_back() {
    let mut t = Two::new();
    let expose = |t: &mut Two| t.b.port.expose(t.qb, span(0, 8), Access::Read);
    let open: Vec<Segment> = (0..WINDOWS)
        .map(|_| expose(&mut t).expect("free"))
        .collect();
    assert_eq!(expose(&mut t), Err(Refused::Busy));
    let retired = t.b.port.retire(t.qb, open[3].handle, WorkId(1));
    assert_eq!(retired, Ok(Posted::Pending));
    assert_eq!(expose(&mut t), Err(Refused::Busy), "not before it is done");
    assert_eq!(t.b.outcomes()[0], (1, Outcome::Done));
    let again = expose(&mut t).expect("one is free");
    assert_ne!(again.handle, open[3].handle);
    assert_eq!(again.handle.0 >> 8, open[3].handle.0 >> 8);
}

/// What is retired because the queue was full of bindings comes back like anything else.
#[test]
fn bindings_alone_fill_and_empty_the_queue() {
    let mut t = Two::new();
    for round in 0..20 {
        let mut open = Vec::new();
        for _ in 0..WINDOWS {
            match t.b.port.expose(t.qb, span(0, 8), Access::Read) {
                Ok(segment) => open.push(segment.handle),
                Err(refused) => assert_eq!(refused, Refused::Busy),
            }
        }
        assert!(open.len() >= 4, "round {round}");
        for handle in open {
            while t.b.port.retire(t.qb, handle, WorkId(1)) == Err(Refused::Busy) {
                assert!(
                    !t.b.outcomes().is_empty(),
                    "round {round}: nobody would look again"
                );
            }
        }
        t.b.outcomes();
        assert_eq!(t.device.bound(), 0);
    }
}

#[test]
fn windows_of_a_connection_that_ends_go_to_control_and_others_come() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 8), 9).expect("room");
    let open = expose(&mut t.b, t.qb, 0, Access::Read);
    let retired = expose(&mut t.b, t.qb, 0, Access::Read);
    t.b.port.ring();
    t.lose_b();
    assert_eq!(t.b.outcomes(), [(9, FLUSHED), (0, Outcome::Disconnected)]);
    // In error, retiring still works: that is how memory comes back.
    for _ in 0..2 {
        let gone = t.b.port.retire(t.qb, retired.handle, WorkId(6));
        assert_eq!(gone, Ok(Posted::Done));
    }
    assert_eq!(t.b.words(), ["broken 1"]);
    t.b.port.destroy(t.qb);
    let words = t.b.words();
    let window = |segment: Segment| format!("window {:#x}", segment.handle.0 & !0xff);
    assert_eq!(words, [window(open), window(retired), "over 1".to_owned()]);

    let (_, qb) = t.more((3, 4));
    let expose = |t: &mut Two| t.b.port.expose(qb, span(0, 8), Access::Read);
    let mut keys: Vec<u32> = (2..WINDOWS)
        .map(|_| expose(&mut t).expect("free").handle.0 >> 8)
        .collect();
    assert_eq!(expose(&mut t), Err(Refused::Busy), "two are away");
    let new = t.device.window();
    t.b.outlet.tell(Notice::Window(new));
    let told = t.b.completions();
    let rooms: Vec<Token> = told
        .iter()
        .filter(|completion| completion.outcome == Outcome::Room)
        .map(|completion| completion.token)
        .collect();
    assert_eq!(rooms, [Token(4)]);
    keys.push(expose(&mut t).expect("free").handle.0 >> 8);
    assert!(keys.contains(&(new.rkey >> 8)));
    assert!(!keys.contains(&(open.handle.0 >> 8)), "never while bound");
}

#[test]
fn memory_outside_the_arena_is_not_exposed() {
    let mut t = Two::new();
    for wrong in [
        span(1 << 20, 8),
        span((1 << 20) - 4, 8),
        span(u64::MAX, 8),
        span(0, 0),
    ] {
        let exposed = t.a.port.expose(t.qa, wrong, Access::Read);
        assert_eq!(exposed, Err(Refused::Unsupported), "{wrong:?}");
    }
}
