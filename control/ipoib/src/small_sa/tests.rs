//! What a real subnet manager was seen to answer, row by row, by the bytes.

use super::*;
use crate::gid::Guid;
use crate::group::{Attributes, naming};
use crate::mad::{InformInfo, MAD_BYTES, Selector, Tid};
use crate::mgid::{Family, Scope, broadcast};
use crate::qkey::QKey;
use crate::settings::Creation;

const PREFIX: u64 = 0xFE80_0000_0000_0000;

fn gid(port: u64) -> Gid {
    Gid::of_port(PREFIX, Guid(port))
}

fn group(last: u8) -> Gid {
    let mut mgid = broadcast(Family::V4, Scope::LINK_LOCAL, PKey::DEFAULT);
    mgid.0[12..].copy_from_slice(&[0, 0, 0, last]);
    mgid
}

/// The subnet of the tests: ports 2 and 3; partition 0x7FFF of all, 6 of port 2 and, limited, port 3, 9 of nobody.
fn subnet() -> SmallSa {
    let mut sa = SmallSa::new(Lid(1), gid(1), Capacity::default());
    for port in [2, 3] {
        sa.add_port(SubnetPort {
            gid: gid(port.into()),
            lid: Lid(port),
            mtu: Mtu::M2048,
        });
    }
    sa.set_partition(Partition::of_all(PKey::DEFAULT));
    let mut six = Partition::of_all(PKey(6));
    six.everybody = false;
    six.full.insert(gid(2));
    six.limited.insert(gid(3));
    sa.set_partition(six.clone());
    six.p_key = PKey(9);
    six.full.clear();
    six.limited.clear();
    sa.set_partition(six);
    for p_key in [0xFFFF, 6, 9].map(PKey) {
        let mgid = broadcast(Family::V4, Scope::LINK_LOCAL, p_key);
        sa.preconfigure(mgid, attributes(p_key)).unwrap();
    }
    sa
}

fn attributes(p_key: PKey) -> Attributes {
    Attributes::of_creation(&Creation::default(), p_key)
}

fn ask(sa: &mut SmallSa, from: u16, method: Method, asked: &McMemberTemplate) -> Vec<u8> {
    let octets = emit::request(method, Tid(7), asked);
    sa.answer(Lid(from), &octets).unwrap()
}

fn status(reply: &[u8]) -> u16 {
    Mad::parse(reply, TABLE_BYTES).unwrap().status.word()
}

fn state(sa: &mut SmallSa, from: u16, method: Method, mgid: Gid, state: u8) -> u16 {
    let join_state = Some(JoinState::from_bits(state));
    let asked = McMemberTemplate {
        join_state,
        ..naming(mgid, gid(from.into()))
    };
    status(&ask(sa, from, method, &asked))
}

fn create(sa: &mut SmallSa, from: u16, mgid: Gid) -> u16 {
    let join_state = Some(JoinState::FULL);
    let creating = attributes(PKey::DEFAULT).creating(mgid, gid(from.into()));
    status(&ask(
        sa,
        from,
        Method::Set,
        &McMemberTemplate {
            join_state,
            ..creating
        },
    ))
}

fn held(sa: &SmallSa, mgid: Gid, port: u64) -> u8 {
    let of = |(group, member, _): &(Gid, Gid, JoinState)| (*group, *member) == (mgid, gid(port));
    sa.members()
        .find(of)
        .map_or(0, |(_, _, state)| state.bits())
}

#[test]
fn query_of_a_missing_group_or_of_a_partition_that_the_port_lacks() {
    let mut sa = subnet();
    let locked = broadcast(Family::V4, Scope::LINK_LOCAL, PKey(9));
    for mgid in [group(1), locked] {
        let mgid = Some(mgid);
        let asked = McMemberTemplate {
            mgid,
            ..McMemberTemplate::default()
        };
        assert_eq!(status(&ask(&mut sa, 2, Method::Get, &asked)), 0x0300);
    }
}

#[test]
fn minimal_joins_add_up() {
    let mut sa = subnet();
    sa.tell_kinds(true);
    let mgid = broadcast(Family::V4, Scope::LINK_LOCAL, PKey::DEFAULT);
    for kind in [1, 2, 4, 8] {
        assert_eq!(state(&mut sa, 2, Method::Set, mgid, kind), 0);
    }
    assert_eq!(held(&sa, mgid, 2), 0xF);
    let own = ask(&mut sa, 2, Method::Get, &naming(mgid, gid(2)));
    let record: McMember = Mad::parse(&own, TABLE_BYTES).unwrap().record().unwrap();
    assert_eq!(
        (record.join_state.bits(), record.q_key),
        (0xF, QKey(0x8000_0B1B))
    );
}

#[test]
fn what_a_join_names_must_agree() {
    let mut sa = subnet();
    let mgid = broadcast(Family::V4, Scope::LINK_LOCAL, PKey::DEFAULT);
    let join = McMemberTemplate {
        join_state: Some(JoinState::FULL),
        ..naming(mgid, gid(2))
    };
    let wrong = [
        McMemberTemplate {
            q_key: Some(QKey(1)),
            ..join
        },
        McMemberTemplate {
            p_key: Some(PKey(6)),
            ..join
        },
        McMemberTemplate {
            sl: Some(3),
            ..join
        },
        McMemberTemplate {
            t_class: Some(3),
            ..join
        },
        McMemberTemplate {
            mtu: Some((Selector::Greater, Mtu::M2048)),
            ..join
        },
        McMemberTemplate {
            rate: Some((Selector::Greater, Rate::GBPS_10)),
            ..join
        },
    ];
    for asked in wrong {
        assert_eq!(
            status(&ask(&mut sa, 2, Method::Set, &asked)),
            0x0200,
            "{asked:?}"
        );
    }
    let mtu = Some((Selector::Greater, Mtu::M1024));
    let right = McMemberTemplate { mtu, ..join };
    assert_eq!(status(&ask(&mut sa, 2, Method::Set, &right)), 0);
}

#[test]
fn a_limited_member_may_join_a_full_group() {
    let mut sa = subnet();
    let mgid = broadcast(Family::V4, Scope::LINK_LOCAL, PKey(6));
    assert_eq!(state(&mut sa, 3, Method::Set, mgid, 1), 0);
}

#[test]
fn no_group_is_created_by_who_does_not_keep_it() {
    let mut sa = subnet();
    for kind in [2, 4] {
        assert_eq!(state(&mut sa, 2, Method::Set, group(1), kind), 0x0200);
    }
}

#[test]
fn no_group_is_created_of_the_minimal_components() {
    let mut sa = subnet();
    assert_eq!(state(&mut sa, 2, Method::Set, group(1), 1), 0x0600);
}

#[test]
fn a_wrong_prefix_is_refused() {
    let mut sa = subnet();
    let other = Gid::of_port(PREFIX + 1, Guid(2));
    let join_state = Some(JoinState::FULL);
    let asked = McMemberTemplate {
        join_state,
        ..naming(group(1), other)
    };
    assert_eq!(status(&ask(&mut sa, 2, Method::Set, &asked)), 0x0500);
}

#[test]
fn an_mtu_below_the_broadcast_groups_is_granted() {
    let mut sa = subnet();
    let mtu = Mtu::M512;
    let small = Attributes {
        mtu,
        ..attributes(PKey::DEFAULT)
    };
    let asked = McMemberTemplate {
        join_state: Some(JoinState::FULL),
        ..small.creating(group(1), gid(2))
    };
    assert_eq!(status(&ask(&mut sa, 2, Method::Set, &asked)), 0);
    assert_eq!(sa.group(group(1)).unwrap().attributes.mtu, Mtu::M512);
}

#[test]
fn leaves() {
    let mut sa = subnet();
    assert_eq!(create(&mut sa, 2, group(1)), 0);
    assert_eq!(state(&mut sa, 2, Method::Delete, group(1), 2), 0x0200);
    assert_eq!(state(&mut sa, 3, Method::Delete, group(1), 1), 0x0200);
    assert_eq!(state(&mut sa, 2, Method::Delete, group(2), 1), 0x0200);
    assert_eq!(state(&mut sa, 2, Method::Delete, group(1), 1), 0);
    assert!(sa.group(group(1)).is_none());
}

#[test]
fn a_leave_of_less_than_was_joined_leaves_the_rest_behind() {
    let mut sa = subnet();
    assert_eq!(create(&mut sa, 2, group(1)), 0);
    assert_eq!(state(&mut sa, 2, Method::Set, group(1), 8), 0);
    assert_eq!(state(&mut sa, 2, Method::Delete, group(1), 1), 0);
    assert_eq!(held(&sa, group(1), 2), 8);
}

#[test]
fn the_last_full_member_takes_the_others_along() {
    let mut sa = subnet();
    assert_eq!(create(&mut sa, 2, group(1)), 0);
    assert_eq!(state(&mut sa, 3, Method::Set, group(1), 2), 0);
    assert_eq!(state(&mut sa, 2, Method::Delete, group(1), 1), 0);
    assert_eq!(sa.members().count(), 0);
    let mgid = broadcast(Family::V4, Scope::LINK_LOCAL, PKey::DEFAULT);
    assert_eq!(state(&mut sa, 2, Method::Set, mgid, 1), 0);
    assert_eq!(state(&mut sa, 2, Method::Delete, mgid, 1), 0);
    assert!(sa.group(mgid).is_some());
}

#[test]
fn reports_of_preconfigured_groups_prove_nothing() {
    let mut sa = subnet();
    for trap in [66, 67] {
        let inform = InformInfo::of_trap(trap, true);
        let octets = emit::whole(Method::Set, Tid(1), &inform);
        assert_eq!(status(&sa.answer(Lid(3), &octets).unwrap()), 0);
    }
    let mgid = broadcast(Family::V4, Scope::LINK_LOCAL, PKey::DEFAULT);
    assert_eq!(state(&mut sa, 2, Method::Set, mgid, 1), 0);
    assert_eq!(state(&mut sa, 2, Method::Delete, mgid, 1), 0);
    let mut events = Vec::new();
    while let Some((to, bytes)) = sa.next_report() {
        let notice: crate::mad::Notice = Mad::parse(&bytes, MAD_BYTES).unwrap().record().unwrap();
        events.push((to, notice.event().unwrap()));
    }
    let created = crate::mad::Event::GroupCreated(mgid);
    let deleted = crate::mad::Event::GroupDeleted(mgid);
    assert_eq!(events, [(Lid(3), created), (Lid(3), deleted)]);
    assert!(sa.group(mgid).is_some());
}

#[test]
fn a_restart_forgets() {
    let mut sa = subnet();
    let mgid = broadcast(Family::V4, Scope::LINK_LOCAL, PKey::DEFAULT);
    assert_eq!(create(&mut sa, 2, group(1)), 0);
    assert_eq!(state(&mut sa, 2, Method::Set, mgid, 1), 0);
    let octets = emit::whole(Method::Set, Tid(1), &InformInfo::of_trap(66, true));
    sa.answer(Lid(3), &octets);
    sa.forget();
    assert_eq!((sa.members().count(), sa.subscriptions().count()), (0, 0));
    assert!(sa.group(group(1)).is_none() && sa.group(mgid).is_some());
    let own = ask(&mut sa, 2, Method::Get, &naming(mgid, gid(2)));
    assert_eq!(status(&own), 0x0300);
}

#[test]
fn a_table_has_every_group_that_the_port_may_see() {
    let mut sa = subnet();
    for last in 1..=20 {
        assert_eq!(create(&mut sa, 2, group(last)), 0);
    }
    let reply = ask(&mut sa, 3, Method::GetTable, &McMemberTemplate::default());
    let mad = Mad::parse(&reply, TABLE_BYTES).unwrap();
    let records: Vec<_> = mad.table::<McMember>().unwrap().flatten().collect();
    assert_eq!(records.len(), 22);
    assert!(records.iter().all(|it| it.port_gid == Gid::default()));
}

#[test]
fn no_more_groups_than_lids() {
    let capacity = Capacity {
        groups: 4,
        ..Capacity::default()
    };
    let mut sa = SmallSa {
        capacity,
        ..subnet()
    };
    assert_eq!(create(&mut sa, 2, group(1)), 0);
    assert_eq!(create(&mut sa, 2, group(2)), 0x0100);
    assert_eq!(state(&mut sa, 2, Method::Delete, group(1), 1), 0);
    assert_eq!(create(&mut sa, 2, group(2)), 0);
}

#[test]
fn where_every_group_exists_a_sender_may_join_it() {
    let mut sa = subnet();
    sa.open_every_group(true);
    let mgid = Some(group(1));
    let asked = McMemberTemplate {
        mgid,
        ..McMemberTemplate::default()
    };
    assert_eq!(status(&ask(&mut sa, 2, Method::Get, &asked)), 0);
    assert_eq!(sa.group_count(), 3, "nothing was made of it yet");
    assert_eq!(state(&mut sa, 2, Method::Set, group(1), 4), 0);
    assert_eq!(held(&sa, group(1), 2), 4);
    assert_eq!(state(&mut sa, 3, Method::Set, group(1), 1), 0);
    assert_eq!(state(&mut sa, 3, Method::Delete, group(1), 1), 0);
    assert_eq!(held(&sa, group(1), 2), 4);
    assert_eq!(state(&mut sa, 2, Method::Delete, group(1), 4), 0);
    assert!(sa.group(group(1)).is_none());
    let own = ask(&mut sa, 2, Method::Get, &naming(group(1), gid(2)));
    assert_eq!(status(&own), 0x0300, "no member of it");
    let locked = broadcast(Family::V6, Scope::LINK_LOCAL, PKey(9));
    let mgid = Some(locked);
    let asked = McMemberTemplate {
        mgid,
        ..McMemberTemplate::default()
    };
    assert_eq!(status(&ask(&mut sa, 2, Method::Get, &asked)), 0x0300);
}
