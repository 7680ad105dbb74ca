//! What of an address outlives what: a link, a queue pair, the port's GID, the node.

use super::*;

#[test]
fn rfc5227_2_1_a_link_that_comes_back_looks_anew() {
    let mut bed = Bed::new();
    let at = using(&mut bed, spec(SIX), ONE);
    flap(&mut bed, at);
    bed.pass(CHECK_MS - 1);
    assert_eq!(phase(&bed, at), Phase::Probing);
    assert!(bed.seats[at].node.neighbours(LINK).is_none());
    bed.pass(CHECKED_MS);
    let news = [AddressNews::Used, AddressNews::Unused, AddressNews::Used];
    assert_eq!(bed.seats[at].address_news(), news);
    assert_eq!(probes(&bed.seats[at], ONE), 6);
}

#[test]
fn another_queue_pair_or_gid_looks_anew() {
    let mut bed = Bed::new();
    let at = using(&mut bed, spec(SIX), ONE);
    let p_keys = std::mem::take(&mut bed.seats[at].facts.p_keys);
    bed.tell_port(at);
    assert_eq!(phase(&bed, at), Phase::Waiting);
    bed.seats[at].facts.p_keys = p_keys;
    bed.tell_port(at);
    bed.pass(CHECKED_MS);
    assert_eq!(phase(&bed, at), Phase::Used);

    bed.seats[at].facts.gid = gid(99);
    bed.sa.add_port(rpcrdma_ipoib::small_sa::SubnetPort {
        gid: gid(99),
        lid: bed.seats[at].facts.lid,
        mtu: bed.seats[at].facts.mtu,
    });
    bed.tell_port(at);
    assert_ne!(phase(&bed, at), Phase::Used);
    bed.pass(20_000);
    assert_eq!(phase(&bed, at), Phase::Used);
}

/// What does not touch the link does not touch its address.
#[test]
fn an_sa_that_forgot_this_port_leaves_the_address_in_use() {
    let mut bed = Bed::new();
    let at = using(&mut bed, spec(SIX), ONE);
    bed.seats[at].node.reregister(bed.now);
    bed.run();
    bed.pass(60_000);
    assert_eq!(bed.seats[at].address_news(), [AddressNews::Used]);
}

#[test]
fn an_address_that_is_taken_away_is_looked_for_no_more() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    set(&mut bed, at, ONE);
    bed.pass(CHECK_MS / 2);
    let node = &mut bed.seats[at].node;
    node.set_address(bed.now, LINK, None).expect("a link");
    bed.pass(60_000);
    assert_eq!(bed.seats[at].address_news(), []);
    assert!(probes(&bed.seats[at], ONE) < 3);
}

#[test]
fn a_node_that_is_closed_stops_looking() {
    let mut bed = Bed::new();
    let at = bed.up(spec(SIX));
    set(&mut bed, at, ONE);
    bed.pass(CHECK_MS / 2);
    let asked = probes(&bed.seats[at], ONE);
    bed.seats[at].node.close(bed.now);
    bed.run();
    bed.pass(60_000);
    assert!(bed.seats[at].node.is_closed());
    assert_eq!(bed.seats[at].address_news(), []);
    assert_eq!(probes(&bed.seats[at], ONE), asked);
}
