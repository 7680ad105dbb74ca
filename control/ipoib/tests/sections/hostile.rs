//! Short, long and contradictory datagrams; answers about groups that were not asked about; strangers. Counted, never fatal.

use crate::bed::{Bed, LINK, MANAGER, SIX, attributes, mgid, spec};
use rpcrdma_ipoib::gid::{Gid, Lid};
use rpcrdma_ipoib::link::LinkState;
use rpcrdma_ipoib::mad::{
    ClassPortInfo, Event, Mad, McMember, Method, Notice, Status, TABLE_BYTES, Tid, emit,
};
use rpcrdma_ipoib::node::Output;
use rpcrdma_ipoib::sa::Chance;
use rpcrdma_ipoib::settings::LinkSpec;
use rpcrdma_ipoib::trouble::Ignored;

fn ignored(bed: &Bed, at: usize, why: Ignored) -> u64 {
    bed.seats[at].node.ledger().ignored_things().of(why)
}

const fn router(spec: LinkSpec) -> LinkSpec {
    LinkSpec {
        router: true,
        ..spec
    }
}

/// A node that has asked about a group, and its question.
fn asking() -> (Bed, usize, Vec<u8>) {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    let node = &mut bed.seats[at].node;
    node.join(bed.now, LINK, "239.1.2.3".parse().expect("an address"))
        .expect("room");
    let question = std::iter::from_fn(|| node.take()).find_map(|output| match output {
        Output::Mad { bytes, .. } => Some(bytes),
        _ => None,
    });
    (bed, at, question.expect("a question"))
}

#[test]
fn every_beginning_of_an_answer() {
    let (mut bed, at, question) = asking();
    let lid = bed.seats[at].facts.lid;
    bed.stranger(Method::Set, "ff12:401b:8006::f01:203", attributes(SIX));
    let answer = bed.sa.answer(lid, &question).expect("an answer");
    for length in 0..100 {
        bed.seats[at]
            .node
            .mad_came(bed.now, MANAGER, &answer[..length]);
    }
    assert_eq!(ignored(&bed, at, Ignored::BrokenMad), 100);
    bed.seats[at].node.mad_came(bed.now, MANAGER, &answer);
    bed.run();
    assert_eq!(bed.held(at, "ff12:401b:8006::f01:203"), 1);
}

#[test]
fn an_answer_about_another_group() {
    let (mut bed, at, question) = asking();
    let mad = Mad::parse(&question, TABLE_BYTES).expect("a datagram");
    let group = bed
        .sa
        .group(mgid("ff12:401b:8006::ffff:ffff"))
        .expect("a group");
    let attributes = group.attributes;
    let record = McMember {
        mgid: mgid("ff12:401b:8006::666"),
        port_gid: Gid::default(),
        q_key: attributes.q_key,
        mlid: attributes.mlid,
        mtu: attributes.mtu,
        t_class: 0,
        p_key: attributes.p_key,
        rate: attributes.rate,
        packet_life: attributes.packet_life,
        sl: 0,
        flow_label: 0,
        hop_limit: 0,
        scope: attributes.scope,
        join_state: rpcrdma_ipoib::join::JoinState::NONE,
        proxy_join: false,
    };
    let answer = emit::reply(&mad, Status::Ok, Some(&record));
    bed.seats[at].node.mad_came(bed.now, MANAGER, &answer);
    assert_eq!(ignored(&bed, at, Ignored::OtherRecord), 1);
    let unknown = |it: &rpcrdma_ipoib::node::GroupStatus| it.mgid != record.mgid;
    assert!(bed.seats[at].node.groups().all(|it| unknown(&it)));
    // the true answer is waited for all the same
    bed.pass(1_000);
    assert_eq!(bed.held(at, "ff12:401b:8006::f01:203"), 1);
}

#[test]
fn an_answer_of_another_kind() {
    let (mut bed, at, question) = asking();
    let mad = Mad::parse(&question, TABLE_BYTES).expect("a datagram");
    let info = ClassPortInfo {
        capability_mask: 0,
        capability_mask_2: 0,
        response_time: 0,
    };
    let mut answer = emit::reply(&mad, Status::Ok, Some(&info));
    answer[17] = 0x01;
    bed.seats[at].node.mad_came(bed.now, MANAGER, &answer);
    assert_eq!(ignored(&bed, at, Ignored::LateAnswer), 1);
    bed.pass(1_000);
    assert_eq!(bed.held(at, "ff12:401b:8006::f01:203"), 1);
}

#[test]
fn an_mlid_that_is_no_groups() {
    let (mut bed, at, question) = asking();
    let lid = bed.seats[at].facts.lid;
    bed.stranger(Method::Set, "ff12:401b:8006::f01:203", attributes(SIX));
    let mut answer = bed.sa.answer(lid, &question).expect("an answer");
    // the MLID, behind 56 octets of headers, two GIDs and the Q_Key
    answer[56 + 36..56 + 38].copy_from_slice(&[0x00, 0x07]);
    bed.seats[at].node.mad_came(bed.now, MANAGER, &answer);
    bed.run();
    let failure = bed.seats[at].failures()[0];
    assert_eq!(failure.cause, rpcrdma_ipoib::trouble::Cause::Malformed);
    bed.pass(2_000);
    assert_eq!(bed.held(at, "ff12:401b:8006::f01:203"), 1);
}

#[test]
fn strangers_are_not_heard() {
    let (mut bed, at, question) = asking();
    let mad = Mad::parse(&question, TABLE_BYTES).expect("a datagram");
    let answer = emit::reply::<McMember>(&mad, Status::NoRecords, None);
    let notice = Notice::of_event(
        Event::GroupCreated(mgid("ff12:401b:8006::1")),
        MANAGER,
        Gid::default(),
    );
    let report = emit::whole(Method::Report, Tid(1), &notice);
    for octets in [&answer, &report] {
        bed.seats[at].node.mad_came(bed.now, Lid(66), octets);
    }
    assert_eq!(ignored(&bed, at, Ignored::Stranger), 2);
    assert_eq!(bed.seats[at].node.take(), None);
}

#[test]
fn requests_and_reports_of_other_things_are_counted() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    let request = emit::bare(
        Method::Get,
        Tid(1),
        rpcrdma_ipoib::mad::AttributeId::CLASS_PORT_INFO,
    );
    bed.seats[at].node.mad_came(bed.now, MANAGER, &request);
    assert_eq!(ignored(&bed, at, Ignored::OtherMad), 1);
    let notice = Notice::of_event(
        Event::PortInService(Gid::default()),
        MANAGER,
        Gid::default(),
    );
    let report = emit::whole(Method::Report, Tid(1), &notice);
    bed.seats[at].node.mad_came(bed.now, MANAGER, &report);
    assert_eq!(ignored(&bed, at, Ignored::OtherReport), 1);
}

#[test]
fn words_of_the_device_that_nobody_asked_for() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    let to = rpcrdma_ipoib::node::Attachment {
        link: LINK,
        mgid: mgid("ff12:401b:8006::1"),
        mlid: Lid(0xC000),
    };
    let node = &mut bed.seats[at].node;
    node.attached(bed.now, to, Ok(()));
    node.detached(bed.now, to, Ok(()));
    node.queue_opened(bed.now, LINK, Ok(5));
    node.queue_opened(bed.now, rpcrdma_ipoib::node::LinkId(9), Ok(5));
    assert_eq!(ignored(&bed, at, Ignored::StaleWord), 4);
}

/// Answers with octets changed and ends cut off, whatever they then say: nothing of it is fatal, and once answers are
/// whole again everything is as it should be.
#[test]
fn garbled_answers() {
    for seed in 0..100 {
        let mut bed = Bed::new();
        bed.garbled = Some((Chance::new(seed), 50));
        let at = bed.up(router(spec(SIX)));
        for group in 1..=5 {
            bed.join(at, &format!("239.0.0.{group}"));
            bed.send(at, &format!("239.0.1.{group}"));
            bed.pass(2_000);
        }
        bed.pass(60_000);
        bed.garbled = None;
        bed.pass(60_000);
        assert_eq!(bed.seats[at].attached.len(), 7, "seed {seed}");
        for group in 1..=5 {
            let group = format!("ff12:401b:8006::f00:{group}");
            assert_eq!(bed.held(at, &group), 1, "seed {seed}");
        }
        let link = bed.seats[at].node.link_status(LINK).expect("a link");
        assert_eq!(link.state, LinkState::Up, "seed {seed}");
    }
}

/// Any octets at all, as datagrams and as frames.
#[test]
fn noise() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    let mut chance = Chance::new(1);
    let origin = rpcrdma_ipoib::node::Origin {
        lid: MANAGER,
        gid: None,
        group: None,
        qpn: 1,
    };
    let node = &mut bed.seats[at].node;
    for _ in 0..20_000 {
        let length = chance.below(300);
        let mut octets: Vec<u8> = (0..length)
            .map(|_| chance.word().to_be_bytes()[0])
            .collect();
        // half of them get as far as the class
        if chance.below(2) == 0 && octets.len() > 4 {
            octets[..3].copy_from_slice(&[1, 3, 2]);
        }
        node.mad_came(bed.now, MANAGER, &octets);
        node.frame_came(bed.now, LINK, &origin, &octets);
    }
    let ignored = node.ledger().ignored_things().total();
    assert!(ignored >= 39_000, "{ignored}");
    let link = node.link_status(LINK).expect("a link");
    assert_eq!(link.state, LinkState::Up);
}
