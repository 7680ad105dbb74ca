//! Link sections 8 and 9: joining, leaving, sending.

use crate::bed::{Bed, Deed, LINK, SIX, attributes, ip, mgid, spec};
use rpcrdma_ipoib::group::Attributes;
use rpcrdma_ipoib::link::LinkState;
use rpcrdma_ipoib::mad::Method;
use rpcrdma_ipoib::mgid::Family;
use rpcrdma_ipoib::mtu::Mtu;
use rpcrdma_ipoib::node::{Fate, Output};
use rpcrdma_ipoib::qkey::QKey;
use rpcrdma_ipoib::settings::{Creation, Limits, LinkSpec, Settings, Timing};
use rpcrdma_ipoib::trouble::{Drop, Operation, Refusal};

const GROUP: &str = "ff12:401b:8006::f01:203";
const ADDRESS: &str = "239.1.2.3";
const ROUTERS: &str = "ff12:401b:8006::2";

fn drops(bed: &Bed, at: usize, why: Drop) -> u64 {
    bed.seats[at].node.ledger().drops().of(why)
}

fn lids(bed: &Bed, at: usize) -> Vec<rpcrdma_ipoib::gid::Gid> {
    bed.seats[at].frames().iter().map(|it| it.gid).collect()
}

#[test]
fn section_8_examples() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    bed.join(at, "224.0.0.2");
    assert_eq!(bed.held(at, "ff12:401b:8006::2"), 1);
    let create = Some(Creation::default());
    let six = bed.up(LinkSpec {
        family: Family::V6,
        create,
        ..spec(SIX)
    });
    bed.join(six, "ff02::2");
    assert_eq!(bed.held(six, "ff12:601b:8006::2"), 1);
}

#[test]
fn section_8_limited_broadcast_is_the_broadcast_group() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    assert_eq!(bed.send(at, "255.255.255.255"), Fate::Sent);
    assert_eq!(lids(&bed, at), [mgid("ff12:401b:8006::ffff:ffff")]);
}

#[test]
fn section_9_a_missing_group_is_created_like_the_broadcast_group() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    bed.join(at, ADDRESS);
    let made = bed.sa.group(mgid(GROUP)).expect("a group").attributes;
    let link = bed.seats[at].node.link_status(LINK).expect("a link");
    let link = link.attributes.expect("attributes");
    let mlid = made.mlid;
    assert_eq!(
        Attributes {
            mlid,
            packet_life: made.packet_life,
            ..link
        },
        made
    );
    assert!(bed.seats[at].attached.contains(&mgid(GROUP)));
}

#[test]
fn section_9_a_group_that_exists_is_joined() {
    let mut bed = Bed::new();
    bed.stranger(Method::Set, GROUP, attributes(SIX));
    let at = bed.up(spec(SIX));
    bed.join(at, ADDRESS);
    assert_eq!(bed.held(at, GROUP), 1);
    let told = Deed::Output(Output::Member {
        link: LINK,
        mgid: mgid(GROUP),
        joined: true,
    });
    assert!(bed.seats[at].deeds.contains(&told));
}

#[test]
fn section_9_a_group_that_does_not_fit_the_link_is_refused_with_the_reason() {
    let small = Attributes {
        mtu: Mtu::M1024,
        ..attributes(SIX)
    };
    let large = Attributes {
        mtu: Mtu::M4096,
        ..attributes(SIX)
    };
    let other = Attributes {
        q_key: QKey(0x8000_0001),
        ..attributes(SIX)
    };
    for (group, refusal) in [
        (small, Refusal::GroupMtuSmaller),
        (large, Refusal::GroupMtuBeyondPort),
        (other, Refusal::QKeyDiffers),
    ] {
        let mut bed = Bed::new();
        bed.stranger(Method::Set, GROUP, group);
        let at = bed.up(spec(SIX));
        bed.join(at, ADDRESS);
        assert_eq!(bed.held(at, GROUP), 0);
        let failure = bed.seats[at].failures()[0];
        assert_eq!(
            (failure.operation, failure.refusal),
            (Operation::Join, Some(refusal))
        );
        assert_eq!(bed.seats[at].node.ledger().refusals().of(refusal), 1);
        let link = bed.seats[at].node.link_status(LINK).expect("a link");
        assert_eq!((link.state, link.failing), (LinkState::Degraded, 1));
    }
}

#[test]
fn section_9_a_refused_group_is_joined_once_it_fits() {
    let mut bed = Bed::new();
    let mtu = Mtu::M1024;
    bed.stranger(
        Method::Set,
        GROUP,
        Attributes {
            mtu,
            ..attributes(SIX)
        },
    );
    let at = bed.up(spec(SIX));
    bed.join(at, ADDRESS);
    bed.stranger(Method::Delete, GROUP, attributes(SIX));
    bed.pass(60_000);
    assert_eq!(bed.held(at, GROUP), 1);
    let link = bed.seats[at].node.link_status(LINK).expect("a link");
    assert_eq!(link.state, LinkState::Up);
}

#[test]
fn section_9_joins_are_idempotent() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    for _ in 0..3 {
        bed.join(at, ADDRESS);
    }
    assert_eq!(bed.seats[at].asked_of(Method::Set, GROUP), 1);
    bed.leave(at, ADDRESS);
    assert_eq!(bed.held(at, GROUP), 0);
}

#[test]
fn section_8_two_addresses_of_ipv6_may_share_a_group() {
    let mut bed = Bed::new();
    let create = Some(Creation::default());
    let at = bed.up(LinkSpec {
        family: Family::V6,
        create,
        ..spec(SIX)
    });
    let group = "ff12:601b:8006::77";
    for address in ["ff02::77", "ff05:0:1::77"] {
        bed.join(at, address);
    }
    assert_eq!(bed.seats[at].asked_of(Method::Set, group), 1);
    bed.leave(at, "ff02::77");
    assert_eq!(bed.held(at, group), 1);
    bed.leave(at, "ff05:0:1::77");
    assert_eq!(bed.held(at, group), 0);
}

#[test]
fn section_9_what_was_joined_is_left_and_the_queue_pair_detached_first() {
    let mut bed = Bed::new();
    bed.stranger(Method::Set, GROUP, attributes(SIX));
    let at = bed.up(spec(SIX));
    bed.send(at, ADDRESS);
    bed.join(at, ADDRESS);
    assert_eq!(bed.held(at, GROUP), 0b101);
    bed.leave(at, ADDRESS);
    assert_eq!(bed.held(at, GROUP), 0b100);
    bed.pass(Timing::default().idle_ms + 1_000);
    assert_eq!(bed.held(at, GROUP), 0);
    let seat = &bed.seats[at];
    let detach = seat.when(|deed| matches!(deed, Deed::Output(Output::Detach(_))));
    let leave = seat.when(|deed| matches!(deed, Deed::Asked(it) if it.method == Method::Delete));
    assert!(detach < leave);
}

#[test]
fn section_9_the_group_goes_with_its_last_full_member() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    bed.join(at, ADDRESS);
    bed.leave(at, ADDRESS);
    assert!(bed.sa.group(mgid(GROUP)).is_none());
    assert!(!bed.seats[at].attached.contains(&mgid(GROUP)));
}

#[test]
fn section_9_rule_a_member_sends() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    bed.join(at, ADDRESS);
    assert_eq!(bed.send(at, ADDRESS), Fate::Sent);
    assert_eq!(bed.held(at, GROUP), 1);
    let mlid = bed.sa.group(mgid(GROUP)).expect("a group").attributes.mlid;
    assert_eq!(bed.seats[at].frames()[0].lid, mlid);
}

#[test]
fn section_9_rule_a_group_that_exists_is_joined_as_sender() {
    let mut bed = Bed::new();
    bed.stranger(Method::Set, GROUP, attributes(SIX));
    let at = bed.up(spec(SIX));
    assert_eq!(bed.send(at, ADDRESS), Fate::Waiting);
    assert_eq!(bed.held(at, GROUP), 4);
    assert_eq!(lids(&bed, at), [mgid(GROUP)]);
    assert_eq!(bed.send(at, ADDRESS), Fate::Sent);
    assert!(!bed.seats[at].attached.contains(&mgid(GROUP)));
}

#[test]
fn section_9_rule_without_a_group_to_the_routers() {
    let mut bed = Bed::new();
    bed.stranger(Method::Set, ROUTERS, attributes(SIX));
    let at = bed.up(spec(SIX));
    assert_eq!(bed.send(at, ADDRESS), Fate::Waiting);
    assert_eq!(bed.send(at, ADDRESS), Fate::Routed);
    assert_eq!(lids(&bed, at), [mgid(ROUTERS); 2]);
    assert_eq!((bed.held(at, ROUTERS), bed.held(at, GROUP)), (4, 0));
}

#[test]
fn section_9_rule_without_routers_dropped_and_counted() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    bed.send(at, ADDRESS);
    assert_eq!(bed.send(at, ADDRESS), Fate::Dropped(Drop::NoListener));
    assert_eq!(drops(&bed, at, Drop::NoListener), 2);
    assert_eq!(lids(&bed, at), []);
}

#[test]
fn section_9_what_is_known_is_not_asked_again() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    for _ in 0..100 {
        bed.send(at, ADDRESS);
    }
    assert_eq!(bed.seats[at].asked_of(Method::Get, GROUP), 1);
    assert_eq!(bed.seats[at].asked_of(Method::Get, ROUTERS), 1);
    bed.pass(Timing::default().cache_ms);
    bed.send(at, ADDRESS);
    assert_eq!(bed.seats[at].asked_of(Method::Get, GROUP), 2);
}

#[test]
fn section_9_a_group_that_appears_takes_its_traffic_back() {
    let mut bed = Bed::new();
    bed.stranger(Method::Set, ROUTERS, attributes(SIX));
    let at = bed.up(spec(SIX));
    bed.send(at, ADDRESS);
    bed.stranger(Method::Set, GROUP, attributes(SIX));
    assert_eq!(bed.held(at, GROUP), 4);
    assert_eq!(bed.send(at, ADDRESS), Fate::Sent);
    assert_eq!(lids(&bed, at), [mgid(ROUTERS), mgid(GROUP)]);
}

#[test]
fn section_9_a_group_that_appears_unreported_takes_its_traffic_back_by_age() {
    let mut bed = Bed::new();
    bed.stranger(Method::Set, ROUTERS, attributes(SIX));
    let at = bed.up(spec(SIX));
    bed.send(at, ADDRESS);
    let lid = bed.seats[at].facts.lid;
    bed.sa.remove_port(lid);
    bed.sa.add_port(rpcrdma_ipoib::small_sa::SubnetPort {
        gid: bed.seats[at].facts.gid,
        lid,
        mtu: Mtu::M2048,
    });
    bed.stranger(Method::Set, GROUP, attributes(SIX));
    assert_eq!(bed.send(at, ADDRESS), Fate::Routed);
    bed.pass(Timing::default().cache_ms);
    bed.send(at, ADDRESS);
    assert_eq!(lids(&bed, at).last(), Some(&mgid(GROUP)));
}

#[test]
fn section_9_a_report_of_deletion_is_no_proof() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    bed.join(at, ADDRESS);
    let event = rpcrdma_ipoib::mad::Event::GroupDeleted(mgid(GROUP));
    let notice = rpcrdma_ipoib::mad::Notice::of_event(event, bed.sa.lid(), mgid("fe80::1"));
    let report =
        rpcrdma_ipoib::mad::emit::whole(Method::Report, rpcrdma_ipoib::mad::Tid(9), &notice);
    let before = bed.seats[at].asked_of(Method::Get, GROUP);
    bed.seats[at].node.mad_came(bed.now, bed.sa.lid(), &report);
    bed.run();
    assert_eq!(bed.seats[at].asked_of(Method::Get, GROUP), before + 1);
    assert_eq!(bed.seats[at].asked_of(Method::Set, GROUP), 1);
    assert_eq!(bed.send(at, ADDRESS), Fate::Sent);
    let answered = |deed: &Deed| matches!(deed, Deed::Asked(it) if it.method == Method::ReportResp);
    assert!(bed.seats[at].deeds.iter().any(answered));
}

#[test]
fn section_9_a_group_that_ended_is_noticed_by_its_senders() {
    let mut bed = Bed::new();
    bed.stranger(Method::Set, GROUP, attributes(SIX));
    let at = bed.up(spec(SIX));
    bed.send(at, ADDRESS);
    bed.stranger(Method::Delete, GROUP, attributes(SIX));
    // there might be routers: that is asked first
    assert_eq!(bed.send(at, ADDRESS), Fate::Waiting);
    assert_eq!(bed.send(at, ADDRESS), Fate::Dropped(Drop::NoListener));
}

#[test]
fn section_9_few_datagrams_wait_and_not_for_long() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    bed.deaf = true;
    let limit = Limits::default().waiting;
    for _ in 0..limit {
        assert_eq!(bed.send(at, ADDRESS), Fate::Waiting);
    }
    assert_eq!(bed.send(at, ADDRESS), Fate::Dropped(Drop::WaitingFull));
    bed.pass(Timing::default().wait_ms);
    assert_eq!(drops(&bed, at, Drop::WaitedTooLong), limit as u64);
    assert_eq!(bed.seats[at].node.status().waiting_octets, 0);
}

#[test]
fn section_9_what_waits_for_a_failing_group_is_dropped_and_counted() {
    let mut bed = Bed::new();
    bed.stranger(
        Method::Set,
        GROUP,
        Attributes {
            q_key: QKey(5),
            ..attributes(SIX)
        },
    );
    let at = bed.up(spec(SIX));
    bed.send(at, ADDRESS);
    assert_eq!(drops(&bed, at, Drop::NotJoined), 1);
    assert_eq!(bed.send(at, ADDRESS), Fate::Dropped(Drop::NotJoined));
}

#[test]
fn section_9_send_only_full_member_where_offered_and_allowed() {
    for (offered, allowed, expected) in [(true, true, 8), (true, false, 4), (false, true, 4)] {
        let mut bed = Bed::new();
        bed.sa.offer_send_only_full(offered);
        bed.stranger(Method::Set, GROUP, attributes(SIX));
        let send_only_full = allowed;
        let at = bed.seat(Settings {
            send_only_full,
            ..Settings::default()
        });
        bed.add_link(at, spec(SIX));
        bed.send(at, ADDRESS);
        assert_eq!(bed.held(at, GROUP), expected);
    }
}

#[test]
fn section_9_an_idle_sender_leaves() {
    let mut bed = Bed::new();
    bed.stranger(Method::Set, GROUP, attributes(SIX));
    let at = bed.up(spec(SIX));
    bed.send(at, ADDRESS);
    bed.pass(Timing::default().idle_ms - 1_000);
    assert_eq!(bed.held(at, GROUP), 4);
    bed.pass(2_000);
    assert_eq!(bed.held(at, GROUP), 0);
}

#[test]
fn what_is_no_group_of_the_link_is_refused() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    let node = &mut bed.seats[at].node;
    for (address, refusal) in [
        ("10.0.0.1", Refusal::NotMulticast),
        ("ff02::1", Refusal::OtherFamily),
    ] {
        assert_eq!(node.join(bed.now, LINK, ip(address)), Err(refusal));
        assert_eq!(node.leave(bed.now, LINK, ip(address)), Err(refusal));
        assert_eq!(node.ledger().refusals().of(refusal), 2);
    }
}

#[test]
fn a_datagram_of_the_other_ip_is_refused() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    let node = &mut bed.seats[at].node;
    for address in ["ff02::1", "fe80::1"] {
        let sent = node.send(bed.now, LINK, ip(address), Vec::new());
        assert_eq!(sent, Err(Refusal::OtherFamily));
    }
}

#[test]
fn a_datagram_beyond_the_links_mtu_is_dropped() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    let node = &mut bed.seats[at].node;
    let all = ip("255.255.255.255");
    let sent = node.send(bed.now, LINK, all, vec![0; 2048]);
    assert_eq!(sent, Ok(Fate::Sent));
    let sent = node.send(bed.now, LINK, all, vec![0; 2049]);
    assert_eq!(sent, Ok(Fate::Dropped(Drop::TooLong)));
}

#[test]
fn a_datagram_on_a_link_that_is_down_is_dropped() {
    let mut bed = Bed::bare();
    let at = bed.up(spec(SIX));
    assert_eq!(bed.send(at, ADDRESS), Fate::Dropped(Drop::LinkDown));
}

#[test]
fn groups_are_bounded() {
    let mut bed = Bed::new();
    let limits = Limits {
        groups: 4,
        ..Limits::default()
    };
    let at = bed.seat(Settings {
        limits,
        ..Settings::default()
    });
    bed.add_link(at, spec(SIX));
    for last in 1..=3 {
        bed.join(at, &format!("239.0.0.{last}"));
    }
    assert_eq!(bed.send(at, ADDRESS), Fate::Dropped(Drop::GroupsFull));
    bed.join(at, "255.255.255.255");
    let more = bed.seats[at].node.join(bed.now, LINK, ip("239.0.0.5"));
    assert_eq!(more, Err(Refusal::GroupsFull));
    let link = bed.seats[at].node.link_status(LINK).expect("a link");
    assert_eq!(link.addresses, 4, "what is refused is not remembered");
}

#[test]
fn what_is_only_remembered_makes_room() {
    let mut bed = Bed::new();
    let limits = Limits {
        groups: 8,
        ..Limits::default()
    };
    let at = bed.seat(Settings {
        limits,
        ..Settings::default()
    });
    bed.add_link(at, spec(SIX));
    for last in 1..=200 {
        bed.send(at, &format!("239.0.0.{last}"));
        assert!(bed.seats[at].node.groups().count() <= 8);
    }
    bed.join(at, "239.1.1.1");
    assert_eq!(bed.held(at, "ff12:401b:8006::f01:101"), 1);
}
