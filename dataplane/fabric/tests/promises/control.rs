//! What every fabric promises its control thread: connections begin, end, and are refused.

use crate::bed::{Bed, Error, PRIVATE_DATA, wanted, with_bed};
use rpcrdma_fabric::connect::{ConnectionId, Event, Fabric, PortId};
use rpcrdma_fabric::{Outcome, Port};

#[test]
fn two_ends_meet_talk_and_part() {
    with_bed(|mut bed| {
        let (asking, asked) = bed.connection();
        for _ in 0..3 {
            bed.send(asking, asked);
            bed.send(asked, asking);
        }
        bed.port.disconnect(asking.pair);
        bed.ended(asking);
        bed.ended(asked);
        bed.destroy(asking);
        bed.destroy(asked);
    });
}

#[test]
fn the_other_end_can_part_too_and_be_met_again() {
    with_bed(|mut bed| {
        let listener = bed.fabric.listen(&bed.anywhere()).expect("a listener");
        let address = bed.fabric.address(listener).expect("it listens");
        for _ in 0..3 {
            let (asking, asked) = bed.connection_to(&address);
            bed.send(asked, asking);
            bed.port.disconnect(asked.pair);
            bed.ended(asked);
            bed.ended(asking);
            bed.destroy(asked);
            bed.destroy(asking);
        }
    });
}

#[test]
fn nobody_there_is_said_to_lcore_and_control() {
    with_bed(|mut bed| {
        // A port that was free a moment ago.
        let address = free_address(&mut bed);
        let connection = bed.resolve(&address);
        let end = bed.adopt(connection);
        bed.fabric.connect(connection, b"").expect("asked");
        let reason = bed.rejected(connection);
        assert!(reason.starts_with("rejected"), "{reason}");
        bed.completion("the end, at the lcore", |completion| {
            completion.token == end.token && completion.outcome == Outcome::Disconnected
        });
        bed.destroy(end);
    });
}

fn free_address(bed: &mut Bed) -> String {
    let mut other = bed.another();
    let listener = other.listen(&bed.anywhere()).expect("a listener");
    other.address(listener).expect("it listens")
}

#[test]
fn a_rejection_says_why() {
    with_bed(|mut bed| {
        let listener = bed.fabric.listen(&bed.anywhere()).expect("a listener");
        let address = bed.fabric.address(listener).expect("it listens");
        for taken in [false, true] {
            let connection = bed.resolve(&address);
            let end = bed.adopt(connection);
            bed.fabric.connect(connection, b"").expect("asked");
            let (asked, _) = bed.request();
            let other = taken.then(|| bed.adopt(asked));
            bed.fabric
                .reject(asked, "not on the allow list")
                .expect("a request");
            let reason = bed.rejected(connection);
            assert_eq!(reason, "rejected by the peer: not on the allow list");
            bed.destroy(end);
            if let Some(other) = other {
                bed.completion("the end, at the lcore", |completion| {
                    completion.token == other.token && completion.outcome == Outcome::Disconnected
                });
                bed.destroy(other);
            }
        }
    });
}

#[test]
fn an_endpoint_that_is_dropped_ends_its_connection() {
    with_bed(|mut bed| {
        let listener = bed.fabric.listen(&bed.anywhere()).expect("a listener");
        let address = bed.fabric.address(listener).expect("it listens");
        // One that was never used ends in silence.
        let silent = bed.resolve(&address);
        drop(bed.fabric.take(silent, bed.id).expect("a queue pair"));
        // One that the peer was asked for is rejected, at both ends.
        let connection = bed.resolve(&address);
        let end = bed.adopt(connection);
        bed.fabric.connect(connection, b"").expect("asked");
        let (asked, _) = bed.request();
        drop(bed.fabric.take(asked, bed.id).expect("a queue pair"));
        let reason = bed.rejected(connection);
        assert!(!reason.is_empty());
        bed.destroy(end);
        assert!(matches!(
            bed.fabric.connect(silent, b""),
            Err(Error::NoConnection(_))
        ));
        assert!(bed.has_no_event(|event| matches!(event, Event::Disconnected { .. })));
    });
}

#[test]
fn steps_out_of_order_are_refused() {
    with_bed(|mut bed| {
        let listener = bed.fabric.listen(&bed.anywhere()).expect("a listener");
        let address = bed.fabric.address(listener).expect("it listens");
        let early = bed.fabric.resolve(&address).expect("begun");
        assert!(!bed.fabric.may_serve(early, bed.id));
        assert!(matches!(
            bed.fabric.take(early, bed.id),
            Err(Error::Order(_))
        ));
        bed.event("the address", |event| {
            *event == Event::Resolved { connection: early }
        });
        assert!(matches!(
            bed.fabric.connect(early, b""),
            Err(Error::Order(_))
        ));
        assert!(matches!(
            bed.fabric.accept(early, b""),
            Err(Error::Order(_))
        ));
        assert!(matches!(bed.fabric.reject(early, ""), Err(Error::Order(_))));
        assert!(!bed.fabric.may_serve(early, PortId(u32::MAX)));
        assert!(matches!(
            bed.fabric.take(early, PortId(u32::MAX)),
            Err(Error::NoPort(_))
        ));
        let end = bed.adopt(early);
        assert!(matches!(
            bed.fabric.take(early, bed.id),
            Err(Error::Order(_))
        ));
        let long = bed.fabric.connect(early, &[0; PRIVATE_DATA + 1]);
        assert!(matches!(
            long,
            Err(Error::PrivateData {
                octets,
                most: PRIVATE_DATA
            }) if octets == PRIVATE_DATA + 1
        ));
        bed.fabric
            .connect(early, &[7; PRIVATE_DATA])
            .expect("all that fits");
        let (asked, private_data) = bed.request();
        assert_eq!(
            private_data.get(..PRIVATE_DATA),
            Some(&[7; PRIVATE_DATA][..])
        );
        bed.fabric.reject(asked, "enough").expect("a request");
        bed.rejected(early);
        bed.destroy(end);
        let unknown = ConnectionId(u64::MAX);
        assert!(matches!(
            bed.fabric.accept(unknown, b""),
            Err(Error::NoConnection(_))
        ));
        assert!(matches!(
            bed.fabric.resolve("nowhere"),
            Err(Error::Address(_))
        ));
        assert!(matches!(
            bed.fabric.listen("nowhere"),
            Err(Error::Address(_))
        ));
    });
}

#[test]
fn a_name_that_nobody_has_is_rejected() {
    with_bed(|mut bed| {
        let connection = bed.fabric.resolve("nobody.invalid:20049").expect("begun");
        let reason = bed.rejected(connection);
        assert!(reason.starts_with("the name is not found: "), "{reason}");
        // A name of this machine leads somewhere, or is said not to.
        let here = bed.fabric.resolve("localhost:20049").expect("begun");
        bed.event("an answer", |event| match event {
            Event::Resolved { connection } | Event::Rejected { connection, .. } => {
                *connection == here
            }
            _ => false,
        });
        bed.fabric.abandon(here);
    });
}

#[test]
fn what_is_abandoned_is_not_spoken_of() {
    with_bed(|mut bed| {
        let address = free_address(&mut bed);
        let early = bed.fabric.resolve(&address).expect("begun");
        bed.fabric.abandon(early);
        let late = bed.resolve(&address);
        bed.fabric.abandon(late);
        assert!(!bed.fabric.may_serve(late, bed.id));
        assert!(bed.has_no_event(|event| *event == Event::Resolved { connection: early }));
    });
}

#[test]
fn a_port_takes_no_more_than_it_was_opened_for() {
    with_bed(|mut bed| {
        let address = free_address(&mut bed);
        let most = wanted().queue_pairs;
        let mut endpoints = Vec::new();
        for _ in 0..most {
            let connection = bed.resolve(&address);
            endpoints.push(bed.fabric.take(connection, bed.id).expect("a queue pair"));
        }
        let more = bed.resolve(&address);
        assert!(!bed.fabric.may_serve(more, bed.id));
        assert!(matches!(
            bed.fabric.take(more, bed.id),
            Err(Error::PortFull(_))
        ));
        endpoints.pop();
        bed.until("room", |bed| {
            bed.fabric.may_serve(more, bed.id).then_some(())
        });
        endpoints.push(bed.fabric.take(more, bed.id).expect("room again"));
    });
}

#[test]
fn a_port_that_goes_takes_its_connections_along() {
    with_bed(|mut bed| {
        let (asking, asked) = bed.connection();
        let arena =
            rpcrdma_fabric::arena::Arena::map(1 << 20, rpcrdma_fabric::arena::Hugepages::Off);
        let arena = std::sync::Arc::new(arena.expect("memory"));
        let (id, port) = bed
            .fabric
            .open_port(arena, &wanted())
            .expect("another port");
        bed.id = id;
        drop(std::mem::replace(&mut bed.port, port));
        for end in [asking, asked] {
            bed.event("the end", |event| {
                *event
                    == Event::Disconnected {
                        connection: end.connection,
                    }
            });
        }
        let again = bed.connection();
        bed.send(again.0, again.1);
    });
}

#[test]
fn a_fabric_that_goes_leaves_connections_to_their_ports() {
    with_bed(|mut bed| {
        let (asking, asked) = bed.connection();
        bed.send(asking, asked);
        let other = bed.another();
        drop(std::mem::replace(&mut bed.fabric, other));
        bed.send(asked, asking);
        bed.port.disconnect(asking.pair);
        bed.completion("the end", |completion| {
            completion.token == asking.token && completion.outcome == Outcome::Disconnected
        });
    });
}
