//! What is emitted, compared with what was recorded, and read again.

use crate::vector::{Vector, load};
use crate::vectors::LIMIT;
use proptest::prelude::*;
use rpcrdma_ipoib::gid::{Gid, Guid, Lid};
use rpcrdma_ipoib::join::JoinState;
use rpcrdma_ipoib::mad::{
    AttributeId, ClassPortInfo, Event, InformInfo, Mad, McLeft, McMember, McMemberTemplate, Method,
    Notice, PacketLife, PathTemplate, Rate, Selector, Status, Tid, emit,
};
use rpcrdma_ipoib::mgid::Scope;
use rpcrdma_ipoib::mtu::Mtu;
use rpcrdma_ipoib::packet::{self, HardwareAddress, Packet, Udp};
use rpcrdma_ipoib::pkey::PKey;
use rpcrdma_ipoib::qkey::QKey;
use std::net::SocketAddr;

fn vector(folder: &str, name: &str) -> Vector {
    let mut vectors = load(folder).into_iter();
    vectors
        .find(|vector| vector.name == name)
        .unwrap_or_else(|| panic!("no vector {name}"))
}

fn broadcast() -> Gid {
    Gid(0xFF12_401B_FFFF_0000_0000_0000_FFFF_FFFF_u128.to_be_bytes())
}

fn node_1() -> Gid {
    Gid::of_port(0xFE80 << 48, Guid(0x10_0005))
}

/// A join as OpenSM's own test client asks for it.
#[test]
fn a_join_is_that_of_another_client() {
    let template = McMemberTemplate {
        mgid: Some(broadcast()),
        port_gid: Some(node_1()),
        join_state: Some(JoinState::FULL),
        ..McMemberTemplate::default()
    };
    let mut theirs = vector("mad", "join-request").octets;
    // It leaves values in fields that its mask does not name, and behind the record.
    theirs[56 + 42] = 0;
    theirs[56 + 48] &= 0x0F;
    theirs[56 + 52..].fill(0);
    assert_eq!(emit::request(Method::Set, Tid(3), &template), theirs[..]);
}

#[test]
fn a_path_request_is_that_of_another_client() {
    let template = PathTemplate {
        slid: Some(Lid(3)),
        dlid: Some(Lid(4)),
        ..PathTemplate::default()
    };
    let theirs = vector("mad", "path-table-request").octets;
    let ours = emit::request(Method::GetTable, Tid(0x0174_89C1), &template);
    assert_eq!(ours, theirs[..]);
}

#[test]
fn a_bare_request_is_that_of_another_client() {
    let ours = emit::bare(Method::Get, Tid(0x13BD_0689), AttributeId::CLASS_PORT_INFO);
    assert_eq!(ours, vector("mad", "class-port-info-request").octets[..]);
}

/// OpenSM answered this subscription with success, and listed it as it was meant.
#[test]
fn a_subscription_is_the_one_that_was_accepted() {
    let ours = emit::whole(Method::Set, Tid(0x66), &InformInfo::of_trap(66, true));
    let theirs = vector("mad", "inform-reply").octets;
    assert_eq!(ours[56..92], theirs[56..92]);
}

#[test]
fn a_report_is_understood_and_acknowledged() {
    let octets = vector("mad", "report-created").octets;
    let mad = Mad::parse(&octets, LIMIT).unwrap();
    let notice: Notice = mad.record().unwrap();
    let mgid = Gid(0xFF12_401B_8006_0000_0000_0000_0000_01AA_u128.to_be_bytes());
    assert_eq!(notice.event(), Some(Event::GroupCreated(mgid)));
    let answer = emit::acknowledge(&mad, &notice);
    assert_eq!(answer[3], 0x86);
    assert_eq!(
        answer[8..16],
        octets[8..16],
        "the reporter's own transaction, all of it"
    );
    assert_eq!(Mad::parse(&answer, LIMIT).unwrap().record(), Ok(notice));
}

#[test]
fn a_notice_of_ours_is_that_of_opensm_but_for_what_it_left_in_reserved_fields() {
    let octets = vector("mad", "report-deleted").octets;
    let notice: Notice = Mad::parse(&octets, LIMIT).unwrap().record().unwrap();
    let sm = Gid::of_port(0xFE80 << 48, Guid(0x10_0001));
    let event = notice.event().unwrap();
    assert_eq!(notice, Notice::of_event(event, Lid(1), sm));
}

#[test]
fn what_a_leave_leaves() {
    let octets = vector("mad", "leave-reply-remains").octets;
    let left: McLeft = Mad::parse(&octets, LIMIT).unwrap().record().unwrap();
    assert_eq!(left.remains, JoinState::FULL);
    let octets = vector("mad", "leave-reply").octets;
    let left: McLeft = Mad::parse(&octets, LIMIT).unwrap().record().unwrap();
    assert!(left.remains.is_none());
}

#[test]
fn opensm_offers_what_it_is_known_to() {
    let octets = vector("mad", "class-port-info-reply").octets;
    let info: ClassPortInfo = Mad::parse(&octets, LIMIT).unwrap().record().unwrap();
    assert!(info.has_multicast() && info.has_send_only_full_member());
    let answer = emit::reply(
        &Mad::parse(&octets, LIMIT).unwrap(),
        Status::Ok,
        Some(&info),
    );
    assert_eq!(answer[56..64], octets[56..64]);
}

#[test]
fn a_table_of_ours_has_as_many_records_as_were_put_in() {
    let request = emit::request(Method::GetTable, Tid(7), &McMemberTemplate::default());
    let request = Mad::parse(&request, LIMIT).unwrap();
    let octets = vector("mad", "join-reply").octets;
    let member: McMember = Mad::parse(&octets, LIMIT).unwrap().record().unwrap();
    for count in [0, 1, 3, 4, 1000] {
        let mut reply = Vec::new();
        emit::reply_table(&request, &vec![member; count], &mut reply);
        let reply = Mad::parse(&reply, 1 << 20).unwrap();
        let table = reply.table::<McMember>().unwrap();
        assert_eq!((table.cut_bytes(), table.count()), (0, count));
    }
}

fn selector() -> impl Strategy<Value = Selector> {
    proptest::sample::select(vec![
        Selector::Greater,
        Selector::Less,
        Selector::Exactly,
        Selector::Best,
    ])
}

fn member() -> impl Strategy<Value = McMember> {
    let group = (
        any::<[u8; 16]>(),
        any::<[u8; 16]>(),
        any::<u32>(),
        any::<u16>(),
    );
    let sizes = (1_u8..=5, any::<u8>(), any::<u16>(), 0_u8..64, 0_u8..64);
    let header = (0_u8..16, 0_u32..1 << 20, any::<u8>());
    let own = (0_u8..16, 0_u8..16, any::<bool>());
    (group, sizes, header, own).prop_map(|(group, sizes, header, own)| McMember {
        mgid: Gid(group.0),
        port_gid: Gid(group.1),
        q_key: QKey(group.2),
        mlid: Lid(group.3),
        mtu: Mtu::from_code(sizes.0).unwrap(),
        t_class: sizes.1,
        p_key: PKey(sizes.2),
        rate: Rate::from_code(sizes.3),
        packet_life: PacketLife::from_code(sizes.4),
        sl: header.0,
        flow_label: header.1,
        hop_limit: header.2,
        scope: Scope::from_bits(own.0),
        join_state: JoinState::from_bits(own.1),
        proxy_join: own.2,
    })
}

/// A member's template with any of its components left out, and its selectors any.
fn template() -> impl Strategy<Value = McMemberTemplate> {
    (member(), selector(), any::<u16>()).prop_map(|(member, by, named)| {
        let all = member.template();
        let there = |bit: u16| named >> bit & 1 == 1;
        McMemberTemplate {
            mgid: all.mgid.filter(|_| there(0)),
            port_gid: all.port_gid.filter(|_| there(1)),
            q_key: all.q_key.filter(|_| there(2)),
            mlid: all.mlid.filter(|_| there(3)),
            mtu: there(4).then_some((by, member.mtu)),
            t_class: all.t_class.filter(|_| there(5)),
            p_key: all.p_key.filter(|_| there(6)),
            rate: there(7).then_some((by, member.rate)),
            packet_life: there(8).then_some((by, member.packet_life)),
            sl: all.sl.filter(|_| there(9)),
            flow_label: all.flow_label.filter(|_| there(10)),
            hop_limit: all.hop_limit.filter(|_| there(11)),
            scope: all.scope.filter(|_| there(12)),
            join_state: all.join_state.filter(|_| there(13)),
            proxy_join: all.proxy_join.filter(|_| there(14)),
        }
    })
}

fn socket() -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
    let port = || 1_u16..;
    let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>(), port(), port()).prop_map(|(a, b, p, q)| {
        // From a host of 10/8: what is from elsewhere need not be one.
        let from = [10, a[1], a[2], a[3]];
        (SocketAddr::from((from, p)), SocketAddr::from((b, q)))
    });
    let v6 = (any::<[u8; 16]>(), any::<[u8; 16]>(), port(), port()).prop_map(|(mut a, b, p, q)| {
        a[0] = 0xFD;
        (SocketAddr::from((a, p)), SocketAddr::from((b, q)))
    });
    prop_oneof![v4, v6]
}

proptest! {
    #[test]
    fn members_come_back(member in member()) {
        let request = emit::request(Method::Get, Tid(1), &member.template());
        let request = Mad::parse(&request, LIMIT).unwrap();
        let reply = emit::reply(&request, Status::Ok, Some(&member));
        let reply = Mad::parse(&reply, LIMIT).unwrap();
        prop_assert_eq!(reply.method, Method::GetResp);
        prop_assert_eq!(reply.record(), Ok(member));
    }

    #[test]
    fn templates_come_back(template in template(), tid in any::<u32>()) {
        let octets = emit::request(Method::Set, Tid(tid), &template);
        let mad = Mad::parse(&octets, LIMIT).unwrap();
        prop_assert_eq!((mad.tid, mad.template()), (Tid(tid), Ok(template)));
    }

    #[test]
    fn datagrams_come_back(
        (from, to) in socket(),
        hop_limit in any::<u8>(),
        payload in proptest::collection::vec(any::<u8>(), 0..2100),
    ) {
        let sent = Udp { from, to, hop_limit, payload: &payload };
        let mut frame = vec![0xA5; 7];
        prop_assert!(packet::emit_udp(&mut frame, &sent));
        prop_assert_eq!(Packet::parse(&frame), Ok(Packet::Udp(sent)));
    }

    #[test]
    fn hardware_addresses_come_back(octets in any::<[u8; 20]>()) {
        let address = HardwareAddress::of_octets(&octets);
        prop_assert_eq!(HardwareAddress::of_octets(&address.octets()), address);
        prop_assert_eq!(address.octets()[0], octets[0] & 0xC0);
        prop_assert_eq!(&address.octets()[1..], &octets[1..]);
    }
}

#[test]
fn no_datagram_between_families_or_beyond_a_packet() {
    let v4: SocketAddr = "10.0.0.1:1".parse().unwrap();
    let v6: SocketAddr = "[fd00::1]:1".parse().unwrap();
    let payload = vec![0; 65_536 - 28];
    let refused = |from, to, payload| {
        let mut frame = vec![1];
        let datagram = Udp {
            from,
            to,
            hop_limit: 1,
            payload,
        };
        !packet::emit_udp(&mut frame, &datagram) && frame.is_empty()
    };
    assert!(refused(v4, v6, &[]));
    assert!(refused(v4, v4, &payload));
    assert!(!refused(v4, v4, &payload[1..]));
}
