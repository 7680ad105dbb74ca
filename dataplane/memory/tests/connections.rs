//! Making and ending connections, on both threads that see them.

mod support;

use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::connect::{ConnectionId, Event, Fabric, PortId, PortWanted};
use rpcrdma_fabric::{Access, Outcome, Port, Posted, Refused, Token, WorkId};
use rpcrdma_memory::{Error, MemoryFabric, Settings};
use support::{FLUSHED, Node, Two, connect, open, received, settings, span};

#[test]
fn work_before_the_connection_stands() {
    let mut fabric = MemoryFabric::new();
    fabric.listen("b").expect("free");
    let mut a = Node::new(&fabric, &settings());
    let mut b = Node::new(&fabric, &settings());
    let (ca, endpoint) = open(&mut fabric, a.id, "b");
    let qa = a.port.adopt(endpoint, Token(1)).expect("room");
    a.receive(qa, span(0, 8), 1)
        .expect("receives may be posted");
    assert_eq!(a.send(qa, b"x", 2), Err(Refused::Broken));
    let segment = rpcrdma_fabric::Segment {
        handle: rpcrdma_fabric::Handle(1),
        length: 1,
        offset: 0,
    };
    assert_eq!(a.write(qa, span(0, 1), segment, 2), Err(Refused::Broken));
    fabric.connect(ca, &[]).expect("adopted");
    let Some(Event::Request { connection: cb, .. }) = fabric.poll() else {
        panic!("a request")
    };
    let endpoint = fabric.take(cb, b.id).expect("requested");
    assert!(
        matches!(fabric.accept(cb, &[]), Err(Error::Order(_))),
        "not adopted yet"
    );
    let qb = b.port.adopt(endpoint, Token(2)).expect("room");
    assert_eq!(b.send(qb, b"x", 2), Err(Refused::Broken));
    fabric.accept(cb, &[]).expect("adopted");
    // The accepting side may be the quicker one.
    assert_eq!(b.send(qb, b"hello", 2), Ok(Posted::Done));
    assert_eq!(a.outcomes(), [(1, received(5))]);
}

#[test]
fn steps_out_of_order_are_refused() {
    let mut t = Two::new();
    let (ca, endpoint) = open(&mut t.fabric, t.a.id, "b");
    assert!(
        matches!(t.fabric.connect(ca, &[]), Err(Error::Order(_))),
        "not adopted"
    );
    t.a.port.adopt(endpoint, Token(3)).expect("room");
    assert!(matches!(
        t.fabric.connect(ca, &[0; 513]),
        Err(Error::PrivateData(513))
    ));
    t.fabric.connect(ca, &[]).expect("adopted");
    assert!(
        matches!(t.fabric.connect(ca, &[]), Err(Error::Order(_))),
        "twice"
    );
    let Some(Event::Request { connection: cb, .. }) = t.fabric.poll() else {
        panic!("a request")
    };
    assert!(
        matches!(t.fabric.accept(cb, &[]), Err(Error::Order(_))),
        "not taken"
    );
    assert!(
        matches!(t.fabric.take(ca, t.a.id), Err(Error::Order(_))),
        "not a request"
    );
    let _endpoint = t.fabric.take(cb, t.b.id).expect("requested");
    assert!(
        matches!(t.fabric.take(cb, t.b.id), Err(Error::Order(_))),
        "twice"
    );
    assert!(
        matches!(t.fabric.reject(t.ca, "no"), Err(Error::Order(_))),
        "it stands"
    );
    let nobody = ConnectionId(u64::MAX);
    assert!(matches!(
        t.fabric.accept(nobody, &[]),
        Err(Error::NoConnection(_))
    ));
    let early = t.fabric.resolve("b").expect("an address");
    assert!(!t.fabric.may_serve(early, t.a.id));
    assert!(
        matches!(t.fabric.take(early, t.a.id), Err(Error::Order(_))),
        "not resolved yet"
    );
    assert!(matches!(t.fabric.poll(), Some(Event::Resolved { .. })));
    assert!(t.fabric.may_serve(early, t.a.id) && !t.fabric.may_serve(early, PortId(99)));
    assert!(matches!(
        t.fabric.take(early, PortId(99)),
        Err(Error::NoPort(_))
    ));
    let _endpoint = t.fabric.take(early, t.a.id).expect("resolved");
    assert!(!t.fabric.may_serve(early, t.a.id));
    assert!(matches!(t.fabric.resolve(""), Err(Error::Address(_))));
    assert!(matches!(t.fabric.listen("b"), Err(Error::InUse(_))));
    assert!(matches!(t.fabric.listen(""), Err(Error::Address(_))));
}

#[test]
fn a_port_with_impossible_settings_is_not_opened() {
    let fabric = MemoryFabric::new();
    let arena = rpcrdma_fabric::arena::Arena::map(4096, rpcrdma_fabric::arena::Hugepages::Off);
    let settings = Settings {
        windows: 0,
        ..Settings::default()
    };
    let opened = fabric.open_port_with(std::sync::Arc::new(arena.expect("memory")), &settings);
    assert!(matches!(opened, Err(Error::Setting(why)) if why.contains("windows")));
}

#[test]
fn an_abandoned_connection_is_not_heard_of_again() {
    let mut t = Two::new();
    for seen in [false, true] {
        let connection = t.fabric.resolve("b").expect("an address");
        if seen {
            assert_eq!(t.fabric.poll(), Some(Event::Resolved { connection }));
        }
        t.fabric.abandon(connection);
        assert_eq!(t.fabric.poll(), None);
        assert!(matches!(
            t.fabric.take(connection, t.a.id),
            Err(Error::NoConnection(_))
        ));
    }
    // One that stands is left alone.
    t.fabric.abandon(t.ca);
    t.b.receive(t.qb, span(0, 8), 1).expect("room");
    assert_eq!(t.a.send(t.qa, b"x", 2), Ok(Posted::Done));
}

#[test]
fn the_descriptor_is_readable_when_something_has_happened() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let readable = |fabric: &MemoryFabric| {
        let descriptor = fabric.descriptor().expect("one is left");
        let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())).expect("no signals") > 0
    };
    let mut t = Two::new();
    assert_eq!(t.fabric.poll(), None);
    assert!(!readable(&t.fabric));
    t.fabric.resolve("b").expect("an address");
    assert!(readable(&t.fabric));
    while t.fabric.poll().is_some() {}
    assert!(!readable(&t.fabric));
    t.a.port.disconnect(t.qa);
    assert!(readable(&t.fabric));
    while t.fabric.poll().is_some() {}
    assert!(!readable(&t.fabric));
}

#[test]
fn a_port_is_opened_as_it_is_wanted() {
    let mut fabric = MemoryFabric::new();
    let [device] = &fabric.devices()[..] else {
        panic!("one device")
    };
    let mut wanted = PortWanted {
        device: Some(device.name.clone()),
        processor: None,
        queue_pairs: 3,
        send_depth: u32::MAX,
        receive_depth: 7,
        windows: 5,
        message_bytes: 1 << 20,
    };
    let arena = || std::sync::Arc::new(Arena::map(4096, Hugepages::Off).expect("memory"));
    let (_, port) = fabric.open_port(arena(), &wanted).expect("all that fits");
    let given = port.capabilities();
    assert_eq!((given.receive_depth, given.windows), (7, 5));
    assert_eq!(given.send_depth, device.capabilities.send_depth);
    wanted.device = Some("mlx5_0".to_owned());
    assert!(matches!(
        fabric.open_port(arena(), &wanted),
        Err(Error::NoDevice(name)) if name == "mlx5_0"
    ));
}

#[test]
fn a_rejected_connection_is_over() {
    for taken in [false, true] {
        let mut t = Two::new();
        let (ca, endpoint) = open(&mut t.fabric, t.a.id, "b");
        let qa = t.a.port.adopt(endpoint, Token(3)).expect("room");
        t.a.receive(qa, span(0, 8), 1).expect("room");
        t.fabric.connect(ca, &[]).expect("adopted");
        let Some(Event::Request { connection: cb, .. }) = t.fabric.poll() else {
            panic!("a request");
        };
        if taken {
            let endpoint = t.fabric.take(cb, t.b.id).expect("requested");
            t.b.port.adopt(endpoint, Token(4)).expect("room");
        }
        t.fabric.reject(cb, "not today").expect("requested");
        let reason = "not today".to_owned();
        assert_eq!(
            t.fabric.poll(),
            Some(Event::Rejected {
                connection: ca,
                reason
            })
        );
        assert_eq!(t.fabric.poll(), None);
        assert_eq!(t.a.outcomes(), [(1, FLUSHED), (0, Outcome::Disconnected)]);
        assert_eq!(t.a.receive(qa, span(0, 8), 1), Err(Refused::Broken));
        let expected: &[_] = if taken {
            &[(0, Outcome::Disconnected)]
        } else {
            &[]
        };
        assert_eq!(t.b.outcomes(), expected);
    }
}

#[test]
fn nobody_listening_is_a_rejection() {
    let mut t = Two::new();
    let (ca, endpoint) = open(&mut t.fabric, t.a.id, "elsewhere");
    t.a.port.adopt(endpoint, Token(3)).expect("room");
    t.fabric.connect(ca, &[]).expect("adopted");
    let Some(Event::Rejected { connection, reason }) = t.fabric.poll() else {
        panic!("a no")
    };
    assert_eq!(
        (connection, reason.as_str()),
        (ca, "nobody listens at elsewhere")
    );
    assert_eq!(t.a.outcomes(), [(0, Outcome::Disconnected)]);
}

#[test]
fn requests_of_a_listener_are_bounded() {
    let mut fabric = MemoryFabric::new();
    let mut client = fabric.clone();
    fabric.listen("b").expect("free");
    let mut a = Node::new(
        &fabric,
        &Settings {
            queue_pairs: 200,
            ..settings()
        },
    );
    for n in 0..129 {
        let (ca, endpoint) = open(&mut client, a.id, "b");
        a.port.adopt(endpoint, Token(n)).expect("room");
        client.connect(ca, &[]).expect("adopted");
    }
    let is_request = |event: &Event| matches!(event, Event::Request { .. });
    let requests = std::iter::from_fn(|| fabric.poll()).filter(is_request);
    assert_eq!(requests.count(), 128);
    assert!(matches!(client.poll(), Some(Event::Rejected { .. })));
    assert_eq!(client.poll(), None);
}

#[test]
fn clones_hear_of_their_own_connections() {
    let mut server = MemoryFabric::new();
    let mut client = server.clone();
    server.listen("b").expect("free");
    let mut a = Node::new(&client, &settings());
    let mut b = Node::new(&server, &settings());
    let (ca, endpoint) = open(&mut client, a.id, "b");
    let qa = a.port.adopt(endpoint, Token(1)).expect("room");
    client.connect(ca, &[]).expect("adopted");
    assert_eq!(client.poll(), None);
    let Some(Event::Request { connection: cb, .. }) = server.poll() else {
        panic!("a request")
    };
    let endpoint = server.take(cb, b.id).expect("requested");
    b.port.adopt(endpoint, Token(2)).expect("room");
    server.accept(cb, &[]).expect("taken");
    assert!(
        matches!(client.poll(), Some(Event::Established { connection, .. }) if connection == ca)
    );
    assert!(
        matches!(server.poll(), Some(Event::Established { connection, .. }) if connection == cb)
    );
    a.port.disconnect(qa);
    assert_eq!(client.poll(), Some(Event::Disconnected { connection: ca }));
    assert_eq!(server.poll(), Some(Event::Disconnected { connection: cb }));
    assert_eq!((client.poll(), server.poll()), (None, None));
}

#[test]
fn a_control_thread_that_leaves_rejects_what_was_asked_of_it() {
    let mut client = MemoryFabric::new();
    let mut server = client.clone();
    server.listen("b").expect("free");
    let mut a = Node::new(&client, &settings());
    let (ca, endpoint) = open(&mut client, a.id, "b");
    a.port.adopt(endpoint, Token(1)).expect("room");
    client.connect(ca, &[]).expect("adopted");
    drop(server);
    assert!(matches!(client.poll(), Some(Event::Rejected { connection, .. }) if connection == ca));
    assert_eq!(a.outcomes(), [(0, Outcome::Disconnected)]);
    client.listen("b").expect("free again");
}

#[test]
fn disconnecting_flushes_both_sides_once() {
    let mut t = Two::new();
    t.a.receive(t.qa, span(0, 8), 1).expect("room");
    t.b.receive(t.qb, span(0, 8), 2).expect("room");
    t.b.receive(t.qb, span(0, 8), 3).expect("room");
    assert_eq!(t.a.send(t.qa, b"1", 4), Ok(Posted::Done));
    assert_eq!(t.a.send(t.qa, b"2", 5), Ok(Posted::Done));
    assert_eq!(t.a.send(t.qa, b"3", 6), Ok(Posted::Pending));
    t.a.port.disconnect(t.qa);
    t.a.port.disconnect(t.qa);
    assert_eq!(
        t.a.outcomes(),
        [(6, FLUSHED), (1, FLUSHED), (0, Outcome::Disconnected)]
    );
    // What was sent before arrives before the end.
    assert_eq!(
        t.b.outcomes(),
        [
            (2, received(1)),
            (3, received(1)),
            (0, Outcome::Disconnected)
        ]
    );
    t.b.port.disconnect(t.qb);
    assert_eq!((t.a.outcomes(), t.b.outcomes()), (vec![], vec![]));
    for (node, qp) in [(&mut t.a, t.qa), (&mut t.b, t.qb)] {
        assert_eq!(node.send(qp, b"x", 1), Err(Refused::Broken));
        assert_eq!(node.receive(qp, span(0, 8), 1), Err(Refused::Broken));
        assert_eq!(
            node.port.expose(qp, span(0, 8), Access::Read),
            Err(Refused::Broken)
        );
    }
    let gone = |connection| Some(Event::Disconnected { connection });
    assert_eq!([t.fabric.poll(), t.fabric.poll()], [gone(t.ca), gone(t.cb)]);
    assert_eq!(t.fabric.poll(), None);
}

#[test]
fn a_lost_side_takes_no_more_work_even_before_it_has_heard() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 8), 2).expect("room");
    t.b.port.disconnect(t.qb);
    assert_eq!(t.a.send(t.qa, b"x", 1), Err(Refused::Broken));
}

#[test]
fn a_number_that_is_used_again_gets_nothing_of_its_past() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 8), 1).expect("room");
    assert_eq!(t.a.send(t.qa, b"late", 0), Ok(Posted::Done));
    // Still in the ring when its queue pair goes and another comes in its place.
    t.b.port.destroy(t.qb);
    t.a.reap();
    t.a.port.destroy(t.qa);
    let (qa, qb) = t.more((3, 4));
    assert_eq!((qa, qb), (t.qa, t.qb), "the same numbers");
    t.b.receive(qb, span(0, 8), 2).expect("room");
    assert_eq!(t.b.outcomes(), []);
    assert_eq!(t.a.send(qa, b"new", 0), Ok(Posted::Done));
    let completions = t.b.reap();
    assert_eq!(completions.len(), 1);
    assert_eq!(
        (completions[0].token, completions[0].id),
        (Token(4), WorkId(2))
    );
    assert_eq!(t.a.outcomes(), []);
}

#[test]
fn queue_pairs_run_out_and_come_back() {
    let mut t = Two::with(
        &Settings {
            queue_pairs: 2,
            ..settings()
        },
        &settings(),
    );
    let (second, _) = t.more((3, 4));
    let (_, endpoint) = open(&mut t.fabric, t.a.id, "b");
    assert_eq!(t.a.port.adopt(endpoint, Token(5)), Err(Refused::Busy));
    t.a.port.destroy(second);
    let (again, _) = t.more((7, 8));
    assert_eq!(again, second);
}

#[test]
fn an_endpoint_that_nobody_adopts_ends_its_connection() {
    let mut t = Two::new();
    let (ca, endpoint) = open(&mut t.fabric, t.a.id, "b");
    let qa = t.a.port.adopt(endpoint, Token(3)).expect("room");
    t.fabric.connect(ca, &[]).expect("adopted");
    let Some(Event::Request { connection: cb, .. }) = t.fabric.poll() else {
        panic!("a request")
    };
    let endpoint = t.fabric.take(cb, t.b.id).expect("requested");
    assert_eq!(
        t.a.port.adopt(endpoint, Token(4)),
        Err(Refused::Unsupported),
        "another port's"
    );
    assert_eq!(t.a.outcomes(), [(0, Outcome::Disconnected)]);
    assert!(
        matches!(t.fabric.poll(), Some(Event::Rejected { connection, .. }) if connection == ca)
    );
    assert!(t.fabric.accept(cb, &[]).is_err());
    t.a.port.destroy(qa);
}

#[test]
fn a_dead_lcore_ends_its_connections() {
    let mut t = Two::new();
    t.b.receive(t.qb, span(0, 8), 1).expect("room");
    t.b.receive(t.qb, span(0, 8), 2).expect("room");
    assert_eq!(t.a.send(t.qa, b"last", 0), Ok(Posted::Done));
    let Two {
        a,
        mut b,
        mut fabric,
        ca,
        cb,
        ..
    } = t;
    let id = a.id;
    drop(a);
    assert_eq!(
        b.outcomes(),
        [(1, received(4)), (2, FLUSHED), (0, Outcome::Disconnected)]
    );
    let gone = |connection| Some(Event::Disconnected { connection });
    assert_eq!([fabric.poll(), fabric.poll()], [gone(ca), gone(cb)]);
    let connection = fabric.resolve("b").expect("an address");
    assert_eq!(fabric.poll(), Some(Event::Resolved { connection }));
    assert!(!fabric.may_serve(connection, id));
    assert!(matches!(fabric.take(connection, id), Err(Error::NoPort(_))));
}

#[test]
fn a_thousand_connections_come_and_go() {
    let many = Settings {
        queue_pairs: 1000,
        ..settings()
    };
    let mut t = Two::with(&many, &many);
    let first = (t.qa, t.qb);
    let mut pairs = vec![first];
    for round in 0..3 {
        while pairs.len() < 1000 {
            let n = u32::try_from(pairs.len()).expect("small");
            pairs.push(t.more((n, n)));
        }
        for (n, &(qa, qb)) in (0_u64..).zip(&pairs) {
            t.b.receive(qb, span(0, 64), n).expect("room");
            assert_eq!(
                t.a.send(qa, b"one of many", n),
                Ok(Posted::Done),
                "{round} {n}"
            );
            if n % 64 == 63 {
                assert_eq!(t.b.outcomes().len(), 64);
            }
        }
        assert_eq!(t.b.outcomes().len(), 1000 % 64);
        for (qa, qb) in pairs.drain(..) {
            t.a.port.disconnect(qa);
            t.a.port.destroy(qa);
            t.b.reap();
            t.b.port.destroy(qb);
        }
    }
    let Two {
        mut fabric,
        mut a,
        mut b,
        ..
    } = t;
    while fabric.poll().is_some() {}
    connect(&mut fabric, &mut a, Token(1), &mut b, Token(2));
}
