//! When either side is lost: nobody gets a made-up answer, and nothing stays behind.

use crate::Way;
use crate::support::octets::{payload, success};
use crate::support::tcp::{
    Server, Stream, nfs_null, nfs_read, nfs_read_reply, nfs_write, nfs_write_reply,
};

const BYTES: u32 = 100_000;

/// The backend dies with Calls: the RDMA connection closes, and with it the client's. The
/// client comes back and is served, by a backend that is there again.
#[test]
fn a_backend_killed_in_mid_call_takes_its_clients_connection_with_it() {
    let mut way = Way::new(8);
    way.client.send(&nfs_read(2, BYTES));
    way.client.send(&nfs_write(3, &payload(BYTES, 1)));
    assert_eq!(way.backend.record(), Some(nfs_read(2, BYTES)));
    assert!(way.backend.record() == Some(nfs_write(3, &payload(BYTES, 1))));
    way.backend.close();
    assert_eq!(way.client.record(), None, "no answer, made up or not");
    way.ends_clean();
    let state = way.appliance.state();
    assert_eq!(state.counter("upper_backends_lost"), 1);
    assert_eq!(
        state.counter("errors_out"),
        0,
        "a lost backend is no protocol error"
    );

    let mut client = Stream::to(way.appliance.back());
    client.send(&nfs_read(2, BYTES));
    let mut backend = way.server.accept();
    assert_eq!(backend.record(), Some(nfs_read(2, BYTES)));
    let reply = nfs_read_reply(2, &payload(BYTES, 9));
    backend.send(&reply);
    assert!(client.record() == Some(reply));
    client.close();
    assert_eq!(backend.record(), None);
    way.ends_clean();
}

#[test]
fn a_backend_killed_midway_through_a_reply_answers_nothing() {
    let mut way = Way::new(8);
    way.client.send(&nfs_read(2, BYTES));
    assert_eq!(way.backend.record(), Some(nfs_read(2, BYTES)));
    let reply = nfs_read_reply(2, &payload(BYTES, 9));
    let record = crate::support::tcp::framed(&reply);
    way.backend.write_raw(&record[..record.len() / 2]);
    way.backend.close();
    assert_eq!(way.client.record(), None);
    way.ends_clean();
}

/// RFC 8166 section 4.4.1: the peer may write to a Call's memory until it says that it is done.
#[test]
fn a_cancelled_calls_memory_stays_exposed_until_its_answer() {
    let mut way = Way::new(8);
    way.client.send(&nfs_read(2, BYTES));
    assert_eq!(way.backend.record(), Some(nfs_read(2, BYTES)));
    let before = way.appliance.state().in_use();
    assert_eq!(before["exposures"], 1);
    way.client.close();
    way.appliance.until_counter("upper_clients_left", 1);
    let after = way.appliance.state().in_use();
    assert_eq!(after, before, "all of it is still the peer's");
    way.backend.send(&nfs_read_reply(2, &payload(BYTES, 9)));
    assert_eq!(way.backend.record(), None, "then its connections end");
    way.ends_clean();
    let state = way.appliance.state();
    assert_eq!(state.counter("upper_calls_cancelled"), 1);
    assert_eq!(
        state.counter("writes"),
        1,
        "the data was written all the same"
    );
}

/// A client that leaves has no effect on another, whose Calls are with the same server.
#[test]
fn one_client_leaves_and_another_stays() {
    let mut way = Way::new(8);
    let mut other = Stream::to(way.appliance.back());
    other.send(&nfs_write(7, &payload(BYTES, 3)));
    let mut others = way.server.accept();
    assert!(others.record() == Some(nfs_write(7, &payload(BYTES, 3))));
    way.client.send(&nfs_null(2));
    assert_eq!(way.backend.record(), Some(nfs_null(2)));
    way.client.close();
    way.backend.send(&success(2));
    assert_eq!(way.backend.record(), None);
    others.send(&nfs_write_reply(7, BYTES));
    assert_eq!(other.record(), Some(nfs_write_reply(7, BYTES)));
    other.close();
    way.ends_clean();
}

/// Clients come and go at every point, again and again: nothing adds up.
#[test]
fn clients_that_come_and_go_leave_nothing() {
    let way = Way::new(8);
    way.client.close();
    way.ends_clean();
    let call = nfs_write(2, &payload(BYTES, 1));
    let record = crate::support::tcp::framed(&call);
    for sent in [0, 1, 4, 40, 2000, 90_000, record.len()] {
        for _ in 0..4 {
            let mut client = Stream::to(way.appliance.back());
            client.write_raw(&record[..sent]);
            client.close();
        }
    }
    // Those whose Call is with a server are answered to nobody.
    let answer = |server: &Server| {
        while let Some(mut backend) = server.accepted() {
            if backend.record().is_some() {
                backend.write_raw(&crate::support::tcp::framed(&nfs_write_reply(2, BYTES)));
                assert_eq!(backend.record(), None);
            }
        }
    };
    way.appliance.until("everybody gone", |state| {
        answer(&way.server);
        (state.in_use() == way.idle).then_some(())
    });
}
