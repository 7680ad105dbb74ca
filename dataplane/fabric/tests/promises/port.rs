//! What every port promises: messages, transfers, exposures, and the end.
//!
//! Both ends of each connection are queue pairs of one port.

use crate::bed::{Bed, End, RECEIVE_BYTES, RECEIVES, wanted, with_bed, with_each};
use rpcrdma_fabric::{
    Access, Completion, Handle, Octets, Outcome, Port, Posted, Refused, Segment, Span, WorkError,
    WorkId,
};

/// Arena memory beyond the receives.
const FREE: u64 = 12 << 20;

fn span(offset: u64, len: u32) -> Span {
    Span {
        offset: FREE + offset,
        len,
    }
}

fn put(bed: &Bed, at: Span, octets: &[u8]) {
    // SAFETY: the test looks at its arena only where no work is outstanding.
    assert!(unsafe { bed.arena.fill(at, octets) });
}

fn see(bed: &Bed, at: Span) -> Vec<u8> {
    // SAFETY: as above.
    unsafe { bed.arena.octets(at) }.to_vec()
}

/// The next message at an end: its octets, and the handle it invalidated. Its receive is posted
/// again.
fn receive(bed: &mut Bed, end: End) -> (Vec<u8>, Option<Handle>) {
    let (id, octets, invalidated) = receive_only(bed, end);
    let memory = memory_of(id);
    bed.port.post_receive(end.pair, memory, id).expect("room");
    (octets, invalidated)
}

fn memory_of(id: WorkId) -> Span {
    Span {
        offset: id.0 * u64::from(RECEIVE_BYTES),
        len: RECEIVE_BYTES,
    }
}

fn receive_only(bed: &mut Bed, end: End) -> (WorkId, Vec<u8>, Option<Handle>) {
    let completion = bed.completion("a message", |completion| {
        completion.token == end.token && matches!(completion.outcome, Outcome::Received { .. })
    });
    let Outcome::Received { len, invalidated } = completion.outcome else {
        unreachable!("it was just looked for");
    };
    let octets = see_receive(bed, completion.id, len);
    (completion.id, octets, invalidated)
}

fn see_receive(bed: &Bed, id: WorkId, len: u32) -> Vec<u8> {
    see(
        bed,
        Span {
            len,
            ..memory_of(id)
        },
    )
}

/// How work of this id ended.
fn outcome(bed: &mut Bed, end: End, id: u64) -> Outcome {
    bed.completion("the end of work", |completion| {
        completion.token == end.token
            && completion.id == WorkId(id)
            && matches!(completion.outcome, Outcome::Done | Outcome::Failed(_))
    })
    .outcome
}

fn disconnected(bed: &mut Bed, end: End) {
    bed.completion("the disconnection", |completion| {
        completion.token == end.token && completion.outcome == Outcome::Disconnected
    });
}

fn send(bed: &mut Bed, from: End, octets: &[u8]) -> Result<Posted, Refused> {
    let message = [Octets::Bytes(octets)];
    bed.port.send(from.pair, &message, None, WorkId(1 << 20))
}

/// Exposes memory, waiting for a region where there has to be one.
fn expose(bed: &mut Bed, end: End, memory: Span, access: Access) -> Segment {
    bed.until("an exposure", |bed| {
        match bed.port.expose(end.pair, memory, access) {
            Ok(segment) => Some(segment),
            Err(refused) => {
                assert_eq!(refused, Refused::Busy);
                None
            }
        }
    })
}

/// Posts a write and says how it ended; whatever is wrong with it ends the connection.
fn write(bed: &mut Bed, end: End, from: Span, to: Segment) -> Outcome {
    let posted = bed.port.write(end.pair, from, to, WorkId(1 << 21));
    assert_eq!(posted, Ok(Posted::Pending));
    outcome(bed, end, 1 << 21)
}

fn read(bed: &mut Bed, end: End, into: Span, from: Segment) -> Outcome {
    let posted = bed.port.read(end.pair, into, from, WorkId(1 << 22));
    assert_eq!(posted, Ok(Posted::Pending));
    outcome(bed, end, 1 << 22)
}

#[test]
fn messages_arrive_in_order_whatever_their_length() {
    with_bed(|mut bed| {
        let (a, b) = bed.connection();
        for (n, len) in [0, 1, 63, 64, 65, 500, 513, 4096].into_iter().enumerate() {
            let text: Vec<u8> = (0..=u8::MAX).cycle().skip(n).take(len).collect();
            assert_eq!(send(&mut bed, a, &text), Ok(Posted::Done), "{len}");
            assert_eq!(send(&mut bed, a, b"next"), Ok(Posted::Done));
            assert_eq!(receive(&mut bed, b), (text.clone(), None));
            assert_eq!(receive(&mut bed, b), (b"next".to_vec(), None));
            assert_eq!(send(&mut bed, b, &text), Ok(Posted::Done));
            assert_eq!(receive(&mut bed, a), (text, None), "and back");
        }
    });
}

#[test]
fn a_message_is_gathered_from_everywhere() {
    with_bed(|mut bed| {
        let (a, b) = bed.connection();
        for len in [6, 2000] {
            let middle = vec![b'm'; len as usize];
            put(&bed, span(0, len), &middle);
            let message = [
                Octets::Bytes(b"<"),
                Octets::Span(span(0, len)),
                Octets::Bytes(b">"),
            ];
            let posted = bed.port.send(a.pair, &message, None, WorkId(77));
            if posted == Ok(Posted::Pending) {
                assert_eq!(outcome(&mut bed, a, 77), Outcome::Done);
            } else {
                assert_eq!((posted, len), (Ok(Posted::Done), 6));
            }
            let mut all = b"<".to_vec();
            all.extend_from_slice(&middle);
            all.push(b'>');
            assert_eq!(receive(&mut bed, b).0, all);
        }
    });
}

/// Many times the depth of every queue, with nobody told of a Send.
#[test]
fn silent_sends_go_on_for_ever() {
    with_bed(|mut bed| {
        let (a, b) = bed.connection();
        for n in 0..300_u32 {
            assert_eq!(send(&mut bed, a, &n.to_be_bytes()), Ok(Posted::Done));
            assert_eq!(receive(&mut bed, b).0, n.to_be_bytes());
        }
        assert!(bed.completions.is_empty(), "{:?}", bed.completions);
    });
}

/// On InfiniBand and RoCE a message without a receive waits for one.
#[test]
fn a_message_waits_for_a_receive() {
    with_bed(|mut bed| {
        let (a, b) = bed.connection();
        for n in 0..RECEIVES {
            send(&mut bed, a, &n.to_be_bytes()).expect("room");
        }
        let ids: Vec<WorkId> = (0..RECEIVES).map(|_| receive_only(&mut bed, b).0).collect();
        if bed.is_iwarp() {
            return println!("SKIPPED: iWARP ends the connection instead");
        }
        send(&mut bed, a, b"late").expect("room");
        bed.port.ring();
        for id in ids {
            bed.port
                .post_receive(b.pair, memory_of(id), id)
                .expect("room");
        }
        assert_eq!(receive(&mut bed, b).0, b"late");
    });
}

#[test]
fn a_message_too_long_for_its_receive_ends_the_connection() {
    with_bed(|mut bed| {
        let (a, b) = bed.connection();
        let long = span(0, RECEIVE_BYTES + 1);
        let message = [Octets::Span(long)];
        let posted = bed.port.send(a.pair, &message, None, WorkId(77));
        assert_eq!(posted, Ok(Posted::Pending));
        let short = bed.completion("the receive", |completion| {
            completion.token == b.token && matches!(completion.outcome, Outcome::Failed(_))
        });
        if !bed.is_iwarp() {
            let too_long = Outcome::Failed(WorkError::RemoteInvalid);
            assert_eq!(outcome(&mut bed, a, 77), too_long);
            // rxe calls it the receive's own fault, which tells the engine no more than a flush.
            if !bed.is_rxe() {
                assert_eq!(short.outcome, Outcome::Failed(WorkError::LocalLength));
            }
        }
        disconnected(&mut bed, a);
        disconnected(&mut bed, b);
    });
}

#[test]
fn transfers_go_where_they_were_aimed() {
    with_each(|bed| {
        let (a, b) = bed.connection();
        put(bed, span(0, 10), b"0123456789");
        let to = expose(bed, b, span(4096, 100), Access::Write);
        assert_eq!(to.length, 100);
        send(bed, b, b"call").expect("room");
        receive(bed, a);
        assert_eq!(write(bed, a, span(0, 10), to), Outcome::Done);
        let part = Segment {
            offset: to.offset + 90,
            length: 10,
            ..to
        };
        assert_eq!(write(bed, a, span(5, 5), part), Outcome::Done);
        assert_eq!(see(bed, span(4096, 10)), b"0123456789");
        assert_eq!(see(bed, span(4186, 10)), b"56789\0\0\0\0\0");

        let from = expose(bed, b, span(4096, 10), Access::Read);
        send(bed, b, b"call").expect("room");
        receive(bed, a);
        assert_eq!(read(bed, a, span(200, 10), from), Outcome::Done);
        assert_eq!(see(bed, span(200, 10)), b"0123456789");
    });
}

/// A Write and the Send behind it are one run, and the data is there when the message is.
#[test]
fn what_was_written_is_there_with_the_message_behind_it() {
    with_each(|bed| {
        let (a, b) = bed.connection();
        let to = expose(bed, b, span(65_536, 65_536), Access::Write);
        send(bed, b, b"call").expect("room");
        receive(bed, a);
        for round in 1..20_u8 {
            put(bed, span(0, 65_536), &[round; 65_536]);
            let posted = bed.port.write(a.pair, span(0, 65_536), to, WorkId(5));
            assert_eq!(posted, Ok(Posted::Pending));
            send(bed, a, b"done").expect("room");
            receive(bed, b);
            assert_eq!(see(bed, span(65_536 + 65_535, 1)), [round]);
            assert_eq!(outcome(bed, a, 5), Outcome::Done);
        }
    });
}

/// Whatever is wrong with an access, it fails at its poster, ends the connection, and changes
/// nothing. But rxe holds an access against the bounds of the region that a window is on, not of
/// the window.
#[test]
fn wrong_accesses_end_the_connection() {
    type Attempt = fn(&mut Bed, End, Segment) -> Outcome;
    let attempts: [(Access, Attempt); 6] = [
        (Access::Write, |bed, a, to| {
            let handle = Handle(to.handle.0 ^ 1 << 20);
            write(bed, a, span(0, 10), Segment { handle, ..to })
        }),
        (Access::Write, |bed, a, to| {
            let handle = Handle(to.handle.0 ^ 1);
            write(bed, a, span(0, 10), Segment { handle, ..to })
        }),
        (Access::Write, |bed, a, to| {
            let offset = to.offset + 91;
            write(bed, a, span(0, 10), Segment { offset, ..to })
        }),
        (Access::Write, |bed, a, to| {
            write(bed, a, span(0, 101), Segment { length: 101, ..to })
        }),
        (Access::Read, |bed, a, to| write(bed, a, span(0, 10), to)),
        (Access::Write, |bed, a, from| {
            read(bed, a, span(0, 100), from)
        }),
    ];
    with_each(|bed| {
        for (n, (access, attempt)) in attempts.into_iter().enumerate() {
            if (2..4).contains(&n) && bed.is_rxe() && bed.has_windows() {
                println!("SKIPPED: bounds of a window on rxe");
                continue;
            }
            let (a, b) = bed.connection();
            put(bed, span(0, 200), &[7; 200]);
            put(bed, span(4096, 200), &[0; 200]);
            let segment = expose(bed, b, span(4096, 100), access);
            send(bed, b, b"call").expect("room");
            receive(bed, a);
            let failed = attempt(bed, a, segment);
            if bed.is_iwarp() {
                // A Write is done when it has left; what was wrong with it is said later. And siw
                // lets be read what was exposed to be written.
                if n == 5 && failed == Outcome::Done {
                    bed.port.disconnect(a.pair);
                }
            } else {
                let access = Outcome::Failed(WorkError::RemoteAccess);
                assert_eq!(failed, access, "{n}");
            }
            disconnected(bed, a);
            disconnected(bed, b);
            assert_eq!(see(bed, span(4096, 200)), [0; 200], "{n}");
            bed.port.destroy(a.pair);
            bed.port.destroy(b.pair);
        }
    });
}

/// A handle is of one connection, where windows make it so.
#[test]
fn a_handle_is_worth_nothing_on_another_connection() {
    with_bed(|mut bed| {
        if !bed.has_windows() {
            return println!("SKIPPED: no memory windows");
        }
        let (a, b) = bed.connection();
        let (c, d) = bed.connection();
        put(&bed, span(4096, 100), &[0; 100]);
        put(&bed, span(0, 10), &[7; 10]);
        let to = expose(&mut bed, b, span(4096, 100), Access::Write);
        send(&mut bed, b, b"call").expect("room");
        receive(&mut bed, a);
        let failed = write(&mut bed, c, span(0, 10), to);
        assert!(bed.is_iwarp() || failed == Outcome::Failed(WorkError::RemoteAccess));
        disconnected(&mut bed, d);
        assert_eq!(see(&bed, span(4096, 10)), [0; 10]);
        assert_eq!(write(&mut bed, a, span(0, 10), to), Outcome::Done);
        send(&mut bed, a, b"done").expect("room");
        receive(&mut bed, b);
        assert_eq!(see(&bed, span(4096, 10)), [7; 10]);
    });
}

/// Ends an exposure, and sees that it is done.
fn retire(bed: &mut Bed, end: End, handle: Handle) {
    match bed.port.retire(end.pair, handle, WorkId(1 << 23)) {
        Ok(Posted::Done) => {}
        Ok(Posted::Pending) => assert_eq!(outcome(bed, end, 1 << 23), Outcome::Done),
        Err(refused) => panic!("{refused:?}"),
    }
}

#[test]
fn a_retired_handle_is_closed() {
    with_each(|bed| {
        let (a, b) = bed.connection();
        put(bed, span(4096, 100), &[0; 100]);
        let to = expose(bed, b, span(4096, 100), Access::Write);
        send(bed, b, b"call").expect("room");
        receive(bed, a);
        retire(bed, b, to.handle);
        let failed = write(bed, a, span(0, 10), to);
        assert!(bed.is_iwarp() || failed == Outcome::Failed(WorkError::RemoteAccess));
        disconnected(bed, a);
        disconnected(bed, b);
        assert_eq!(see(bed, span(4096, 100)), [0; 100]);
    });
}

/// More rounds than there are windows: each comes back, by the peer or by ourselves, and no
/// round's handle is that of the last.
#[test]
fn handles_are_invalidated_by_the_peer_and_used_again() {
    with_bed(|mut bed| {
        let remote = bed.has_windows();
        let (a, b) = bed.connection();
        let mut last = None;
        for round in 0..3 * wanted().windows {
            let one = expose(&mut bed, b, span(4096, 100), Access::Write);
            let other = expose(&mut bed, b, span(8192, 100), Access::Read);
            assert_ne!(last, Some(one.handle));
            last = Some(one.handle);
            send(&mut bed, b, b"call").expect("room");
            receive(&mut bed, a);
            assert_eq!(write(&mut bed, a, span(0, 10), one), Outcome::Done);
            let message = [Octets::Bytes(b"done")];
            let invalidate = Some(one.handle).filter(|_| remote);
            let sent = bed.port.send(a.pair, &message, invalidate, WorkId(1));
            assert_eq!(sent, Ok(Posted::Done));
            let (text, invalidated) = receive(&mut bed, b);
            assert_eq!(
                (text, invalidated),
                (b"done".to_vec(), invalidate),
                "{round}"
            );
            match invalidated {
                Some(handle) => bed.port.retired_by_peer(b.pair, handle),
                None => retire(&mut bed, b, one.handle),
            }
            send(&mut bed, a, b"plain").expect("room");
            let plain = receive(&mut bed, b);
            assert_eq!(plain, (b"plain".to_vec(), None), "no stale handle");
            retire(&mut bed, b, other.handle);
        }
    });
}

#[test]
fn access_after_the_peers_own_invalidation_is_refused() {
    with_bed(|mut bed| {
        if !bed.has_windows() {
            return println!("SKIPPED: no remote invalidation of windows");
        }
        let (a, b) = bed.connection();
        let to = expose(&mut bed, b, span(4096, 100), Access::Write);
        send(&mut bed, b, b"call").expect("room");
        receive(&mut bed, a);
        let message = [Octets::Bytes(b"done")];
        bed.port
            .send(a.pair, &message, Some(to.handle), WorkId(1))
            .expect("room");
        assert_eq!(receive(&mut bed, b).1, Some(to.handle));
        bed.port.retired_by_peer(b.pair, to.handle);
        let failed = write(&mut bed, a, span(0, 10), to);
        assert!(bed.is_iwarp() || failed == Outcome::Failed(WorkError::RemoteAccess));
        disconnected(&mut bed, a);
        disconnected(&mut bed, b);
    });
}

#[test]
fn the_last_message_is_delivered() {
    with_bed(|mut bed| {
        for round in 0..10 {
            let (a, b) = bed.connection();
            for _ in 0..round % 3 {
                send(&mut bed, a, b"before").expect("room");
                bed.port.ring();
            }
            assert_eq!(send(&mut bed, a, b"last"), Ok(Posted::Done));
            bed.port.disconnect(a.pair);
            for _ in 0..round % 3 {
                assert_eq!(receive_only(&mut bed, b).1, b"before");
            }
            assert_eq!(receive_only(&mut bed, b).1, b"last");
            disconnected(&mut bed, a);
            disconnected(&mut bed, b);
            bed.port.destroy(a.pair);
            bed.port.destroy(b.pair);
        }
    });
}

#[test]
fn all_that_was_posted_is_flushed() {
    with_bed(|mut bed| {
        let (a, b) = bed.connection();
        let to = expose(&mut bed, b, span(4096, 100), Access::Write);
        bed.port.disconnect(a.pair);
        for end in [a, b] {
            disconnected(&mut bed, end);
            let flushed = |completion: &&Completion| {
                completion.token == end.token
                    && completion.outcome == Outcome::Failed(WorkError::Flushed)
            };
            let count = bed.completions.iter().filter(flushed).count();
            assert_eq!(count, RECEIVES as usize);
        }
        // That is how memory comes back.
        retire(&mut bed, b, to.handle);
        assert_eq!(send(&mut bed, b, b"late"), Err(Refused::Broken));
        bed.port.destroy(a.pair);
        bed.port.destroy(b.pair);
        // Windows that were away come back, and all of it again.
        for _ in 0..2 * wanted().windows {
            let (a, b) = bed.connection();
            expose(&mut bed, b, span(4096, 100), Access::Write);
            expose(&mut bed, a, span(4096, 100), Access::Read);
            bed.port.disconnect(b.pair);
            disconnected(&mut bed, a);
            disconnected(&mut bed, b);
            bed.port.destroy(a.pair);
            bed.port.destroy(b.pair);
        }
    });
}
