//! A link from outside: what Linux sends to it, what it sends, and what it never believes.

mod bodies;
mod hostile;
mod vectors;

use bodies::{HERE, HERE6, THERE, THERE6, link, there};
use rpcrdma_ether::{Arrival, Dispatch, Link, Mac, Refused, Short, Way};
use smoltcp::wire::{
    EthernetFrame, Icmpv4Message, Icmpv4Packet, Icmpv6Message, Icmpv6Packet, Ipv4Packet, Ipv6Packet,
};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use vectors::octets;

fn answer(link: &mut Link<u32>, frame: &[u8]) -> Short {
    match link.take(frame, Instant::now()) {
        Arrival::Answer(answer) => answer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn datagrams_of_linux_are_taken() {
    for (at, name, len) in [
        (HERE, "datagram of IPv4", 32_u8),
        (HERE, "odd datagram of IPv4", 33),
        (HERE6, "datagram of IPv6", 32),
    ] {
        let frame = octets(name);
        let mut link = link(at);
        let Arrival::Datagram(datagram) = link.take(&frame, Instant::now()) else {
            panic!("{name}");
        };
        let expected: Vec<u8> = (0..len).collect();
        assert_eq!(frame[datagram.octets], expected, "{name}");
        assert_eq!(datagram.from, there(at), "{name}");
        assert_eq!(datagram.port, 9899, "{name}");
        assert_eq!(link.counts().datagrams, 1);
    }
}

/// What this station sends is, but for the flow label and identification, what Linux sends.
#[test]
fn datagrams_are_sent_as_linux_sends_them() {
    for (name, at) in [
        ("datagram of IPv4", HERE),
        ("odd datagram of IPv4", HERE),
        ("datagram of IPv6", HERE6),
    ] {
        let mut expected = octets(name);
        let link = bodies::link_as(there(at).ip(), Mac([2, 0, 0, 0, 0, 2]));
        let head = link.head_len();
        let mut frame = vec![0xff; expected.len()];
        frame[head..].copy_from_slice(&expected[head..]);
        let to = SocketAddr::new(bodies::ip(at), 9899);
        let mac = Mac([2, 0, 0, 0, 0, 1]);
        assert!(link.write_head(&Way { mac, to }, 9899, &mut frame));
        if at == HERE {
            let mut header = Ipv4Packet::new_unchecked(&mut expected[14..]);
            header.set_ident(0);
            header.fill_checksum();
        } else {
            Ipv6Packet::new_unchecked(&mut expected[14..]).set_flow_label(0);
        }
        assert_eq!(hex::encode(frame), hex::encode(expected), "{name}");
    }
}

/// A checksum that comes to zero is sent as all ones (RFC 768), and taken so.
#[test]
fn a_checksum_of_zero_is_sent_as_ones() {
    let (mut link, sender) = (
        link(HERE),
        bodies::link_as(bodies::ip(THERE), bodies::THERE_MAC),
    );
    let way = Way {
        mac: bodies::HERE_MAC,
        to: SocketAddr::new(bodies::ip(HERE), 7),
    };
    let mut frame = vec![0; 42 + 2];
    assert!(sender.write_head(&way, 7, &mut frame));
    let sum = frame[40..42].to_vec();
    frame[42..].copy_from_slice(&sum);
    assert!(sender.write_head(&way, 7, &mut frame));
    assert_eq!(frame[40..42], [0xff, 0xff]);
    assert!(matches!(
        link.take(&frame, Instant::now()),
        Arrival::Datagram(_)
    ));
}

#[test]
fn one_who_asks_is_answered() {
    let reply = answer(&mut link(HERE), &octets("arp request"));
    let expected = "0200000000020200000000010806000108000604000202000000000\
                    10a0900010200000000020a090002000000000000000000000000000000000000";
    assert_eq!(
        hex::encode(&reply),
        expected,
        "padded to what Ethernet carries"
    );

    let reply = answer(&mut link(HERE6), &octets("solicitation"));
    let expected = "02000000000202000000000186dd6000000000203aff20010db8000000000000000000000001\
                    20010db800000000000000000000000288008a7360000000\
                    20010db80000000000000000000000010201020000000001";
    assert_eq!(hex::encode(&reply), expected);
}

/// RFC 4861 section 7.2.4: who has no address yet is answered by telling all.
#[test]
fn one_who_wants_the_address_is_told_that_it_is_taken() {
    let reply = answer(&mut link(HERE6), &octets("probe"));
    let reply = reply.as_ref();
    assert_eq!(reply[..6], [0x33, 0x33, 0, 0, 0, 1]);
    assert_eq!(reply[58..60], [0x20, 0], "override, and not solicited");
}

#[test]
fn echoes_are_answered() {
    let request = bodies::echo_request(56);
    let reply = answer(&mut link(HERE), &request);
    let ethernet = EthernetFrame::new_checked(&reply).expect("a frame");
    let packet = Ipv4Packet::new_checked(ethernet.payload()).expect("a packet");
    assert!(packet.verify_checksum());
    assert_eq!(packet.dst_addr().to_string(), THERE);
    let icmp = Icmpv4Packet::new_checked(packet.payload()).expect("a message");
    assert!(icmp.verify_checksum());
    assert_eq!(icmp.msg_type(), Icmpv4Message::EchoReply);
    assert_eq!(icmp.echo_seq_no(), 7);

    let reply = answer(&mut link(HERE6), &bodies::echo_request6(56));
    let ethernet = EthernetFrame::new_checked(&reply).expect("a frame");
    let packet = Ipv6Packet::new_checked(ethernet.payload()).expect("a packet");
    let icmp = Icmpv6Packet::new_checked(packet.payload()).expect("a message");
    assert!(icmp.verify_checksum(&packet.src_addr(), &packet.dst_addr()));
    assert_eq!(icmp.msg_type(), Icmpv6Message::EchoReply);
    assert_eq!(packet.dst_addr().to_string(), THERE6);

    let long = link(HERE).take(&bodies::echo_request(1000), Instant::now());
    assert_eq!(long, Arrival::Nothing, "nobody needs that");
}

/// A packet waits for its neighbour, which is asked for, and goes when it has answered.
#[test]
fn packets_wait_for_their_neighbour() {
    for (at, question, reply) in [(HERE, 42, "arp reply"), (HERE6, 86, "advertisement")] {
        let (mut link, now) = (link(at), Instant::now());
        assert_eq!(link.dispatch(there(at), 1, now), Dispatch::Kept);
        assert_eq!(link.dispatch(there(at), 2, now), Dispatch::Kept);
        let asked = link.request(now).expect("a question");
        assert!(asked.as_ref().len() >= question);
        assert!(asked.as_ref()[0] & 1 != 0, "to all, or to the group");
        assert!(link.request(now).is_none(), "once");
        assert!(link.release().is_none());

        assert_eq!(link.take(&octets(reply), now), Arrival::Nothing);
        let way = Way {
            mac: bodies::THERE_MAC,
            to: there(at),
        };
        assert_eq!(link.release(), Some((way, 1)));
        assert_eq!(link.release(), Some((way, 2)));
        assert_eq!(link.release(), None);
        assert_eq!(link.dispatch(there(at), 3, now), Dispatch::Go(way, 3));
    }
}

/// The questions of this station are such as it would answer.
#[test]
fn questions_are_understood_at_the_other_end() {
    for at in [HERE, HERE6] {
        let now = Instant::now();
        let (mut here, mut other) = (link(at), bodies::link_as(there(at).ip(), bodies::THERE_MAC));
        assert_eq!(here.dispatch(there(at), 1, now), Dispatch::Kept);
        let question = here.request(now).expect("a question");
        let answer = answer(&mut other, question.as_ref());
        assert_eq!(here.take(answer.as_ref(), now), Arrival::Nothing);
        assert!(here.release().is_some());
        // A while later it is asked itself, and still understood.
        let later = now + Duration::from_secs(40);
        assert!(matches!(here.dispatch(there(at), 1, now), Dispatch::Go(..)));
        let question = here.request(later).expect("a question");
        assert_eq!(question.as_ref()[..6], bodies::THERE_MAC.0);
        let Arrival::Answer(_) = other.take(question.as_ref(), later) else {
            panic!("not understood");
        };
    }
}

#[test]
fn nobody_waits_for_ever_nor_without_bounds() {
    let (mut link, mut now) = (link(HERE), Instant::now());
    for packet in 0..100 {
        assert_eq!(link.dispatch(there(HERE), packet, now), Dispatch::Kept);
    }
    assert_eq!(link.counts().unanswered, 92, "eight wait, the latest");
    let mut questions = 0;
    for _ in 0..10 {
        while link.request(now).is_some() {
            questions += 1;
        }
        now += Duration::from_secs(1);
    }
    assert_eq!(questions, 3);
    assert_eq!(link.counts().unanswered, 100);
    assert_eq!(link.deadline(), None);

    for host in 2..250 {
        let to = SocketAddr::from(([10, 9, 0, host], 1));
        assert_eq!(link.dispatch(to, 0, now), Dispatch::Kept);
    }
    let mut questions = 0;
    while link.request(now).is_some() {
        questions += 1;
    }
    assert_eq!(questions, 64, "of a burst");
    assert!(link.counts().unanswered >= 100 + 180);
}

/// One that had to give way to another is asked for no more, and what waited for it is given up
/// at once.
#[test]
fn nothing_waits_for_one_that_gave_way() {
    let (mut here, now) = (link(HERE6), Instant::now());
    let neighbour =
        |number: u32| SocketAddr::new(bodies::ip(&format!("2001:db8::f:{number:x}")), 1);
    assert_eq!(here.dispatch(neighbour(0), 0, now), Dispatch::Kept);
    assert!(
        here.request(now).is_some(),
        "asked for, and does not answer"
    );
    for number in 1..=255 {
        let to = neighbour(number);
        assert_eq!(here.dispatch(to, number, now), Dispatch::Kept);
        let question = here.request(now).expect("a question");
        let answer = answer(
            &mut bodies::link_as(to.ip(), bodies::THERE_MAC),
            question.as_ref(),
        );
        here.take(answer.as_ref(), now);
        assert!(here.release().is_some_and(|(_, packet)| packet == number));
        assert_eq!(here.release(), None);
    }
    assert_eq!(here.counts().unanswered, 0, "all have room");
    assert_eq!(here.dispatch(neighbour(256), 256, now), Dispatch::Kept);
    assert_eq!(here.counts().unanswered, 1);
}

/// What has no way is dropped, and what is for the station itself finds it.
#[test]
fn ways_without_a_neighbour() {
    let (mut link, now) = (link(HERE), Instant::now());
    for to in [
        "192.0.2.1:1",
        "10.9.0.255:1",
        "[2001:db8::2]:1",
        "0.0.0.0:1",
    ] {
        let to = to.parse().expect("an address");
        assert_eq!(link.dispatch(to, 0, now), Dispatch::Kept);
    }
    assert_eq!(link.counts().no_way, 4);
    let to = SocketAddr::new(bodies::ip(HERE), 5);
    let mac = bodies::HERE_MAC;
    assert_eq!(link.dispatch(to, 8, now), Dispatch::Go(Way { mac, to }, 8));
}

#[test]
fn a_head_has_to_fit() {
    let link = link(HERE);
    let mac = bodies::THERE_MAC;
    let way = Way {
        mac,
        to: there(HERE),
    };
    assert!(!link.write_head(&way, 1, &mut [0; 41]));
    assert!(link.write_head(&way, 1, &mut [0; 42]));
    assert!(!link.write_head(&way, 1, &mut vec![0; 65_536]));
    let way = Way {
        mac,
        to: there(HERE6),
    };
    assert!(!link.write_head(&way, 1, &mut [0; 100]));
}

/// What is addressed to a group, a router or nobody is counted and not more.
#[test]
fn what_is_of_no_interest_is_dropped() {
    let mut link = link(HERE6);
    assert_eq!(
        link.take(&octets("router solicitation"), Instant::now()),
        Arrival::Nothing
    );
    assert_eq!(link.counts().refused(Refused::NotOurs), 1);
    assert_eq!(
        link.take(&octets("arp request"), Instant::now()),
        Arrival::Nothing
    );
    assert_eq!(link.counts().refused(Refused::Kind), 1);
}
