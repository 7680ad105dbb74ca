//! Link sections 7 and 10: router mode.

use crate::bed::{Bed, SIX, attributes, mgid, spec};
use rpcrdma_ipoib::mad::{Method, Status};
use rpcrdma_ipoib::settings::{Limits, LinkSpec, Settings, Timing};
use rpcrdma_ipoib::trouble::{Cause, Operation, Refusal};

const ROUTERS: &str = "ff12:401b:8006::2";

const fn router(spec: LinkSpec) -> LinkSpec {
    LinkSpec {
        router: true,
        ..spec
    }
}

#[test]
fn section_7_the_all_router_group_is_created_and_joined() {
    let mut bed = Bed::new();
    let at = bed.up(router(spec(SIX)));
    assert_eq!(bed.held(at, ROUTERS), 1);
    assert!(bed.seats[at].attached.contains(&mgid(ROUTERS)));
    let plain = bed.up(spec(SIX));
    assert_eq!(bed.held(plain, ROUTERS), 0);
}

#[test]
fn section_10_a_and_b_every_group_on_the_list_is_joined_as_non_member() {
    let mut bed = Bed::new();
    for last in 1..=20 {
        bed.stranger(
            Method::Set,
            &format!("ff12:401b:8006::f00:{last:x}"),
            attributes(SIX),
        );
    }
    let other = "ff12:401b:ffff::f00:1";
    bed.stranger(
        Method::Set,
        other,
        attributes(rpcrdma_ipoib::pkey::PKey::DEFAULT),
    );
    let at = bed.up(router(spec(SIX)));
    for last in 1..=20 {
        let group = format!("ff12:401b:8006::f00:{last:x}");
        assert_eq!(bed.held(at, &group), 2);
        assert!(bed.seats[at].attached.contains(&mgid(&group)));
    }
    assert_eq!(bed.held(at, other), 0);
    assert_eq!(bed.held(at, "ff12:401b:8006::ffff:ffff"), 1);
}

#[test]
fn section_10_c_a_group_that_is_created_later_is_joined() {
    let mut bed = Bed::new();
    let at = bed.up(router(spec(SIX)));
    bed.stranger(Method::Set, "ff12:401b:8006::f00:1", attributes(SIX));
    assert_eq!(bed.held(at, "ff12:401b:8006::f00:1"), 2);
}

#[test]
fn section_10_a_report_that_is_lost_is_made_up_for() {
    let mut bed = Bed::new();
    let at = bed.up(router(spec(SIX)));
    let lid = bed.seats[at].facts.lid;
    // the report goes to nobody
    bed.seats[at].facts.lid = rpcrdma_ipoib::gid::Lid(77);
    bed.stranger(Method::Set, "ff12:401b:8006::f00:1", attributes(SIX));
    bed.seats[at].facts.lid = lid;
    assert_eq!(bed.held(at, "ff12:401b:8006::f00:1"), 0);
    bed.pass(Timing::default().verify_ms);
    assert_eq!(bed.held(at, "ff12:401b:8006::f00:1"), 2);
}

#[test]
fn section_10_a_router_does_not_keep_a_group() {
    let mut bed = Bed::new();
    let at = bed.up(router(spec(SIX)));
    let group = "ff12:401b:8006::f00:1";
    bed.stranger(Method::Set, group, attributes(SIX));
    bed.stranger(Method::Delete, group, attributes(SIX));
    assert!(bed.sa.group(mgid(group)).is_none());
    assert!(!bed.seats[at].attached.contains(&mgid(group)));
    let its = bed.seats[at]
        .node
        .groups()
        .find(|it| it.mgid == mgid(group));
    assert!(its.is_none_or(|it| !it.routed && it.held.is_none()));
}

#[test]
fn section_10_user_and_router_want_one_group() {
    let mut bed = Bed::new();
    let at = bed.up(router(spec(SIX)));
    let group = "ff12:401b:8006::f00:1";
    bed.stranger(Method::Set, group, attributes(SIX));
    bed.join(at, "239.0.0.1");
    assert_eq!(bed.held(at, group), 3);
    bed.leave(at, "239.0.0.1");
    assert_eq!(bed.held(at, group), 2);
    assert!(bed.seats[at].attached.contains(&mgid(group)));
}

#[test]
fn section_11_groups_beyond_the_routers_limit_are_told_in_the_background() {
    let mut bed = Bed::new();
    let limits = Limits {
        routed: 2,
        ..Limits::default()
    };
    let at = bed.seat(Settings {
        limits,
        ..Settings::default()
    });
    bed.add_link(at, router(spec(SIX)));
    for last in 1..=3 {
        bed.stranger(
            Method::Set,
            &format!("ff12:401b:8006::f00:{last}"),
            attributes(SIX),
        );
    }
    let routed = bed.seats[at].node.groups().filter(|it| it.routed).count();
    assert_eq!(routed, 2);
    let failure = *bed.seats[at].failures().last().expect("a failure");
    assert_eq!(
        (failure.operation, failure.cause),
        (Operation::Join, Cause::Limit)
    );
    assert_eq!(
        (failure.refusal, failure.background),
        (Some(Refusal::RoutedFull), true)
    );
}

#[test]
fn section_11_a_routers_join_that_fails_is_told_in_the_background() {
    let mut bed = Bed::new();
    let at = bed.up(router(spec(SIX)));
    let group = "ff12:401b:8006::f00:1";
    bed.statuses = vec![Status::RequestDenied];
    bed.stranger(Method::Set, group, attributes(SIX));
    let failures = bed.seats[at].failures();
    let [failure] = failures.as_slice() else {
        panic!("one failure: {failures:?}");
    };
    assert_eq!((failure.mgid, failure.code), (Some(mgid(group)), 0x0700));
    assert!(failure.background);
    bed.pass(2_000);
    assert_eq!(bed.held(at, group), 2);
}
