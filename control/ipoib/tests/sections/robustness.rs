//! The subnet manager moves, restarts, falls silent and is busy; the port comes and goes. In each case the link is up again
//! with all its groups, and nothing joined twice or leaked.

use crate::bed::{Bed, Deed, LINK, MANAGER, SIX, attributes, gid, mgid, spec};
use rpcrdma_ipoib::gid::Lid;
use rpcrdma_ipoib::link::{LinkState, Phase};
use rpcrdma_ipoib::mad::{Event, Method, Notice, Status, Tid, emit};
use rpcrdma_ipoib::mgid::Scope;
use rpcrdma_ipoib::node::{Fate, Output};
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_ipoib::qkey::QKey;
use rpcrdma_ipoib::settings::{Limits, Timing};
use rpcrdma_ipoib::small_sa::{Capacity, Partition, SmallSa, SubnetPort};
use rpcrdma_ipoib::trouble::{Ignored, Refusal, Trouble};

const GROUP: &str = "ff12:401b:8006::f01:203";
const BROADCAST: &str = "ff12:401b:8006::ffff:ffff";
const ADDRESS: &str = "239.1.2.3";

fn joined() -> (Bed, usize) {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    bed.join(at, ADDRESS);
    assert_restored(&bed, at);
    (bed, at)
}

fn assert_restored(bed: &Bed, at: usize) {
    assert_eq!((bed.held(at, BROADCAST), bed.held(at, GROUP)), (1, 1));
    let seat = &bed.seats[at];
    let attached = [mgid(BROADCAST), mgid(GROUP)];
    assert!(attached.iter().all(|it| seat.attached.contains(it)));
    assert_eq!(seat.attached.len(), 2);
    let link = seat.node.link_status(LINK).expect("a link");
    assert_eq!((link.state, link.phase), (LinkState::Up, Phase::Up));
    let lid = seat.facts.lid;
    let traps: Vec<_> = bed.sa.subscriptions().filter(|it| it.0 == lid).collect();
    assert_eq!(traps, [(lid, 66), (lid, 67)]);
}

#[test]
fn a_subnet_manager_that_forgot_everything_without_a_word() {
    let (mut bed, at) = joined();
    bed.sa.forget();
    bed.pass(Timing::default().verify_ms);
    assert_restored(&bed, at);
    let told = |it: &Trouble| matches!(it, Trouble::Forgotten { .. });
    assert_eq!(
        bed.seats[at]
            .troubles()
            .iter()
            .filter(|it| told(it))
            .count(),
        1
    );
}

#[test]
fn a_client_reregister_event() {
    let (mut bed, at) = joined();
    bed.sa.forget();
    bed.seats[at].node.reregister(bed.now);
    bed.run();
    assert_restored(&bed, at);
}

#[test]
fn the_subnet_manager_moves() {
    let (mut bed, at) = joined();
    let mut other = SmallSa::new(Lid(2), gid(2), Capacity::default());
    other.set_partition(Partition::of_all(PKey::DEFAULT));
    other.set_partition(Partition::of_all(SIX));
    other.add_port(SubnetPort {
        gid: bed.seats[at].facts.gid,
        lid: bed.seats[at].facts.lid,
        mtu: bed.seats[at].facts.mtu,
    });
    bed.sa = other;
    bed.administer(Scope::LINK_LOCAL, attributes(SIX));
    bed.seats[at].facts.sm_lid = Lid(2);
    bed.tell_port(at);
    assert_restored(&bed, at);
}

#[test]
fn the_ports_lid_changes() {
    let (mut bed, at) = joined();
    let facts = bed.seats[at].facts.clone();
    bed.sa.remove_port(facts.lid);
    bed.sa.add_port(SubnetPort {
        gid: facts.gid,
        lid: Lid(33),
        mtu: facts.mtu,
    });
    bed.seats[at].facts.lid = Lid(33);
    bed.tell_port(at);
    assert_restored(&bed, at);
}

#[test]
fn the_port_goes_down_and_comes_up() {
    let (mut bed, at) = joined();
    let facts = bed.seats[at].facts.clone();
    bed.sa.remove_port(facts.lid);
    bed.seats[at].facts.active = false;
    bed.tell_port(at);
    let link = bed.seats[at].node.link_status(LINK).expect("a link");
    assert_eq!(
        (link.state, link.error),
        (LinkState::Down, Some(Refusal::PortInactive))
    );
    let lost = Deed::Output(Output::Member {
        link: LINK,
        mgid: mgid(GROUP),
        joined: false,
    });
    assert!(bed.seats[at].deeds.contains(&lost));
    bed.pass(10_000);
    bed.sa.add_port(SubnetPort {
        gid: facts.gid,
        lid: facts.lid,
        mtu: facts.mtu,
    });
    bed.seats[at].facts.active = true;
    bed.tell_port(at);
    assert_restored(&bed, at);
    let opened = |deed: &&Deed| matches!(deed, Deed::Output(Output::Open(_)));
    assert_eq!(bed.seats[at].deeds.iter().filter(opened).count(), 1);
}

#[test]
fn the_p_key_table_changes() {
    let (mut bed, at) = joined();
    let table = bed.seats[at].facts.p_keys.clone();
    bed.seats[at].facts.p_keys = vec![PKey::DEFAULT];
    bed.tell_port(at);
    let link = bed.seats[at].node.link_status(LINK).expect("a link");
    assert_eq!(
        (link.state, link.error),
        (LinkState::Down, Some(Refusal::OutsidePartition))
    );
    assert!(bed.seats[at].attached.is_empty());
    bed.seats[at].facts.p_keys = table;
    bed.tell_port(at);
    assert_restored(&bed, at);
}

#[test]
fn the_p_key_moves_within_the_table() {
    let (mut bed, at) = joined();
    bed.seats[at].facts.p_keys.reverse();
    bed.tell_port(at);
    assert_restored(&bed, at);
    let indices: Vec<_> = bed.seats[at]
        .deeds
        .iter()
        .filter_map(|deed| match deed {
            Deed::Output(Output::Open(opening)) => Some(opening.p_key_index),
            _ => None,
        })
        .collect();
    assert_eq!(indices, [1, 0]);
}

#[test]
fn the_ports_gid_changes() {
    let (mut bed, at) = joined();
    let facts = bed.seats[at].facts.clone();
    bed.sa.remove_port(facts.lid);
    bed.seats[at].facts.gid = gid(77);
    bed.sa.add_port(SubnetPort {
        gid: gid(77),
        lid: facts.lid,
        mtu: facts.mtu,
    });
    bed.tell_port(at);
    assert_restored(&bed, at);
}

#[test]
fn the_administrator_changes_the_broadcast_group() {
    let (mut bed, at) = joined();
    bed.sa.forget();
    let q_key = QKey(0x8000_7777);
    let other = rpcrdma_ipoib::group::Attributes {
        q_key,
        ..attributes(SIX)
    };
    bed.administer(Scope::LINK_LOCAL, other);
    bed.seats[at].node.reregister(bed.now);
    bed.pass(1_000);
    assert_restored(&bed, at);
    let keys: Vec<_> = bed.seats[at]
        .deeds
        .iter()
        .filter_map(|deed| match deed {
            Deed::Output(Output::Open(opening)) => Some(opening.q_key),
            _ => None,
        })
        .collect();
    assert_eq!(keys.last(), Some(&q_key));
    let group = bed.sa.group(mgid(GROUP)).expect("a group");
    assert_eq!(group.attributes.q_key, q_key);
}

#[test]
fn lost_replies_are_asked_for_again() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    bed.deaf = true;
    bed.join(at, ADDRESS);
    bed.pass(400);
    bed.deaf = false;
    bed.pass(300);
    assert_eq!(bed.held(at, GROUP), 1);
}

#[test]
fn a_busy_subnet_manager_is_left_alone_for_a_while() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    bed.statuses = vec![Status::NoResources];
    bed.join(at, ADDRESS);
    assert_eq!(bed.seats[at].asked_of(Method::Get, GROUP), 1);
    bed.pass(374);
    assert_eq!(bed.seats[at].asked_of(Method::Get, GROUP), 1);
    bed.pass(300);
    assert_eq!(bed.held(at, GROUP), 1);
}

#[test]
fn duplicate_replies_are_counted_and_nothing_else() {
    let mut bed = Bed::new();
    bed.twice = true;
    let at = bed.up(spec(SIX));
    bed.join(at, ADDRESS);
    assert_restored(&bed, at);
    let ignored = bed.seats[at].node.ledger().ignored_things();
    assert!(ignored.of(Ignored::LateAnswer) >= 6);
    assert_eq!(ignored.total(), ignored.of(Ignored::LateAnswer));
}

#[test]
fn a_late_duplicate_of_a_join_does_not_hold_the_group() {
    let (mut bed, at) = joined();
    bed.leave(at, ADDRESS);
    let join = rpcrdma_ipoib::mad::McMemberTemplate {
        join_state: Some(rpcrdma_ipoib::join::JoinState::FULL),
        ..attributes(SIX).creating(mgid(GROUP), bed.seats[at].facts.gid)
    };
    let late = emit::request(Method::Set, Tid(1), &join);
    bed.sa.answer(bed.seats[at].facts.lid, &late);
    bed.run();
    assert_eq!(bed.held(at, GROUP), 1);
    bed.pass(Timing::default().linger_ms + 100);
    assert_eq!(bed.held(at, GROUP), 0);
}

#[test]
fn what_others_joined_is_not_left() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    bed.join(at, ADDRESS);
    let non = rpcrdma_ipoib::mad::McMemberTemplate {
        join_state: Some(rpcrdma_ipoib::join::JoinState::NON),
        ..rpcrdma_ipoib::group::naming(mgid(GROUP), bed.seats[at].facts.gid)
    };
    bed.stranger(Method::Set, GROUP, attributes(SIX));
    bed.sa.answer(
        bed.seats[at].facts.lid,
        &emit::request(Method::Set, Tid(1), &non),
    );
    bed.pass(Timing::default().verify_ms);
    bed.leave(at, ADDRESS);
    bed.pass(Timing::default().linger_ms + 100);
    assert_eq!(bed.held(at, GROUP), 2);
}

#[test]
fn everything_is_undone_on_exit() {
    let (mut bed, at) = joined();
    bed.seats[at].node.close(bed.now);
    bed.run();
    assert!(bed.seats[at].node.is_closed());
    assert_eq!(bed.sa.members().count(), 0);
    assert_eq!(bed.sa.subscriptions().count(), 0);
    assert!(bed.seats[at].attached.is_empty());
    assert_eq!(bed.seats[at].node.wake(), None);
    let joined = bed.seats[at]
        .node
        .join(bed.now, LINK, "239.0.0.9".parse().expect("one"));
    assert_eq!(joined, Err(Refusal::Closing));
}

#[test]
fn an_exit_does_not_wait_for_ever() {
    let (mut bed, at) = joined();
    bed.deaf = true;
    bed.seats[at].node.close(bed.now);
    bed.run();
    assert!(!bed.seats[at].node.is_closed());
    bed.pass(Timing::default().close_ms);
    assert!(bed.seats[at].node.is_closed());
}

#[test]
fn a_storm_of_reports_becomes_one_look_at_the_list() {
    let (mut bed, at) = joined();
    let limits = Limits::default();
    let asked = bed.seats[at].deeds.len();
    let missing = mgid("ff12:401b:8006::f0f:f0f");
    let notice = Notice::of_event(Event::GroupDeleted(missing), MANAGER, gid(1));
    for tid in 0..10_000 {
        let report = emit::whole(Method::Report, Tid(tid), &notice);
        bed.seats[at].node.mad_came(bed.now, MANAGER, &report);
    }
    bed.run();
    let seat = &bed.seats[at];
    // two reports of the groups that came to be were taken up before
    let beyond = 10_000 - (u64::from(limits.reports.burst) - 2);
    assert_eq!(
        seat.node.ledger().ignored_things().of(Ignored::ReportStorm),
        beyond
    );
    let troubles = seat.troubles();
    assert_eq!(
        troubles.iter().filter(|it| **it == Trouble::Storm).count(),
        1
    );
    bed.pass(1_000);
    let lists = |deed: &&Deed| matches!(deed, Deed::Asked(it) if it.method == Method::GetTable);
    let later = &bed.seats[at].deeds[asked..];
    assert_eq!(later.iter().filter(lists).count(), 1);
    assert_restored(&bed, at);
}

#[test]
fn what_a_storm_hid_is_found() {
    let (mut bed, at) = joined();
    let notice = Notice::of_event(
        Event::GroupDeleted(mgid("ff12:401b:8006::f0f:f0f")),
        MANAGER,
        gid(1),
    );
    let report = emit::whole(Method::Report, Tid(1), &notice);
    bed.send(at, "239.5.5.5");
    for _ in 0..1_000 {
        bed.seats[at].node.mad_came(bed.now, MANAGER, &report);
    }
    bed.stranger(Method::Set, "ff12:401b:8006::f05:505", attributes(SIX));
    assert_eq!(bed.held(at, "ff12:401b:8006::f05:505"), 0);
    bed.pass(1_000);
    assert_eq!(bed.held(at, "ff12:401b:8006::f05:505"), 4);
}

#[test]
fn a_thousand_groups_have_few_requests_on_their_way() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    bed.deaf = true;
    for group in 0..1_000_u32 {
        let address = std::net::Ipv4Addr::from(0xEF00_0000 + group);
        let node = &mut bed.seats[at].node;
        node.join(bed.now, LINK, address.into()).expect("room");
        assert!(node.status().requests.0 <= Limits::default().outstanding);
    }
    bed.deaf = false;
    bed.pass(1_000);
    assert_eq!(bed.seats[at].attached.len(), 1_001);
}

#[test]
fn an_exit_without_a_subnet_manager_is_short() {
    let (mut bed, at) = joined();
    bed.seats[at].facts.active = false;
    bed.tell_port(at);
    bed.seats[at].node.close(bed.now);
    bed.run();
    assert!(bed.seats[at].node.is_closed());
    assert!(bed.seats[at].attached.is_empty());
}

#[test]
fn a_word_about_a_queue_pair_that_is_no_more() {
    let (mut bed, at) = joined();
    bed.held_back = Some(Vec::new());
    bed.join(at, "239.9.9.9");
    // another index for the P_Key: another queue pair, while the attachment is not answered
    bed.seats[at].facts.p_keys.reverse();
    bed.tell_port(at);
    let words = bed.held_back.take().expect("words");
    let [late, rest @ ..] = words.as_slice() else {
        panic!("an attachment that was not answered");
    };
    bed.seats[at].node.attached(bed.now, *late, Ok(()));
    let ignored = bed.seats[at].node.ledger().ignored_things();
    assert_eq!(ignored.of(Ignored::StaleWord), 1);
    for word in rest {
        bed.seats[at].attached.insert(word.mgid);
        bed.seats[at].node.attached(bed.now, *word, Ok(()));
    }
    bed.run();
    bed.leave(at, "239.9.9.9");
    assert_restored(&bed, at);
}

#[test]
fn a_silent_subnet_manager_degrades_the_link_and_stops_nothing() {
    let (mut bed, at) = joined();
    bed.deaf = true;
    bed.pass(Timing::default().verify_ms + 20_000);
    let link = bed.seats[at].node.link_status(LINK).expect("a link");
    assert_eq!(link.state, LinkState::Degraded);
    assert_eq!(bed.send(at, ADDRESS), Fate::Sent);
    bed.deaf = false;
    bed.pass(2 * Timing::default().pause_ms);
    assert_restored(&bed, at);
}
