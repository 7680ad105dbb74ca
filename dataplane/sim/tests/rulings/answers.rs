//! How Replies go, and what happens to those that find no room.

use super::{call, call_with_rooms, error_in, one, two};
use rpcrdma_engine::{Access, CallError, Event, Setup, Side};
use rpcrdma_sim::scene::{Made, Scene, header, message, rpc, stage};
use rpcrdma_wire::{Body, ChunkLists, Direction, Emitter, ErrorBody, Procedure, Segment, Version};

fn lists<'m>(message: &'m [u8]) -> ChunkLists<'m> {
    match header(message).body {
        Body::Msg(lists) | Body::NoMsg(lists) => lists,
        other => panic!("{other:?}"),
    }
}

/// Octets written to each segment of a message's Write list, by chunk.
fn written(message: &[u8]) -> Vec<Vec<u32>> {
    let lengths = |chunk: &[rpcrdma_wire::RawSegment]| -> Vec<u32> {
        chunk.iter().map(|raw| raw.value().length).collect()
    };
    lists(message).writes.iter().map(lengths).collect()
}

fn server(version: Version) -> Setup {
    Setup {
        version_max: version,
        ..two(Side::Server)
    }
}

#[test]
fn v1_07_a_write_chunk_of_no_segments_asks_for_its_result_inline() {
    for version in [Version::One, Version::Two] {
        let stage = stage();
        let mut scene = Scene::new(&stage, server(version));
        scene.tell(&call_with_rooms(version, 1, &[&[]], None));
        let slot = scene.called();
        let head = rpc(Direction::Reply, 1, 24);
        scene.answer(slot, &[(&head, false), (b"result", true)]);
        let answer = scene.heard();
        assert_eq!(written(&answer), [Vec::<u32>::new()], "comes back empty");
        assert_eq!(header(&answer).payload[24..], *b"result\0\0");
    }
}

#[test]
fn v1_07_a_requester_gets_such_a_result_inline() {
    let stage = stage();
    let mut scene = Scene::new(&stage, one(Side::Client));
    let call = rpc(Direction::Call, 1, 40);
    let made = Made {
        parts: vec![(&call, false)],
        results: vec![0, 16],
        reply: None,
    };
    let slot = scene.submit(1, &made).expect("taken");
    let sent = scene.heard();
    let rooms: Vec<usize> = lists(&sent).writes.iter().map(<[_]>::len).collect();
    assert_eq!(rooms, [0, 1]);
    scene.tell(&echo(&sent, Procedure::Msg, |_| 0, 100));
    assert_eq!(scene.event(), Some(Event::Reply(slot)));
    let reply = scene.engine.reply(slot).expect("here");
    assert_eq!(reply.written, [None, Some(0), None, None]);
}

/// The Reply to a Call of the engine, with `fill` of a segment's length written to it.
fn echo(sent: &[u8], procedure: Procedure, fill: impl Fn(u32) -> u32, bytes: usize) -> Vec<u8> {
    let call = header(sent);
    let offered = lists(sent);
    let filled = |chunk: &[rpcrdma_wire::RawSegment]| -> Vec<Segment> {
        let values = chunk.iter().map(rpcrdma_wire::RawSegment::value);
        values
            .map(|segment| Segment {
                length: fill(segment.length),
                ..segment
            })
            .collect()
    };
    let emit = |header: &mut Emitter<'_>| {
        header.direction(Direction::Reply, None).end_reads();
        for chunk in offered.writes.iter() {
            header.write_chunk(filled(chunk).into_iter());
        }
        header.end_writes();
        header.reply_chunk(offered.reply.map(|chunk| filled(chunk).into_iter()));
    };
    let payload = match procedure {
        Procedure::Msg => rpc(Direction::Reply, call.xid.0, bytes),
        _ => Vec::new(),
    };
    message(call.version, procedure, (call.xid.0, 8), emit, &payload)
}

#[test]
fn v1_08_a_reply_chunk_of_no_segments_has_no_room() {
    let stage = stage();
    let mut scene = Scene::new(&stage, one(Side::Server));
    scene.tell(&call_with_rooms(Version::One, 1, &[], Some(&[])));
    let slot = scene.called();
    let long = rpc(Direction::Reply, 1, 5000);
    scene.answer(slot, &[(&long, false)]);
    assert_eq!(error_in(&scene.heard()), ErrorBody::Chunk);
    scene.tell(&call_with_rooms(Version::One, 2, &[], Some(&[])));
    let slot = scene.called();
    scene.answer(slot, &[(&rpc(Direction::Reply, 2, 24), false)]);
    assert_eq!(lists(&scene.heard()).reply.map(<[_]>::len), Some(0));
}

#[test]
fn v1_09_what_fits_nowhere_is_an_error_and_the_connection_is_kept() {
    let stage = stage();
    for version in [Version::One, Version::Two] {
        let mut scene = Scene::new(&stage, server(version));
        let error = match version {
            Version::One => ErrorBody::Chunk,
            Version::Two => ErrorBody::ReplyResource {
                segment: 0,
                length: 0,
            },
        };
        scene.tell(&call(version, 1));
        let slot = scene.called();
        scene.answer(slot, &[(&rpc(Direction::Reply, 1, 5000), false)]);
        assert_eq!(error_in(&scene.heard()), error);
        scene.tell(&call(version, 2));
        scene.called();
    }
}

/// REPLY_RESOURCE for a reply of 24 octets, results of `items` octets and `tail` octets more.
fn resource(rooms: &[&[u32]], reply: Option<&[u32]>, items: &[usize], tail: usize) -> (u32, u32) {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Server));
    let mut chunk = |lengths: &[u32]| -> Vec<Segment> {
        let expose = |&len: &u32| scene.expose(&vec![0; len as usize], Access::Write);
        lengths.iter().map(expose).collect()
    };
    let writes: Vec<Vec<Segment>> = rooms.iter().map(|room| chunk(room)).collect();
    let reply = reply.map(chunk);
    let writes: Vec<&[Segment]> = writes.iter().map(Vec::as_slice).collect();
    scene.tell(&call_with_rooms(Version::Two, 1, &writes, reply.as_deref()));
    let slot = scene.called();
    let head = rpc(Direction::Reply, 1, 24);
    let octets = vec![1; 10_000];
    let mut parts: Vec<(&[u8], bool)> = vec![(&head, false)];
    parts.extend(items.iter().map(|&len| (&octets[..len], true)));
    parts.push((&octets[..tail], false));
    scene.answer(slot, &parts);
    match error_in(&scene.heard()) {
        ErrorBody::ReplyResource { segment, length } => (segment, length),
        other => panic!("{other:?}"),
    }
}

#[test]
fn v2_11_names_the_last_segment_of_the_one_chunk_that_is_too_small() {
    // One segment of 100 for 150 octets.
    assert_eq!(resource(&[&[100]], None, &[152], 0), (1, 152));
    // Its last segment, with what is missing added.
    assert_eq!(resource(&[&[40, 30, 30]], None, &[152], 0), (3, 82));
    // Counted over all chunks.
    assert_eq!(
        resource(&[&[200, 8], &[8, 4]], None, &[152, 20], 0),
        (4, 12)
    );
    // The Reply chunk comes last; what is written to Write chunks is not in it.
    let long = 24 + 4800;
    assert_eq!(
        resource(&[&[200]], Some(&[2000, 2000]), &[152], 4800),
        (3, 2000 + (long - 4000))
    );
    // Unused Write chunks count too.
    assert_eq!(
        resource(&[&[200], &[8, 8]], Some(&[4000]), &[152], 4800),
        (4, 4000 + (long - 4000))
    );
}

#[test]
fn v2_11_says_nothing_where_it_cannot_be_told() {
    assert_eq!(resource(&[&[100], &[10]], None, &[152, 20], 0), (0, 0));
    assert_eq!(resource(&[&[100]], Some(&[1000]), &[152], 4800), (0, 0));
    assert_eq!(resource(&[&[200]], None, &[152], 4800), (0, 0));
    assert_eq!(resource(&[&[200]], Some(&[]), &[152], 4800), (0, 0));
    // One that is too small, and no Reply chunk where one is needed.
    assert_eq!(resource(&[&[100]], None, &[152], 4800), (0, 0));
}

#[test]
fn results_go_to_their_segments_in_order_and_unused_ones_come_back_empty() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Server));
    let a = [3, 0, 5, 9].map(|len| scene.expose(&vec![0; len], Access::Write));
    let b = [scene.expose(&[0; 4], Access::Write)];
    scene.tell(&call_with_rooms(Version::Two, 1, &[&a, &b], None));
    let slot = scene.called();
    let head = rpc(Direction::Reply, 1, 24);
    scene.answer(
        slot,
        &[(&head, false), (b"0123456789", true), (&[0, 0], false)],
    );
    let answer = scene.heard();
    assert_eq!(written(&answer), [vec![3, 0, 5, 2], vec![0]]);
    assert_eq!(scene.exposed(a[0]), b"012");
    assert_eq!(scene.exposed(a[2]), b"34567");
    assert_eq!(scene.exposed(a[3]), b"89\0\0\0\0\0\0\0");
    assert_eq!(
        header(&answer).payload,
        head,
        "its padding does not go inline"
    );
}

#[test]
fn a_short_reply_goes_beside_unused_chunks() {
    for version in [Version::One, Version::Two] {
        let stage = stage();
        let mut scene = Scene::new(&stage, server(version));
        let room = [scene.expose(&[0; 100], Access::Write)];
        let reply = [scene.expose(&[0; 100], Access::Write)];
        scene.tell(&call_with_rooms(version, 1, &[&room], Some(&reply)));
        let slot = scene.called();
        let head = rpc(Direction::Reply, 1, 32);
        scene.answer_with(slot, &head);
        let answer = scene.heard();
        assert_eq!(written(&answer), [[0]]);
        assert_eq!(header(&answer).payload, head);
        assert_eq!(scene.exposed(reply[0]), [0; 100], "nothing was written");
    }
}

#[test]
fn a_short_reply_is_written_where_chunks_leave_no_room_for_it() {
    let stage = stage();
    let mut scene = Scene::with_private_data(&stage, one(Side::Server), None);
    // With these the header has 1,008 octets, of the 1,024 that a message may have.
    let rooms = [15, 15, 14, 14].map(|segments| {
        let segment = |_| scene.expose(&[0; 8], Access::Write);
        (0..segments).map(segment).collect::<Vec<_>>()
    });
    let writes: Vec<&[Segment]> = rooms.iter().map(Vec::as_slice).collect();
    let reply = [scene.expose(&[0; 100], Access::Write)];
    scene.tell(&call_with_rooms(Version::One, 1, &writes, Some(&reply)));
    let slot = scene.called();
    let head = rpc(Direction::Reply, 1, 32);
    scene.answer_with(slot, &head);
    let answer = scene.heard();
    assert_eq!(answer.len(), 1_008);
    assert!(written(&answer).iter().flatten().all(|&octets| octets == 0));
    assert_eq!(scene.exposed(reply[0])[..32], head);
}

#[test]
fn v1_05_a_reply_with_other_lists_is_dropped() {
    let stage = stage();
    let mut scene = Scene::new(&stage, one(Side::Client));
    let call = rpc(Direction::Call, 1, 40);
    let made = Made {
        parts: vec![(&call, false)],
        results: vec![16],
        reply: Some(2000),
    };
    let slot = scene.submit(1, &made).expect("taken");
    let sent = scene.heard();
    // More than a segment holds; no lists at all; a Reply chunk that says more than it holds.
    scene.tell(&echo(&sent, Procedure::Msg, |len| len + 1, 24));
    scene.tell(&super::reply(Version::One, 1, 8));
    scene.tell(&echo(&sent, Procedure::NoMsg, |len| len + 1, 24));
    assert_eq!((scene.event(), scene.said()), (None, None));
    assert_eq!(scene.desk().device().counters.bad_replies, 3);
    assert_eq!(scene.engine.requester_credits(), (1, 1));
    // A header that cannot be used, in a Reply: dropped as well.
    let mut bad = super::reply(Version::One, 1, 8);
    bad[31] = 9;
    scene.tell(&bad);
    assert_eq!((scene.event(), scene.said()), (None, None));
    scene.tell(&echo(&sent, Procedure::Msg, |len| len, 24));
    assert_eq!(scene.event(), Some(Event::Reply(slot)));
}

#[test]
fn a_reply_to_no_call_is_dropped() {
    let stage = stage();
    let mut scene = Scene::new(&stage, one(Side::Client));
    scene.call(1, 40);
    scene.tell(&super::reply(Version::One, 2, 8));
    assert_eq!(scene.event(), None);
    assert_eq!(scene.desk().device().counters.strays, 1);
    scene.tell(&super::reply(Version::One, 1, 8));
    scene.tell(&super::reply(Version::One, 1, 8));
    assert!(matches!(scene.event(), Some(Event::Reply(_))));
    assert_eq!(scene.event(), None);
}

fn starved<'m>(scene: &mut Scene<'m>, xid: u32) -> Vec<u8> {
    scene.tell(&call(Version::Two, xid));
    let slot = scene.called();
    let long = rpc(Direction::Reply, xid, 5000);
    scene.answer(slot, &[(&long, false)]);
    let error = error_in(&scene.heard());
    assert!(matches!(error, ErrorBody::ReplyResource { .. }));
    long
}

#[test]
fn v2_20_retry_answered_from_kept_reply() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Server));
    let long = starved(&mut scene, 1);
    let room = scene.expose(&[0; 5000], Access::Write);
    scene.tell(&call_with_rooms(Version::Two, 1, &[], Some(&[room])));
    assert_eq!(scene.event(), None, "it does not run again");
    let answer = scene.heard();
    assert!(matches!(header(&answer).body, Body::NoMsg(_)));
    assert_eq!(scene.exposed(room), long);
    // It is gone now; the xid is free.
    scene.tell(&call(Version::Two, 1));
    scene.called();
}

#[test]
fn v2_20_a_retry_that_is_too_small_again_may_be_tried_again() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Server));
    let long = starved(&mut scene, 1);
    let small = scene.expose(&[0; 100], Access::Write);
    scene.tell(&call_with_rooms(Version::Two, 1, &[], Some(&[small])));
    let error = ErrorBody::ReplyResource {
        segment: 1,
        length: 5000,
    };
    assert_eq!(error_in(&scene.heard()), error);
    let room = scene.expose(&[0; 5000], Access::Write);
    scene.tell(&call_with_rooms(Version::Two, 1, &[], Some(&[room])));
    scene.heard();
    assert_eq!(scene.exposed(room), long);
}

#[test]
fn v2_20_spent_is_system() {
    let stage = stage();
    let setup = Setup {
        kept_ticks: 2,
        ..two(Side::Server)
    };
    let mut scene = Scene::new(&stage, setup);
    starved(&mut scene, 1);
    for _ in 0..3 {
        scene.with(|engine, desk| engine.tick(desk));
    }
    scene.tell(&call(Version::Two, 1));
    assert_eq!(error_in(&scene.heard()), ErrorBody::System);
    assert_eq!(scene.event(), None, "it is never run a second time");
    // Too large to be kept at all.
    let setup = Setup {
        kept_bytes: 100,
        ..two(Side::Server)
    };
    let mut scene = Scene::new(&stage, setup);
    starved(&mut scene, 1);
    scene.tell(&call(Version::Two, 1));
    assert_eq!(error_in(&scene.heard()), ErrorBody::System);
}

#[test]
fn v2_20_the_oldest_reply_makes_room() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Server));
    for xid in 1..=6 {
        starved(&mut scene, xid);
    }
    scene.tell(&call(Version::Two, 1));
    assert_eq!(error_in(&scene.heard()), ErrorBody::System);
    let room = scene.expose(&[0; 5000], Access::Write);
    scene.tell(&call_with_rooms(Version::Two, 6, &[], Some(&[room])));
    assert_eq!(scene.exposed(room), rpc(Direction::Reply, 6, 5000));
}

#[test]
fn v2_20_the_requester_tries_again_with_more_room() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Client));
    let slot = scene.call(1, 40);
    let first = scene.heard();
    let error = ErrorBody::ReplyResource {
        segment: 0,
        length: 0,
    };
    scene.tell(&super::error(2, 1, error));
    let needs = Event::NeedsRoom {
        slot,
        segment: 0,
        length: 0,
    };
    assert_eq!(scene.event(), Some(needs));
    // Its xid is still in flight.
    let made = Made::default();
    assert!(scene.submit(1, &made).is_err());
    let room = scene
        .with(|_, desk| rpcrdma_engine::Io::reserve(desk, 5000))
        .expect("memory");
    scene.with(|engine, desk| engine.resubmit(desk, slot, &[], Some(room)));
    let second = scene.heard();
    assert_eq!(header(&second).xid, header(&first).xid);
    let segment = lists(&second).reply.expect("a Reply chunk")[0].value();
    assert!(scene.write(segment, &rpc(Direction::Reply, 1, 5000)));
    scene.tell(&echo(&second, Procedure::NoMsg, |len| len, 0));
    assert_eq!(scene.event(), Some(Event::Reply(slot)));
    let body = scene.engine.reply(slot).expect("here").body;
    assert_eq!(scene.octets(body), rpc(Direction::Reply, 1, 5000));
}

#[test]
fn a_long_reply_that_is_no_reply_fails() {
    let stage = stage();
    let mut scene = Scene::new(&stage, two(Side::Client));
    let call = rpc(Direction::Call, 1, 40);
    let made = Made {
        parts: vec![(&call, false)],
        results: vec![],
        reply: Some(100),
    };
    let slot = scene.submit(1, &made).expect("taken");
    let sent = scene.heard();
    scene.tell(&echo(&sent, Procedure::NoMsg, |len| len, 0));
    let failed = Event::Failed(slot, CallError::System);
    assert_eq!(scene.event(), Some(failed));
}
