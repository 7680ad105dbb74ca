//! Associations of two endpoints in one process, over real sockets.

mod support;

use rpcrdma_sctp::{Error, Llp, Reason, Refused, Settings, Usrsctp};
use std::net::UdpSocket;
use std::time::Instant;
use support::relay::{Faults, Relay};
use support::{Pair, Told, is_absent, loopback};

#[test]
fn both_ends_see_the_indication_and_equal_streams() {
    if is_absent() {
        return;
    }
    let settings = Settings {
        streams: 9,
        ..Settings::default()
    };
    let (pair, ours, theirs) = Pair::associated(settings);
    let (client, server) = (
        pair.client.llp.local_address(),
        pair.server.llp.local_address(),
    );
    let up = |association, peer, arrived| Told::Up {
        association,
        peer,
        arrived,
        streams: (9, 9),
        indication: Some(1),
    };
    assert_eq!(pair.client.told, [up(ours, server, false)]);
    assert_eq!(pair.server.told, [up(theirs, client, true)]);
}

#[test]
fn they_come_up_over_ipv6() {
    if is_absent() {
        return;
    }
    let here = std::net::SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 0));
    let settings = Settings::default();
    let (server, client) = match (
        Usrsctp::listen(here, settings),
        Usrsctp::connector(here, settings),
    ) {
        (Ok(server), Ok(client)) => (server, client),
        (Err(error), _) | (_, Err(error)) => {
            println!("SKIPPED: no IPv6: {error}");
            return;
        }
    };
    let mut pair = Pair::of(server, client);
    let to = pair.server.llp.local_address();
    let (ours, theirs) = pair.up_by(to);
    let longest = pair.client.llp.max_segment(ours) as usize;
    assert!(pair.client.put(ours, 0, &vec![1; longest]));
    assert!(pair.server.put(theirs, 0, b"back"));
    pair.until(|pair| pair.server.messages().count() + pair.client.messages().count() == 2);
}

/// RFC 5043 section 11.1: none, DDP, another; each way.
#[test]
fn section_11_1_the_three_cases_of_the_peers_indication() {
    if is_absent() {
        return;
    }
    for (served, asked) in [
        (None, None),
        (None, Some(1)),
        (Some(1), None),
        (Some(1), Some(77)),
        (Some(0xffff_fffe), Some(1)),
        (Some(0), None),
    ] {
        let of = |indication| Settings {
            indication,
            ..Settings::default()
        };
        let mut pair = Pair::new(of(served), of(asked));
        let to = pair.server.llp.local_address();
        pair.up_by(to);
        let seen = |told: &[Told]| match told.first() {
            Some(Told::Up { indication, .. }) => *indication,
            other => panic!("{other:?}"),
        };
        assert_eq!(seen(&pair.client.told), served);
        assert_eq!(seen(&pair.server.told), asked);
    }
}

#[test]
fn a_message_arrives_with_its_stream_and_identifier() {
    if is_absent() {
        return;
    }
    let (mut pair, ours, theirs) = Pair::associated(Settings::default());
    let sent = pair.client.llp.send(ours, 5, 0x0102_0304, 3, |place| {
        place.copy_from_slice(b"odd");
    });
    assert_eq!(sent, Ok(()));
    pair.until(|pair| pair.server.told.len() == 2);
    let message = Told::Message {
        association: theirs,
        stream: 5,
        ppid: 0x0102_0304,
        unordered: true,
        octets: b"odd".to_vec(),
    };
    assert_eq!(pair.server.told[1], message);
    assert!(!pair.client.told.contains(&Told::Dry(ours)), "not asked");
    for _ in 0..2 {
        pair.client.llp.await_dry(ours);
        pair.until(|pair| pair.client.told.contains(&Told::Dry(ours)));
        // What is so already is told of when it is asked for again.
        pair.client.told.clear();
    }
}

#[test]
fn what_cannot_be_sent_is_refused() {
    if is_absent() {
        return;
    }
    let (mut pair, ours, _) = Pair::associated(Settings::default());
    let longest = pair.client.llp.max_segment(ours) as usize;
    let end = &mut pair.client.llp;
    let refused = |refused| Err(refused);
    assert_eq!(
        end.send(ours, 0, 16, longest + 1, |_| panic!("not taken")),
        refused(Refused::Length)
    );
    assert_eq!(
        end.send(ours, 0, 16, 0, |_| panic!("not taken")),
        refused(Refused::Length)
    );
    assert_eq!(
        end.send(ours, 16, 16, 4, |_| panic!("not taken")),
        refused(Refused::Stream)
    );
    let mut stale = ours;
    stale.generation += 1;
    assert_eq!(
        end.send(stale, 0, 16, 4, |_| panic!("not taken")),
        refused(Refused::Gone)
    );
    assert_eq!(end.send(ours, 15, 16, longest, |_| {}), Ok(()));
    pair.until(|pair| pair.server.messages().any(|it| it.len() == longest));
}

/// A peer that does not read fills the send buffer; room is told of when it reads again.
#[test]
fn a_full_buffer_is_told_and_so_is_room() {
    if is_absent() {
        return;
    }
    let settings = Settings {
        send_bytes: 100_000,
        ..Settings::default()
    };
    let (mut pair, ours, _) = Pair::associated(settings);
    let mut taken = 0;
    while pair.client.put(ours, 0, &[7; 999]) {
        taken += 1;
        assert!(taken < 1000, "far beyond the buffer");
    }
    assert!(taken > 50, "{taken} of a hundred");
    let again = pair
        .client
        .llp
        .send(ours, 0, 16, 4, |_| panic!("not taken"));
    assert_eq!(again, Err(Refused::Full));
    pair.until(|pair| pair.client.told.contains(&Told::Writable(ours)));
    assert!(pair.client.put(ours, 0, b"after"));
    pair.until(|pair| pair.server.messages().count() == taken + 1);
}

#[test]
fn shutting_down_delivers_what_was_sent_and_ends_both() {
    if is_absent() {
        return;
    }
    let (mut pair, ours, theirs) = Pair::associated(Settings::default());
    for at in 0..40_u8 {
        assert!(pair.client.put(ours, 0, &[at; 3000]));
    }
    pair.client.llp.shut_down(ours);
    let late = pair
        .client
        .llp
        .send(ours, 0, 16, 4, |_| panic!("not taken"));
    assert_eq!(late, Err(Refused::Gone));
    pair.until(|pair| pair.server.down().is_some() && pair.client.down().is_some());
    assert_eq!(pair.server.messages().count(), 40);
    assert_eq!(pair.client.down(), Some(Reason::ShutDown));
    let end = Told::Down(theirs, Reason::ShutDown);
    assert_eq!(pair.server.told.last(), Some(&end));
    assert_eq!(pair.client.llp.deadline(), None);
    assert_eq!(pair.server.llp.deadline(), None);
}

#[test]
fn aborting_ends_both_and_the_place_is_used_again() {
    if is_absent() {
        return;
    }
    let (mut pair, ours, theirs) = Pair::associated(Settings::default());
    pair.server.llp.abort(theirs);
    pair.until(|pair| pair.server.down().is_some() && pair.client.down().is_some());
    assert_eq!(pair.server.down(), Some(Reason::Aborted));
    assert!(matches!(pair.client.down(), Some(Reason::AbortedByPeer(_))));
    pair.client.told.clear();
    pair.server.told.clear();
    let to = pair.server.llp.local_address();
    let (again, _) = pair.up_by(to);
    assert_eq!(again.place, ours.place);
    assert_ne!(again, ours);
    assert!(!pair.client.put(ours, 0, b"to one that is over"));
    assert!(pair.client.put(again, 0, b"to one that is"));
    pair.until(|pair| pair.server.messages().count() == 1);
}

#[test]
fn an_endpoint_that_goes_takes_its_associations_along() {
    if is_absent() {
        return;
    }
    let (mut pair, _, _) = Pair::associated(Settings::default());
    let other = Usrsctp::connector(loopback(), Settings::default()).expect("a connector");
    pair.client.llp = other;
    pair.until(|pair| pair.server.down().is_some());
    assert!(matches!(pair.server.down(), Some(Reason::AbortedByPeer(_))));
}

#[test]
fn a_peer_that_is_not_there_is_given_up() {
    if is_absent() {
        return;
    }
    let silent = UdpSocket::bind(loopback()).expect("a socket");
    let settings = Settings {
        attempts: 2,
        rto_initial: std::time::Duration::from_millis(20),
        rto_max: std::time::Duration::from_millis(40),
        ..Settings::default()
    };
    let mut pair = Pair::new(settings, settings);
    let id = pair.associate_by(silent.local_addr().expect("bound"));
    pair.until(|pair| pair.client.down().is_some());
    assert_eq!(pair.client.told, [Told::Down(id, Reason::Refused)]);
}

/// Nobody listens at the other end's SCTP port: an ABORT says so at once.
#[test]
fn a_peer_that_does_not_listen_says_no() {
    if is_absent() {
        return;
    }
    let mut pair = Pair::new(Settings::default(), Settings::default());
    pair.server.llp = Usrsctp::connector(loopback(), Settings::default()).expect("a connector");
    pair.associate();
    pair.until(|pair| pair.client.down().is_some());
    assert_eq!(pair.client.down(), Some(Reason::Refused));
    assert_eq!(pair.server.told, []);
}

#[test]
fn a_peer_that_falls_silent_is_unreachable() {
    if is_absent() {
        return;
    }
    let settings = Settings {
        retransmissions: 2,
        rto_min: std::time::Duration::from_millis(30),
        rto_max: std::time::Duration::from_millis(60),
        ..Settings::default()
    };
    let mut pair = Pair::new(settings, settings);
    let mut relay = Relay::new(pair.server.llp.local_address(), Faults::default(), 1);
    let ours = pair.associate_by(relay.address());
    pair.drive(|pair, now| {
        relay.turn(now);
        pair.client.up().is_some()
    });
    relay.cut = true;
    assert!(pair.client.put(ours, 0, b"into the void"));
    pair.drive(|pair, now| {
        relay.turn(now);
        pair.client.down().is_some()
    });
    assert_eq!(pair.client.down(), Some(Reason::Unreachable));
}

#[test]
fn there_is_one_association_with_a_peer() {
    if is_absent() {
        return;
    }
    let (mut pair, ours, theirs) = Pair::associated(Settings::default());
    let now = Instant::now();
    let to = pair.server.llp.local_address();
    match pair.client.llp.associate(to, now) {
        Err(Error::Associated(id)) => assert_eq!(id, ours),
        other => panic!("{other:?}"),
    }
    // Who listens at the client's address is not the client, whose SCTP port is any.
    let back = pair.client.llp.local_address();
    let other = pair.server.llp.associate(back, now).expect("asked for");
    assert_ne!(other, theirs);
}

#[test]
fn peers_beyond_the_places_are_turned_away() {
    if is_absent() {
        return;
    }
    let one = Settings {
        associations: 1,
        ..Settings::default()
    };
    let (mut pair, ours, _) = Pair::associated(one);
    let mut third = support::End::new(
        Usrsctp::connector(loopback(), Settings::default()).expect("a connector"),
    );
    let to = pair.server.llp.local_address();
    third
        .llp
        .associate(to, Instant::now())
        .expect("an association asked for");
    pair.drive(|_, now| {
        third.turn(now);
        third.down().is_some()
    });
    assert_eq!(pair.server.llp.counts().turned_away, 1);
    assert!(pair.client.put(ours, 0, b"the first one still is"));
    pair.until(|pair| pair.server.messages().count() == 1);
    match pair.client.llp.associate(loopback(), Instant::now()) {
        Err(Error::Exhausted) => {}
        other => panic!("{other:?}"),
    }
}

/// Datagrams that are no packets, or damaged ones, are counted and have no effect.
#[test]
fn noise_is_counted() {
    if is_absent() {
        return;
    }
    let (mut pair, ours, _) = Pair::associated(Settings::default());
    let noise = UdpSocket::bind(loopback()).expect("a socket");
    let to = pair.server.llp.local_address();
    let mut sent = 0;
    for len in [0, 1, 11, 12, 15, 16, 64, 1400] {
        noise.send_to(&vec![0x17; len], to).expect("sent");
        sent += 1;
    }
    pair.until(|pair| pair.server.llp.counts().damaged == sent);
    assert!(pair.client.put(ours, 0, b"still there"));
    pair.until(|pair| pair.server.messages().count() == 1);
}
