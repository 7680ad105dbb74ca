//! Link sections 5 to 7: bring-up.

use crate::bed::{Bed, Deed, LINK, SIX, attributes, gid, ip, mgid, spec};
use rpcrdma_ipoib::group::Attributes;
use rpcrdma_ipoib::join::JoinState;
use rpcrdma_ipoib::link::{LinkState, Phase};
use rpcrdma_ipoib::mad::Method;
use rpcrdma_ipoib::mgid::{Family, Scope};
use rpcrdma_ipoib::mtu::Mtu;
use rpcrdma_ipoib::node::Output;
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_ipoib::qkey::QKey;
use rpcrdma_ipoib::settings::{Creation, LinkSpec, Settings};
use rpcrdma_ipoib::small_sa::Partition;
use rpcrdma_ipoib::trouble::{Cause, Operation, Refusal, Trouble};

const BROADCAST: &str = "ff12:401b:8006::ffff:ffff";

fn state(bed: &Bed, at: usize) -> (LinkState, Option<Refusal>) {
    let link = bed.seats[at].node.link_status(LINK).expect("a link");
    (link.state, link.error)
}

#[test]
fn section_6_a_limited_p_key_is_refused_with_the_reason() {
    let mut bed = Bed::new();
    let at = bed.seat(Settings::default());
    let node = &mut bed.seats[at].node;
    let refused = node.add_link(bed.now, spec(PKey(0x0006)));
    assert_eq!(refused, Err(Refusal::LimitedKey));
    assert_eq!(node.ledger().refusals().of(Refusal::LimitedKey), 1);
}

#[test]
fn section_5_the_ports_p_key_table_is_consulted() {
    let mut bed = Bed::new();
    let mut nine = Partition::of_all(PKey(0x8009));
    nine.everybody = false;
    nine.limited.insert(gid(11));
    bed.sa.set_partition(nine);
    for refusal in [Refusal::OutsidePartition, Refusal::LimitedMember] {
        let at = bed.up(spec(PKey(0x8009)));
        assert_eq!(state(&bed, at), (LinkState::Down, Some(refusal)));
        assert!(bed.seats[at].asked(Method::Get).is_empty());
    }
}

#[test]
fn section_7_the_link_local_scope_is_looked_up_first_and_then_wider_ones() {
    let mut bed = Bed::bare();
    let six = LinkSpec {
        family: Family::V6,
        ..spec(SIX)
    };
    for (spec, signature, last) in [(spec(SIX), "401b", "ffff:ffff"), (six, "601b", "1")] {
        let at = bed.up(spec);
        let sought = bed.seats[at].asked(Method::Get);
        let sought: Vec<_> = sought.iter().filter_map(|it| it.mgid).collect();
        let expected = ["ff12", "ff15", "ff18", "ff1e"];
        let expected = expected.map(|scope| mgid(&format!("{scope}:{signature}:8006::{last}")));
        assert_eq!(sought, expected);
    }
}

#[test]
fn section_7_a_broadcast_group_of_a_wider_scope_sets_the_links() {
    let mut bed = Bed::bare();
    bed.administer(Scope::from_bits(5), attributes(SIX));
    let at = bed.up(spec(SIX));
    bed.join(at, "239.1.2.3");
    assert_eq!(state(&bed, at), (LinkState::Up, None));
    assert_eq!(bed.held(at, "ff15:401b:8006::ffff:ffff"), 1);
    assert_eq!(bed.held(at, "ff15:401b:8006::f01:203"), 1);
}

#[test]
fn section_7_the_groups_attributes_are_the_links() {
    let mut bed = Bed::bare();
    let creation = Creation {
        q_key: QKey(0x8765_4321),
        mtu: Mtu::M4096,
        sl: 3,
        t_class: 4,
        flow_label: 0xABCDE,
        hop_limit: 6,
        rate: 7,
        ..Creation::default()
    };
    bed.administer(Scope::LINK_LOCAL, Attributes::of_creation(&creation, SIX));
    let at = bed.seat_of(Settings::default(), Mtu::M4096);
    bed.add_link(at, spec(SIX));
    bed.send(at, "255.255.255.255");
    let opened = bed.seats[at].deeds.iter().find_map(|deed| match deed {
        Deed::Output(Output::Open(opening)) => Some(*opening),
        _ => None,
    });
    let opened = opened.expect("a queue pair");
    assert_eq!((opened.q_key, opened.mtu), (creation.q_key, Mtu::M4096));
    assert_eq!((opened.p_key, opened.p_key_index), (SIX, 1));
    let to = bed.seats[at].frames()[0];
    assert_eq!((to.gid, to.q_key), (mgid(BROADCAST), creation.q_key));
    assert_eq!((to.sl, to.t_class, to.rate), (3, 4, 7));
    assert_eq!((to.flow_label, to.hop_limit), (0xABCDE, 6));
}

#[test]
fn section_7_a_group_beyond_the_ports_mtu_is_refused() {
    let mut bed = Bed::bare();
    let mtu = Mtu::M4096;
    bed.administer(
        Scope::LINK_LOCAL,
        Attributes {
            mtu,
            ..attributes(SIX)
        },
    );
    let at = bed.up(spec(SIX));
    assert_eq!(
        state(&bed, at),
        (LinkState::Down, Some(Refusal::MtuBeyondPort))
    );
    assert!(bed.seats[at].asked(Method::Set).is_empty());
}

#[test]
fn section_6_1_an_mtu_of_neither_2048_nor_4096_is_refused() {
    for mtu in [Mtu::M256, Mtu::M512, Mtu::M1024] {
        let mut bed = Bed::bare();
        bed.administer(
            Scope::LINK_LOCAL,
            Attributes {
                mtu,
                ..attributes(SIX)
            },
        );
        let at = bed.up(spec(SIX));
        assert_eq!(state(&bed, at), (LinkState::Down, Some(Refusal::MtuUnfit)));
    }
}

#[test]
fn section_7_without_a_broadcast_group_there_is_no_link() {
    let mut bed = Bed::bare();
    let at = bed.up(spec(SIX));
    assert_eq!(
        state(&bed, at),
        (LinkState::Down, Some(Refusal::NoBroadcastGroup))
    );
    let failure = bed.seats[at].failures()[0];
    assert_eq!(
        (failure.operation, failure.cause),
        (Operation::Query, Cause::Rule)
    );
    assert_eq!(failure.refusal, Some(Refusal::NoBroadcastGroup));
    assert!(bed.seats[at].asked(Method::Set).is_empty());
}

#[test]
fn section_7_the_link_comes_up_when_the_administrator_makes_the_group() {
    let mut bed = Bed::bare();
    let at = bed.up(spec(SIX));
    bed.administer(Scope::LINK_LOCAL, attributes(SIX));
    bed.pass(10_000);
    assert_eq!(state(&bed, at), (LinkState::Up, None));
}

#[test]
fn section_7_a_report_of_the_group_ends_the_wait_for_it() {
    let mut bed = Bed::bare();
    let at = bed.up(spec(SIX));
    bed.pass(60_000);
    bed.stranger(Method::Set, BROADCAST, attributes(SIX));
    assert_eq!(state(&bed, at), (LinkState::Up, None));
}

#[test]
fn section_7_the_administrator_creates_it() {
    let mut bed = Bed::bare();
    let creation = Creation {
        q_key: QKey(0x8000_1234),
        sl: 2,
        ..Creation::default()
    };
    let at = bed.up(LinkSpec {
        create: Some(creation),
        ..spec(SIX)
    });
    assert_eq!(state(&bed, at), (LinkState::Up, None));
    let made = bed.sa.group(mgid(BROADCAST)).expect("a group").attributes;
    assert_eq!(
        (made.q_key, made.sl, made.mtu),
        (creation.q_key, 2, Mtu::M2048)
    );
    assert_eq!(bed.held(at, BROADCAST), 1);
    assert_eq!(bed.seats[at].asked_of(Method::Get, BROADCAST), 1);
}

#[test]
fn section_7_the_administrator_joins_what_is_there() {
    let mut bed = Bed::new();
    let q_key = QKey(0x8000_9999);
    let create = Some(Creation {
        q_key,
        ..Creation::default()
    });
    let at = bed.up(LinkSpec {
        create,
        ..spec(SIX)
    });
    let link = bed.seats[at].node.link_status(LINK).expect("a link");
    assert_eq!(
        link.attributes.expect("attributes").q_key,
        Creation::default().q_key
    );
}

#[test]
fn section_7_the_full_member_join_comes_before_anything_else() {
    let mut bed = Bed::new();
    let at = bed.seat(Settings::default());
    bed.deaf = true;
    bed.add_link(at, spec(SIX));
    for group in ["239.0.0.1", "239.0.0.2"] {
        bed.join(at, group);
    }
    bed.deaf = false;
    bed.pass(2_000);
    let seat = &bed.seats[at];
    let joins = seat.asked(Method::Set);
    assert_eq!(joins[0].mgid, Some(mgid(BROADCAST)));
    assert_eq!(joins[0].state, Some(JoinState::FULL));
    let join = seat.when(
        |deed| matches!(deed, Deed::Asked(it) if it.method == Method::Set && it.mgid.is_some()),
    );
    let open = seat.when(|deed| matches!(deed, Deed::Output(Output::Open(_))));
    let attach = seat.when(|deed| matches!(deed, Deed::Output(Output::Attach(_))));
    let other = seat.when(
        |deed| matches!(deed, Deed::Asked(it) if it.mgid == Some(mgid("ff12:401b:8006::f00:1"))),
    );
    assert!(join < open && open < attach && attach < other);
    assert_eq!(seat.attached.len(), 3);
}

#[test]
fn section_6_2_a_controlled_q_key_is_advised() {
    let mut bed = Bed::bare();
    let q_key = QKey(0x0B1B);
    bed.administer(
        Scope::LINK_LOCAL,
        Attributes {
            q_key,
            ..attributes(SIX)
        },
    );
    bed.administer(Scope::LINK_LOCAL, attributes(PKey::DEFAULT));
    let open = bed.up(spec(SIX));
    let controlled = bed.up(spec(PKey::DEFAULT));
    let advised = [Trouble::OpenQKey { link: LINK }];
    assert_eq!(bed.seats[open].troubles(), advised);
    assert_eq!(bed.seats[controlled].troubles(), []);
}

#[test]
fn the_states_of_a_link_are_told_with_the_last_error() {
    let mut bed = Bed::new();
    let at = bed.seat(Settings::default());
    bed.add_link(at, spec(SIX));
    bed.seats[at].facts.active = false;
    bed.tell_port(at);
    let told: Vec<_> = bed.seats[at]
        .deeds
        .iter()
        .filter_map(|deed| match deed {
            Deed::Output(Output::Link { state, error, .. }) => Some((*state, *error)),
            _ => None,
        })
        .collect();
    let inactive = Some(Refusal::PortInactive);
    let states: Vec<_> = told.iter().map(|it| it.0).collect();
    assert_eq!(states, [LinkState::Joining, LinkState::Up, LinkState::Down]);
    assert_eq!(told[2].1, inactive);
    assert_eq!(state(&bed, at), (LinkState::Down, inactive));
}

#[test]
fn section_7_a_device_without_a_queue_pair_is_told_and_tried_again() {
    let mut bed = Bed::new();
    let at = bed.seat(Settings::default());
    bed.seats[at].device = Err(12);
    bed.add_link(at, spec(SIX));
    let failure = bed.seats[at].failures()[0];
    assert_eq!((failure.operation, failure.code), (Operation::Open, 12));
    assert_eq!(state(&bed, at).0, LinkState::Down);
    bed.seats[at].device = Ok(());
    bed.pass(2_000);
    assert_eq!(state(&bed, at).0, LinkState::Up);
}

#[test]
fn links_of_both_ips_share_a_partition() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    let six = LinkSpec {
        family: Family::V6,
        create: Some(Creation::default()),
        ..spec(SIX)
    };
    bed.add_link(at, six);
    assert_eq!(bed.held(at, "ff12:601b:8006::1"), 1);
    let again = bed.seats[at].node.add_link(bed.now, six);
    assert_eq!(again, Err(Refusal::LinksFull));
    let phases = bed.seats[at].node.status().links;
    assert!(phases.iter().all(|link| link.phase == Phase::Up));
}

#[test]
fn a_link_that_is_not_there_is_refused() {
    let mut bed = Bed::new();
    let at = bed.seat(Settings::default());
    let joined = bed.seats[at].node.join(bed.now, LINK, ip("239.0.0.1"));
    assert_eq!(joined, Err(Refusal::UnknownLink));
}
