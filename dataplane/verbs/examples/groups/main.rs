//! Multicast between two addresses of this machine, by groups that the connection manager joins:
//! one line for each thing that was to be seen, `PASS name: detail` or `FAIL name: detail`.
//!
//! ```text
//! groups NEAR FAR [NEAR6 FAR6]
//! ```
//!
//! The second two are addresses of the link, as `[fe80::1%2]:0`.
//!
//! Between them it wants the network changed: it says `do COMMAND` then, and goes on when a line
//! comes back. With `down`, `up` it is the wire that is cut and mended; `address` gives the near
//! interface another address; `unplug`, `plug` are that interface itself; `remove` begins to take
//! the near device away, and `removed` waits for it.

mod bed;
mod faults;

use bed::{Bed, End, verdict};
use rpcrdma_fabric::datagram::{
    AddressVector, Datagrams, FailureKind, GidOctets, Membership, Memberships, Unsent,
};
use rpcrdma_verbs::ManagedWanted;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Groups that are joined all at once.
const MANY: u8 = 40;

fn main() {
    let addresses: Vec<SocketAddr> = std::env::args().skip(1).map(|it| parsed(&it)).collect();
    let [near, far, rest @ ..] = addresses.as_slice() else {
        panic!("usage: groups NEAR FAR [NEAR6 FAR6]");
    };
    let mut bed = Bed::new(*near, *far, group(1));
    facts(&bed);
    if let [near, far] = rest {
        of_the_link(&mut bed, [*near, *far]);
    }
    full_members(&mut bed);
    senders_alone(&mut bed);
    left_groups(&mut bed);
    one_to_one(&mut bed);
    many_groups(&mut bed);
    refusals(&mut bed);
    faults::silent_receivers(&mut bed);
    faults::cut_wire(&mut bed);
    faults::other_address(&mut bed);
    faults::pulled_interface(&mut bed);
    faults::pairs_of_partitions(&mut bed);
    counts(&bed);
    faults::removed_device(bed);
}

fn parsed(text: &str) -> SocketAddr {
    let with_port = |ip: IpAddr| SocketAddr::new(ip, 0);
    let parsed = text.parse().or_else(|_| text.parse().map(with_port));
    parsed.expect("an address")
}

/// IPv6: kernels (6.12) join no groups of it on RoCE version 2, and one host reaches another.
fn of_the_link(bed: &mut Bed, addresses: [SocketAddr; 2]) {
    let mut pairs = addresses.map(|address| {
        let wanted = ManagedWanted::at(address);
        bed.fabric.open_managed(&wanted).expect("a queue pair")
    });
    let [near, far] = &mut pairs;
    let right = near.facts().gid == mapped(addresses[0].ip());
    verdict("ipv6-facts", right, &format!("{:x?}", near.facts()));
    let all = "ff02::1".parse().expect("an address");
    let joined = near.join(all, Membership::Full).map_err(|it| it.kind);
    let right = joined == Err(FailureKind::Unsupported) && near.memberships() == 0;
    verdict("ipv6-group", right, &format!("{joined:?}"));
    let facts = far.facts();
    let to = AddressVector {
        gid: Some(facts.gid),
        queue_pair: facts.queue_pair,
        ..bed.to_all
    };
    let from = near.facts().gid;
    let came = bed.pass(near, far, b"by IPv6", &to);
    let right = came.is_some_and(|(found, arrival)| {
        found == b"by IPv6" && arrival.gid == Some(from) && !arrival.is_multicast()
    });
    verdict("ipv6", right, "from one address of the link to the other");
}

/// A group of this machine's own (RFC 2365).
pub(crate) fn group(last: u8) -> IpAddr {
    Ipv4Addr::new(239, 255, 1, last).into()
}

fn facts(bed: &Bed) {
    for side in [&bed.near, &bed.far] {
        let facts = side.pair.facts();
        let right = facts.gid == mapped(side.address.ip())
            && facts.p_key == 0xFFFF
            && facts.q_key == 0x0123_4567
            && facts.payload_bytes == 4096;
        verdict("facts", right, &format!("{facts:x?}"));
    }
}

fn mapped(address: IpAddr) -> GidOctets {
    match address {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// A datagram is this, and says who sent it, and to which group.
fn is_it(bed: &mut Bed, at: End, octets: &[u8], from: End, to: IpAddr) -> bool {
    let Some((found, arrival)) = bed.next(at) else {
        return false;
    };
    let facts = bed.side(from).pair.facts();
    found == octets
        && arrival.queue_pair == facts.queue_pair
        && arrival.gid == Some(facts.gid)
        && arrival.to == Some(mapped(to))
        && arrival.is_multicast()
}

fn full_members(bed: &mut Bed) {
    let to = bed.to_all;
    for len in [0, 1, 1000, 4096] {
        let octets: Vec<u8> = (0..len).map(|n: u32| n.to_le_bytes()[0]).collect();
        for (from, at) in [(End::Near, End::Far), (End::Far, End::Near)] {
            let sent = bed.send(from, &octets, &to);
            let right = sent.is_ok() && is_it(bed, at, &octets, from, group(1));
            verdict(
                "full",
                right,
                &format!("{len} octets to the group, from {from:?}"),
            );
        }
    }
    let long = bed.send(End::Near, &[0; 4097], &to);
    verdict(
        "too-long",
        long == Err(Unsent::TooLong),
        "4097 octets are refused",
    );
    let counts = bed.near.pair.counts();
    verdict("own", counts.received == 4, &format!("{counts:?}"));
}

fn senders_alone(bed: &mut Bed) {
    let to = bed.joined(End::Near, group(2), Membership::SendOnly);
    bed.joined(End::Far, group(2), Membership::Full);
    let sent = bed.send(End::Near, b"announced", &to);
    let right = sent.is_ok() && is_it(bed, End::Far, b"announced", End::Near, group(2));
    verdict("send-only", right, "a sender that is no receiver is heard");
    let sent = bed.send(End::Far, b"unheard", &to);
    let fenced = sent.is_ok() && bed.fence(End::Near);
    verdict(
        "send-only-deaf",
        fenced,
        "and hears nothing of the group itself",
    );
    let attached = (bed.near.pair.attached(), bed.near.pair.memberships());
    let detail = format!("{attached:?}: of two groups it receives one's");
    verdict("attached", attached == (1, 2), &detail);
}

fn left_groups(bed: &mut Bed) {
    bed.far.pair.leave(group(2)).expect("left");
    let to = AddressVector {
        gid: Some(mapped(group(2))),
        ..bed.to_all
    };
    let sent = bed.send(End::Near, b"late", &to);
    let fenced = sent.is_ok() && bed.fence(End::Far);
    verdict(
        "left",
        fenced,
        "a group that was left is not heard any more",
    );
    let again = bed.far.pair.leave(group(2)).map_err(|failure| failure.kind);
    verdict(
        "left-twice",
        again == Err(FailureKind::Invalid),
        "nor left again",
    );
    let to = bed.joined(End::Far, group(2), Membership::Full);
    let sent = bed.send(End::Near, b"again", &to);
    let right = sent.is_ok() && is_it(bed, End::Far, b"again", End::Near, group(2));
    verdict("rejoined", right, "and can be joined again");
}

fn one_to_one(bed: &mut Bed) {
    let to = bed.to_all;
    let asked = bed.send(End::Near, b"who?", &to).ok();
    let asked = asked.and_then(|()| bed.next(End::Far));
    let (_, asked) = asked.expect("the question");
    let q_key = bed.near.pair.facts().q_key;
    let sent = bed.send(End::Far, b"me", &AddressVector::reply(&asked, q_key));
    let came = bed.next(End::Near);
    let right = came.is_some_and(|(found, from)| found == b"me" && !from.is_multicast());
    let detail = format!("{sent:?}: an answer to whoever asked, alone");
    verdict("reply", right, &detail);
}

fn many_groups(bed: &mut Bed) {
    let numbers = 100..100 + MANY;
    for last in numbers.clone() {
        let (near, far) = (&mut bed.near.pair, &mut bed.far.pair);
        far.join(group(last), Membership::Full).expect("begun");
        near.join(group(last), Membership::SendOnly).expect("begun");
    }
    let mut joined = Vec::new();
    for last in numbers.clone() {
        joined.push(bed.standing_of(End::Near, group(last)).expect("joined"));
        bed.standing_of(End::Far, group(last)).expect("joined");
    }
    for (last, to) in numbers.clone().zip(&joined) {
        bed.send(End::Near, &[last], to).expect("sent");
    }
    let came: Vec<u8> = numbers
        .clone()
        .filter_map(|_| bed.next(End::Far)?.0.pop())
        .collect();
    let right = came.iter().copied().eq(numbers.clone());
    verdict(
        "many",
        right,
        &format!("{} of {MANY} groups heard", came.len()),
    );
    for last in numbers {
        bed.far.pair.leave(group(last)).expect("left");
        bed.near.pair.leave(group(last)).expect("left");
    }
}

fn refusals(bed: &mut Bed) {
    let mut kind = |group: &str| {
        let group = group.parse().expect("an address");
        let joined = bed.near.pair.join(group, Membership::Full);
        joined.map_err(|failure| failure.kind)
    };
    let invalid = Err(FailureKind::Invalid);
    verdict(
        "no-group",
        kind("192.0.2.1") == invalid,
        "an address of one host",
    );
    verdict(
        "family",
        kind("ff02::77") == invalid,
        "a group of the other family",
    );
    verdict(
        "twice",
        kind("239.255.1.1") == invalid,
        "a group that is joined",
    );
}

fn counts(bed: &Bed) {
    for side in [&bed.near, &bed.far] {
        let counts = side.pair.counts();
        verdict("counts", counts.malformed == 0, &format!("{counts:?}"));
    }
}
