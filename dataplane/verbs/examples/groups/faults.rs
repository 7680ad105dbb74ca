//! What goes wrong on the way, and what has to go on all the same.

use crate::bed::{Bed, ask_for, next, verdict};
use crate::group;
use rpcrdma_fabric::datagram::{
    AddressVector, DatagramFabric, Datagrams, FailureKind, Group, LinkChange, Memberships,
    PairWanted, Unsent,
};
use std::net::Ipv4Addr;

/// Receivers that do not exist: the kernel looks for each of them for a second.
pub fn silent_receivers(bed: &mut Bed) {
    let mut sent = 0;
    for last in 70..90 {
        let nobody = Ipv4Addr::new(192, 0, 2, last).to_ipv6_mapped();
        let to = AddressVector {
            gid: Some(nobody.octets()),
            queue_pair: 18,
            ..bed.to_all()
        };
        sent += u32::from(bed.near.pair.send(b"anyone?", &to) == Ok(()));
    }
    verdict(
        "unasked",
        sent > 0 && sent < 20,
        &format!("{sent} of 20 receivers are looked for"),
    );
    let heard = bed.fence_to_far() && bed.fence_to_near();
    let failed = bed.near.pair.counts().send_failed;
    let others = heard && failed < u64::from(sent);
    verdict(
        "unhindered",
        others,
        "the group hears and is heard while they are looked for",
    );
}

/// The wire is cut in the middle.
pub fn cut_wire(bed: &mut Bed) {
    let to = bed.to_all();
    ask_for("down");
    let down = bed.await_change("d0", LinkChange::Down) && bed.await_change("d1", LinkChange::Down);
    verdict("down", down, "a cut wire is told as both links being down");
    let sent = bed.near.pair.send(b"x", &to);
    verdict(
        "down-send",
        sent == Err(Unsent::LinkDown),
        &format!("{sent:?}"),
    );
    let link = bed.fabric.link(Some("d0"), 1).expect("its link");
    verdict(
        "down-facts",
        !link.up && link.ethernet,
        &format!("{link:x?}"),
    );
    ask_for("up");
    let up = bed.await_change("d0", LinkChange::Up) && bed.await_change("d1", LinkChange::Up);
    verdict("up", up, "a mended one as both being up");
    let heard = bed.fence_to_far() && bed.fence_to_near();
    verdict("up-heard", heard, "members are what they were");
}

/// The near interface is taken down under the queue pair's feet, before it is told.
pub fn pulled_interface(bed: &mut Bed) {
    let to = bed.to_all();
    let before = bed.near.pair.counts();
    ask_for("unplug");
    // Into nothing: the device may put the queue pair in error for it.
    let sent = bed.near.pair.send(b"lost", &to);
    let down = bed.await_change("d0", LinkChange::Down);
    verdict(
        "unplugged",
        down,
        &format!("the link is down; the last datagram: {sent:?}"),
    );
    ask_for("plug");
    let up = bed.await_change("d0", LinkChange::Up);
    let after = bed.near.pair.counts();
    let fail = after.send_failed - before.send_failed;
    verdict("plugged", up, &format!("{fail} datagrams failed"));
    let mut heard = false;
    for _ in 0..20 {
        // Busy until what is in error has started again.
        heard = heard || (bed.near.pair.send(b"back", &to).is_ok() && bed.far.next().is_some());
    }
    let restarts = bed.near.pair.counts().restarts;
    verdict("sends-again", heard, &format!("after {restarts} restarts"));
    let hears = bed.fence_to_near();
    verdict("hears-again", hears, "and the group is heard");
}

/// Pairs that no manager looks after.
pub fn pairs_of_partitions(bed: &mut Bed) {
    let wanted = |device: &str, p_key| PairWanted {
        device: Some(device.to_owned()),
        p_key,
        q_key: 0x0b1b,
        ..PairWanted::default()
    };
    let refused = bed.fabric.open_pair(&wanted("d0", 0x8006));
    let kind = refused.map_err(|failure| failure.kind).err();
    verdict(
        "partition",
        kind == Some(FailureKind::NoPartition),
        "0x8006 is not in the table",
    );
    let mut near = bed.fabric.open_pair(&wanted("d0", 0xFFFF)).expect("a pair");
    let mut far = bed.fabric.open_pair(&wanted("d1", 0xFFFF)).expect("a pair");
    let gid = bed.far.pair.facts().gid;
    let to = AddressVector {
        lid: 0,
        gid: Some(gid),
        queue_pair: far.facts().queue_pair,
        q_key: 0x0b1b,
        ..bed.to_all()
    };
    let sent = near.send(b"directly", &to);
    let right = sent.is_ok() && next(&mut far).is_some_and(|(found, _)| found == b"directly");
    verdict(
        "directly",
        right,
        &format!("{sent:?}: one pair to the other"),
    );
    let wrong = AddressVector { q_key: 1, ..to };
    let sent = near.send(b"forged", &wrong).and(near.send(b"proper", &to));
    let right = sent.is_ok() && next(&mut far).is_some_and(|(found, _)| found == b"proper");
    verdict(
        "q-key",
        right,
        "a datagram with another Q_Key does not arrive",
    );
    attachments(bed, far);
}

/// One more pair is attached to a group that the manager has joined, by hand.
fn attachments(bed: &mut Bed, mut far: impl Datagrams) {
    let to = AddressVector {
        q_key: 0x0b1b,
        ..bed.to_all()
    };
    let mgid = to.gid.expect("a group's");
    let by_hand = Group { mgid, mlid: to.lid };
    let attached = far.attach(by_hand).and_then(|()| far.attach(by_hand));
    verdict(
        "attach",
        attached.is_ok() && far.attached() == 1,
        &format!("{attached:?}"),
    );
    bed.near.pair.send(b"both", &to).expect("sent");
    let heard =
        next(&mut far).is_some_and(|(found, from)| found == b"both" && from.to == Some(mgid));
    verdict(
        "attached-hears",
        heard,
        "a group is heard by who is attached and has its Q_Key",
    );
    let detached = far.detach(by_hand).is_ok() && far.detach(by_hand).is_err();
    verdict("detach", detached, "once");
    far.attach(by_hand).expect("again");
    drop(far);
    let heard = bed.fence_to_far();
    verdict(
        "attached-dropped",
        heard,
        "a pair that is dropped while attached is gone",
    );
    bed.near.pair.leave(group(2)).expect("left");
}
