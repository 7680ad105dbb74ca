//! What happens when either side of a gateway goes away or breaks the rules: nobody waits for
//! ever, and nothing is left behind.

mod pair;

use pair::tcp::{
    BACK, Gateways, NFS, call, payload, read_call, read_reply, reply, words, write_call,
    write_reply,
};
use pair::{CLIENT, SERVER};
use rpcrdma_engine::CloseReason;
use rpcrdma_upper::back::{LINGER, STALL};
use std::time::Duration;

/// Both gateways, one call exchanged already.
fn running() -> Gateways {
    let mut all = Gateways::new();
    all.exchange(&call(1, NFS, 0, &[]), &reply(1, &[]));
    all
}

#[test]
fn a_client_that_leaves_idle_takes_the_connection_with_it() {
    let mut all = running();
    all.client.close();
    all.closed();
    assert_eq!(all.pair.client.lost, Some(CloseReason::Local));
    let (back, front) = all.counted();
    assert_eq!((back.clients_left, back.calls_cancelled), (1, 0));
    assert_eq!(front.backends_lost, 0);
    all.server().pump();
    assert!(all.server().ended, "its backend connection went too");
}

#[test]
fn memory_of_a_client_that_left_stays_exposed_until_the_answer() {
    let mut all = running();
    all.client.send(&read_call(2, 100_000));
    all.served();
    let in_use = all.pair.world.halves[CLIENT].in_use();
    all.client.close();
    all.settle();
    let half = &all.pair.world.halves[CLIENT];
    assert_eq!(
        (half.exposed(), half.in_use()),
        (1, in_use),
        "the peer may still write there"
    );
    all.server().send(&read_reply(2, &payload(100_000, 1)));
    all.closed();
    assert_eq!(all.counted().0.calls_cancelled, 1);
}

#[test]
fn a_client_that_left_is_not_waited_for_for_ever() {
    let mut all = running();
    all.client.send(&read_call(2, 100_000));
    all.served();
    all.client.close();
    all.settle();
    assert!(!all.pair.client.closed);
    all.pair.now += LINGER;
    all.closed();
}

/// Its end stands behind a record that waits for the memory its own Calls hold.
#[test]
fn a_client_that_left_while_a_call_waits_for_memory_is_noticed() {
    let mut all = running();
    let half = &mut all.pair.world.halves[CLIENT];
    half.ceiling = Some(half.in_use() + 150_000);
    all.client.send(&read_call(2, 100_000));
    all.served();
    all.client.send(&read_call(3, 100_000));
    all.settle();
    assert!(all.counted().0.memory_waits > 0, "the second one waits");
    all.client.close();
    all.pair.now += Duration::from_secs(1);
    all.settle();
    assert_eq!(all.counted().0.clients_left, 1);
    all.pair.now += LINGER;
    all.closed();
}

#[test]
fn a_client_that_stops_in_the_middle_of_a_record_gives_up_its_memory() {
    let record = write_call(2, &payload(100_000, 1));
    let marker = (u32::try_from(record.len()).unwrap() | 1 << 31).to_be_bytes();
    let octets = [&marker[..], &record].concat();
    let mut all = running();
    let before = all.pair.world.halves[CLIENT].in_use();
    all.client.send_raw(&octets[..50_000]);
    all.settle();
    assert!(all.pair.world.halves[CLIENT].in_use() > before);
    // As long as something comes, it is waited for.
    for at in 50_000..50_003 {
        all.pair.now += STALL.mul_f32(0.9);
        all.client.send_raw(&octets[at..=at]);
        all.settle();
    }
    assert_eq!(all.counted().0.refused_records, 0);
    all.pair.now += STALL;
    all.closed();
    assert_eq!(all.counted().0.refused_records, 1);
}

#[test]
fn a_client_that_leaves_midway_through_a_call_leaves_nothing() {
    let record = write_call(2, &payload(100_000, 1));
    for sent in [2, 4, 40, 2000, 90_000] {
        let mut all = running();
        let marker = (u32::try_from(record.len()).unwrap() | 1 << 31).to_be_bytes();
        let octets = [&marker[..], &record].concat();
        all.client.send_raw(&octets[..sent]);
        all.settle();
        all.client.close();
        all.closed();
    }
}

#[test]
fn what_is_no_call_ends_the_client() {
    let oversized = (BACK_LIMIT + 1) | 1 << 31;
    let fragment = |octets: Vec<u8>| {
        let marker = u32::try_from(octets.len()).unwrap() | 1 << 31;
        [marker.to_be_bytes().to_vec(), octets].concat()
    };
    for octets in [
        b"GET / HTTP/1.1\r\nHost: example\r\n\r\n".to_vec(),
        fragment(reply(5, &[])),
        fragment(words(&[5, 2, 2, NFS, 3, 0, 0, 0, 0, 0])),
        fragment(words(&[5, 0, 2])),
        fragment(Vec::new()),
        words(&[oversized]),
        words(&[0; 5000]),
        payload(100_000, 0),
    ] {
        let mut all = running();
        all.client.send_raw(&octets);
        all.closed();
        assert_eq!(all.counted().0.refused_records, 1);
        all.until("the client's end", |all| {
            all.client.pump();
            all.client.ended.then_some(())
        });
    }
}

const BACK_LIMIT: u32 = BACK.call_bytes;

#[test]
fn a_retransmission_is_dropped_while_the_first_is_in_flight() {
    let mut all = running();
    all.client.send(&read_call(2, 5000));
    all.client.send(&write_call(2, &payload(30_000, 1)));
    all.client.send(&call(3, NFS, 1, &[]));
    assert_eq!(all.served(), read_call(2, 5000));
    assert_eq!(all.served(), call(3, NFS, 1, &[]));
    all.server().send(&read_reply(2, &payload(5000, 1)));
    all.server().send(&reply(3, &[]));
    assert_eq!(all.answered(), read_reply(2, &payload(5000, 1)));
    assert_eq!(all.answered(), reply(3, &[]));
    assert_eq!(all.counted().0.duplicate_calls, 1);
    all.pair.end();
}

#[test]
fn a_backend_lost_with_calls_ends_both_connections() {
    let mut all = running();
    all.client.send(&read_call(2, 100_000));
    all.client.send(&write_call(3, &payload(100_000, 1)));
    all.served();
    all.served();
    all.server().close();
    all.closed();
    assert_eq!(all.pair.server.lost, Some(CloseReason::Local));
    assert_eq!(all.pair.client.lost, Some(CloseReason::Peer));
    assert!(all.pair.client.upper.was_cut_off());
    assert_eq!(all.counted().1.backends_lost, 1);
    all.until("the client's end", |all| {
        all.client.pump();
        all.client.ended.then_some(())
    });
    assert_eq!(
        all.client.record(),
        None,
        "no made-up answer: the client asks again"
    );
}

#[test]
fn a_backend_lost_midway_through_a_reply_ends_both_connections() {
    let record = read_reply(2, &payload(100_000, 1));
    let marker = (u32::try_from(record.len()).unwrap() | 1 << 31).to_be_bytes();
    let octets = [&marker[..], &record].concat();
    for sent in [3, 4, 11, 12, 200, 50_000] {
        let mut all = running();
        all.client.send(&read_call(2, 100_000));
        all.served();
        all.server().send_raw(&octets[..sent]);
        all.settle();
        all.server().close();
        all.closed();
        assert_eq!(all.client.record(), None);
    }
}

#[test]
fn a_backend_that_ends_idle_is_connected_to_again() {
    let mut all = running();
    for round in 1..4 {
        all.server().close();
        all.settle();
        assert_eq!(all.servers.len(), round, "not before it is needed");
        let xid = 10 + u32::try_from(round).unwrap();
        all.exchange(&call(xid, NFS, 0, &[]), &reply(xid, &[]));
    }
    let (_, front) = all.counted();
    assert_eq!((front.backends_connected, front.backends_idled), (4, 3));
    all.pair.end();
}

#[test]
fn a_backend_that_cannot_be_reached_ends_the_connection() {
    let mut all = Gateways::new();
    all.unreachable = true;
    all.client.send(&call(1, NFS, 0, &[]));
    all.closed();
    assert_eq!(all.counted().1.backends_unreachable, 1);
}

#[test]
fn replies_to_no_call_are_skipped() {
    let mut all = running();
    all.client.send(&call(2, NFS, 1, &[]));
    all.served();
    all.server().send(&reply(77, &payload(10_000, 1)));
    all.server().send(&reply(1, &[]));
    all.server().send(&reply(2, &[]));
    all.server().send(&reply(2, &[]));
    assert_eq!(all.answered(), reply(2, &[]));
    all.settle();
    assert_eq!(all.client.record(), None);
    assert_eq!(all.counted().1.unknown_replies, 3);
    all.pair.end();
}

#[test]
fn a_reply_to_a_call_that_is_still_being_sent_is_no_reply() {
    let mut all = Gateways::with_small_sockets(&BACK);
    all.exchange(&call(1, NFS, 0, &[]), &reply(1, &[]));
    all.server().deaf = true;
    all.client.send(&write_call(2, &payload(500_000, 1)));
    all.settle();
    all.server().send(&write_reply(2, 500_000));
    all.closed();
    let (_, front) = all.counted();
    assert_eq!((front.refused_records, front.backends_lost), (1, 1));
}

#[test]
fn calls_that_wait_when_an_idle_backend_ends_go_to_the_next() {
    let mut all = running();
    let half = &mut all.pair.world.halves[SERVER];
    half.ceiling = Some(half.in_use() + 100);
    all.client.send(&call(2, NFS, 1, &[]));
    all.settle();
    all.server().close();
    all.settle();
    all.pair.world.halves[SERVER].ceiling = None;
    assert_eq!(all.served(), call(2, NFS, 1, &[]));
    all.server().send(&reply(2, &[]));
    assert_eq!(all.answered(), reply(2, &[]));
    assert_eq!(all.servers.len(), 2);
    all.pair.end();
}

#[test]
fn a_backend_that_sends_calls_is_no_backend() {
    let mut all = running();
    all.client.send(&call(2, NFS, 1, &[]));
    all.served();
    all.server().send(&call(2, NFS, 1, &[]));
    all.closed();
    let (_, front) = all.counted();
    assert_eq!((front.refused_records, front.backends_lost), (1, 1));
}

#[test]
fn a_lost_fabric_closes_both_tcp_connections() {
    let mut all = running();
    all.client.send(&read_call(2, 100_000));
    all.client.send(&write_call(3, &payload(100_000, 1)));
    all.served();
    all.pair.world.cut();
    all.closed();
    all.until("both ends", |all| {
        all.client.pump();
        all.server().pump();
        (all.client.ended && all.server().ended).then_some(())
    });
}

/// V2-09: the client is back at once, and must not be before it is known that version one is to be
/// spoken for it.
#[test]
fn a_client_whose_peer_never_said_its_version_is_shown_out_with_the_session() {
    let mut all = Gateways::new();
    assert_eq!(all.pair.client.conn.version(), None);
    all.pair.world.cut();
    all.closed();
    assert!(all.pair.client.conn.broke_while_offering());
    all.client.pump();
    assert!(!all.client.ended, "nobody has taken the session yet");
    let Gateways {
        pair, mut client, ..
    } = all;
    drop(pair);
    client.pump();
    assert!(client.ended);
}

#[test]
fn a_lost_fabric_at_any_point_leaves_nothing() {
    for turns in 0..12 {
        let mut all = Gateways::new();
        all.client.send(&call(1, NFS, 0, &[]));
        all.client.send(&read_call(2, 100_000));
        all.client.send(&write_call(3, &payload(100_000, 1)));
        for _ in 0..turns {
            all.turn();
            let Some(server) = all.servers.last_mut() else {
                continue;
            };
            while let Some(record) = server.record() {
                let xid = u32::from_be_bytes(*record.first_chunk().unwrap());
                match xid {
                    1 => server.send(&reply(1, &[])),
                    2 => server.send(&read_reply(2, &payload(100_000, 1))),
                    _ => server.send(&write_reply(3, 100_000)),
                }
            }
        }
        all.pair.world.cut();
        all.closed();
    }
}

#[test]
fn memory_that_never_comes_hurts_only_those_who_wait_for_it() {
    let mut all = running();
    let half = &mut all.pair.world.halves[SERVER];
    half.ceiling = Some(half.in_use() + 60_000);
    all.client.send(&read_call(2, 100_000));
    all.settle();
    assert_eq!(all.server().record(), None, "no room for its reply");
    all.client.close();
    all.settle();
    assert!(!all.pair.client.closed, "its memory is the peer's");
    all.pair.now += LINGER;
    all.closed();
}
