//! A call's way through both gateways: TCP, RDMA, TCP, and back. What arrives is what was sent.

mod pair;

use pair::tcp::{
    BACK, Gateways, NFS, NLM, READDIR, call, error, in_fragments, opaque, payload, read_call,
    read_reply, reply, words, write_call, write_reply,
};
use pair::{CLIENT, SERVER, setups};
use rpcrdma_engine::Setup;
use rpcrdma_upper::back::BackSettings;
use rpcrdma_wire::Version::{One, Two};

#[test]
fn small_calls_go_through_unchanged() {
    for (client, server) in [(Two, Two), (One, One), (Two, One)] {
        let mut all = Gateways::with(setups(client, server), &BACK);
        for xid in 0..100 {
            let arguments = opaque(&payload(32, 1));
            all.exchange(&call(xid, NFS, 1, &arguments), &reply(xid, &payload(88, 2)));
        }
        let (back, front) = all.counted();
        assert_eq!((back.records_in, back.records_out), (100, 100));
        assert_eq!((front.records_in, front.records_out), (100, 100));
        assert_eq!(front.backends_connected, 1);
        let version = all.pair.client.conn.version();
        assert_eq!(version, Some(client.min(server)));
        all.pair.end();
    }
}

#[test]
fn read_data_is_written_where_the_socket_takes_it_from() {
    for version in [One, Two] {
        let mut all = Gateways::with(setups(version, version), &BACK);
        let lengths = [1, 4095, 4096, 65_536, 1 << 20, (1 << 20) + 1];
        for (xid, len) in (1..).zip(lengths) {
            let data = payload(len, 3);
            let count = u32::try_from(len).unwrap();
            all.exchange(&read_call(xid, count), &read_reply(xid, &data));
        }
        let (back, front) = all.counted();
        // The one of one octet is cheaper inline.
        assert_eq!(back.results_restored, 5);
        assert_eq!(
            back.restored_bytes,
            4095 + 4096 + 65_536 + (1 << 20) + (1 << 20) + 1
        );
        let world = &all.pair.world;
        assert_eq!(
            world.halves[SERVER].counters.write_bytes,
            back.restored_bytes
        );
        assert_eq!(world.halves[CLIENT].counters.remote_invalidations, 5);
        assert!(front.payload_copies < 6 * 300, "{}", front.payload_copies);
        assert!(back.payload_copies < 6 * 300, "{}", back.payload_copies);
        all.pair.end();
    }
}

#[test]
fn write_data_is_read_from_where_the_socket_put_it() {
    for version in [One, Two] {
        let mut all = Gateways::with(setups(version, version), &BACK);
        let lengths = [1, 4095, 4096, 65_536, 1 << 20, (1 << 20) + 1];
        for (xid, len) in (1..).zip(lengths) {
            let count = u32::try_from(len).unwrap();
            all.exchange(&write_call(xid, &payload(len, 4)), &write_reply(xid, count));
        }
        let (back, front) = all.counted();
        assert_eq!(back.items_named, 6);
        let read = all.pair.world.halves[SERVER].counters.read_bytes;
        assert_eq!(read, 4095 + 4096 + 65_536 + (2 << 20) + 1);
        assert!(back.payload_copies < 6 * 1200, "{}", back.payload_copies);
        assert_eq!(
            front.payload_copies,
            6 * 52,
            "small replies are copied once"
        );
        all.pair.end();
    }
}

#[test]
fn failed_reads_give_their_room_back() {
    let mut all = Gateways::new();
    all.exchange(&read_call(1, 65_536), &reply(1, &words(&[70, 0])));
    all.exchange(&read_call(2, 65_536), &error(2, 4));
    all.exchange(&read_call(3, 65_536), &words(&[3, 1, 1, 1, 5]));
    all.exchange(&read_call(4, 65_536), &read_reply(4, &payload(10, 0)));
    all.exchange(&read_call(5, 65_536), &read_reply(5, &[]));
    all.exchange(&read_call(6, 0), &read_reply(6, &[]));
    all.pair.end();
}

#[test]
fn a_program_without_a_binding_works_at_any_length() {
    for version in [One, Two] {
        let mut all = Gateways::with(setups(version, version), &BACK);
        for (xid, len) in (1..).zip([0, 100, 900, 5000, 60_000]) {
            let (there, back) = (payload(len, 5), payload(len, 6));
            all.exchange(&call(xid, NLM, 9, &there), &reply(xid, &back));
        }
        let (back, front) = all.counted();
        assert_eq!((back.items_named, front.items_named), (0, 0));
        all.pair.end();
    }
}

#[test]
fn nothing_is_reduced_under_integrity_or_privacy() {
    for service in [2, 3] {
        let mut all = Gateways::new();
        let credential = opaque(&words(&[1, 0, 77, service, 0]));
        let data = payload(20_000, 7);
        let arguments = [opaque(&[9; 32]), words(&[0, 0, 20_000, 2]), opaque(&data)].concat();
        let head = words(&[1, 0, 2, NFS, 3, 7, 6]);
        let written = [head, credential, words(&[6, 0]), arguments].concat();
        all.exchange(&written, &read_reply(1, &data));
        let (back, front) = all.counted();
        assert_eq!(
            (back.items_named, front.items_named, back.results_restored),
            (0, 0, 0)
        );
        all.pair.end();
    }
}

#[test]
fn replies_come_in_any_order() {
    let mut all = Gateways::new();
    all.exchange(&call(1, NFS, 0, &[]), &reply(1, &[]));
    let xids = [20, 21, 22, 23, 24, 25, 26];
    for &xid in &xids {
        all.client.send(&read_call(xid, 30_000));
    }
    for &xid in &xids {
        assert_eq!(all.served(), read_call(xid, 30_000));
    }
    let order = [3, 0, 6, 1, 5, 2, 4];
    for place in order {
        let xid = xids[place];
        all.server()
            .send(&read_reply(xid, &payload(30_000, xid.to_be_bytes()[3])));
    }
    let mut seen = Vec::new();
    for _ in order {
        let answered = all.answered();
        let xid = u32::from_be_bytes(*answered.first_chunk().unwrap());
        assert!(answered == read_reply(xid, &payload(30_000, xid.to_be_bytes()[3])));
        seen.push(xid);
    }
    assert_eq!(seen, order.map(|place| xids[place]));
    all.pair.end();
}

#[test]
fn records_in_fragments_come_out_whole() {
    let mut all = Gateways::new();
    for (xid, fragment) in (1..).zip([3, 7, 100, 4000, 9000]) {
        let (there, back) = (write_call(xid, &payload(10_000, 1)), payload(10_000, 2));
        all.client.send_raw(&in_fragments(&there, fragment));
        assert!(all.served() == there);
        let back = reply(xid, &back);
        all.server().send_raw(&in_fragments(&back, fragment));
        // A WRITE cannot have such a reply: there was no room for it, so it is an error.
        assert_eq!(all.answered(), error(xid, 5));
        let there = read_call(xid + 100, 10_000);
        all.client.send_raw(&in_fragments(&there, fragment));
        assert!(all.served() == there);
        let back = read_reply(xid + 100, &payload(10_000, 3));
        all.server().send_raw(&in_fragments(&back, fragment));
        assert!(all.answered() == back);
    }
    all.pair.end();
}

#[test]
fn a_listing_longer_than_asked_for_gets_more_room() {
    let mut all = Gateways::new();
    let arguments = |count| [opaque(&[9; 32]), words(&[0, 0, 0, 0, count])].concat();
    all.exchange(
        &call(1, NFS, READDIR, &arguments(4096)),
        &reply(1, &payload(4000, 1)),
    );
    let call = call(2, NFS, READDIR, &arguments(4096));
    all.exchange(&call, &reply(2, &payload(20_000, 1)));
    let (back, _) = all.counted();
    assert_eq!((back.calls_enlarged, back.local_errors), (1, 0));
    let asked = all.pair.world.halves[SERVER].counters.retries_answered;
    assert_eq!(
        asked, 1,
        "from the reply that was kept, not by the server again"
    );
    all.pair.end();
}

#[test]
fn a_reply_that_no_room_is_enough_for_is_an_error() {
    for version in [One, Two] {
        let mut all = Gateways::with(setups(version, version), &BACK);
        all.client.send(&call(1, NLM, 9, &[]));
        all.served();
        all.server().send(&reply(1, &payload(1 << 19, 1)));
        assert_eq!(all.answered(), error(1, 5));
        all.exchange(&call(2, NFS, 0, &[]), &reply(2, &[]));
        let (back, front) = all.counted();
        assert_eq!((back.local_errors, front.long_replies), (1, 1));
        all.pair.end();
    }
}

#[test]
fn a_program_nobody_serves_is_unavailable() {
    let mut all = Gateways::new();
    all.client.send(&call(8, 200_000, 1, &[]));
    assert_eq!(all.answered(), error(8, 1));
    all.exchange(&call(9, NFS, 0, &[]), &reply(9, &[]));
    assert_eq!(all.counted().1.local_errors, 1);
    all.pair.end();
}

#[test]
fn an_error_is_said_where_no_memory_is_left() {
    let mut all = Gateways::new();
    all.exchange(&call(1, NFS, 0, &[]), &reply(1, &[]));
    let half = &mut all.pair.world.halves[SERVER];
    half.ceiling = Some(half.in_use());
    // Its Reply cannot be foretold, so there is a chunk for it.
    all.client.send(&call(2, 200_000, 1, &[]));
    assert_eq!(all.answered(), error(2, 1));
    assert_eq!(all.pair.server.lost, None);
    all.pair.end();
}

#[test]
fn calls_wait_for_memory_in_order_and_none_is_lost() {
    let settings = BackSettings { slots: 8, ..BACK };
    let mut all = Gateways::with(setups(Two, Two), &settings);
    all.exchange(&call(1, NFS, 0, &[]), &reply(1, &[]));
    for side in [CLIENT, SERVER] {
        let half = &mut all.pair.world.halves[side];
        half.ceiling = Some(half.in_use() + 150_000);
    }
    let xids = 100..140;
    for xid in xids.clone() {
        all.client.send(&read_call(xid, 50_000));
    }
    for xid in xids {
        assert!(all.served() == read_call(xid, 50_000));
        let data = payload(50_000, xid.to_be_bytes()[3]);
        all.server().send(&read_reply(xid, &data));
        assert!(all.answered() == read_reply(xid, &data));
    }
    let (back, _) = all.counted();
    assert!(back.memory_waits > 0);
    all.pair.end();
}

#[test]
fn a_client_that_does_not_read_is_not_read_from() {
    let mut all = Gateways::with_small_sockets(&BACK);
    all.exchange(&call(1, NFS, 0, &[]), &reply(1, &[]));
    all.client.deaf = true;
    // The client's socket has room for some of the replies, the slots hold some more.
    let (total, len) = (800, 8000);
    for xid in 100..100 + total {
        all.client.send(&read_call(xid, len));
    }
    let mut served = 0;
    let mut quiet = 0;
    while quiet < 20 {
        all.turn();
        let now = serve_reads(&mut all);
        served += now;
        quiet = if now == 0 { quiet + 1 } else { 0 };
    }
    assert!(served < total, "held back after {served}");
    all.client.deaf = false;
    for xid in 100..100 + total {
        let answered = all.until("a reply", |all| {
            serve_reads(all);
            all.client.record()
        });
        assert!(answered == read_reply(xid, &payload(8000, 9)));
    }
    all.pair.end();
}

/// Serves all READs there are; how many. What is no READ gets a reply no room is enough for.
fn serve_reads(all: &mut Gateways) -> u32 {
    let mut count = 0;
    while let Some(served) = all.server().record() {
        let xid = u32::from_be_bytes(*served.first_chunk().unwrap());
        let answer = if served == read_call(xid, 8000) {
            read_reply(xid, &payload(8000, 9))
        } else {
            reply(xid, &payload(9001, 1))
        };
        all.server().send(&answer);
        count += 1;
    }
    count
}

#[test]
fn failures_nobody_reads_hold_further_calls_back() {
    let settings = BackSettings {
        reply_bytes: 9000,
        unbound_reply_bytes: 9000,
        ..BACK
    };
    let mut all = Gateways::with_small_sockets(&settings);
    all.exchange(&call(1, NFS, 0, &[]), &reply(1, &[]));
    all.client.deaf = true;
    // Replies fill the socket to the client, and some of the slots behind it.
    let mut xid = 100;
    let mut queued = 0;
    while queued < 10 {
        let back = all.counted().0;
        queued = queued + back.records_in - back.records_out;
        all.client.send(&read_call(xid, 8000));
        xid += 1;
        all.turn();
        serve_reads(&mut all);
    }
    // Failed calls keep no slot, and each leaves an answer in the queue.
    let failures = xid..xid + 200;
    for xid in failures.clone() {
        all.client.send(&call(xid, NFS, 1, &[]));
        all.turn();
        serve_reads(&mut all);
    }
    all.settle();
    assert!(!all.client.ended);
    all.client.deaf = false;
    for expected in 100..failures.end {
        let answered = all.until("an answer", |all| {
            serve_reads(all);
            all.client.record()
        });
        let read = read_reply(expected, &payload(8000, 9));
        let right = if expected < failures.start {
            read
        } else {
            error(expected, 5)
        };
        assert!(answered == right, "{expected}");
    }
    all.pair.end();
}

#[test]
fn a_slot_that_comes_free_lets_the_next_call_in_at_once() {
    let (client, server) = setups(Two, Two);
    let mut all = Gateways::with(
        (
            Setup {
                credits: 1,
                ..client
            },
            server,
        ),
        &BACK,
    );
    all.exchange(&call(1, NFS, 0, &[]), &reply(1, &[]));
    all.client.send(&call(2, NFS, 0, &[]));
    all.client.send(&call(3, NFS, 0, &[]));
    assert_eq!(all.served(), call(2, NFS, 0, &[]));
    all.server().send(&reply(2, &[]));
    // The back hears of its connection only: the edge of its socket was long ago.
    assert_eq!(all.served_without_client_turns(), call(3, NFS, 0, &[]));
    all.server().send(&reply(3, &[]));
    assert_eq!(all.answered(), reply(2, &[]));
    assert_eq!(all.answered(), reply(3, &[]));
    all.pair.end();
}
