//! Both ends on threads of their own.

mod support;

use rpcrdma_fabric::{
    Access, Completion, Handle, Octets, Outcome, Port, Posted, QueuePair, WorkId,
};
use rpcrdma_fabric::{Segment, Span, WorkError};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::{NOTHING, Node, Two, settings, span};

/// What message number `n` is.
fn message(n: u64) -> Vec<u8> {
    let len = n * 61 % 3000 + 8;
    let mut octets: Vec<u8> = (0..len).map(|i| (n * 17 + i).to_le_bytes()[0]).collect();
    octets[..8].copy_from_slice(&n.to_le_bytes());
    octets
}

/// Sends `count` messages; receives and checks as many.
fn exchange(node: &mut Node, qp: QueuePair, count: u64) {
    let place = |n: u64| span(n % 16 * 4096, 4096);
    for n in 0..16 {
        node.receive(qp, place(n), n).expect("room");
    }
    let (mut sent, mut pending, mut arrived) = (0, 0, 0);
    let mut batch = [NOTHING; 32];
    while sent < count || arrived < count || pending > 0 {
        if sent < count
            && let Ok(posted) = node.send(qp, &message(sent), sent)
        {
            sent += 1;
            pending += u64::from(posted == Posted::Pending);
        }
        let reaped = node.port.reap(&mut batch);
        for completion in &batch[..reaped] {
            match completion.outcome {
                Outcome::Received { len, .. } => {
                    assert_eq!(completion.id.0, arrived, "in order");
                    let first = place(arrived).first(len);
                    assert_eq!(node.see(first), message(arrived), "whole");
                    arrived += 1;
                    node.receive(qp, place(arrived - 1), arrived + 15)
                        .expect("room");
                }
                Outcome::Done => pending -= 1,
                other => panic!("{other:?} after {arrived} messages"),
            }
        }
        node.port.ring();
        if reaped == 0 {
            std::thread::yield_now();
        }
    }
}

#[test]
fn messages_cross_both_ways_in_order_and_whole() {
    let Two {
        mut a,
        mut b,
        qa,
        qb,
        ..
    } = Two::new();
    std::thread::scope(|scope| {
        scope.spawn(|| exchange(&mut a, qa, 20_000));
        exchange(&mut b, qb, 20_000);
    });
}

/// The same, sleeping whenever there is nothing to do: a wake-up that is lost is a test that
/// ends here.
#[test]
fn no_wake_up_is_lost() {
    let Two {
        mut a,
        mut b,
        qa,
        qb,
        ..
    } = Two::new();
    let play = |node: &mut Node, qp: QueuePair, first: bool| {
        let mut left = 5000;
        node.receive(qp, span(0, 64), 0).expect("room");
        if first {
            node.send(qp, b"ping", 0).expect("room");
        }
        let mut batch = [NOTHING; 4];
        while left > 0 {
            let count = node.port.reap(&mut batch);
            for completion in &batch[..count] {
                if completion.outcome == Outcome::Done {
                    continue;
                }
                assert_eq!(completion.outcome, support::received(4));
                left -= 1;
                // Now and then the receive comes after the answer to it: the peer must wait.
                if left % 3 == 0 {
                    node.send(qp, b"ping", 1).expect("room");
                    node.port.ring();
                    std::thread::yield_now();
                    node.receive(qp, span(0, 64), 0).expect("room");
                } else {
                    node.receive(qp, span(0, 64), 0).expect("room");
                    node.send(qp, b"ping", 1).expect("room");
                }
            }
            node.port.ring();
            if left > 0 && count == 0 && node.port.arm() {
                assert!(sleep(node), "no wake-up, {left} left");
            }
        }
        // A last message may wait for the peer; the ring takes it by then.
        while node.port.reap(&mut batch) > 0 {}
        node.port.ring();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| play(&mut a, qa, true));
        play(&mut b, qb, false);
    });
}

/// Until the port's descriptor is readable; false after ten seconds.
fn sleep(node: &Node) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let waker = node.port.waker();
    let mut fds = [PollFd::from_borrowed_fd(waker.as_fd(), PollFlags::IN)];
    let most = Timespec {
        tv_sec: 10,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&most)).expect("poll") > 0
}

#[test]
fn whatever_happens_to_a_sleeper_wakes_it() {
    let mut t = Two::new();
    let armed = |t: &mut Two| {
        t.a.reap();
        assert!(t.a.port.arm());
    };
    armed(&mut t);
    t.a.receive(t.qa, span(0, 8), 0).expect("room");
    t.b.send(t.qb, b"x", 0).expect("room");
    t.b.port.ring();
    assert!(sleep(&t.a), "a message");
    assert!(!t.a.port.arm(), "not before it has been reaped");

    armed(&mut t);
    t.a.port.wake_handle().wake();
    assert!(sleep(&t.a), "a handle");

    t.a.send(t.qa, b"x", 1).expect("waits");
    armed(&mut t);
    t.b.receive(t.qb, span(0, 8), 0).expect("room");
    assert!(sleep(&t.a), "a receive that a message waits for");
    assert_eq!(t.a.outcomes(), [(1, Outcome::Done)]);

    armed(&mut t);
    let _third = t.more_lanes();
    assert!(sleep(&t.a), "a new lane");

    armed(&mut t);
    t.b.port.disconnect(t.qb);
    assert!(sleep(&t.a), "the end of a connection");
    assert!(!t.a.port.arm(), "there is something to report");
}

#[test]
fn nobody_strikes_the_bell_of_a_port_that_is_awake() {
    let mut t = Two::new();
    for n in 0..10 {
        t.a.receive(t.qa, span(0, 8), n).expect("room");
        t.b.send(t.qb, b"x", 0).expect("room");
        t.b.port.ring();
    }
    let waker = t.a.port.waker();
    let mut fds = [rustix::event::PollFd::from_borrowed_fd(
        waker,
        rustix::event::PollFlags::IN,
    )];
    let now = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    assert_eq!(rustix::event::poll(&mut fds, Some(&now)).expect("poll"), 0);
}

/// A peer writes as fast as it can while the owner opens and closes windows: once a close is
/// done, nothing is written any more.
#[test]
fn nothing_is_written_after_a_window_is_closed() {
    let rounds = 3000;
    let t = Two::new();
    let (qa, qb) = (t.qa, t.qb);
    let Two { mut a, mut b, .. } = t;
    let target: Mutex<Option<Segment>> = Mutex::new(None);
    let written = AtomicU64::new(0);
    let over = AtomicBool::new(false);
    let memory = span(1 << 16, 32 << 10);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            a.put(span(0, 32 << 10), &vec![0xee; 32 << 10]);
            while !over.load(Ordering::Relaxed) {
                // Held during the Write: a wrong handle would end the connection, and this test
                // is about those that are right when they begin. Which side is first is open.
                let Ok(segment) = target.try_lock() else {
                    continue;
                };
                if let Some(segment) = *segment
                    && a.write(qa, span(0, 32 << 10), segment, 1) == Ok(Posted::Done)
                {
                    written.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        for _ in 0..rounds {
            let segment = loop {
                if let Ok(segment) = b.port.expose(qb, memory, Access::Write) {
                    break segment;
                }
            };
            *target.lock().expect("not poisoned") = Some(segment);
            let before = written.load(Ordering::Relaxed);
            while written.load(Ordering::Relaxed) == before {
                std::thread::yield_now();
            }
            *target.lock().expect("not poisoned") = None;
            assert_eq!(
                b.port.retire(qb, segment.handle, WorkId(1)),
                Ok(Posted::Done)
            );
            b.put(memory, &vec![0x11; 32 << 10]);
            assert!(b.see(memory).iter().all(|&octet| octet == 0x11));
        }
        over.store(true, Ordering::Relaxed);
    });
}

/// The same without any word between the two: the writer uses a handle that may be closed
/// under it. Then its connection ends; and still nothing is written after the close.
#[test]
fn a_close_under_a_writer_ends_its_writing() {
    for round in 0..200_u64 {
        let t = Two::new();
        let (qa, qb) = (t.qa, t.qb);
        let Two { mut a, mut b, .. } = t;
        let memory = span(1 << 16, 256 << 10);
        let segment = b.port.expose(qb, memory, Access::Write).expect("free");
        let started = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                a.put(memory, &vec![0xee; 256 << 10]);
                while a.write(qa, memory, segment, 1) == Ok(Posted::Done) {
                    started.store(true, Ordering::Relaxed);
                }
                let failed = Outcome::Failed(WorkError::RemoteAccess);
                assert_eq!(a.outcomes(), [(1, failed), (0, Outcome::Disconnected)]);
            });
            while !started.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            for _ in 0..round * 50 {
                std::hint::spin_loop();
            }
            if b.port.retire(qb, segment.handle, WorkId(9)) == Ok(Posted::Pending) {
                let mut batch = [NOTHING; 4];
                while !take(&mut b, &mut batch, (9, Outcome::Done)) {}
            }
            b.put(memory, &vec![0x11; 256 << 10]);
            assert!(b.see(memory).iter().all(|&octet| octet == 0x11), "{round}");
        });
    }
}

/// Reaps once; whether `wanted` was among it.
fn take(node: &mut Node, batch: &mut [Completion], wanted: (u64, Outcome)) -> bool {
    let count = node.port.reap(batch);
    batch[..count]
        .iter()
        .any(|it| (it.id.0, it.outcome) == wanted)
}

/// A whole exchange as RPC-over-RDMA does it: expose, Send the handle, the peer Writes and
/// answers with Send With Invalidate. What was written is there when the answer is.
#[test]
fn written_octets_are_there_before_the_answer() {
    let rounds = 5000_u64;
    let Two {
        mut a,
        mut b,
        qa,
        qb,
        ..
    } = Two::new();
    let answering = |node: &mut Node| {
        node.receive(qb, span(0, 64), 0).expect("room");
        let mut batch = [NOTHING; 4];
        let mut answered = 0;
        while answered < rounds {
            let count = node.port.reap(&mut batch);
            for _ in 0..count {
                let call = node.see(span(0, 20));
                let word = |at: usize| {
                    u64::from_le_bytes(call[at..at + 8].try_into().expect("eight octets"))
                };
                let handle = Handle(u32::try_from(word(0)).expect("a handle"));
                let to = Segment {
                    handle,
                    length: 4096,
                    offset: word(8),
                };
                node.put(span(4096, 4096), &vec![answered.to_le_bytes()[0]; 4096]);
                let written = node.write(
                    qb,
                    Span {
                        offset: 4096,
                        len: 4096,
                    },
                    to,
                    1,
                );
                assert_eq!(written, Ok(Posted::Done));
                node.receive(qb, span(0, 64), 0).expect("room");
                let answer = [Octets::Bytes(b"answer")];
                let sent = node.port.send(qb, &answer, Some(handle), WorkId(2));
                assert_eq!(sent, Ok(Posted::Done));
                answered += 1;
            }
            node.port.ring();
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| answering(&mut b));
        let mut batch = [NOTHING; 4];
        for n in 0..rounds {
            let memory = span(1 << 16, 4096);
            a.receive(qa, span(0, 64), n).expect("room");
            let segment = a.port.expose(qa, memory, Access::Write).expect("free");
            let mut call = u64::from(segment.handle.0).to_le_bytes().to_vec();
            call.extend_from_slice(&segment.offset.to_le_bytes());
            call.extend_from_slice(&[0; 4]);
            while a.send(qa, &call, n).is_err() {}
            a.port.ring();
            let outcome = Outcome::Received {
                len: 6,
                invalidated: Some(segment.handle),
            };
            while !take(&mut a, &mut batch, (n, outcome)) {
                std::thread::yield_now();
            }
            a.port.retired_by_peer(qa, segment.handle);
            assert!(
                a.see(memory)
                    .iter()
                    .all(|&octet| octet == n.to_le_bytes()[0]),
                "{n}"
            );
        }
    });
}

/// One thread drops its port while the other is using the connection in every way.
#[test]
fn a_port_may_die_at_any_moment() {
    for round in 0..100_u32 {
        let t = Two::with(&settings(), &settings());
        let (qa, qb) = (t.qa, t.qb);
        let Two { mut a, mut b, .. } = t;
        let segment = b
            .port
            .expose(qb, span(0, 4096), Access::Write)
            .expect("free");
        b.receive(qb, span(4096, 4096), 1).expect("room");
        let going = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut ended = 0;
                let mut batch = [NOTHING; 8];
                while ended == 0 {
                    let _ = a.write(qa, span(0, 4096), segment, 1);
                    let _ = a.send(qa, b"message", 2);
                    a.port.ring();
                    going.store(true, Ordering::Relaxed);
                    let count = a.port.reap(&mut batch);
                    let gone = batch[..count]
                        .iter()
                        .filter(|it| it.outcome == Outcome::Disconnected);
                    ended += gone.count();
                }
                assert_eq!(ended, 1);
            });
            while !going.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            for _ in 0..round * 20 {
                std::hint::spin_loop();
            }
            let Node { port, arena, .. } = b;
            drop(port);
            // Nobody writes it any more: it can be looked at, and does not change.
            let memory = || {
                // SAFETY: the port is gone, so nothing is exposed and nothing is received.
                unsafe { arena.octets(span(0, 8192)) }.to_vec()
            };
            assert_eq!(memory(), memory());
        });
    }
}
