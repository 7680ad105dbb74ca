//! Connections on associations: several on one, some that are lost, ports that share an address.

mod bed;

use bed::{Bed, bed};
use rpcrdma_fabric::connect::{DeviceChange, Event, Fabric, PortId};
use rpcrdma_fabric::{Outcome, Port};
use rpcrdma_iwarp_sctp::stand_in::{Hub, Manner};
use rpcrdma_iwarp_sctp::{IwarpFabric, Settings};
use std::time::Duration;

fn listening(bed: &mut Bed) -> String {
    let listener = bed.fabric.listen(&bed.anywhere()).expect("a listener");
    bed.fabric.address(listener).expect("it listens")
}

/// A wire has room for one association alone, and all connections are on it.
#[test]
fn connections_share_an_association() {
    let hub = Hub::new(Manner {
        associations: 1,
        ..Manner::default()
    });
    let mut bed = bed(&hub, &Settings::default());
    let address = listening(&mut bed);
    let mut ends: Vec<_> = (0..5).map(|_| bed.connection_to(&address)).collect();
    for round in 0..4 {
        // The end of one is no other's, and its stream is used again.
        let (a, b) = ends.remove(round % 3);
        bed.port.disconnect(a.pair);
        bed.ended(a);
        bed.ended(b);
        bed.destroy(a);
        bed.destroy(b);
        for &(a, b) in &ends {
            bed.send(a, b);
            bed.send(b, a);
        }
        ends.push(bed.connection_to(&address));
    }
}

/// There is one association between two addresses: more connections than it has streams are from
/// another address.
#[test]
fn more_connections_than_streams_get_another_association() {
    let hub = Hub::new(Manner {
        streams: 2,
        ..Manner::default()
    });
    let settings = Settings {
        streams: 2,
        ..Settings::default()
    };
    let mut bed = bed(&hub, &settings);
    let address = listening(&mut bed);
    let ends: Vec<_> = (0..5).map(|_| bed.connection_to(&address)).collect();
    for (a, b) in ends {
        bed.send(a, b);
        bed.send(b, a);
    }
}

#[test]
fn a_lost_association_ends_all_its_connections_and_others_can_be_made() {
    let hub = Hub::new(Manner::default());
    let mut bed = bed(&hub, &Settings::default());
    let address = listening(&mut bed);
    for _ in 0..3 {
        let ends: Vec<_> = (0..3).map(|_| bed.connection_to(&address)).collect();
        hub.cut();
        for (a, b) in ends {
            for end in [a, b] {
                bed.ended(end);
                bed.destroy(end);
            }
        }
    }
    assert_eq!(bed.port.counts().transport, 3 * 3 * 2);
}

/// A request that nobody has answered when the association goes.
#[test]
fn a_request_that_is_lost_is_rejected_and_cannot_be_taken() {
    let hub = Hub::new(Manner::default());
    let mut bed = bed(&hub, &Settings::default());
    let address = listening(&mut bed);
    let asking = bed.resolve(&address);
    let end = bed.adopt(asking);
    bed.fabric.connect(asking, b"").expect("asked");
    let (asked, _) = bed.request();
    hub.cut();
    let reason = bed.rejected(asking);
    assert!(reason.contains("answers no more"), "{reason}");
    assert!(bed.fabric.take(asked, bed.id).is_err());
    bed.completion("the end, at the lcore", |completion| {
        completion.token == end.token && completion.outcome == Outcome::Disconnected
    });
    bed.destroy(end);
}

/// An association without a session goes after a while, and the next connection makes another.
#[test]
fn an_idle_association_is_shut_down() {
    let hub = Hub::new(Manner {
        associations: 1,
        ..Manner::default()
    });
    let settings = Settings {
        idle: Duration::ZERO,
        ..Settings::default()
    };
    let mut bed = bed(&hub, &settings);
    let address = listening(&mut bed);
    for _ in 0..2 {
        let (a, b) = bed.connection_to(&address);
        bed.port.disconnect(b.pair);
        for end in [a, b] {
            bed.ended(end);
            bed.destroy(end);
        }
        bed.until("the end of the association", |_| {
            (hub.associations() == 0).then_some(())
        });
    }
}

/// Each port hears an address for itself; a request can be taken on the one that heard it alone.
#[test]
fn a_request_is_its_ports() {
    let hub = Hub::new(Manner::default());
    let mut hears = bed(&hub, &Settings::default());
    let address = listening(&mut hears);
    let other = PortId(u32::MAX);
    let mut asks = bed(&hub, &Settings::default());
    let asking = asks.resolve(&address);
    asks.adopt(asking);
    asks.fabric.connect(asking, b"").expect("asked");
    let (asked, _) = hears.until("the request", |hears| {
        asks.look();
        hears.next_request()
    });
    assert!(hears.fabric.may_serve(asked, hears.id));
    assert!(!hears.fabric.may_serve(asked, other));
    let end = hears.adopt(asked);
    hears.fabric.accept(asked, b"yes").expect("taken");
    hears.until("both ends", |_| {
        asks.look();
        let stands = Event::Established {
            connection: asking,
            private_data: b"yes".to_vec(),
        };
        asks.take_event(&stands).then_some(())
    });
    // Dropped with its fabric and all: the other side hears of it.
    drop(asks);
    hears.ended(end);
}

/// A link that goes down, or up again, is an event of the device's, told once.
#[test]
fn links_are_told_of() {
    let hub = Hub::new(Manner::default());
    let mut bed = bed(&hub, &Settings::default());
    let is_up = |bed: &Bed| bed.fabric.devices().iter().all(|device| device.up);
    assert!(is_up(&bed));
    for (down, change) in [(true, DeviceChange::Down), (false, DeviceChange::Up)] {
        hub.say_down(down);
        let told = Event::Device {
            name: "iwarp-sctp".to_owned(),
            ports: vec![bed.id],
            change,
        };
        assert_eq!(bed.fabric.poll(), Some(told));
        assert_eq!(bed.fabric.poll(), None);
        assert_eq!(is_up(&bed), !down);
    }
    hub.say_down(true);
    let late = IwarpFabric::new(hub, Settings::default()).expect("a fabric");
    assert!(!late.devices()[0].up, "down from the start");
}
