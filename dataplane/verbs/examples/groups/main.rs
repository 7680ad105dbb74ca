//! Multicast between two addresses of this machine, by groups that the connection manager joins:
//! one line for each thing that was to be seen, `PASS name: detail` or `FAIL name: detail`.
//!
//! ```text
//! groups NEAR FAR
//! ```
//!
//! Between them it wants the network changed: it says `do COMMAND` then, and goes on when a line
//! comes back. With `down`, `up` it is the wire that is cut and mended; `unplug`, `plug` are the
//! near interface itself.

mod bed;
mod faults;

use bed::{Bed, Side, verdict};
use rpcrdma_fabric::datagram::{
    AddressVector, Arrival, Datagrams, FailureKind, GidOctets, Membership, Memberships, Unsent,
};
use std::net::{IpAddr, Ipv4Addr};

/// Groups that are joined all at once.
const MANY: u8 = 40;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut address = || {
        let text = arguments.next().expect("usage: groups NEAR FAR");
        text.parse::<IpAddr>().expect("an address")
    };
    let (near, far) = (address(), address());
    let mut bed = Bed::new(near, far);
    facts(&mut bed);
    full_members(&mut bed);
    senders_alone(&mut bed);
    left_groups(&mut bed);
    one_to_one(&mut bed);
    many_groups(&mut bed);
    refusals(&mut bed);
    faults::silent_receivers(&mut bed);
    faults::cut_wire(&mut bed);
    faults::pulled_interface(&mut bed);
    faults::pairs_of_partitions(&mut bed);
    ended(bed);
}

/// A group of this machine's own (RFC 2365).
pub fn group(last: u8) -> IpAddr {
    Ipv4Addr::new(239, 255, 1, last).into()
}

fn facts(bed: &mut Bed) {
    for side in [&bed.near, &bed.far] {
        let facts = side.pair.facts();
        let right = facts.gid == mapped(side.address)
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

/// An arrival says who sent it, and to which group.
fn is_from(arrival: &Arrival, sender: &Side, to: IpAddr) -> bool {
    let facts = sender.pair.facts();
    arrival.queue_pair == facts.queue_pair
        && arrival.gid == Some(facts.gid)
        && arrival.to == Some(mapped(to))
        && arrival.is_multicast()
}

fn full_members(bed: &mut Bed) {
    let to_near = bed.near.joined(group(1), Membership::Full);
    let to_far = bed.far.joined(group(1), Membership::Full);
    let same = AddressVector {
        gid: to_far.gid,
        ..to_near
    };
    verdict("full-join", same == to_near, &format!("{to_near:x?}"));
    bed.to_all = Some(to_near);
    for len in [0, 1, 1000, 4096] {
        let octets: Vec<u8> = (0..len).map(|n: u32| n.to_le_bytes()[0]).collect();
        bed.near.pair.send(&octets, &to_near).expect("sent");
        let came = bed.far.next();
        let right = came
            .as_ref()
            .is_some_and(|(found, from)| *found == octets && is_from(from, &bed.near, group(1)));
        verdict("full-there", right, &format!("{len} octets to the group"));
        bed.far.pair.send(&octets, &to_far).expect("sent");
        let came = bed.near.next();
        let right = came
            .as_ref()
            .is_some_and(|(found, from)| *found == octets && is_from(from, &bed.far, group(1)));
        verdict("full-back", right, &format!("{len} octets to the group"));
    }
    let long = bed.near.pair.send(&[0; 4097], &to_near);
    verdict(
        "too-long",
        long == Err(Unsent::TooLong),
        "4097 octets are refused",
    );
    let counts = bed.near.pair.counts();
    verdict("own", counts.received == 4, &format!("{counts:?}"));
}

fn senders_alone(bed: &mut Bed) {
    let to = bed.near.joined(group(2), Membership::SendOnly);
    bed.far.joined(group(2), Membership::Full);
    bed.near.pair.send(b"announced", &to).expect("sent");
    let came = bed.far.next();
    let right = came
        .is_some_and(|(found, from)| found == b"announced" && is_from(&from, &bed.near, group(2)));
    verdict("send-only", right, "a sender that is no receiver is heard");
    bed.far.pair.send(b"unheard", &to).expect("sent");
    let fenced = bed.fence_to_near();
    verdict(
        "send-only-deaf",
        fenced,
        "and hears nothing of the group itself",
    );
    let attached = (bed.near.pair.attached(), bed.near.pair.memberships());
    verdict(
        "attached",
        attached == (1, 2),
        &format!("{attached:?}: of two groups it receives one's"),
    );
}

fn left_groups(bed: &mut Bed) {
    bed.far.pair.leave(group(2)).expect("left");
    let to = AddressVector {
        gid: Some(mapped(group(2))),
        ..bed.to_all()
    };
    bed.near.pair.send(b"late", &to).expect("sent");
    let fenced = bed.fence_to_far();
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
    let to = bed.far.joined(group(2), Membership::Full);
    bed.near.pair.send(b"again", &to).expect("sent");
    let came = bed.far.next();
    verdict(
        "rejoined",
        came.is_some_and(|(found, _)| found == b"again"),
        "and can be joined again",
    );
}

fn one_to_one(bed: &mut Bed) {
    let to = bed.to_all();
    bed.near.pair.send(b"who?", &to).expect("sent");
    let (_, asked) = bed.far.next().expect("the question");
    let q_key = bed.near.pair.facts().q_key;
    let reply = AddressVector::reply(&asked, q_key);
    let sent = bed.far.pair.send(b"me", &reply);
    let came = bed.near.next();
    let right = came.is_some_and(|(found, from)| found == b"me" && !from.is_multicast());
    verdict(
        "reply",
        sent.is_ok() && right,
        "an answer to whoever asked, alone",
    );
}

fn many_groups(bed: &mut Bed) {
    let numbers = 100..100 + MANY;
    for last in numbers.clone() {
        bed.far
            .pair
            .join(group(last), Membership::Full)
            .expect("begun");
        bed.near
            .pair
            .join(group(last), Membership::SendOnly)
            .expect("begun");
    }
    let mut joined = Vec::new();
    for last in numbers.clone() {
        joined.push(bed.near.standing_of(group(last)).expect("joined"));
        bed.far.standing_of(group(last)).expect("joined");
    }
    for (last, to) in numbers.clone().zip(&joined) {
        bed.near.pair.send(&[last], to).expect("sent");
    }
    let came: Vec<u8> = numbers
        .clone()
        .filter_map(|_| bed.far.next()?.0.pop())
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

fn ended(bed: Bed) {
    let near = bed.near.pair.counts();
    let right = near.overrun == 0 && near.malformed == 0;
    verdict("counts", right, &format!("{near:?}"));
    drop(bed);
    verdict("dropped", true, "everything is given back");
}
