//! How neighbours are found, asked again, and forgotten: by ARP and by neighbour discovery.

use crate::link::{Link, Seen, address, datagram, drain, hardware, neighbours, station};
use rpcrdma_ipoib::neighbour::{Bounds, Fate, Lost, Neighbours, Output, State};
use rpcrdma_ipoib::qkey::QKey;
use rpcrdma_ipoib::time::Moment;

/// Datagrams that came from the first station to the second.
fn datagrams(seen: &[Seen]) -> usize {
    seen.iter()
        .filter(|it| **it == Seen::Datagram(1, 2))
        .count()
}

fn count(seen: &[Seen], what: &Seen) -> usize {
    seen.iter().filter(|it| *it == what).count()
}

fn both(test: fn(bool)) {
    for v6 in [false, true] {
        test(v6);
    }
}

fn send(link: &mut Link, v6: bool, payload: &[u8]) -> Fate {
    let now = link.now;
    link.station(1)
        .send(now, address(v6, 2), datagram(v6, 1, 2, payload))
}

#[test]
fn several_datagrams_make_one_question_and_all_arrive() {
    both(|v6| {
        let mut link = Link::new(v6, &[1, 2, 3]);
        for _ in 0..3 {
            assert_eq!(send(&mut link, v6, b"x"), Fate::Waiting);
        }
        let seen = link.settle();
        assert_eq!(datagrams(&seen), 3, "{seen:?}");
        assert_eq!(count(&seen, &Seen::Everybody(1)), 1, "{seen:?}");
        assert_eq!(count(&seen, &Seen::Path(1, 0x10_0002)), 1, "{seen:?}");
        assert_eq!(send(&mut link, v6, b"x"), Fate::Sent);
        assert!(matches!(
            link.station(1).state(address(v6, 2)),
            Some(State::Known(_))
        ));
        assert_eq!(
            link.station(3).iter().count(),
            0,
            "who has nothing to do with it keeps nothing"
        );
    });
}

/// Who was asked knows who asked, and asks it itself before long: RFC 4861 section 7.3.3.
#[test]
fn who_asked_is_asked_when_it_is_sent_to() {
    both(|v6| {
        let mut link = Link::new(v6, &[1, 2]);
        send(&mut link, v6, b"x");
        link.settle();
        assert!(matches!(
            link.station(2).state(address(v6, 1)),
            Some(State::Doubted(_, 0))
        ));
        let now = link.now;
        link.station(2)
            .send(now, address(v6, 1), datagram(v6, 2, 1, b"y"));
        let seen = link.wait(5_000);
        assert_eq!(count(&seen, &Seen::One(2, 1)), 1, "{seen:?}");
        assert!(matches!(
            link.station(2).state(address(v6, 1)),
            Some(State::Known(_))
        ));
    });
}

#[test]
fn who_is_sent_to_is_asked_again_and_who_is_not_is_forgotten() {
    both(|v6| {
        let mut link = Link::new(v6, &[1, 2]);
        send(&mut link, v6, b"x");
        link.settle();
        send(&mut link, v6, b"x");
        let seen = link.wait(30_000);
        // The other, who had nothing to send, has forgotten the way by then.
        let again = [Seen::One(1, 2), Seen::Path(2, 0x10_0001), Seen::One(2, 1)];
        assert_eq!(seen[1..], again);
        assert!(link.station(1).state(address(v6, 2)).is_some());
        link.wait(120_000);
        assert_eq!(link.station(1).iter().count(), 0);
        assert_eq!(link.station(2).iter().count(), 0);
        assert_eq!(link.station(1).wake(), None);
    });
}

#[test]
fn nobody_answers() {
    both(|v6| {
        let mut link = Link::new(v6, &[1]);
        send(&mut link, v6, b"x");
        let seen = link.wait(10_000);
        assert_eq!(seen, [const { Seen::Everybody(1) }; 3]);
        let station = link.station(1);
        assert_eq!(station.counts().lost.of(Lost::Unanswered), 1);
        assert_eq!((station.iter().count(), station.wake()), (0, None));
    });
}

#[test]
fn there_is_no_path() {
    both(|v6| {
        let mut link = Link::new(v6, &[1, 2]);
        link.unreachable.push(hardware(2).gid);
        send(&mut link, v6, b"x");
        link.settle();
        let station = link.station(1);
        assert_eq!(station.counts().lost.of(Lost::NoPath), 1);
        assert_eq!(station.iter().count(), 0);
    });
}

/// The second station starts anew, with another queue pair; whether it says so.
fn restart(link: &mut Link, v6: bool, announces: bool) {
    let mut station = station(v6, 2);
    station.hardware.qpn = 0x999;
    let mut again = Neighbours::new(station, Bounds::default());
    if announces {
        again.announce();
    }
    link.stations[1] = (2, station.hardware, again);
}

/// RFC 4391 section 9.4: the queue pair is another after a restart. A host that comes up says so.
#[test]
fn a_host_that_restarts_is_found_at_its_new_queue_pair() {
    both(|v6| {
        let mut link = Link::new(v6, &[1, 2]);
        send(&mut link, v6, b"x");
        link.settle();
        restart(&mut link, v6, true);
        link.settle();
        assert_eq!(send(&mut link, v6, b"x"), Fate::Sent);
        assert_eq!(datagrams(&link.settle()), 1);
    });
}

/// The same where the word of it was lost.
#[test]
fn a_host_that_restarts_silently_is_found_out() {
    both(|v6| {
        let mut link = Link::new(v6, &[1, 2]);
        send(&mut link, v6, b"x");
        link.settle();
        restart(&mut link, v6, false);
        send(&mut link, v6, b"x");
        let seen = link.wait(40_000);
        assert!(seen.contains(&Seen::Nowhere(1)));
        send(&mut link, v6, b"x");
        assert_eq!(datagrams(&link.settle()), 1);
    });
}

/// Every LID is another after a subnet manager has started anew.
#[test]
fn paths_are_asked_again_after_a_change() {
    both(|v6| {
        let mut link = Link::new(v6, &[1, 2]);
        send(&mut link, v6, b"x");
        link.settle();
        link.lid_base = 0x40;
        let now = link.now;
        link.station(1).reroute(now);
        assert_eq!(send(&mut link, v6, b"x"), Fate::Waiting);
        let seen = link.settle();
        assert_eq!(datagrams(&seen), 1, "{seen:?}");
        assert_eq!(count(&seen, &Seen::Everybody(1)), 0, "it is where it was");
    });
}

/// Several addresses of one port have one path.
#[test]
fn one_path_is_asked_for_once() {
    let mut asker = neighbours(false, 1);
    let reply = |n| rpcrdma_ipoib::packet::Arp {
        operation: rpcrdma_ipoib::packet::Operation::Reply,
        sender: hardware(2),
        sender_ip: std::net::Ipv4Addr::new(10, 9, 0, n),
        target: hardware(1),
        target_ip: std::net::Ipv4Addr::new(10, 9, 0, 1),
    };
    for n in [2, 3, 4] {
        asker.send(Moment(0), address(false, n), vec![n]);
    }
    drain(&mut asker);
    for n in [2, 3, 4] {
        let reply = rpcrdma_ipoib::packet::Packet::Arp(reply(n));
        asker.heard(Moment(1), &reply, Some(hardware(2)));
    }
    let asked = drain(&mut asker);
    assert!(matches!(asked[..], [Output::Path(_)]), "{asked:?}");
    asker.routed(Moment(2), hardware(2).gid, Some(crate::link::route(2)));
    assert_eq!(drain(&mut asker).len(), 3);
}

#[test]
fn an_address_vector_has_the_key_of_the_link() {
    let mut link = Link::new(false, &[1, 2]);
    send(&mut link, false, b"x");
    link.settle();
    let state = link.station(1).state(address(false, 2)).unwrap();
    let vector = state.way().unwrap().vector(QKey(0x8000_0B1B));
    let at = hardware(2);
    assert_eq!((vector.lid.0, vector.qpn, vector.gid), (2, at.qpn, at.gid));
    assert_eq!(vector.q_key, QKey(0x8000_0B1B));
}
